#ifndef NPUC_SERVER_RPC_RPC_TEST_UTIL_H_
#define NPUC_SERVER_RPC_RPC_TEST_UTIL_H_

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "npuc/rpc/status_details.pb.h"
#include "npuc/v1/admin.grpc.pb.h"
#include "npuc/v1/blob.grpc.pb.h"
#include "npuc/v1/compile.grpc.pb.h"
#include "npuc/v1/server_info.grpc.pb.h"
#include "server/api/admin.h"
#include "server/auth/sessions.h"
#include "server/base/kept_text_test_util.h"
#include "server/executor/executor_test_util.h"
#include "server/jobs/indexed_job_store.h"
#include "server/jobs/local_board.h"
#include "server/jobs/memory_job_store.h"
#include "server/log/audit_log.h"
#include "server/rpc/rpc_server.h"
#include "server/scheduler/fair_queue.h"

namespace npuc::rpc {

inline constexpr char kUnknownJob[] = "j00000000000000000000000000";

// "REASON" of an error's ErrorInfo.
inline std::string ReasonOf(const grpc::Status& status) {
  rpc::Status details;
  if (!details.ParseFromString(status.error_details())) return "unreadable details";
  for (const auto& any : details.details()) {
    rpc::ErrorInfo info;
    if (any.type_url() == "type.googleapis.com/google.rpc.ErrorInfo" &&
        info.ParseFromString(any.value())) {
      EXPECT_EQ(info.domain(), "npuc");
      return info.reason();
    }
  }
  return "no ErrorInfo";
}

template <typename Detail>
Detail DetailOf(const grpc::Status& status) {
  Detail detail;
  rpc::Status details;
  details.ParseFromString(status.error_details());
  for (const auto& any : details.details()) {
    if (any.type_url() == "type.googleapis.com/google.rpc." + detail.GetDescriptor()->name()) {
      detail.ParseFromString(any.value());
    }
  }
  return detail;
}

// A server in this process on fakes of stores and workers, and stubs of a real connection to it.
class RpcTest : public ::testing::Test {
 protected:
  // What happens once in seconds, in milliseconds.
  static RpcServerOptions QuickOptions(absl::Duration max_stream_age = absl::Hours(1)) {
    return {.listen = "127.0.0.1:0",
            .heartbeat = absl::Milliseconds(20),
            .max_stream_age = max_stream_age,
            .tick = absl::Milliseconds(10)};
  }
  explicit RpcTest(
      std::unique_ptr<auth::Authenticator> authenticator = auth::Authenticator::Everybody(),
      RpcServerOptions options = QuickOptions())
      : authenticator_(std::move(authenticator)),
        log_(nullptr, [] { return absl::Now(); }),
        queue_(scheduler::MakeFairQueue(3)),
        jobs_({.now = [] { return absl::Now(); },
               .random = [this] { return ++random_; },
               .retry = {}},
              &indexed_, &board_),
        submission_({.parse_config = executor::FakeParseConfig,
                     .compiler_build_id = "build-1",
                     .tracer = &tracer_},
                    &jobs_, &inputs_, &cache_, &holds_),
        inspections_({.work_dir = ::testing::TempDir()}, &inputs_, &workers_),
        uploads_(&inputs_),
        downloads_(&cache_) {
    EXPECT_TRUE(jobs_.Recover(nullptr).ok());
    EXPECT_TRUE(indexed_.Load(nullptr).ok());
    std::filesystem::remove_all(dir_);
    std::filesystem::create_directories(dir_);
    audit_ = *log::AuditLog::Open(
        {.file = {.dir = dir_, .node = "npucd"}, .now = [] { return absl::Now(); }});
    dispatch_ = *executor::OperatorSwitch::Open("paused", &paused_text_,
                                                [this](bool on) { board_.SetPaused(on); });
    cordon_ = *executor::OperatorSwitch::Open("cordoned", &cordoned_text_,
                                              [this](bool on) { board_.SetPaused(on); });
    EXPECT_TRUE(tokens_.Attach(&tokens_text_).ok());
    EXPECT_TRUE(limits_.Attach(&limits_text_).ok());
    admin_.dispatch = dispatch_.get();
    admin_.cordon = cordon_.get();
    admin_.tokens = &tokens_;
    admin_.limits = &limits_;
    admin_.inputs = &inputs_;
    admin_.results = &cache_;
    admin_.now = [] { return absl::Now(); };
    admin_.refresh_policies = [this] { ++policy_refreshes_; };
    admin_.drop_uploads = [this](const std::string& tenant, absl::Duration idle) {
      dropped_.emplace_back(tenant, idle);
      return cache::BlobStore::Dropped{.uploads = 2, .bytes = 30};
    };
    usage_ = *executor::UsageBook::Open(
        std::make_unique<base::FileUsageStore>(dir_ + "/usage"), [] { return absl::Now(); },
        &metrics_);
    admin_.usage = usage_.get();
    EXPECT_TRUE(sessions_.Attach(&sessions_text_).ok());
    admin_.tenant = [this](const std::string& name) {
      api::AdminControls::TenantNow now;
      now.tenant = limits_.Apply({.name = name, .quota = {.queued_jobs = 7}});
      now.queued = 2;
      now.stored_bytes = 11;
      now.open_uploads = 1;
      return now;
    };
    admin_.tenants = [this] {
      return std::vector<api::AdminControls::TenantNow>{admin_.tenant("a")};
    };
    auto server = RpcServer::Start(std::move(options), Dependencies());
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    const auto channel = grpc::CreateChannel(absl::StrCat("127.0.0.1:", server_->port()),
                                             grpc::InsecureChannelCredentials());
    compile_ = v1::CompileService::NewStub(channel);
    blobs_ = v1::BlobService::NewStub(channel);
    info_ = v1::ServerInfoService::NewStub(channel);
    admin_stub_ = v1::AdminService::NewStub(channel);
    lifecycle_.Enter(executor::Lifecycle::Phase::kServing);
  }

  // What servers over the same jobs, stores and workers stand on.
  api::ApiDependencies Dependencies() {
    return {.authenticator = authenticator_.get(),
            .sessions = &sessions_,
            .jobs = &jobs_,
            .index = &index_,
            .submission = &submission_,
            .inspections = &inspections_,
            .uploads = &uploads_,
            .downloads = &downloads_,
            .lifecycle = &lifecycle_,
            .log = &log_,
            .readiness = &readiness_,
            .tracer = &tracer_,
            .audit = audit_.get(),
            .admin = &admin_,
            .connections = &connections_,
            .streams = &streams_,
            .facts = {.version = "npuc test",
                      .compiler_build_id = "build-1",
                      .node = "node-a",
                      .workers = 3,
                      .max_blob_bytes = 1000,
                      .max_queued_jobs = 3,
                      .default_timeout = absl::Hours(1)}};
  }

  v1::CreateCompileJobRequest Request(const std::string& request_id = "") {
    const cache::BlobDigest model = inputs_.Put("model bytes", auth::kLocalTenant);
    v1::CreateCompileJobRequest request;
    request.set_request_id(request_id);
    request.mutable_spec()->set_config_text("config");
    request.mutable_spec()->set_config_name("config.yaml");
    request.mutable_spec()->mutable_model()->set_sha256(model.sha256);
    request.mutable_spec()->mutable_model()->set_size_bytes(static_cast<int64_t>(model.size_bytes));
    return request;
  }

  grpc::Status Create(const v1::CreateCompileJobRequest& request,
                      v1::CreateCompileJobResponse* response) {
    grpc::ClientContext context;
    return compile_->CreateCompileJob(&context, request, response);
  }

  std::string Submit(const std::string& config = "config") {
    v1::CreateCompileJobRequest request = Request();
    request.mutable_spec()->set_config_text(config);
    v1::CreateCompileJobResponse response;
    const grpc::Status status = Create(request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.job().job_id();
  }

  // Leases and finishes the next job, with `lines` log lines, as a run would.
  void RunNext(int lines) {
    const auto leased = *jobs_.TryLease();
    ASSERT_TRUE(leased.has_value());
    for (int i = 0; i < lines; ++i) {
      ASSERT_TRUE(jobs_.Append(leased->lease, {jobs::LogEvent{absl::StrCat("line ", i)}}).ok());
    }
    const cache::CacheKey key = *cache::CacheKey::Parse(leased->job->cache_key);
    const auto stored = cache_.Store(key, {{"model.h", big_}}, "", nullptr);
    ASSERT_TRUE(jobs_
                    .Finish(leased->lease, {},
                            {.succeeded = true,
                             .artifacts = {{"model.h", big_.size(), (*stored)[0].sha256}}})
                    .ok());
  }

  // Reads a watch stream to its end: the numbers of kept events as text.
  grpc::Status Watch(const std::string& job_id, int64_t from_seq, std::string* numbers,
                     bool batch_events = false, int* messages = nullptr) {
    grpc::ClientContext context;
    v1::WatchCompileJobRequest request;
    request.set_job_id(job_id);
    request.set_from_seq(from_seq);
    request.set_batch_events(batch_events);
    const auto reader = compile_->WatchCompileJob(&context, request);
    v1::WatchCompileJobResponse response;
    const auto note = [&](const v1::JobEvent& event) {
      if (event.seq() != 0) absl::StrAppend(numbers, event.seq(), " ");
    };
    while (reader->Read(&response)) {
      if (messages != nullptr) ++*messages;
      note(response.event());
      for (const v1::JobEvent& event : response.more_events()) note(event);
    }
    return reader->Finish();
  }

  grpc::Status Upload(const std::vector<v1::UploadBlobRequest>& messages,
                      v1::UploadBlobResponse* response) {
    grpc::ClientContext context;
    const auto writer = blobs_->UploadBlob(&context, response);
    for (const v1::UploadBlobRequest& message : messages) {
      if (!writer->Write(message)) break;
    }
    writer->WritesDone();
    return writer->Finish();
  }

  static v1::UploadBlobRequest Chunk(const cache::BlobDigest& digest, int64_t offset,
                                     std::string data) {
    v1::UploadBlobRequest chunk;
    chunk.mutable_digest()->set_sha256(digest.sha256);
    chunk.mutable_digest()->set_size_bytes(static_cast<int64_t>(digest.size_bytes));
    chunk.set_offset(offset);
    chunk.set_data(std::move(data));
    return chunk;
  }

  grpc::Status Download(const std::string& job_id, const std::string& name, int64_t offset,
                        std::string* bytes) {
    grpc::ClientContext context;
    v1::DownloadArtifactRequest request;
    request.set_job_id(job_id);
    request.set_artifact_name(name);
    request.set_offset(offset);
    const auto reader = blobs_->DownloadArtifact(&context, request);
    v1::DownloadArtifactResponse response;
    while (reader->Read(&response)) {
      EXPECT_EQ(response.offset(), offset + static_cast<int64_t>(bytes->size()));
      bytes->append(response.data());
    }
    return reader->Finish();
  }

  // The lines of the audit log that have all of these texts.
  std::vector<std::string> AuditLines(const std::vector<std::string>& texts) {
    std::vector<std::string> found;
    std::ifstream file(dir_ + "/audit.log");
    for (std::string line; std::getline(file, line);) {
      const bool has_all = std::all_of(texts.begin(), texts.end(), [&](const std::string& text) {
        return line.find(text) != std::string::npos;
      });
      if (has_all) found.push_back(line);
    }
    return found;
  }

  const std::string dir_ = absl::StrCat(::testing::TempDir(), "/rpc_test.", getpid());
  const std::string big_ = std::string(700'000, 'a') + std::string(50'000, 'b');
  uint64_t random_ = 0;
  const std::unique_ptr<auth::Authenticator> authenticator_;
  const log::Logger log_;
  jobs::MemoryJobStore store_;
  jobs::JobIndex index_;
  jobs::IndexedJobStore indexed_{&store_, &index_};
  std::unique_ptr<jobs::JobQueue> queue_;
  jobs::LocalBoard board_{queue_.get(), absl::Minutes(5)};
  jobs::JobService jobs_;
  executor::FakeInputs inputs_;
  executor::FakeCache cache_;
  executor::InputHolds holds_;
  executor::Submission submission_;
  executor::FakeWorkers workers_;
  executor::Inspections inspections_;
  executor::Uploads uploads_;
  executor::Downloads downloads_;
  executor::Lifecycle lifecycle_;
  observe::Readiness readiness_{nullptr};
  std::unique_ptr<log::AuditLog> audit_;
  base::MemoryText paused_text_, cordoned_text_, tokens_text_, limits_text_;
  auth::IssuedTokens tokens_{[] { return absl::Now(); }};
  auth::TemporaryLimits limits_{[] { return absl::Now(); }};
  int policy_refreshes_ = 0;
  std::vector<std::pair<std::string, absl::Duration>> dropped_;
  std::unique_ptr<executor::OperatorSwitch> dispatch_;
  std::unique_ptr<executor::OperatorSwitch> cordon_;
  observe::NoMetrics metrics_;
  std::unique_ptr<executor::UsageBook> usage_;
  base::FileText sessions_text_{dir_ + "/sessions"};
  auth::Sessions sessions_{{.now = [] { return absl::Now(); }}};
  api::AdminControls admin_;
  executor::FakeTracer tracer_;
  api::OpenConnections connections_;
  api::OpenStreams streams_{&tracer_};
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<v1::CompileService::Stub> compile_;
  std::unique_ptr<v1::BlobService::Stub> blobs_;
  std::unique_ptr<v1::ServerInfoService::Stub> info_;
  std::unique_ptr<v1::AdminService::Stub> admin_stub_;
};

}  // namespace npuc::rpc

#endif  // NPUC_SERVER_RPC_RPC_TEST_UTIL_H_
