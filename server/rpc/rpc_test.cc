// Every rpc of a server in this process, over a real connection, error codes included.
#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpc/support/log.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "npuc/rpc/status_details.pb.h"
#include "npuc/v1/blob.grpc.pb.h"
#include "npuc/v1/compile.grpc.pb.h"
#include "npuc/v1/server_info.grpc.pb.h"
#include "server/jobs/service_error.h"
#include "server/log/log.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/rpc_test_util.h"

namespace npuc::rpc {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST_F(RpcTest, TheClientsTraceIsGoneOnWith) {
  constexpr char kTrace[] = "0af7651916cd43dd8448eb211c80319c";
  const auto create = [&](const std::vector<std::string>& traceparents) {
    grpc::ClientContext context;
    for (const std::string& one : traceparents) context.AddMetadata("traceparent", one);
    v1::CreateCompileJobResponse response;
    v1::CreateCompileJobRequest request = Request();
    request.mutable_spec()->set_no_cache(true);
    EXPECT_TRUE(compile_->CreateCompileJob(&context, request, &response).ok());
    return response.job().trace_id();
  };
  const std::string good = absl::StrCat("00-", kTrace, "-b7ad6b7169203331-01");
  EXPECT_EQ(create({good}), kTrace);
  EXPECT_EQ(tracer_.Named("submit").parent_id, "b7ad6b7169203331");
  // A malformed one is none, nor are two.
  EXPECT_EQ(create({good + "-"}), "");
  EXPECT_EQ(create({good, good}), "");
  EXPECT_EQ(tracer_.spans().size(), 1u);
}

TEST_F(RpcTest, CreateIsIdempotentByRequestId) {
  v1::CreateCompileJobResponse first;
  ASSERT_TRUE(Create(Request("r1"), &first).ok());
  EXPECT_EQ(first.job().queued().position(), 0);
  EXPECT_FALSE(first.already_existed());
  v1::CreateCompileJobResponse second;
  ASSERT_TRUE(Create(Request("r1"), &second).ok());
  EXPECT_TRUE(second.already_existed());
  EXPECT_EQ(second.job().job_id(), first.job().job_id());
  v1::CreateCompileJobRequest other = Request("r1");
  other.mutable_spec()->set_priority(7);
  const grpc::Status reused = Create(other, &second);
  EXPECT_EQ(reused.error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(ReasonOf(reused), "REQUEST_ID_REUSED");
}

TEST_F(RpcTest, CreateRefusalsAreTyped) {
  v1::CreateCompileJobResponse response;
  v1::CreateCompileJobRequest request = Request();
  request.mutable_spec()->set_priority(1000);
  grpc::Status status = Create(request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ReasonOf(status), "INVALID_FIELD");
  EXPECT_EQ(DetailOf<rpc::BadRequest>(status).field_violations(0).field(), "spec.priority");

  request = Request();
  request.mutable_spec()->set_config_text("bad");
  status = Create(request, &response);
  EXPECT_EQ(ReasonOf(status), "INVALID_CONFIG");
  EXPECT_EQ(DetailOf<rpc::BadRequest>(status).field_violations_size(), 2);

  request = Request();
  request.mutable_spec()->mutable_model()->set_sha256(std::string(64, 'f'));
  status = Create(request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(DetailOf<rpc::PreconditionFailure>(status).violations(0).subject(),
            std::string(64, 'f'));

  request = Request();
  request.mutable_spec()->mutable_model()->set_size_bytes(-1);
  EXPECT_EQ(ReasonOf(Create(request, &response)), "INVALID_FIELD");

  for (int i = 0; i < 3; ++i) Submit();
  status = Create(Request(), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonOf(status), "QUEUE_FULL");
  EXPECT_GT(DetailOf<rpc::RetryInfo>(status).retry_delay().seconds(), 0);
}

TEST(GrpcStatusTest, AQuotaIsNoInvitationToRetry) {
  const grpc::Status status = ToGrpcStatus(jobs::ServiceError(
      absl::StatusCode::kResourceExhausted, "too many",
      {.reason = "QUOTA_EXCEEDED", .quota_violations = {{"queued_jobs", "2 of 2"}}}));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonOf(status), "QUOTA_EXCEEDED");
  EXPECT_EQ(DetailOf<rpc::QuotaFailure>(status).violations(0).subject(), "queued_jobs");
  EXPECT_FALSE(DetailOf<rpc::RetryInfo>(status).has_retry_delay());
}

TEST_F(RpcTest, GetListAndCancel) {
  const std::string first = Submit();
  const std::string second = Submit();
  {
    grpc::ClientContext context;
    v1::GetCompileJobRequest request;
    request.set_job_id(second);
    v1::GetCompileJobResponse response;
    ASSERT_TRUE(compile_->GetCompileJob(&context, request, &response).ok());
    EXPECT_EQ(response.job().queued().position(), 1);
    EXPECT_EQ(response.job().queued().wait_reason(), v1::WAIT_REASON_JOBS_AHEAD);
    EXPECT_GE(response.job().queued().estimated_start_time().seconds(),
              response.job().create_time().seconds());
    EXPECT_EQ(response.job().spec().config_text(), "config");
    EXPECT_EQ(response.job().model_md5(), Md5Hex("model bytes"));
    EXPECT_EQ(response.job().deadline_time().seconds() - response.job().create_time().seconds(),
              3600);
  }
  {
    grpc::ClientContext context;
    v1::CancelCompileJobRequest request;
    request.set_job_id(second);
    request.set_reason("why not");
    v1::CancelCompileJobResponse response;
    ASSERT_TRUE(compile_->CancelCompileJob(&context, request, &response).ok());
    EXPECT_EQ(response.job().cancelled().reason(), "why not");
  }
  const auto list = [&](const v1::ListCompileJobsRequest& request,
                        v1::ListCompileJobsResponse* page) {
    grpc::ClientContext context;
    return compile_->ListCompileJobs(&context, request, page);
  };
  v1::ListCompileJobsRequest request;
  request.set_page_size(1);
  v1::ListCompileJobsResponse page;
  ASSERT_TRUE(list(request, &page).ok());
  ASSERT_EQ(page.jobs_size(), 1);
  EXPECT_EQ(page.jobs(0).job_id(), second);
  request.set_page_token(page.next_page_token());
  ASSERT_TRUE(list(request, &page).ok());
  EXPECT_EQ(page.jobs(0).job_id(), first);
  EXPECT_EQ(page.next_page_token(), "");
  request.Clear();
  request.add_states(v1::JOB_STATE_CANCELLED);
  ASSERT_TRUE(list(request, &page).ok());
  ASSERT_EQ(page.jobs_size(), 1);
  EXPECT_EQ(page.jobs(0).job_id(), second);
  request.set_page_token("nonsense");
  request.set_page_size(5000);
  request.add_states(v1::JOB_STATE_UNSPECIFIED);
  const grpc::Status refused = list(request, &page);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(DetailOf<rpc::BadRequest>(refused).field_violations_size(), 3);
}

TEST_F(RpcTest, UnknownAndMalformedJobIds) {
  for (const auto& [id, code] : {std::pair{std::string(kUnknownJob), grpc::StatusCode::NOT_FOUND},
                                 std::pair{std::string("x"), grpc::StatusCode::INVALID_ARGUMENT}}) {
    grpc::ClientContext get_context;
    v1::GetCompileJobRequest get;
    get.set_job_id(id);
    v1::GetCompileJobResponse get_response;
    EXPECT_EQ(compile_->GetCompileJob(&get_context, get, &get_response).error_code(), code);
    grpc::ClientContext cancel_context;
    v1::CancelCompileJobRequest cancel;
    cancel.set_job_id(id);
    v1::CancelCompileJobResponse cancel_response;
    EXPECT_EQ(compile_->CancelCompileJob(&cancel_context, cancel, &cancel_response).error_code(),
              code);
    std::string text;
    EXPECT_EQ(Watch(id, 1, &text).error_code(), code);
    EXPECT_EQ(Download(id, "model.h", 0, &text).error_code(), code);
    EXPECT_EQ(text, "");
  }
}

TEST_F(RpcTest, WatchFromAnyNumberGivesTheRestWithoutGapOrRepeat) {
  const std::string id = Submit();
  RunNext(/*lines=*/200);  // several batches of a stream
  // 1 QUEUED, 2 RUNNING, 3..202 log, 203 artifact, 204 SUCCEEDED
  for (const int64_t from : {0, 1, 2, 63, 64, 65, 150, 204, 205}) {
    std::string expected;
    for (int64_t seq = std::max<int64_t>(from, 1); seq <= 204; ++seq) {
      absl::StrAppend(&expected, seq, " ");
    }
    std::string numbers, batched;
    int messages = 0, batches = 0;
    EXPECT_TRUE(Watch(id, from, &numbers, /*batch_events=*/false, &messages).ok());
    EXPECT_EQ(numbers, expected) << from;
    EXPECT_TRUE(Watch(id, from, &batched, /*batch_events=*/true, &batches).ok());
    EXPECT_EQ(batched, expected) << from;
    EXPECT_EQ(messages, 205 - std::max<int64_t>(from, 1));
    EXPECT_LE(batches, messages / 64 + 1) << from;
  }
  std::string numbers;
  EXPECT_EQ(ReasonOf(Watch(id, 206, &numbers)), "SEQ_PAST_END");
  EXPECT_EQ(ReasonOf(Watch(id, -1, &numbers)), "INVALID_FIELD");
}

TEST_F(RpcTest, WatchIsLive) {
  const std::string first = Submit("one");
  const std::string second = Submit("another");  // not equal, else it would not wait
  grpc::ClientContext context;
  v1::WatchCompileJobRequest request;
  request.set_job_id(second);
  const auto reader = compile_->WatchCompileJob(&context, request);
  v1::WatchCompileJobResponse response;
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.event().state_changed().state(), v1::JOB_STATE_QUEUED);
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.event().queue_position().position(), 1);
  EXPECT_EQ(response.event().queue_position().wait_reason(), v1::WAIT_REASON_JOBS_AHEAD);
  EXPECT_TRUE(response.event().queue_position().has_estimated_start_time());
  RunNext(0);  // the first one
  bool heartbeat = false;
  bool moved_up = false;
  while (!heartbeat || !moved_up) {
    ASSERT_TRUE(reader->Read(&response));
    EXPECT_EQ(response.event().seq(), 0);
    if (response.event().has_heartbeat()) {
      heartbeat = true;
      EXPECT_EQ(response.event().heartbeat().last_seq(), 1);
    }
    if (response.event().has_queue_position()) {
      moved_up = true;
      EXPECT_EQ(response.event().queue_position().position(), 0);
    }
  }
  RunNext(2);
  std::string numbers;
  v1::JobEvent last;
  while (reader->Read(&response)) {
    if (response.event().seq() != 0) absl::StrAppend(&numbers, response.event().seq(), " ");
    last = response.event();
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(numbers, "2 3 4 5 6 ");
  EXPECT_EQ(last.state_changed().state(), v1::JOB_STATE_SUCCEEDED);
  // The server lets go of the stream a moment after the client has its status.
  while (jobs_.hub().subscription_count() != 0) std::this_thread::yield();
}

TEST_F(RpcTest, WatchersThatLeaveAndDrainingEndStreams) {
  const std::string id = Submit();
  v1::WatchCompileJobRequest request;
  request.set_job_id(id);
  v1::WatchCompileJobResponse response;
  {
    grpc::ClientContext context;
    const auto reader = compile_->WatchCompileJob(&context, request);
    ASSERT_TRUE(reader->Read(&response));
    context.TryCancel();
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  grpc::ClientContext context;
  const auto reader = compile_->WatchCompileJob(&context, request);
  ASSERT_TRUE(reader->Read(&response));
  lifecycle_.Enter(executor::Lifecycle::Phase::kDraining);
  server_->EndStreams();
  while (reader->Read(&response)) {
  }
  EXPECT_EQ(ReasonOf(reader->Finish()), "DRAINING");
  v1::CreateCompileJobResponse created;
  const grpc::Status refused = Create(Request(), &created);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ReasonOf(refused), "DRAINING");
}

class OldStreamTest : public RpcTest {
 protected:
  OldStreamTest()
      : RpcTest(auth::Authenticator::Everybody(), QuickOptions(absl::Milliseconds(300))) {}
};

TEST_F(OldStreamTest, AsksToReattachAndNothingIsLost) {
  const std::string id = Submit();
  grpc::ClientContext context;
  v1::WatchCompileJobRequest request;
  request.set_job_id(id);
  v1::WatchCompileJobResponse response;
  auto reader = compile_->WatchCompileJob(&context, request);
  int64_t last = 0;
  bool heartbeat = false;
  while (reader->Read(&response)) {
    last = std::max(last, response.event().seq());
    heartbeat = heartbeat || response.event().has_heartbeat();
  }
  const grpc::Status status = reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ReasonOf(status), "REATTACH");
  EXPECT_EQ(DetailOf<rpc::ErrorInfo>(status).metadata().at("next_seq"), absl::StrCat(last + 1));
  EXPECT_EQ(DetailOf<rpc::RetryInfo>(status).retry_delay().seconds(), 0);
  EXPECT_TRUE(heartbeat);  // it lived longer than one period of silence
  RunNext(2);
  std::string numbers;
  EXPECT_TRUE(Watch(id, last + 1, &numbers).ok());
  EXPECT_EQ(numbers, "2 3 4 5 6 ");
}

// A watcher that does not read: what it is sent stays in the store.
TEST_F(RpcTest, ASlowWatcherGetsEverythingInTheEnd) {
  const std::string id = Submit();
  grpc::ClientContext context;
  v1::WatchCompileJobRequest request;
  request.set_job_id(id);
  const auto reader = compile_->WatchCompileJob(&context, request);
  const auto leased = *jobs_.TryLease();
  ASSERT_TRUE(leased.has_value());
  constexpr int kLines = 3000;
  for (int i = 0; i < kLines; i += 100) {
    std::vector<jobs::EventBody> bodies(100, jobs::LogEvent{std::string(4000, 'l')});
    ASSERT_TRUE(jobs_.Append(leased->lease, std::move(bodies)).ok());
  }
  ASSERT_TRUE(jobs_.Finish(leased->lease, {}, {.reason = "no"}).ok());
  v1::WatchCompileJobResponse response;
  int64_t next = 1;
  int lines = 0;
  while (reader->Read(&response)) {
    if (response.event().seq() == 0) continue;
    ASSERT_EQ(response.event().seq(), next++);
    lines += response.event().has_log_line() ? 1 : 0;
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(lines, kLines);
}

TEST_F(RpcTest, WhileStartingEverythingIsUnavailable) {
  lifecycle_.Enter(executor::Lifecycle::Phase::kStarting);
  v1::CreateCompileJobResponse created;
  EXPECT_EQ(ReasonOf(Create(Request(), &created)), "STARTING");
  std::string text;
  EXPECT_EQ(ReasonOf(Watch(kUnknownJob, 1, &text)), "STARTING");
  EXPECT_EQ(ReasonOf(Download(kUnknownJob, "x", 0, &text)), "STARTING");
  v1::UploadBlobResponse uploaded;
  EXPECT_EQ(ReasonOf(Upload({Chunk({Sha256Hex("a"), 1}, 0, "a")}, &uploaded)), "STARTING");
}

TEST_F(RpcTest, UploadResumesWhereItStopped) {
  const std::string bytes = big_;
  const cache::BlobDigest digest{Sha256Hex(bytes), bytes.size()};
  grpc::ClientContext missing_context;
  v1::FindMissingBlobsRequest find;
  *find.add_digests() = Chunk(digest, 0, "").digest();
  v1::FindMissingBlobsResponse missing;
  ASSERT_TRUE(blobs_->FindMissingBlobs(&missing_context, find, &missing).ok());
  EXPECT_EQ(missing.missing_size(), 1);

  v1::UploadBlobResponse response;
  ASSERT_TRUE(Upload({Chunk(digest, 0, bytes.substr(0, 1000))}, &response).ok());
  EXPECT_EQ(response.committed_bytes(), 1000);
  EXPECT_FALSE(response.complete());
  grpc::ClientContext query_context;
  v1::QueryUploadRequest query;
  *query.mutable_digest() = find.digests(0);
  v1::QueryUploadResponse state;
  ASSERT_TRUE(blobs_->QueryUpload(&query_context, query, &state).ok());
  EXPECT_EQ(state.committed_bytes(), 1000);

  const grpc::Status gap = Upload({Chunk(digest, 2000, "x")}, &response);
  EXPECT_EQ(gap.error_code(), grpc::StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(DetailOf<rpc::ErrorInfo>(gap).metadata().at("committed_bytes"), "1000");

  ASSERT_TRUE(Upload({Chunk(digest, 1000, bytes.substr(1000, 300'000)),
                      Chunk(digest, 301'000, bytes.substr(301'000))},
                     &response)
                  .ok());
  EXPECT_TRUE(response.complete());
  grpc::ClientContext again_context;
  ASSERT_TRUE(blobs_->FindMissingBlobs(&again_context, find, &missing).ok());
  EXPECT_EQ(missing.missing_size(), 0);
}

TEST_F(RpcTest, UploadRefusals) {
  v1::UploadBlobResponse response;
  EXPECT_EQ(ReasonOf(Upload({}, &response)), "INVALID_FIELD");
  EXPECT_EQ(ReasonOf(Upload({v1::UploadBlobRequest()}, &response)), "INVALID_FIELD");
  EXPECT_EQ(ReasonOf(Upload({Chunk({"short", 1}, 0, "a")}, &response)), "INVALID_FIELD");
  const grpc::Status mismatch = Upload({Chunk({Sha256Hex("a"), 1}, 0, "b")}, &response);
  EXPECT_EQ(mismatch.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ReasonOf(mismatch), "DIGEST_MISMATCH");
  inputs_.SetFull();
  const grpc::Status full = Upload({Chunk({Sha256Hex("a"), 1}, 0, "a")}, &response);
  EXPECT_EQ(full.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonOf(full), "STORAGE_FULL");
}

TEST_F(RpcTest, DownloadFromAnyOffset) {
  const std::string id = Submit();
  std::string bytes;
  EXPECT_EQ(ReasonOf(Download(id, "model.h", 0, &bytes)), "JOB_NOT_SUCCEEDED");
  RunNext(0);
  for (const int64_t offset : {0, 1, 262'144, 699'999, 750'000}) {
    bytes.clear();
    ASSERT_TRUE(Download(id, "model.h", offset, &bytes).ok());
    EXPECT_EQ(bytes, big_.substr(static_cast<size_t>(offset)));
  }
  EXPECT_EQ(ReasonOf(Download(id, "model.h", 750'001, &bytes)), "OFFSET_PAST_END");
  EXPECT_EQ(ReasonOf(Download(id, "other.h", 0, &bytes)), "ARTIFACT_NOT_FOUND");
  cache_.Clear();
  const grpc::Status lost = Download(id, "model.h", 0, &bytes);
  EXPECT_EQ(lost.error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_EQ(ReasonOf(lost), "ARTIFACT_LOST");
}

TEST_F(RpcTest, ServerInfo) {
  Submit();
  readiness_.Set("store", absl::OkStatus());
  readiness_.Set("disk", absl::ResourceExhaustedError("0 MiB are free"));
  grpc::ClientContext context;
  v1::GetServerInfoResponse response;
  ASSERT_TRUE(info_->GetServerInfo(&context, {}, &response).ok());
  EXPECT_EQ(response.version(), "npuc test");
  EXPECT_THAT(response.cores(), Contains("GRUS"));
  EXPECT_EQ(response.workers(), 3);
  EXPECT_EQ(response.queued_jobs(), 1);
  ASSERT_EQ(response.conditions_size(), 2);
  EXPECT_EQ(response.conditions(0).name(), "disk");
  EXPECT_EQ(response.conditions(0).reason(), "0 MiB are free");
  EXPECT_EQ(response.conditions(1).name(), "store");
  EXPECT_EQ(response.conditions(1).reason(), "");
  grpc::ClientContext ops_context;
  v1::ListOperatorsRequest ops_request;
  ops_request.set_core("GRUS");
  v1::ListOperatorsResponse ops;
  ASSERT_TRUE(info_->ListOperators(&ops_context, ops_request, &ops).ok());
  EXPECT_GT(ops.operators_size(), 10);
  grpc::ClientContext bad_context;
  ops_request.set_core("GRUSS");
  EXPECT_EQ(info_->ListOperators(&bad_context, ops_request, &ops).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST(GrpcLogTest, WhatGrpcSaysIsALineOfTheLog) {
  std::FILE* const file = std::tmpfile();
  const log::Logger log(file, [] { return absl::UnixEpoch(); });
  {
    const GrpcLog grpc_log(&log);
    gpr_log("src/core/x.cc", 7, GPR_LOG_SEVERITY_ERROR, "a \"%s\"", "handshake");
  }
  std::rewind(file);
  std::string line(1000, '\0');
  line.resize(std::fread(line.data(), 1, line.size(), file));
  std::fclose(file);
  EXPECT_EQ(
      line,
      "{\"time\":\"1970-01-01T00:00:00.000000Z\",\"level\":\"WARNING\",\"message\":\"gRPC says\","
      "\"text\":\"a \\\"handshake\\\"\",\"from\":\"x.cc:7\"}\n");
}

TEST_F(RpcTest, ASecondServerOnThePortIsRefused) {
  const auto second =
      RpcServer::Start({.listen = absl::StrCat("127.0.0.1:", server_->port())},
                       {.jobs = &jobs_, .lifecycle = &lifecycle_, .log = &log_, .facts = {}});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace npuc::rpc
