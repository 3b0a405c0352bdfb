// The limits of what one call may ask for, at and over each: what server/LIMITS.md lists, as
// clients see it. tests/docs/limit_rows_test.py sees to it that each row has a test.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/executor/submission.h"
#include "server/executor/transfers.h"
#include "server/rpc/rpc_test_util.h"

namespace npuc::rpc {
namespace {

class LimitsTest : public RpcTest {
 protected:
  // Whether a request was refused because of `field`; every other answer means that the field
  // passed.
  bool RefusesField(const v1::CreateCompileJobRequest& request, const std::string& field) {
    v1::CreateCompileJobResponse response;
    const grpc::Status status = Create(request, &response);
    if (status.ok()) return false;
    const auto details = DetailOf<rpc::BadRequest>(status);
    for (const auto& violation : details.field_violations()) {
      if (violation.field() != field) continue;
      EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
      EXPECT_EQ(ReasonOf(status), "INVALID_FIELD");
      return true;
    }
    return false;
  }
};

TEST_F(LimitsTest, FieldsOfASubmit) {
  struct Row {
    const char* field;
    int64_t limit;
    std::function<void(v1::CreateCompileJobRequest&, int64_t)> set;
  };
  const auto text = [](int64_t n) { return std::string(static_cast<size_t>(n), 'a'); };
  const std::vector<Row> rows = {
      {"request_id", executor::kMaxRequestIdBytes,
       [&](auto& request, int64_t n) { request.set_request_id(text(n)); }},
      {"spec.config_text", kMaxConfigBytes,
       [&](auto& request, int64_t n) { request.mutable_spec()->set_config_text(text(n)); }},
      {"spec.config_name", executor::kMaxNameBytes,
       [&](auto& request, int64_t n) { request.mutable_spec()->set_config_name(text(n)); }},
      {"spec.side_inputs", executor::kMaxSideInputs,
       [&](auto& request, int64_t n) {
         for (int64_t i = 0; i < n; ++i) request.mutable_spec()->add_side_inputs();
       }},
      {"spec.side_inputs[0].role", executor::kMaxNameBytes,
       [&](auto& request, int64_t n) {
         request.mutable_spec()->add_side_inputs()->set_role(text(n));
       }},
      {"spec.side_inputs[0].name", executor::kMaxNameBytes,
       [&](auto& request, int64_t n) {
         request.mutable_spec()->add_side_inputs()->set_name(text(n));
       }},
      {"spec.priority", executor::kMaxPriority,
       [&](auto& request, int64_t n) {
         request.mutable_spec()->set_priority(static_cast<int32_t>(n));
       }},
      {"spec.priority", executor::kMaxPriority,
       [&](auto& request, int64_t n) {
         request.mutable_spec()->set_priority(static_cast<int32_t>(-n));
       }},
      {"spec.labels", executor::kMaxLabels,
       [&](auto& request, int64_t n) {
         for (int64_t i = 0; i < n; ++i) {
           (*request.mutable_spec()->mutable_labels())[absl::StrCat("k", i)] = "v";
         }
       }},
      {"spec.labels", executor::kMaxLabelKeyBytes,
       [&](auto& request, int64_t n) {
         (*request.mutable_spec()->mutable_labels())[text(n)] = "v";
       }},
      {"spec.labels", executor::kMaxLabelValueBytes,
       [&](auto& request, int64_t n) {
         (*request.mutable_spec()->mutable_labels())["k"] = text(n);
       }},
      {"spec.timeout", absl::ToInt64Seconds(executor::kMaxTimeout),
       [&](auto& request, int64_t n) {
         request.mutable_spec()->mutable_timeout()->set_seconds(n);
       }},
  };
  for (const Row& row : rows) {
    v1::CreateCompileJobRequest request = Request();
    row.set(request, row.limit);
    EXPECT_FALSE(RefusesField(request, row.field)) << row.field << " at " << row.limit;
    request = Request();
    row.set(request, row.limit + 1);
    EXPECT_TRUE(RefusesField(request, row.field)) << row.field << " over " << row.limit;
  }
}

TEST_F(LimitsTest, FieldsOfOtherCalls) {
  const std::string job = Submit();
  for (const bool over : {false, true}) {
    const grpc::StatusCode expected =
        over ? grpc::StatusCode::INVALID_ARGUMENT : grpc::StatusCode::OK;
    grpc::ClientContext list_context;
    v1::ListCompileJobsRequest list;
    list.set_page_size(over ? 1001 : 1000);
    v1::ListCompileJobsResponse listed;
    EXPECT_EQ(compile_->ListCompileJobs(&list_context, list, &listed).error_code(), expected);

    const auto list_is = [&](const std::function<void(v1::ListCompileJobsRequest&)>& fill) {
      grpc::ClientContext context;
      v1::ListCompileJobsRequest request;
      fill(request);
      return compile_->ListCompileJobs(&context, request, &listed).error_code();
    };
    const int values = over ? 65 : 64;
    EXPECT_EQ(list_is([&](auto& r) {
                for (int i = 0; i < values; ++i) r.add_cores("GRUS");
              }),
              expected);
    EXPECT_EQ(list_is([&](auto& r) {
                for (int i = 0; i < values; ++i) r.add_frameworks("TF");
              }),
              expected);
    EXPECT_EQ(list_is([&](auto& r) {
                for (int i = 0; i < values; ++i) r.add_tenants("a");
              }),
              expected);
    const int labels = over ? 33 : 32;
    EXPECT_EQ(list_is([&](auto& r) {
                for (int i = 0; i < labels; ++i) r.add_labels("a=b");
              }),
              expected);
    EXPECT_EQ(list_is([&](auto& r) { r.set_text(std::string(over ? 256 : 255, 'x')); }), expected);

    grpc::ClientContext find_context;
    v1::FindMissingBlobsRequest find;
    for (size_t i = 0; i < executor::kMaxDigestsPerCall + (over ? 1 : 0); ++i) {
      find.add_digests()->set_sha256(std::string(64, 'a'));
    }
    v1::FindMissingBlobsResponse found;
    EXPECT_EQ(blobs_->FindMissingBlobs(&find_context, find, &found).error_code(), expected);

    grpc::ClientContext cancel_context;
    v1::CancelCompileJobRequest cancel;
    cancel.set_job_id(job);
    cancel.set_reason(std::string(over ? 1025 : 1024, 'x'));
    v1::CancelCompileJobResponse cancelled;
    EXPECT_EQ(compile_->CancelCompileJob(&cancel_context, cancel, &cancelled).error_code(),
              expected);
  }
}

// Compressed, a message may be a thousand times as large as it looks.
TEST_F(LimitsTest, CompressedMessagesAreRefused) {
  v1::CreateCompileJobRequest request = Request();
  request.mutable_spec()->set_config_text(std::string(100'000, 'a'));
  for (const auto algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    grpc::ClientContext context;
    context.set_compression_algorithm(algorithm);
    v1::CreateCompileJobResponse response;
    EXPECT_EQ(compile_->CreateCompileJob(&context, request, &response).error_code(),
              grpc::StatusCode::UNIMPLEMENTED);
  }
}

TEST_F(LimitsTest, AMessageOrMetadataTooLargeDoesNotReachTheService) {
  v1::CreateCompileJobRequest request = Request();
  request.mutable_spec()->set_config_text(std::string(5 << 20, 'a'));
  v1::CreateCompileJobResponse response;
  EXPECT_EQ(Create(request, &response).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  grpc::ClientContext context;
  context.AddMetadata("x-large", std::string(32 << 10, 'a'));
  EXPECT_EQ(compile_->CreateCompileJob(&context, Request(), &response).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

class ConnectionLimitTest : public RpcTest {
 protected:
  static constexpr size_t kConnections = 3;
  static RpcServerOptions Options() {
    RpcServerOptions options = QuickOptions();
    options.max_connections = kConnections;
    return options;
  }
  ConnectionLimitTest() : RpcTest(auth::Authenticator::Everybody(), Options()) {}

  // A connection of its own: channels of equal arguments share one.
  std::shared_ptr<grpc::Channel> Channel(int number) {
    grpc::ChannelArguments arguments;
    arguments.SetInt("npuc.test.number", number);
    return grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", server_->port()),
                                     grpc::InsecureChannelCredentials(), arguments);
  }
  static grpc::StatusCode Call(const std::shared_ptr<grpc::Channel>& channel, bool wait = false) {
    grpc::ClientContext context;
    context.set_wait_for_ready(wait);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    v1::GetServerInfoResponse response;
    return v1::ServerInfoService::NewStub(channel)
        ->GetServerInfo(&context, v1::GetServerInfoRequest(), &response)
        .error_code();
  }
};

TEST_F(ConnectionLimitTest, OneMoreIsUnavailableAndAPlaceIsGivenBack) {
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int i = 0; i < static_cast<int>(kConnections); ++i) {
    channels.push_back(Channel(i));
    EXPECT_EQ(Call(channels.back()), grpc::StatusCode::OK);
  }
  const auto further = Channel(100);
  EXPECT_EQ(Call(further), grpc::StatusCode::UNAVAILABLE);
  for (const auto& channel : channels) EXPECT_EQ(Call(channel), grpc::StatusCode::OK);
  channels.pop_back();
  // Connects again until there is a place.
  EXPECT_EQ(Call(further, /*wait=*/true), grpc::StatusCode::OK);
}

class StreamLimitTest : public RpcTest {
 protected:
  static constexpr size_t kStreams = 3;
  static RpcServerOptions Options() {
    RpcServerOptions options = QuickOptions();
    options.max_watch_streams = kStreams;
    return options;
  }
  StreamLimitTest() : RpcTest(auth::Authenticator::Everybody(), Options()) {}
};

TEST_F(StreamLimitTest, OneMoreIsToldToComeBackAndAPlaceIsGivenBack) {
  const std::string job = Submit();
  struct Watch {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::WatchCompileJobResponse>> reader;
  };
  const auto open = [&] {
    auto watch = std::make_unique<Watch>();
    v1::WatchCompileJobRequest request;
    request.set_job_id(job);
    watch->reader = compile_->WatchCompileJob(&watch->context, request);
    return watch;
  };
  v1::WatchCompileJobResponse response;
  std::vector<std::unique_ptr<Watch>> watches;
  for (size_t i = 0; i < kStreams; ++i) {
    watches.push_back(open());
    ASSERT_TRUE(watches.back()->reader->Read(&response));
  }
  const auto refused = open();
  EXPECT_FALSE(refused->reader->Read(&response));
  const grpc::Status status = refused->reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonOf(status), "SERVER_BUSY");
  EXPECT_GE(DetailOf<rpc::RetryInfo>(status).retry_delay().seconds(), 1);

  watches.front()->context.TryCancel();
  while (watches.front()->reader->Read(&response)) {
  }
  watches.front()->reader->Finish();
  // The server hears of the end a moment later.
  bool is_open = false;
  for (const absl::Time deadline = absl::Now() + absl::Seconds(10);
       !is_open && absl::Now() < deadline;) {
    auto again = open();
    is_open = again->reader->Read(&response);
    again->context.TryCancel();
    while (again->reader->Read(&response)) {
    }
    again->reader->Finish();
  }
  EXPECT_TRUE(is_open);
  for (size_t i = 1; i < watches.size(); ++i) {
    watches[i]->context.TryCancel();
    while (watches[i]->reader->Read(&response)) {
    }
    watches[i]->reader->Finish();
  }
}

}  // namespace
}  // namespace npuc::rpc
