#include "server/executor/transfers.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/executor/executor_test_util.h"
#include "server/jobs/job_service.h"
#include "server/jobs/local_board.h"
#include "server/jobs/memory_job_store.h"
#include "server/jobs/service_error.h"
#include "server/scheduler/fair_queue.h"

namespace npuc::executor {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::string kTenant = "default";

std::string ReasonOf(const absl::Status& status) {
  const auto details = jobs::ErrorDetailsOf(status);
  return details.has_value() ? details->reason : status.ToString();
}

TEST(UploadsTest, InChunksWithRepeatsAndGaps) {
  FakeInputs inputs;
  Uploads uploads(&inputs);
  const cache::BlobDigest digest{Sha256Hex("abcdef"), 6};
  EXPECT_EQ(uploads.Query(kTenant, digest)->committed_bytes, 0u);
  EXPECT_THAT(*uploads.FindMissing(kTenant, {digest, digest}), SizeIs(1));
  EXPECT_FALSE(uploads.Begin(kTenant, digest)->complete);
  EXPECT_EQ(uploads.Append(kTenant, digest, 0, "abc")->committed_bytes, 3u);
  const auto gap = uploads.Append(kTenant, digest, 5, "f");
  EXPECT_EQ(ReasonOf(gap.status()), "OFFSET_MISMATCH");
  EXPECT_EQ(jobs::ErrorDetailsOf(gap.status())->metadata.at("committed_bytes"), "3");
  EXPECT_EQ(uploads.Append(kTenant, digest, 1, "bcd")->committed_bytes, 4u);
  EXPECT_TRUE(uploads.Append(kTenant, digest, 4, "ef")->complete);
  EXPECT_TRUE(uploads.Query(kTenant, digest)->complete);
  EXPECT_TRUE(uploads.Begin(kTenant, digest)->complete);
  EXPECT_THAT(*uploads.FindMissing(kTenant, {digest}), IsEmpty());
}

TEST(UploadsTest, AnEmptyBlobIsWholeAtOnce) {
  FakeInputs inputs;
  Uploads uploads(&inputs);
  EXPECT_TRUE(uploads.Begin(kTenant, {Sha256Hex(""), 0})->complete);
}

TEST(UploadsTest, RefusalsHaveReasons) {
  FakeInputs inputs;
  Uploads uploads(&inputs);
  const cache::BlobDigest digest{Sha256Hex("abc"), 3};
  ASSERT_TRUE(uploads.Begin(kTenant, digest).ok());
  EXPECT_EQ(ReasonOf(uploads.Append(kTenant, digest, -1, "a").status()), "INVALID_FIELD");
  EXPECT_EQ(ReasonOf(uploads.Append(kTenant, digest, 0, "abcd").status()), "INVALID_FIELD");
  EXPECT_EQ(
      ReasonOf(uploads.Append(kTenant, digest, 0, std::string(kMaxChunkBytes + 1, 'x')).status()),
      "INVALID_FIELD");
  EXPECT_EQ(ReasonOf(uploads.Append(kTenant, digest, 0, "xyz").status()), "DIGEST_MISMATCH");
  EXPECT_EQ(uploads.Query(kTenant, digest)->committed_bytes, 0u);
  EXPECT_EQ(ReasonOf(uploads.Query(kTenant, {"short", 3}).status()), "INVALID_FIELD");
  EXPECT_EQ(
      ReasonOf(uploads.FindMissing(kTenant, std::vector<cache::BlobDigest>(1001, digest)).status()),
      "INVALID_FIELD");
  inputs.SetFull();
  EXPECT_EQ(ReasonOf(uploads.Begin(kTenant, {Sha256Hex("zzz"), 3}).status()), "STORAGE_FULL");
}

TEST(UploadsTest, WhoseUploadAnotherClientsWrongBytesEndedGoesOnFromTheBeginning) {
  FakeInputs inputs;
  Uploads uploads(&inputs);
  const cache::BlobDigest digest{Sha256Hex("abc"), 3};
  ASSERT_TRUE(uploads.Begin(kTenant, digest).ok());
  ASSERT_TRUE(uploads.Append(kTenant, digest, 0, "ab").ok());
  EXPECT_EQ(ReasonOf(uploads.Append(kTenant, digest, 0, "xyz").status()), "DIGEST_MISMATCH");
  const auto late = uploads.Append(kTenant, digest, 2, "c");
  EXPECT_EQ(late.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(ReasonOf(late.status()), "OFFSET_MISMATCH");
  EXPECT_EQ(jobs::ErrorDetailsOf(late.status())->metadata.at("committed_bytes"), "0");
  ASSERT_TRUE(uploads.Begin(kTenant, digest).ok());
  EXPECT_TRUE(uploads.Append(kTenant, digest, 0, "abc")->complete);
}

TEST(UploadsTest, ABlobOverTheTenantsJobBytesIsRefusedBeforeItsFirstByte) {
  FakeInputs inputs;
  Uploads uploads(&inputs, {.quota = [](absl::string_view tenant) {
    return tenant == "small" ? UploadQuota{.job_bytes = 10} : UploadQuota{};
  }});
  const cache::BlobDigest digest{Sha256Hex("x"), 11};
  const auto refused = uploads.Begin("small", digest);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  const auto details = jobs::ErrorDetailsOf(refused.status());
  EXPECT_EQ(details->reason, "QUOTA_EXCEEDED");
  ASSERT_THAT(details->quota_violations, SizeIs(1));
  EXPECT_EQ(details->quota_violations[0].subject, "job_bytes");
  EXPECT_EQ(details->retry_delay, std::nullopt);
  EXPECT_TRUE(uploads.Begin("small", {Sha256Hex("y"), 10}).ok());
  EXPECT_TRUE(uploads.Begin("large", digest).ok());
}

TEST(UploadsTest, WhoUploadsTooFastIsToldWhenToGoOn) {
  FakeInputs inputs;
  absl::Time now = absl::FromUnixSeconds(1);
  Uploads uploads(&inputs, {.quota =
                                [](absl::string_view tenant) {
                                  return tenant == "slow" ? UploadQuota{.bytes_per_second = 1 << 20}
                                                          : UploadQuota{};
                                },
                            .steady_now = [&now] { return now; }});
  const cache::BlobDigest digest{Sha256Hex("y"), 100 << 20};
  const std::string chunk(kMaxChunkBytes, 'y');
  ASSERT_TRUE(uploads.Begin("slow", digest).ok());
  ASSERT_TRUE(uploads.Begin("other", digest).ok());
  uint64_t sent = 0;
  for (int refusals = 0; refusals < 5;) {
    const auto state = uploads.Append("slow", digest, static_cast<int64_t>(sent), chunk);
    if (state.ok()) {
      EXPECT_EQ(state->committed_bytes, sent += chunk.size());
      continue;
    }
    ++refusals;
    const auto details = jobs::ErrorDetailsOf(state.status());
    EXPECT_EQ(details->reason, "RATE_EXCEEDED");
    ASSERT_THAT(details->quota_violations, SizeIs(1));
    EXPECT_EQ(details->quota_violations[0].subject, "upload_rate");
    ASSERT_TRUE(details->retry_delay.has_value());
    EXPECT_TRUE(uploads.Append("other", digest, 0, chunk).ok());
    now += *details->retry_delay;
  }
  // 4 MiB at once, then 1 MiB a second in pieces of 2 s.
  EXPECT_EQ(sent, uint64_t{12} << 20);
  EXPECT_EQ(now, absl::FromUnixSeconds(11));
}

TEST(DownloadsTest, OnlyWhatTheJobMadeAndOnlyAsItWas) {
  FakeCache cache;
  jobs::MemoryJobStore store;
  const auto queue = scheduler::MakeFairQueue(10);
  jobs::LocalBoard board(queue.get(), absl::Minutes(5));
  uint64_t random = 0;
  jobs::JobService jobs({.now = [] { return absl::FromUnixSeconds(1); },
                         .random = [&] { return ++random; },
                         .retry = {}},
                        &store, &board);
  ASSERT_TRUE(jobs.Recover(nullptr).ok());
  Downloads downloads(&cache);
  const cache::CacheKey key = *cache::CacheKey::Parse("default/" + std::string(64, 'a'));
  const auto infos = *cache.Store(key, {{"model.h", "header"}}, "", nullptr);
  jobs::NewJob request;
  request.spec.inputs = {{.role = "MODEL_FILE", .sha256 = "s", .md5 = "m"}};
  request.cache_key = key.ToString();
  const auto waiting = jobs.SubmitAndWait(request)->job;
  request.cached = jobs::NewJob::Cached{.artifacts = {{"model.h", 6, infos[0].sha256}}};
  const auto done = jobs.SubmitAndWait(request)->job;

  EXPECT_EQ(ReasonOf(downloads.Open(*waiting, "model.h", 0).status()), "JOB_NOT_SUCCEEDED");
  EXPECT_EQ(ReasonOf(downloads.Open(*done, "other.h", 0).status()), "ARTIFACT_NOT_FOUND");
  EXPECT_EQ(ReasonOf(downloads.Open(*done, "model.h", 7).status()), "OFFSET_PAST_END");
  EXPECT_EQ(ReasonOf(downloads.Open(*done, "model.h", -1).status()), "INVALID_FIELD");
  const auto reader = downloads.Open(*done, "model.h", 2);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(*Downloads::Read(**reader, 2), "ader");
  EXPECT_EQ(*Downloads::Read(**reader, 6), "");

  ASSERT_TRUE(cache.Store(key, {{"model.h", "another"}}, "", nullptr).ok());
  EXPECT_EQ(ReasonOf(downloads.Open(*done, "model.h", 0).status()), "ARTIFACT_LOST");
  cache.Clear();
  EXPECT_EQ(ReasonOf(downloads.Open(*done, "model.h", 0).status()), "ARTIFACT_LOST");
}

TEST(DownloadsTest, WhatTheCacheHasLostIsMadeAgain) {
  FakeCache cache;
  const cache::CacheKey key = *cache::CacheKey::Parse("default/" + std::string(64, 'a'));
  jobs::Job job;
  job.state = jobs::JobState::kSucceeded;
  job.cache_key = key.ToString();
  job.artifacts = {
      {"model.h", 6, (*cache.Store(key, {{"model.h", "header"}}, "", nullptr))[0].sha256}};
  absl::Status answer;
  std::string bytes = "header";
  Downloads downloads(&cache, [&](const jobs::Job&) {
    if (answer.ok()) cache.Store(key, {{"model.h", bytes}}, "", nullptr).status().IgnoreError();
    return answer;
  });
  cache.Clear();
  const auto reader = downloads.Open(job, "model.h", 0);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(*Downloads::Read(**reader, 0), "header");
  // Other bytes are not this job's.
  cache.Clear();
  bytes = "anothr";
  EXPECT_EQ(ReasonOf(downloads.Open(job, "model.h", 0).status()), "ARTIFACT_LOST");
  cache.Clear();
  answer = absl::UnavailableError("busy");
  const auto busy = downloads.Open(job, "model.h", 0);
  EXPECT_EQ(ReasonOf(busy.status()), "SERVER_BUSY");
  EXPECT_TRUE(jobs::ErrorDetailsOf(busy.status())->retry_delay.has_value());
  answer = absl::NotFoundError("its model is gone");
  EXPECT_EQ(ReasonOf(downloads.Open(job, "model.h", 0).status()), "ARTIFACT_LOST");
  // A store that cannot be reached has lost nothing.
  cache.SetAway();
  const auto away = downloads.Open(job, "model.h", 0);
  EXPECT_TRUE(absl::IsUnavailable(away.status())) << away.status();
  EXPECT_EQ(ReasonOf(away.status()), "STORE_FAILED");
}

}  // namespace
}  // namespace npuc::executor
