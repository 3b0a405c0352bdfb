#include "server/executor/submission.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/auth/tenant_rules.h"
#include "server/executor/cache_inputs.h"
#include "server/executor/executor_test_util.h"
#include "server/jobs/local_board.h"
#include "server/jobs/memory_job_store.h"
#include "server/jobs/service_error.h"
#include "server/scheduler/fair_queue.h"

namespace npuc::executor {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class SubmissionTest : public ::testing::Test {
 protected:
  SubmissionTest()
      : queue_(scheduler::MakeFairQueue(100)),
        jobs_({.now = [] { return absl::FromUnixSeconds(1'700'000'000); },
               .random = [this] { return ++random_; },
               .retry = {}},
              &store_, &board_),
        submission_({.parse_config = FakeParseConfig, .compiler_build_id = "build-1"}, &jobs_,
                    &inputs_, &cache_, &holds_) {
    jobs_.SetEndListener([this](const jobs::Job& job) { holds_.Remove(job.id); });
    EXPECT_TRUE(jobs_.Recover(nullptr).ok());
  }

  SubmitRequest Request() {
    SubmitRequest request;
    request.tenant = "default";
    request.request_id = "r1";
    request.config_text = "config";
    request.config_name = "config.yaml";
    request.model = inputs_.PutFile("model bytes");
    return request;
  }

  // The reason of a refused request, and its violations.
  jobs::ErrorDetails Refusal(const SubmitRequest& request) {
    const auto submitted = submission_.SubmitAndWait(request);
    EXPECT_FALSE(submitted.ok());
    return jobs::ErrorDetailsOf(submitted.status()).value_or(jobs::ErrorDetails{});
  }

  uint64_t random_ = 0;
  jobs::MemoryJobStore store_;
  std::unique_ptr<jobs::JobQueue> queue_;
  jobs::LocalBoard board_{queue_.get(), absl::Minutes(5)};
  jobs::JobService jobs_;
  FakeInputs inputs_;
  FakeCache cache_;
  InputHolds holds_;
  Submission submission_;
};

TEST_F(SubmissionTest, AcceptsAndHoldsTheInputsUntilTheJobEnds) {
  const auto submitted = submission_.SubmitAndWait(Request());
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  const jobs::Job& job = *submitted->job;
  EXPECT_EQ(job.state, jobs::JobState::kQueued);
  EXPECT_EQ(job.output_file, "model.h");
  EXPECT_EQ(job.model().md5, Md5Hex("model bytes"));
  EXPECT_EQ(job.model().name, "model.pb");
  EXPECT_EQ(job.spec.timeout, absl::Hours(1));
  EXPECT_EQ(inputs_.held(), 1);
  ASSERT_TRUE(jobs_.Cancel(job.id, "").ok());
  EXPECT_EQ(inputs_.held(), 0);
}

TEST_F(SubmissionTest, EveryBadFieldIsNamed) {
  SubmitRequest request = Request();
  request.request_id = "not allowed!";
  request.config_text = "";
  request.config_name = std::string(300, 'x');
  request.model.sha256 = "ABC";
  request.side_inputs = {{.role = "OPT_CONFIG", .name = "t", .sha256 = "zz", .size_bytes = 1}};
  request.priority = 101;
  request.labels = {{"", "x"}};
  request.timeout = absl::Milliseconds(1);
  request.model_info_time_seconds = -1;
  const jobs::ErrorDetails details = Refusal(request);
  EXPECT_EQ(details.reason, "INVALID_FIELD");
  std::string fields;
  for (const auto& violation : details.field_violations) {
    absl::StrAppend(&fields, violation.field, " ");
  }
  EXPECT_EQ(fields,
            "request_id spec.config_text spec.config_name spec.model.sha256 "
            "spec.side_inputs[0].digest.sha256 spec.priority spec.labels spec.timeout "
            "spec.model_info_time ");
}

TEST_F(SubmissionTest, AJobOverItsTenantsBytesIsRefused) {
  Submission bounded({.parse_config = FakeParseConfig,
                      .compiler_build_id = "build-1",
                      .max_job_bytes =
                          [](absl::string_view tenant) {
                            return tenant == "default" ? std::optional<int64_t>(10) : std::nullopt;
                          }},
                     &jobs_, &inputs_, &cache_, &holds_);
  SubmitRequest request = Request();
  ASSERT_GT(request.model.size_bytes, 10u);
  const auto refused = bounded.SubmitAndWait(request);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  const auto details = jobs::ErrorDetailsOf(refused.status());
  EXPECT_EQ(details->reason, "QUOTA_EXCEEDED");
  EXPECT_EQ(details->retry_delay, std::nullopt);
  ASSERT_THAT(details->quota_violations, SizeIs(1));
  EXPECT_EQ(details->quota_violations[0].subject, "job_bytes");
  request.side_inputs = {{.role = "OPT_CONFIG", .size_bytes = ~uint64_t{0}}};
  EXPECT_EQ(jobs::ErrorDetailsOf(bounded.SubmitAndWait(request).status())->reason, "INVALID_FIELD");
}

TEST_F(SubmissionTest, EveryProblemOfTheConfigIsNamed) {
  SubmitRequest request = Request();
  request.config_text = "bad";
  const jobs::ErrorDetails details = Refusal(request);
  EXPECT_EQ(details.reason, "INVALID_CONFIG");
  ASSERT_THAT(details.field_violations, SizeIs(2));
  EXPECT_THAT(details.field_violations[1].description, HasSubstr("config.yaml:2: problem 2"));
  EXPECT_EQ(*store_.FindRequest("default", "r1"), std::nullopt);
}

TEST_F(SubmissionTest, FilesOfTheConfigAndSideInputsMustMatch) {
  SubmitRequest request = Request();
  request.config_text = "opt";
  EXPECT_THAT(Refusal(request).field_violations[0].description, HasSubstr("OPT_CONFIG (line 2)"));
  const auto side = [this](const char* role, const char* name) {
    base::InputFile file = inputs_.PutFile("template");
    file.role = role;
    file.name = name;
    return file;
  };
  request.side_inputs = {side("OPT_CONFIG", "dir/t.json"), side("OTHER", "x")};
  EXPECT_THAT(Refusal(request).field_violations[0].field, HasSubstr("side_inputs[1]"));
  request.side_inputs = {side("OPT_CONFIG", "t"), side("OPT_CONFIG", "t")};
  EXPECT_THAT(Refusal(request).field_violations[0].description, HasSubstr("twice"));
  request.side_inputs = {side("OPT_CONFIG", "dir/t.json")};
  const auto submitted = submission_.SubmitAndWait(request);
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_EQ(submitted->job->spec.inputs[1].name, "t.json");
}

TEST_F(SubmissionTest, EveryMissingBlobIsNamed) {
  SubmitRequest request = Request();
  request.config_text = "opt";
  const std::string model_sha256 = request.model.sha256;
  request.model.size_bytes += 1;  // another size is another blob
  request.side_inputs = {
      {.role = "OPT_CONFIG", .name = "t", .sha256 = std::string(64, 'a'), .size_bytes = 5}};
  const jobs::ErrorDetails details = Refusal(request);
  EXPECT_EQ(details.reason, "BLOB_MISSING");
  ASSERT_THAT(details.precondition_violations, SizeIs(2));
  EXPECT_EQ(details.precondition_violations[0].subject, model_sha256);
  EXPECT_EQ(inputs_.held(), 0);
}

TEST_F(SubmissionTest, ARepeatIsAnsweredAlthoughTheBlobIsGone) {
  const auto first = submission_.SubmitAndWait(Request());
  inputs_.Forget(first->job->model().sha256);
  SubmitRequest repeat;
  repeat.tenant = "default";
  repeat.request_id = "r1";
  repeat.config_text = "config";
  repeat.config_name = "config.yaml";
  repeat.model = first->job->model();
  const auto second = submission_.SubmitAndWait(repeat);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(second->already_existed);
  EXPECT_EQ(second->job->id, first->job->id);
  repeat.priority = 1;
  EXPECT_EQ(Refusal(repeat).reason, "REQUEST_ID_REUSED");
}

TEST_F(SubmissionTest, ACachedResultEndsTheJobAtOnceUnlessRefused) {
  SubmitRequest request = Request();
  const auto first = submission_.SubmitAndWait(request);
  const auto key = cache::CacheKey::Parse(first->job->cache_key);
  ASSERT_TRUE(key.ok());
  const base::JobDiagnostic warning = {.id = "NPUC1", .message = "careful"};
  ASSERT_TRUE(
      cache_.Store(*key, {{"model.h", "header"}}, jobs::EncodeResultMetadata({warning}), nullptr)
          .ok());
  request.request_id = "r2";
  const auto hit = submission_.SubmitAndWait(request);
  ASSERT_TRUE(hit.ok());
  EXPECT_EQ(hit->job->state, jobs::JobState::kSucceeded);
  EXPECT_TRUE(hit->job->cache_hit);
  EXPECT_EQ(hit->job->artifacts[0].sha256, Sha256Hex("header"));
  EXPECT_EQ(hit->job->diagnostics, std::vector<base::JobDiagnostic>{warning});
  request.request_id = "r3";
  request.no_cache = true;
  EXPECT_EQ(submission_.SubmitAndWait(request)->job->state, jobs::JobState::kQueued);
}

// What memory does not hold, or would refuse, is left to Submit, and nothing is kept.
TEST_F(SubmissionTest, TenantsThatShareHaveOneResult) {
  Submission shared({.parse_config = FakeParseConfig,
                     .compiler_build_id = "build-1",
                     .result_scope =
                         [](absl::string_view tenant) {
                           return tenant == "own" ? std::string(tenant) : auth::kSharedScope;
                         }},
                    &jobs_, &inputs_, &cache_, &holds_);
  std::map<std::string, std::string> keys;  // by tenant
  for (const char* tenant : {"a", "b", "own"}) {
    SubmitRequest request = Request();
    request.tenant = tenant;
    request.model = inputs_.PutFile("model bytes", tenant);
    const auto submitted = shared.SubmitAndWait(request);
    ASSERT_TRUE(submitted.ok()) << submitted.status();
    keys[tenant] = submitted->job->cache_key;
  }
  EXPECT_EQ(keys["a"], keys["b"]);
  EXPECT_NE(keys["a"], keys["own"]);
  ASSERT_TRUE(
      cache_.Store(*cache::CacheKey::Parse(keys["a"]), {{"model.h", "header"}}, "", nullptr).ok());
  SubmitRequest again = Request();
  again.request_id = "again";
  again.tenant = "b";
  EXPECT_TRUE(shared.SubmitAndWait(again)->job->cache_hit);
  again.tenant = "own";
  EXPECT_FALSE(shared.SubmitAndWait(again)->job->cache_hit);
  // The model must still be the tenant's own: what others uploaded is not there for it.
  again.tenant = "c";
  EXPECT_EQ(jobs::ErrorDetailsOf(shared.SubmitAndWait(again).status())->reason, "BLOB_MISSING");
}

TEST_F(SubmissionTest, ModelsOfOneMd5HaveTwoResults) {
  // X. Wang, D. Feng, X. Lai, H. Yu: Collisions for Hash Functions, 2004.
  const std::string a = absl::HexStringToBytes(
      "d131dd02c5e6eec4693d9a0698aff95c2fcab58712467eab4004583eb8fb7f8955ad340609f4b302"
      "83e488832571415a085125e8f7cdc99fd91dbdf280373c5bd8823e3156348f5bae6dacd436c919c6"
      "dd53e2b487da03fd02396306d248cda0e99f33420f577ee8ce54b67080a80d1ec69821bcb6a88393"
      "96f9652b6ff72a70");
  std::string b = a;
  for (const size_t at : {19, 45, 59, 83, 109, 123}) b[at] = static_cast<char>(b[at] ^ 0x80);
  SubmitRequest request = Request();
  request.model = inputs_.PutFile(a);
  const auto first = submission_.SubmitAndWait(request);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(
      cache_
          .Store(*cache::CacheKey::Parse(first->job->cache_key), {{"model.h", "of a"}}, "", nullptr)
          .ok());
  request.request_id = "r2";
  request.model = inputs_.PutFile(b);
  const auto second = submission_.SubmitAndWait(request);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(first->job->model().md5, second->job->model().md5);
  EXPECT_NE(first->job->model().sha256, second->job->model().sha256);
  EXPECT_NE(first->job->cache_key, second->job->cache_key);
  EXPECT_FALSE(second->job->cache_hit);
  ASSERT_TRUE(cache_
                  .Store(*cache::CacheKey::Parse(second->job->cache_key), {{"model.h", "of b"}}, "",
                         nullptr)
                  .ok());
  EXPECT_EQ(cache_.size(), 2u);
  request.request_id = "r3";
  EXPECT_EQ(submission_.SubmitAndWait(request)->job->artifacts[0].sha256, Sha256Hex("of b"));
}

TEST_F(SubmissionTest, WhateverChangesTheOutputChangesTheKey) {
  std::set<std::string> keys;
  SubmitRequest request = Request();
  request.request_id = "";
  const auto key = [&] { return submission_.SubmitAndWait(request)->job->cache_key; };
  keys.insert(key());
  request.priority = 5;
  request.labels = {{"a", "b"}};
  request.config_name = "other.yaml";
  request.no_cache = true;
  keys.insert(key());
  EXPECT_EQ(keys.size(), 1u);  // none of those shows in the output
  request.config_text = "config 2";
  keys.insert(key());
  request.model_info_time_seconds = 0;
  keys.insert(key());
  request.model_info_time_seconds = 1;
  keys.insert(key());
  request.model = inputs_.PutFile("other model");
  keys.insert(key());
  EXPECT_EQ(keys.size(), 5u);
}

}  // namespace
}  // namespace npuc::executor
