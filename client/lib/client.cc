#include "client/lib/client.h"

#include <sys/random.h>

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/lib/channel.h"
#include "client/lib/client_impl.h"
#include "client/lib/service_error.h"
#include "compiler_core/base/status.h"

namespace npuc::client {
namespace {

constexpr int kMaxPageSize = 1000;
// Blobs may be evicted between their upload and the submission; that often in a row is a fault.
constexpr int kMaxBlobLosses = 3;
// A server inspects for up to a minute.
constexpr absl::Duration kInspectTimeout = absl::Minutes(2);

std::string Copy(absl::string_view text) { return std::string(text); }

// Entries of page after page, at most `limit` of what a server calls `name`. `fetch` asks for a
// page; `entries_of` are those of an answer.
template <typename Entry, typename Response, typename Request, typename Fetch, typename EntriesOf>
absl::StatusOr<std::vector<Entry>> ListPages(Request request, int limit, absl::string_view name,
                                             Fetch fetch, EntriesOf entries_of) {
  std::vector<Entry> all;
  while (static_cast<int>(all.size()) < limit) {
    const int wanted = limit - static_cast<int>(all.size());
    request.set_page_size(std::min(wanted, kMaxPageSize));
    Response response;
    RETURN_IF_ERROR(fetch(request, response));
    for (auto& entry : entries_of(response)) {
      if (static_cast<int>(all.size()) < limit) all.push_back(std::move(entry));
    }
    if (response.next_page_token().empty()) break;
    if (response.next_page_token() == request.page_token()) {
      return absl::InternalError(absl::StrCat("the server's list of ", name, " does not advance"));
    }
    request.set_page_token(response.next_page_token());
  }
  return all;
}

}  // namespace

std::string NewRequestId() {
  std::random_device random;
  std::string id;
  for (int i = 0; i < 4; ++i) absl::StrAppendFormat(&id, "%08x", random());
  return id;
}

absl::StatusOr<std::string> NewToken() {
  constexpr size_t kTokenBytes = 32;
  std::string bytes(kTokenBytes, '\0');
  // So few bytes come at once, or not at all.
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return absl::UnavailableError("the kernel gives no random bytes for a token");
  }
  return absl::BytesToHexString(bytes);
}

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() = default;

absl::StatusOr<std::unique_ptr<Client>> Client::Create(ClientOptions options) {
  constexpr size_t kMaxChunkBytes = 1 << 20;
  options.chunk_bytes = std::clamp<size_t>(options.chunk_bytes, 1, kMaxChunkBytes);
  ASSIGN_OR_RETURN(const std::vector<std::shared_ptr<grpc::Channel>> channels,
                   MakeChannels(options));
  auto impl = std::make_unique<Impl>();
  impl->options = std::move(options);
  for (const std::shared_ptr<grpc::Channel>& channel : channels) {
    impl->servers.push_back({.jobs = v1::CompileService::NewStub(channel),
                             .blobs = v1::BlobService::NewStub(channel),
                             .info = v1::ServerInfoService::NewStub(channel),
                             .admin = v1::AdminService::NewStub(channel)});
  }
  return std::unique_ptr<Client>(new Client(std::move(impl)));
}

absl::StatusOr<v1::CompileJob> Client::Submit(const v1::CompileJobSpec& spec,
                                              absl::Span<const LocalFile> files,
                                              absl::string_view request_id,
                                              const TransferProgress& progress) {
  v1::CreateCompileJobRequest request;
  request.set_request_id(Copy(request_id));
  *request.mutable_spec() = spec;
  for (int losses = 0;; ++losses) {
    RETURN_IF_ERROR(Upload(files, progress));
    v1::CreateCompileJobResponse response;
    const absl::Status status = impl_->Retried(
        &Server::jobs, &v1::CompileService::Stub::PrepareAsyncCreateCompileJob, request, response);
    if (status.ok()) return std::move(*response.mutable_job());
    const bool lost = ServiceErrorOf(status).reason == "BLOB_MISSING";
    if (!lost || losses == kMaxBlobLosses) return status;
  }
}

absl::StatusOr<v1::InspectModelResponse> Client::InspectModel(
    const v1::InspectModelRequest& request, absl::Span<const LocalFile> files,
    const TransferProgress& progress) {
  ClientOptions patient = impl_->options;
  patient.call_timeout = std::max(patient.call_timeout, kInspectTimeout);
  for (int losses = 0;; ++losses) {
    RETURN_IF_ERROR(Upload(files, progress));
    v1::InspectModelResponse response;
    const absl::Status status =
        impl_->Retried(patient, &Server::jobs, &v1::CompileService::Stub::PrepareAsyncInspectModel,
                       request, response);
    if (status.ok()) return response;
    const bool lost = ServiceErrorOf(status).reason == "BLOB_MISSING";
    if (!lost || losses == kMaxBlobLosses) return status;
  }
}

absl::StatusOr<v1::CompileJob> Client::GetJob(absl::string_view job_id) {
  v1::GetCompileJobRequest request;
  request.set_job_id(Copy(job_id));
  v1::GetCompileJobResponse response;
  RETURN_IF_ERROR(impl_->Retried(
      &Server::jobs, &v1::CompileService::Stub::PrepareAsyncGetCompileJob, request, response));
  return std::move(*response.mutable_job());
}

absl::StatusOr<std::vector<v1::CompileJob>> Client::ListJobs(v1::ListCompileJobsRequest request,
                                                             int limit) {
  return ListPages<v1::CompileJob, v1::ListCompileJobsResponse>(
      std::move(request), limit, "jobs",
      [this](const auto& page, auto& response) {
        return impl_->Retried(&Server::jobs, &v1::CompileService::Stub::PrepareAsyncListCompileJobs,
                              page, response);
      },
      [](auto& response) -> auto& { return *response.mutable_jobs(); });
}

absl::StatusOr<v1::CompileJob> Client::CancelJob(absl::string_view job_id,
                                                 absl::string_view reason) {
  v1::CancelCompileJobRequest request;
  request.set_job_id(Copy(job_id));
  request.set_reason(Copy(reason));
  v1::CancelCompileJobResponse response;
  RETURN_IF_ERROR(impl_->Retried(
      &Server::jobs, &v1::CompileService::Stub::PrepareAsyncCancelCompileJob, request, response));
  return std::move(*response.mutable_job());
}

absl::Status Client::Watch(absl::string_view job_id, int64_t from_seq,
                           const std::function<void(const v1::JobEvent&)>& on_event) {
  int64_t next = std::max<int64_t>(from_seq, 1);
  Retrier retrier = impl_->NewRetrier();
  while (true) {
    bool alive = false;
    Call call(impl_->options);
    v1::WatchCompileJobRequest request;
    request.set_job_id(Copy(job_id));
    request.set_from_seq(next);
    request.set_batch_events(true);
    auto reader =
        impl_->server().jobs->PrepareAsyncWatchCompileJob(call.context(), request, call.queue());
    reader->StartCall(call.tag());
    call.Wait(impl_->options.silence_timeout);
    v1::WatchCompileJobResponse response;
    bool gap = false;
    const auto take = [&](const v1::JobEvent& event) {
      const int64_t seq = event.seq();
      gap = gap || seq > next;
      if (gap || (seq != 0 && seq != next)) return;
      // Only what moves the watch on ends an outage, so that a server that breaks every stream at
      // once is not asked for ever.
      retrier.Progress();
      alive = true;
      if (seq == next) ++next;
      on_event(event);
    };
    while (!gap) {
      response.Clear();
      reader->Read(&response, call.tag());
      if (!call.Wait(impl_->options.silence_timeout)) break;
      take(response.event());
      for (const v1::JobEvent& event : response.more_events()) take(event);
    }
    if (gap) call.context()->TryCancel();
    grpc::Status finished;
    reader->Finish(&finished, call.tag());
    call.Wait(impl_->options.silence_timeout);
    absl::Status status = call.Status(finished);
    if (gap) {
      status = absl::UnknownError(absl::StrCat("event ", next, " of the job is missing"));
    }
    if (status.ok()) return status;
    // No outage: the server wants old streams to begin anew. Where it sent nothing before, it is
    // treated as one, so that it is not asked for ever.
    if (alive && ServiceErrorOf(status).reason == "REATTACH") continue;
    RETURN_IF_ERROR(impl_->Again(retrier, status));
  }
}

absl::StatusOr<v1::GetServerInfoResponse> Client::GetServerInfo() {
  v1::GetServerInfoResponse response;
  RETURN_IF_ERROR(impl_->Retried(&Server::info,
                                 &v1::ServerInfoService::Stub::PrepareAsyncGetServerInfo,
                                 v1::GetServerInfoRequest(), response));
  return response;
}

absl::StatusOr<v1::GetCallerResponse> Client::GetCaller() {
  v1::GetCallerResponse response;
  RETURN_IF_ERROR(impl_->Retried(&Server::info, &v1::ServerInfoService::Stub::PrepareAsyncGetCaller,
                                 v1::GetCallerRequest(), response));
  return response;
}

absl::StatusOr<v1::DispatchState> Client::SetDispatch(bool paused, absl::string_view reason) {
  v1::SetDispatchRequest request;
  request.set_paused(paused);
  request.set_reason(Copy(reason));
  v1::SetDispatchResponse response;
  RETURN_IF_ERROR(impl_->Retried(&Server::admin, &v1::AdminService::Stub::PrepareAsyncSetDispatch,
                                 request, response));
  return std::move(*response.mutable_state());
}

absl::StatusOr<int64_t> Client::CancelJobs(const v1::ListCompileJobsRequest& filter,
                                           absl::string_view reason) {
  v1::CancelJobsRequest request;
  *request.mutable_filter() = filter;
  request.set_reason(Copy(reason));
  int64_t cancelled = 0;
  while (true) {
    v1::CancelJobsResponse response;
    RETURN_IF_ERROR(impl_->Retried(&Server::admin, &v1::AdminService::Stub::PrepareAsyncCancelJobs,
                                   request, response));
    cancelled += response.cancelled();
    // Where nothing was cancelled the rest is not to be cancelled, either.
    if (!response.has_more() || response.cancelled() == 0) return cancelled;
  }
}

absl::StatusOr<v1::RequeueJobsResponse> Client::RequeueJobs(v1::ListCompileJobsRequest filter) {
  v1::RequeueJobsResponse all;
  v1::RequeueJobsRequest request;
  *request.mutable_filter() = std::move(filter);
  request.mutable_filter()->clear_page_token();
  while (true) {
    v1::RequeueJobsResponse response;
    RETURN_IF_ERROR(impl_->Retried(&Server::admin, &v1::AdminService::Stub::PrepareAsyncRequeueJobs,
                                   request, response));
    all.set_requeued(all.requeued() + response.requeued());
    all.set_already_requeued(all.already_requeued() + response.already_requeued());
    all.mutable_failures()->MergeFrom(response.failures());
    if (response.next_page_token().empty()) return all;
    request.mutable_filter()->set_page_token(response.next_page_token());
  }
}

absl::StatusOr<std::vector<v1::TenantUsage>> Client::GetUsage(const v1::GetUsageRequest& request) {
  v1::GetUsageResponse response;
  RETURN_IF_ERROR(impl_->Retried(&Server::admin, &v1::AdminService::Stub::PrepareAsyncGetUsage,
                                 request, response));
  return std::vector<v1::TenantUsage>(response.usage().begin(), response.usage().end());
}

absl::StatusOr<v1::ListTenantsResponse> Client::ListTenants() {
  v1::ListTenantsResponse response;
  RETURN_IF_ERROR(impl_->Retried(&Server::admin, &v1::AdminService::Stub::PrepareAsyncListTenants,
                                 v1::ListTenantsRequest(), response));
  return response;
}

absl::StatusOr<v1::CordonState> Client::SetCordon(bool cordoned, absl::string_view reason) {
  v1::SetCordonRequest request;
  request.set_cordoned(cordoned);
  request.set_reason(Copy(reason));
  v1::SetCordonResponse response;
  RETURN_IF_ERROR(impl_->Retried(&Server::admin, &v1::AdminService::Stub::PrepareAsyncSetCordon,
                                 request, response));
  return std::move(*response.mutable_state());
}

absl::StatusOr<v1::TenantState> Client::SetTenantLimits(const v1::SetTenantLimitsRequest& request) {
  v1::SetTenantLimitsResponse response;
  RETURN_IF_ERROR(impl_->Retried(
      &Server::admin, &v1::AdminService::Stub::PrepareAsyncSetTenantLimits, request, response));
  return std::move(*response.mutable_tenant());
}

absl::StatusOr<v1::RotateTokenResponse> Client::RotateToken(const v1::RotateTokenRequest& request) {
  v1::RotateTokenResponse response;
  RETURN_IF_ERROR(impl_->Retried(&Server::admin, &v1::AdminService::Stub::PrepareAsyncRotateToken,
                                 request, response));
  return response;
}

absl::StatusOr<v1::DropUploadsResponse> Client::DropUploads(const v1::DropUploadsRequest& request) {
  v1::DropUploadsResponse response;
  RETURN_IF_ERROR(impl_->Retried(&Server::admin, &v1::AdminService::Stub::PrepareAsyncDropUploads,
                                 request, response));
  return response;
}

absl::StatusOr<v1::EvictContentResponse> Client::EvictContent(
    const v1::EvictContentRequest& request) {
  v1::EvictContentResponse response;
  RETURN_IF_ERROR(impl_->Retried(&Server::admin, &v1::AdminService::Stub::PrepareAsyncEvictContent,
                                 request, response));
  return response;
}

absl::StatusOr<v1::TenantState> Client::GetQuota() {
  v1::GetQuotaResponse response;
  RETURN_IF_ERROR(impl_->Retried(&Server::admin, &v1::AdminService::Stub::PrepareAsyncGetQuota,
                                 v1::GetQuotaRequest(), response));
  return std::move(*response.mutable_tenant());
}

absl::StatusOr<v1::ListConnectionsResponse> Client::ListConnections(int limit) {
  v1::ListConnectionsRequest request;
  request.set_limit(limit);
  v1::ListConnectionsResponse response;
  RETURN_IF_ERROR(impl_->Retried(
      &Server::admin, &v1::AdminService::Stub::PrepareAsyncListConnections, request, response));
  return response;
}

absl::StatusOr<std::vector<v1::AuditEntry>> Client::ListAuditEntries(
    v1::ListAuditEntriesRequest request, int limit) {
  return ListPages<v1::AuditEntry, v1::ListAuditEntriesResponse>(
      std::move(request), limit, "audit entries",
      [this](const auto& page, auto& response) {
        return impl_->Retried(&Server::admin, &v1::AdminService::Stub::PrepareAsyncListAuditEntries,
                              page, response);
      },
      [](auto& response) -> auto& { return *response.mutable_entries(); });
}

absl::StatusOr<std::vector<v1::Operator>> Client::ListOperators(absl::string_view core,
                                                                absl::string_view framework) {
  v1::ListOperatorsRequest request;
  request.set_core(Copy(core));
  request.set_framework(Copy(framework));
  v1::ListOperatorsResponse response;
  RETURN_IF_ERROR(impl_->Retried(
      &Server::info, &v1::ServerInfoService::Stub::PrepareAsyncListOperators, request, response));
  return std::vector<v1::Operator>(response.operators().begin(), response.operators().end());
}

}  // namespace npuc::client
