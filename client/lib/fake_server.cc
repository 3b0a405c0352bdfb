#include "client/lib/fake_server.h"

#include <algorithm>

#include "compiler_core/base/digest.h"
#include "compiler_core/base/status.h"
#include "npuc/rpc/status_details.pb.h"

namespace npuc::client {
namespace {

constexpr int64_t kChunkBytes = 1000;

template <typename Message>
void AddDetail(const Message& message, const char* type, npuc::rpc::Status& status) {
  google::protobuf::Any* any = status.add_details();
  any->set_type_url(std::string("type.googleapis.com/google.rpc.") + type);
  any->set_value(message.SerializeAsString());
}

v1::JobEvent StateEvent(v1::JobState state, const std::string& reason) {
  v1::JobEvent event;
  event.mutable_state_changed()->set_state(state);
  event.mutable_state_changed()->set_reason(reason);
  return event;
}

v1::JobEvent LogEvent(const std::string& text) {
  v1::JobEvent event;
  event.mutable_log_line()->set_text(text);
  return event;
}

grpc::Status NotFound() {
  return ServiceStatus(grpc::StatusCode::NOT_FOUND, "no such job", "JOB_NOT_FOUND");
}

}  // namespace

grpc::Status ServiceStatus(grpc::StatusCode code, const std::string& message,
                           const std::string& reason, const std::string& problem) {
  npuc::rpc::Status status;
  npuc::rpc::ErrorInfo info;
  info.set_reason(reason);
  info.set_domain("npuc");
  AddDetail(info, "ErrorInfo", status);
  if (!problem.empty()) {
    npuc::rpc::BadRequest bad;
    bad.add_field_violations()->set_field("spec");
    bad.mutable_field_violations(0)->set_description(problem);
    AddDetail(bad, "BadRequest", status);
  }
  return grpc::Status(code, message, status.SerializeAsString());
}

FakeServer::FakeServer() { Start("127.0.0.1:0"); }
FakeServer::~FakeServer() { Stop(); }

void FakeServer::Start(const std::string& address) {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(static_cast<v1::CompileService::Service*>(this));
  builder.RegisterService(static_cast<v1::BlobService::Service*>(this));
  builder.RegisterService(static_cast<v1::ServerInfoService::Service*>(this));
  server_ = builder.BuildAndStart();
  NPUC_CHECK(server_ != nullptr);
  address_ = "127.0.0.1:" + std::to_string(port);
}

void FakeServer::Stop() {
  if (server_ == nullptr) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  server_ = nullptr;
}

void FakeServer::Restart() {
  Stop();
  Start(address_);
}

void FakeServer::Succeed(const std::string& bytes) {
  outcome.Clear();
  outcome.mutable_succeeded();
  outcome.set_attempts(1);
  v1::Artifact* artifact = outcome.add_artifacts();
  artifact->set_name("model.h");
  artifact->set_size_bytes(static_cast<int64_t>(bytes.size()));
  artifact->set_sha256(Sha256Hex(bytes));
  artifact_bytes["model.h"] = bytes;
  v1::JobEvent ready;
  *ready.mutable_artifact_ready() = *artifact;
  events = {StateEvent(v1::JOB_STATE_QUEUED, ""),
            StateEvent(v1::JOB_STATE_RUNNING, ""),
            LogEvent("reading"),
            LogEvent("writing"),
            ready,
            StateEvent(v1::JOB_STATE_SUCCEEDED, "")};
}

void FakeServer::Fail() {
  outcome.Clear();
  outcome.mutable_failed()->set_kind(v1::FAILURE_KIND_INVALID_INPUT);
  outcome.mutable_failed()->set_message(
      "node 'conv': stride 9 exceeds 3; use stride <= 3 [NPUC1201]");
  v1::Diagnostic* diagnostic = outcome.add_diagnostics();
  diagnostic->set_id("NPUC1201");
  diagnostic->set_severity(v1::SEVERITY_ERROR);
  diagnostic->set_node("conv");
  diagnostic->set_message("stride 9 exceeds 3");
  diagnostic->set_fix("use stride <= 3");
  events = {StateEvent(v1::JOB_STATE_QUEUED, ""), StateEvent(v1::JOB_STATE_FAILED, "1 problem")};
}

grpc::Status FakeServer::BreakCall(grpc::ServerContext* context) const {
  if (script.how == Break::kReset) {
    context->TryCancel();
    return grpc::Status(grpc::StatusCode::CANCELLED, "");
  }
  if (script.how == Break::kReattach) {
    return ServiceStatus(grpc::StatusCode::UNAVAILABLE, "scripted", "REATTACH");
  }
  return grpc::Status(grpc::StatusCode::UNAVAILABLE, "scripted");
}

bool FakeServer::FailUnary(grpc::ServerContext* context) {
  const auto value = [&](const char* name) {
    const auto found = context->client_metadata().find(name);
    return found == context->client_metadata().end()
               ? std::string()
               : std::string(found->second.data(), found->second.size());
  };
  authorization = value("authorization");
  traceparent = value("traceparent");
  if (script.fail_unary <= 0) return false;
  --script.fail_unary;
  return true;
}

const v1::CompileJob* FakeServer::FindJob(const std::string& id) const {
  for (const auto& [request_id, job] : jobs) {
    if (job.job_id() == id) return &job;
  }
  return nullptr;
}

grpc::Status FakeServer::CreateCompileJob(grpc::ServerContext* context,
                                          const v1::CreateCompileJobRequest* request,
                                          v1::CreateCompileJobResponse* response) {
  std::lock_guard<std::mutex> lock(mutex);
  ++create_calls;
  last_create = *request;
  if (FailUnary(context)) return BreakCall(context);
  if (!script.create_error.ok()) return script.create_error;
  if (script.forget_blobs_at_create > 0) {
    --script.forget_blobs_at_create;
    blobs.clear();
  }
  if (blobs.count(request->spec().model().sha256()) == 0) {
    return ServiceStatus(grpc::StatusCode::FAILED_PRECONDITION, "a blob is not uploaded",
                         "BLOB_MISSING");
  }
  const auto [entry, fresh] = jobs.emplace(request->request_id(), outcome);
  if (fresh) {
    entry->second.set_job_id("j" + std::to_string(jobs.size()));
    entry->second.set_request_id(request->request_id());
    *entry->second.mutable_spec() = request->spec();
  }
  if (script.lose_create_answers > 0) {
    --script.lose_create_answers;
    return BreakCall(context);
  }
  *response->mutable_job() = entry->second;
  response->set_already_existed(!fresh);
  return grpc::Status::OK;
}

grpc::Status FakeServer::GetCompileJob(grpc::ServerContext* context,
                                       const v1::GetCompileJobRequest* request,
                                       v1::GetCompileJobResponse* response) {
  std::lock_guard<std::mutex> lock(mutex);
  if (FailUnary(context)) return BreakCall(context);
  const v1::CompileJob* job = FindJob(request->job_id());
  if (job == nullptr) return NotFound();
  *response->mutable_job() = *job;
  return grpc::Status::OK;
}

grpc::Status FakeServer::ListCompileJobs(grpc::ServerContext* context,
                                         const v1::ListCompileJobsRequest* request,
                                         v1::ListCompileJobsResponse* response) {
  std::lock_guard<std::mutex> lock(mutex);
  if (FailUnary(context)) return BreakCall(context);
  last_list = *request;
  // One job a page, so that paging is seen.
  size_t index = request->page_token().empty() ? 0 : std::stoul(request->page_token());
  auto entry = jobs.begin();
  std::advance(entry, std::min(index, jobs.size()));
  if (entry == jobs.end()) return grpc::Status::OK;
  *response->add_jobs() = entry->second;
  response->mutable_jobs(0)->clear_diagnostics();
  if (++index < jobs.size()) response->set_next_page_token(std::to_string(index));
  return grpc::Status::OK;
}

grpc::Status FakeServer::CancelCompileJob(grpc::ServerContext* context,
                                          const v1::CancelCompileJobRequest* request,
                                          v1::CancelCompileJobResponse* response) {
  std::lock_guard<std::mutex> lock(mutex);
  if (FailUnary(context)) return BreakCall(context);
  for (auto& [request_id, job] : jobs) {
    if (job.job_id() != request->job_id()) continue;
    if (job.has_queued() || job.has_running()) {
      job.mutable_cancelled()->set_reason(request->reason());
    }
    *response->mutable_job() = job;
    return grpc::Status::OK;
  }
  return NotFound();
}

grpc::Status FakeServer::InspectModel(grpc::ServerContext* context,
                                      const v1::InspectModelRequest* request,
                                      v1::InspectModelResponse* response) {
  std::lock_guard<std::mutex> lock(mutex);
  last_inspect = *request;
  if (FailUnary(context)) return BreakCall(context);
  if (blobs.count(request->model().sha256()) == 0) {
    return ServiceStatus(grpc::StatusCode::FAILED_PRECONDITION, "a blob is not uploaded",
                         "BLOB_MISSING");
  }
  *response = inspection;
  return grpc::Status::OK;
}

grpc::Status FakeServer::WatchCompileJob(grpc::ServerContext* context,
                                         const v1::WatchCompileJobRequest* request,
                                         grpc::ServerWriter<v1::WatchCompileJobResponse>* writer) {
  std::unique_lock<std::mutex> lock(mutex);
  ++watch_streams;
  if (FindJob(request->job_id()) == nullptr) return NotFound();
  const bool breaks = script.break_watches > 0;
  if (breaks) --script.break_watches;
  const int after = script.break_watch_after;
  int sent = 0;
  v1::WatchCompileJobResponse response;
  const auto write = [&] {
    lock.unlock();
    const bool written = writer->Write(response);
    response.Clear();
    lock.lock();
    return written;
  };
  const auto first = static_cast<size_t>(std::max<int64_t>(request->from_seq(), 1));
  for (size_t seq = first; seq <= events.size(); ++seq) {
    if (breaks && sent == after) return BreakCall(context);
    if (script.skip_seq == static_cast<int>(seq)) continue;
    v1::JobEvent& event =
        response.has_event() ? *response.add_more_events() : *response.mutable_event();
    event = events[seq - 1];
    event.set_seq(static_cast<int64_t>(seq));
    ++sent;
    // Three in a message, the last ones of a stream in one of fewer.
    const bool waits = request->batch_events() && response.more_events_size() < 2 &&
                       seq < events.size() && !(breaks && sent == after) && !script.hang_watches;
    if (!waits && !write()) return grpc::Status::CANCELLED;
    if (script.hang_watches) {
      lock.unlock();
      // Heartbeats, as a job that does not get on has them, until the client or Stop() ends it.
      v1::WatchCompileJobResponse heartbeat;
      heartbeat.mutable_event()->mutable_heartbeat();
      while (!context->IsCancelled() && writer->Write(heartbeat)) {
      }
      return grpc::Status::CANCELLED;
    }
  }
  return grpc::Status::OK;
}

grpc::Status FakeServer::FindMissingBlobs(grpc::ServerContext* context,
                                          const v1::FindMissingBlobsRequest* request,
                                          v1::FindMissingBlobsResponse* response) {
  std::lock_guard<std::mutex> lock(mutex);
  if (FailUnary(context)) return BreakCall(context);
  for (const v1::BlobDigest& digest : request->digests()) {
    const auto found = blobs.find(digest.sha256());
    const bool whole =
        found != blobs.end() && static_cast<int64_t>(found->second.size()) == digest.size_bytes();
    if (!whole) *response->add_missing() = digest;
  }
  return grpc::Status::OK;
}

grpc::Status FakeServer::UploadBlob(grpc::ServerContext* context,
                                    grpc::ServerReader<v1::UploadBlobRequest>* reader,
                                    v1::UploadBlobResponse* response) {
  v1::UploadBlobRequest request;
  v1::BlobDigest digest;
  int64_t received = 0;
  bool breaks = false;
  for (bool first = true; reader->Read(&request); first = false) {
    std::lock_guard<std::mutex> lock(mutex);
    if (first) {
      ++upload_streams;
      digest = request.digest();
      breaks = script.break_uploads > 0;
      if (breaks) --script.break_uploads;
    }
    std::string& blob = blobs[digest.sha256()];
    if (request.offset() != static_cast<int64_t>(blob.size())) {
      return ServiceStatus(grpc::StatusCode::OUT_OF_RANGE, "wrong offset", "OFFSET_MISMATCH");
    }
    received += static_cast<int64_t>(request.data().size());
    uploaded_bytes += static_cast<int64_t>(request.data().size());
    if (breaks && received > script.break_upload_after) {
      // The chunk under way is lost.
      return BreakCall(context);
    }
    blob += request.data();
  }
  std::lock_guard<std::mutex> lock(mutex);
  std::string& blob = blobs[digest.sha256()];
  response->set_committed_bytes(static_cast<int64_t>(blob.size()));
  if (static_cast<int64_t>(blob.size()) < digest.size_bytes()) return grpc::Status::OK;
  if (Sha256Hex(blob) != digest.sha256()) {
    blobs.erase(digest.sha256());
    return ServiceStatus(grpc::StatusCode::INVALID_ARGUMENT, "SHA-256 differs", "DIGEST_MISMATCH");
  }
  response->set_complete(true);
  return grpc::Status::OK;
}

grpc::Status FakeServer::QueryUpload(grpc::ServerContext* context,
                                     const v1::QueryUploadRequest* request,
                                     v1::QueryUploadResponse* response) {
  std::lock_guard<std::mutex> lock(mutex);
  if (FailUnary(context)) return BreakCall(context);
  const auto found = blobs.find(request->digest().sha256());
  if (found == blobs.end()) return grpc::Status::OK;
  response->set_committed_bytes(static_cast<int64_t>(found->second.size()));
  response->set_complete(response->committed_bytes() == request->digest().size_bytes());
  return grpc::Status::OK;
}

grpc::Status FakeServer::DownloadArtifact(
    grpc::ServerContext* context, const v1::DownloadArtifactRequest* request,
    grpc::ServerWriter<v1::DownloadArtifactResponse>* writer) {
  std::unique_lock<std::mutex> lock(mutex);
  std::string bytes = artifact_bytes[request->artifact_name()];
  if (script.corrupt_downloads && !bytes.empty()) bytes.back() ^= 1;
  const bool breaks = script.break_downloads > 0;
  if (breaks) --script.break_downloads;
  const auto size = static_cast<int64_t>(bytes.size());
  for (int64_t offset = request->offset(); offset < size;) {
    if (breaks && offset - request->offset() >= script.break_download_after) {
      return BreakCall(context);
    }
    v1::DownloadArtifactResponse response;
    const int64_t count = std::min(kChunkBytes, size - offset);
    response.set_offset(offset);
    response.set_data(bytes.substr(static_cast<size_t>(offset), static_cast<size_t>(count)));
    response.set_size_bytes(size);
    downloaded_bytes += count;
    offset += count;
    lock.unlock();
    if (!writer->Write(response)) return grpc::Status::CANCELLED;
    lock.lock();
  }
  return grpc::Status::OK;
}

grpc::Status FakeServer::GetServerInfo(grpc::ServerContext* context,
                                       const v1::GetServerInfoRequest* request,
                                       v1::GetServerInfoResponse* response) {
  std::lock_guard<std::mutex> lock(mutex);
  if (FailUnary(context)) return BreakCall(context);
  response->set_version("fake 1");
  response->add_cores("GRUS");
  response->set_workers(1);
  for (const auto& [name, reason] : script.conditions) {
    v1::ReadinessCondition* condition = response->add_conditions();
    condition->set_name(name);
    condition->set_reason(reason);
  }
  return grpc::Status::OK;
}

grpc::Status FakeServer::GetCaller(grpc::ServerContext* context,
                                   const v1::GetCallerRequest* request,
                                   v1::GetCallerResponse* response) {
  std::lock_guard<std::mutex> lock(mutex);
  if (FailUnary(context)) return BreakCall(context);
  response->set_identity("ci");
  response->set_tenant("audio");
  response->add_rights("submit");
  response->add_rights("read");
  return grpc::Status::OK;
}

}  // namespace npuc::client
