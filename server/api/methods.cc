#include "server/api/methods.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "server/api/admin.h"
#include "server/api/audit.h"
#include "server/api/convert.h"
#include "server/api/job_list.h"
#include "server/catalog/catalog.h"
#include "server/executor/access.h"
#include "server/executor/job_trace.h"
#include "server/jobs/service_error.h"

namespace npuc::api {
namespace {

constexpr size_t kMaxReasonFieldBytes = 1024;

absl::StatusOr<executor::SubmitRequest> ReadCreate(const ApiDependencies& deps,
                                                   const auth::Caller& caller,
                                                   const v1::CreateCompileJobRequest& request) {
  RETURN_IF_ERROR(deps.lifecycle->CheckWrites());
  ASSIGN_OR_RETURN(executor::SubmitRequest submit, FromProto(request));
  submit.tenant = caller.tenant;
  submit.submitter = caller.identity;
  submit.trace = deps.tracer == nullptr ? caller.trace : deps.tracer->Begin(caller.trace);
  return submit;
}

absl::Status AnswerCreate(const ApiDependencies& deps, const auth::Caller& caller,
                          const absl::StatusOr<jobs::JobService::Submitted>& submitted,
                          v1::CreateCompileJobResponse* response) {
  RETURN_IF_ERROR(submitted.status());
  const jobs::Job& job = *submitted->job;
  // On the thread of the store's writes, which nothing may hold up.
  (submitted->already_existed ? FillJob : FillNewJob)(deps, job, response->mutable_job());
  response->set_already_existed(submitted->already_existed);
  if (deps.metrics != nullptr && !submitted->already_existed) {
    deps.metrics->Add(observe::Metric::kJobsAccepted, {caller.tenant}, 1);
  }
  deps.log->Info(submitted->already_existed ? "job repeated" : "job accepted",
                 {{"job", job.id},
                  {"trace", job.spec.trace.trace_id},
                  {"tenant", caller.tenant},
                  {"identity", caller.identity},
                  {"state", jobs::JobStateName(job.state)},
                  {"model_md5", job.model().md5}});
  return absl::OkStatus();
}

void StartCreate(const ApiDependencies& deps, const auth::Caller& caller,
                 const v1::CreateCompileJobRequest& request, v1::CreateCompileJobResponse* response,
                 absl::AnyInvocable<void(absl::Status)> done) {
  const absl::StatusOr<executor::SubmitRequest> submit = ReadCreate(deps, caller, request);
  const std::string& model = request.spec().model().sha256();
  if (!submit.ok()) {
    Audit(deps, caller, "submit", model, submit.status());
    return done(submit.status());
  }
  deps.submission->Submit(
      *submit, [&deps, caller, model, response, done = std::move(done)](
                   const absl::StatusOr<jobs::JobService::Submitted>& submitted) mutable {
        const absl::Status status = AnswerCreate(deps, caller, submitted, response);
        Audit(deps, caller, "submit", status.ok() ? response->job().job_id() : model, status);
        done(status);
      });
}

absl::Status Get(const ApiDependencies& deps, const auth::Caller& caller,
                 const v1::GetCompileJobRequest& request, v1::GetCompileJobResponse* response) {
  RETURN_IF_ERROR(deps.lifecycle->CheckReads());
  RETURN_IF_ERROR(CheckJobId(request.job_id()));
  ASSIGN_OR_RETURN(const std::shared_ptr<const jobs::Job> job,
                   executor::FindJob(*deps.jobs, caller, request.job_id()));
  FillJob(deps, *job, response->mutable_job());
  ASSIGN_OR_RETURN(*response->mutable_job()->mutable_spec()->mutable_config_text(),
                   deps.jobs->ReadConfig(job->id));
  return absl::OkStatus();
}

absl::Status RunCancel(const ApiDependencies& deps, const auth::Caller& caller,
                       const v1::CancelCompileJobRequest& request,
                       v1::CancelCompileJobResponse* response) {
  RETURN_IF_ERROR(deps.lifecycle->CheckReads());
  RETURN_IF_ERROR(CheckJobId(request.job_id()));
  if (request.reason().size() > kMaxReasonFieldBytes) {
    jobs::FieldChecker check;
    check.Add("reason", absl::StrCat("has ", request.reason().size(), " bytes, at most ",
                                     kMaxReasonFieldBytes, " are allowed"));
    return check.ToStatus();
  }
  // A look of its own and not a check inside Cancel, which takes the job's locks: how long those
  // are held would tell of another tenant's job.
  RETURN_IF_ERROR(executor::FindJob(*deps.jobs, caller, request.job_id()).status());
  ASSIGN_OR_RETURN(const std::shared_ptr<const jobs::Job> job,
                   deps.jobs->Cancel(request.job_id(), request.reason()));
  FillJob(deps, *job, response->mutable_job());
  return absl::OkStatus();
}

absl::Status Cancel(const ApiDependencies& deps, const auth::Caller& caller,
                    const v1::CancelCompileJobRequest& request,
                    v1::CancelCompileJobResponse* response) {
  const absl::Status status = RunCancel(deps, caller, request, response);
  Audit(deps, caller, "cancel", request.job_id(), status, request.reason());
  return status;
}

absl::StatusOr<executor::InspectionRequest> ReadInspect(const auth::Caller& caller,
                                                        const v1::InspectModelRequest& request) {
  executor::InspectionRequest out;
  out.tenant = caller.tenant;
  ASSIGN_OR_RETURN(const cache::BlobDigest model, FromProto(request.model(), "model"));
  out.model = {
      .name = request.model_name(), .sha256 = model.sha256, .size_bytes = model.size_bytes};
  for (const v1::SideInput& side : request.side_inputs()) {
    ASSIGN_OR_RETURN(const cache::BlobDigest digest, FromProto(side.digest(), "side_inputs"));
    out.side_inputs.push_back({.role = side.role(),
                               .name = side.name(),
                               .sha256 = digest.sha256,
                               .size_bytes = digest.size_bytes});
  }
  out.stated = {.shapes = {request.input_shapes().begin(), request.input_shapes().end()},
                .dims = {request.dims().begin(), request.dims().end()},
                .constants = {request.constants().begin(), request.constants().end()}};
  return out;
}

absl::Status RunInspect(const ApiDependencies& deps, const auth::Caller& caller,
                        const v1::InspectModelRequest& request,
                        v1::InspectModelResponse* response) {
  RETURN_IF_ERROR(deps.lifecycle->CheckWrites());
  ASSIGN_OR_RETURN(const executor::InspectionRequest wanted, ReadInspect(caller, request));
  ASSIGN_OR_RETURN(const executor::Inspection inspection, deps.inspections->Run(wanted));
  deps.log->Info("model inspected", {{"tenant", caller.tenant},
                                     {"identity", caller.identity},
                                     {"trace", caller.trace.trace_id},
                                     {"model_sha256", wanted.model.sha256},
                                     {"is_model", inspection.is_model ? "true" : "false"}});
  for (const base::JobDiagnostic& diagnostic : inspection.diagnostics) {
    api::ToProto(diagnostic, response->add_diagnostics());
  }
  if (!inspection.is_model) return absl::OkStatus();
  response->set_text(inspection.text);
  return StructOfJson(inspection.json, response->mutable_inspection());
}

absl::Status Inspect(const ApiDependencies& deps, const auth::Caller& caller,
                     const v1::InspectModelRequest& request, v1::InspectModelResponse* response) {
  const absl::Status status = RunInspect(deps, caller, request, response);
  Audit(deps, caller, "inspect", request.model().sha256(), status);
  return status;
}

absl::Status FindMissing(const ApiDependencies& deps, const auth::Caller& caller,
                         const v1::FindMissingBlobsRequest& request,
                         v1::FindMissingBlobsResponse* response) {
  RETURN_IF_ERROR(deps.lifecycle->CheckReads());
  std::vector<cache::BlobDigest> digests;
  for (const v1::BlobDigest& digest : request.digests()) {
    ASSIGN_OR_RETURN(cache::BlobDigest plain, FromProto(digest, "digests"));
    digests.push_back(std::move(plain));
  }
  ASSIGN_OR_RETURN(const std::vector<cache::BlobDigest> missing,
                   deps.uploads->FindMissing(caller.tenant, digests));
  for (const cache::BlobDigest& digest : missing) api::ToProto(digest, response->add_missing());
  return absl::OkStatus();
}

absl::Status Query(const ApiDependencies& deps, const auth::Caller& caller,
                   const v1::QueryUploadRequest& request, v1::QueryUploadResponse* response) {
  RETURN_IF_ERROR(deps.lifecycle->CheckReads());
  ASSIGN_OR_RETURN(const cache::BlobDigest digest, FromProto(request.digest(), "digest"));
  ASSIGN_OR_RETURN(const cache::UploadState state, deps.uploads->Query(caller.tenant, digest));
  response->set_committed_bytes(static_cast<int64_t>(state.committed_bytes));
  response->set_complete(state.complete);
  return absl::OkStatus();
}

absl::Status Upload(const ApiDependencies& deps, const auth::Caller& caller,
                    const v1::UploadBlobRequest& request, v1::UploadBlobResponse* response) {
  RETURN_IF_ERROR(deps.lifecycle->CheckWrites());
  ASSIGN_OR_RETURN(const cache::BlobDigest digest, FromProto(request.digest(), "digest"));
  ASSIGN_OR_RETURN(cache::UploadState state, deps.uploads->Begin(caller.tenant, digest));
  if (!state.complete || !request.data().empty()) {
    ASSIGN_OR_RETURN(state,
                     deps.uploads->Append(caller.tenant, digest, request.offset(), request.data()));
    CountUsage(deps, caller.tenant,
               {.uploaded_bytes = static_cast<int64_t>(request.data().size())});
  }
  response->set_committed_bytes(static_cast<int64_t>(state.committed_bytes));
  response->set_complete(state.complete);
  return absl::OkStatus();
}

absl::Status ServerInfo(const ApiDependencies& deps, const auth::Caller& caller,
                        const v1::GetServerInfoRequest& request,
                        v1::GetServerInfoResponse* response) {
  response->set_version(deps.facts.version);
  response->set_compiler_build_id(deps.facts.compiler_build_id);
  for (std::string& core : catalog::ListCoreNames()) response->add_cores(std::move(core));
  response->set_workers(deps.facts.workers);
  response->set_max_blob_bytes(deps.facts.max_blob_bytes);
  response->set_max_queued_jobs(deps.facts.max_queued_jobs);
  response->mutable_default_timeout()->set_seconds(
      absl::ToInt64Seconds(deps.facts.default_timeout));
  const jobs::JobService::Counts counts = deps.jobs->GetCounts();
  response->set_queued_jobs(counts.queued);
  response->set_running_jobs(counts.running);
  for (const auto& [name, status] : deps.readiness->Conditions()) {
    v1::ReadinessCondition* condition = response->add_conditions();
    condition->set_name(name);
    condition->set_reason(std::string(status.message()));
  }
  return absl::OkStatus();
}

absl::Status GetCaller(const ApiDependencies& deps, const auth::Caller& caller,
                       const v1::GetCallerRequest& request, v1::GetCallerResponse* response) {
  response->set_identity(caller.identity);
  response->set_tenant(caller.tenant);
  for (const auth::Right right : auth::kAllRights) {
    if (caller.rights.Has(right)) response->add_rights(std::string(auth::RightName(right)));
  }
  return absl::OkStatus();
}

absl::Status Operators(const ApiDependencies& deps, const auth::Caller& caller,
                       const v1::ListOperatorsRequest& request,
                       v1::ListOperatorsResponse* response) {
  ASSIGN_OR_RETURN(std::vector<catalog::OperatorEntry> entries,
                   npuc::catalog::ListOperators(request.core(), request.framework()));
  for (catalog::OperatorEntry& entry : entries) {
    v1::Operator* out = response->add_operators();
    out->set_core(std::move(entry.core));
    out->set_framework(std::move(entry.framework));
    out->set_op(std::move(entry.op));
    for (std::string& text : entry.restrictions) out->add_restrictions(std::move(text));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<cache::ArtifactReader>> FindArtifact(
    const ApiDependencies& deps, const auth::Caller& caller,
    const v1::DownloadArtifactRequest& request, OpenStreams::Place* place) {
  RETURN_IF_ERROR(deps.lifecycle->CheckReads());
  RETURN_IF_ERROR(CheckJobId(request.job_id()));
  ASSIGN_OR_RETURN(const std::shared_ptr<const jobs::Job> job,
                   executor::FindJob(*deps.jobs, caller, request.job_id()));
  if (place != nullptr) place->SetTrace(executor::TraceOf(*job));
  return deps.downloads->Open(*job, request.artifact_name(), request.offset());
}

}  // namespace

const Method<v1::CreateCompileJobRequest, v1::CreateCompileJobResponse> kCreateCompileJob = {
    "CreateCompileJob", auth::Right::kSubmit, /*run=*/nullptr, StartCreate};
const Method<v1::GetCompileJobRequest, v1::GetCompileJobResponse> kGetCompileJob = {
    "GetCompileJob", auth::Right::kRead, Get};
const Method<v1::ListCompileJobsRequest, v1::ListCompileJobsResponse> kListCompileJobs = {
    "ListCompileJobs", auth::Right::kRead, ListJobs};
const Method<v1::CancelCompileJobRequest, v1::CancelCompileJobResponse> kCancelCompileJob = {
    "CancelCompileJob", auth::Right::kCancel, Cancel};
const Method<v1::InspectModelRequest, v1::InspectModelResponse> kInspectModel = {
    "InspectModel", auth::Right::kSubmit, Inspect};
const Method<v1::FindMissingBlobsRequest, v1::FindMissingBlobsResponse> kFindMissingBlobs = {
    "FindMissingBlobs", auth::Right::kSubmit, FindMissing};
const Method<v1::QueryUploadRequest, v1::QueryUploadResponse> kQueryUpload = {
    "QueryUpload", auth::Right::kSubmit, Query};
const Method<v1::UploadBlobRequest, v1::UploadBlobResponse> kUploadChunk = {
    "UploadBlob", auth::Right::kSubmit, Upload};
const Method<v1::GetServerInfoRequest, v1::GetServerInfoResponse> kGetServerInfo = {
    "GetServerInfo", std::nullopt, ServerInfo};
const Method<v1::GetCallerRequest, v1::GetCallerResponse> kGetCaller = {"GetCaller", std::nullopt,
                                                                        GetCaller};
const Method<v1::ListOperatorsRequest, v1::ListOperatorsResponse> kListOperators = {
    "ListOperators", std::nullopt, Operators};

absl::StatusOr<std::unique_ptr<cache::ArtifactReader>> OpenArtifact(
    const ApiDependencies& deps, const auth::Caller& caller,
    const v1::DownloadArtifactRequest& request, OpenStreams::Place* place) {
  auto opened = FindArtifact(deps, caller, request, place);
  Audit(deps, caller, "download", absl::StrCat(request.job_id(), "/", request.artifact_name()),
        opened.status());
  if (opened.ok()) {
    const auto size = static_cast<int64_t>((*opened)->info().size_bytes);
    CountUsage(deps, caller.tenant, {.downloaded_bytes = size - request.offset()});
  }
  return opened;
}

std::unique_ptr<OpenStreams::Place> AddStream(const ApiDependencies& deps, const char* protocol,
                                              const char* method, const auth::Caller& caller,
                                              std::string object, bool is_transfer) {
  if (deps.streams == nullptr) return nullptr;
  return deps.streams->Add(protocol, method, caller, std::move(object), is_transfer);
}

void LogFault(const log::Logger& log, const char* method, const absl::Status& status) {
  if (absl::IsInternal(status) || absl::IsDataLoss(status) || absl::IsUnknown(status)) {
    log.Error("call failed", {{"method", method}, {"error", status.message()}});
  }
}

absl::Status ServerBusy() {
  return jobs::ServiceError(absl::StatusCode::kResourceExhausted,
                            "too many calls wait; try again later",
                            {.reason = "SERVER_BUSY", .retry_delay = absl::Seconds(1)});
}

}  // namespace npuc::api
