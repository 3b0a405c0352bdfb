#include "server/api/admin.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/civil_time.h"
#include "absl/time/clock.h"
#include "compiler_core/base/status.h"
#include "server/api/audit.h"
#include "server/api/convert.h"
#include "server/api/job_list.h"
#include "server/executor/requeue.h"
#include "server/jobs/service_error.h"

namespace npuc::api {
namespace {

constexpr size_t kMaxReasonBytes = 1024;
// One call is about so many jobs; the caller goes on.
constexpr size_t kMaxJobsOfACall = 1000;
constexpr int32_t kMaxListedConnections = 1000;
constexpr int32_t kDefaultListedConnections = 100;

// Turns one of the operator's switches, with a line of the audit log and of the log.
absl::Status Turn(const ApiDependencies& deps, const auth::Caller& caller,
                  executor::OperatorSwitch& one, bool on, const std::string& reason,
                  absl::string_view action, absl::string_view object, absl::string_view said) {
  jobs::FieldChecker check;
  CheckReason(reason, check);
  absl::Status status = check.ToStatus();
  if (status.ok()) {
    status =
        one.Set({.on = on, .reason = reason, .by = caller.identity, .since = deps.admin->now()});
  }
  Audit(deps, caller, action, object, status, reason);
  RETURN_IF_ERROR(status);
  deps.log->Warning(said, {{"identity", caller.identity}, {"reason", reason}});
  return absl::OkStatus();
}

absl::Status SetDispatch(const ApiDependencies& deps, const auth::Caller& caller,
                         const v1::SetDispatchRequest& request, v1::SetDispatchResponse* response) {
  RETURN_IF_ERROR(Turn(deps, caller, *deps.admin->dispatch, request.paused(), request.reason(),
                       request.paused() ? "admin.pause" : "admin.resume", "dispatch",
                       request.paused() ? "dispatch is paused" : "dispatch is resumed"));
  ControlToProto(deps.admin->dispatch->Get(), response->mutable_state());
  return absl::OkStatus();
}

absl::Status SetCordon(const ApiDependencies& deps, const auth::Caller& caller,
                       const v1::SetCordonRequest& request, v1::SetCordonResponse* response) {
  RETURN_IF_ERROR(
      Turn(deps, caller, *deps.admin->cordon, request.cordoned(), request.reason(),
           request.cordoned() ? "admin.cordon" : "admin.uncordon", deps.facts.node,
           request.cordoned() ? "this node is cordoned" : "this node is cordoned no more"));
  ControlToProto(deps, deps.admin->cordon->Get(), response->mutable_state());
  return absl::OkStatus();
}

// The first jobs of a filter behind a place, newest first.
absl::StatusOr<jobs::JobIndex::Page> FindJobs(const ApiDependencies& deps, jobs::JobFilter filter,
                                              const std::string& after_id) {
  RETURN_IF_ERROR(deps.lifecycle->CheckReads());
  if (!deps.index->is_complete()) return IndexNotReady();
  return deps.index->Find(
      {.filter = std::move(filter), .after_id = after_id, .limit = kMaxJobsOfACall});
}

// `only`: the states of which the call is; the filter may name some of them.
absl::StatusOr<jobs::JobFilter> ReadAdminFilter(const auth::Caller& caller,
                                                const v1::ListCompileJobsRequest& request,
                                                const std::vector<jobs::JobState>& only,
                                                absl::string_view reason) {
  jobs::FieldChecker check;
  jobs::JobFilter filter = ReadFilter(caller, request, check);
  CheckReason(reason, check);
  if (filter.states.empty()) filter.states = only;
  for (const jobs::JobState state : filter.states) {
    if (std::find(only.begin(), only.end(), state) != only.end()) continue;
    check.Add("filter.states",
              absl::StrCat(jobs::JobStateName(state), " is no state that this call is for"));
  }
  RETURN_IF_ERROR(check.ToStatus());
  return filter;
}

absl::Status RunCancelJobs(const ApiDependencies& deps, const auth::Caller& caller,
                           const v1::CancelJobsRequest& request, v1::CancelJobsResponse* response) {
  ASSIGN_OR_RETURN(
      jobs::JobFilter filter,
      ReadAdminFilter(caller, request.filter(), {jobs::JobState::kQueued, jobs::JobState::kRunning},
                      request.reason()));
  ASSIGN_OR_RETURN(const jobs::JobIndex::Page page, FindJobs(deps, std::move(filter), ""));
  int64_t cancelled = 0;
  for (const std::string& id : page.ids) {
    const auto job = deps.jobs->Cancel(id, request.reason());
    if (absl::IsNotFound(job.status())) continue;
    RETURN_IF_ERROR(job.status());
    if ((*job)->state == jobs::JobState::kCancelled) ++cancelled;
  }
  response->set_cancelled(cancelled);
  response->set_has_more(page.has_more);
  return absl::OkStatus();
}

absl::Status CancelJobs(const ApiDependencies& deps, const auth::Caller& caller,
                        const v1::CancelJobsRequest& request, v1::CancelJobsResponse* response) {
  const absl::Status status = RunCancelJobs(deps, caller, request, response);
  Audit(deps, caller, "admin.cancel_jobs", request.filter().ShortDebugString(), status,
        absl::StrCat(response->cancelled(), " cancelled; ", request.reason()));
  return status;
}

bool InvitesRetry(const absl::Status& status) {
  const auto details = jobs::ErrorDetailsOf(status);
  return details.has_value() && details->retry_delay.has_value();
}

absl::Status RunRequeue(const ApiDependencies& deps, const auth::Caller& caller,
                        const v1::RequeueJobsRequest& request, v1::RequeueJobsResponse* response) {
  RETURN_IF_ERROR(deps.lifecycle->CheckWrites());
  ASSIGN_OR_RETURN(jobs::JobFilter filter,
                   ReadAdminFilter(caller, request.filter(), {jobs::JobState::kFailed}, ""));
  const std::string& token = request.filter().page_token();
  if (!token.empty() && !jobs::IsValidJobId(token)) {
    jobs::FieldChecker check;
    check.Add("filter.page_token", "is not a next_page_token of an earlier answer");
    return check.ToStatus();
  }
  ASSIGN_OR_RETURN(const jobs::JobIndex::Page page, FindJobs(deps, std::move(filter), token));
  for (const std::string& id : page.ids) {
    const auto job = deps.jobs->Get(id);
    if (!job.ok()) continue;  // pruned meanwhile
    const auto submitted = executor::Requeue(**job, *deps.jobs, *deps.submission);
    if (submitted.ok()) {
      submitted->already_existed ? response->set_already_requeued(response->already_requeued() + 1)
                                 : response->set_requeued(response->requeued() + 1);
    } else if (InvitesRetry(submitted.status())) {
      // The queue is full, or the daemon stops: the caller comes back, and what is done is done.
      return submitted.status();
    } else {
      v1::RequeueFailure* const failure = response->add_failures();
      failure->set_job_id(id);
      failure->set_message(std::string(submitted.status().message()));
    }
  }
  if (page.has_more) response->set_next_page_token(page.ids.back());
  return absl::OkStatus();
}

absl::Status RequeueJobs(const ApiDependencies& deps, const auth::Caller& caller,
                         const v1::RequeueJobsRequest& request, v1::RequeueJobsResponse* response) {
  const absl::Status status = RunRequeue(deps, caller, request, response);
  Audit(deps, caller, "admin.requeue_jobs", request.filter().ShortDebugString(), status,
        absl::StrCat(response->requeued(), " requeued"));
  return status;
}

absl::Status ListConnections(const ApiDependencies& deps, const auth::Caller& caller,
                             const v1::ListConnectionsRequest& request,
                             v1::ListConnectionsResponse* response) {
  if (request.limit() < 0 || request.limit() > kMaxListedConnections) {
    jobs::FieldChecker check;
    check.Add("limit", absl::StrCat(request.limit(), " is not in 0 to ", kMaxListedConnections));
    return check.ToStatus();
  }
  const auto limit =
      static_cast<size_t>(request.limit() == 0 ? kDefaultListedConnections : request.limit());
  for (const OpenConnections::Connection& open : deps.connections->List(limit)) {
    v1::Connection* const out = response->add_connections();
    out->set_protocol(open.protocol);
    out->set_peer(open.peer);
    out->set_identity(open.identity);
    out->set_tenant(open.tenant);
    out->set_last_method(open.last_method);
    out->set_calls(open.calls);
    api::ToProto(open.since, out->mutable_since());
    out->set_received_bytes(open.received_bytes);
    out->set_sent_bytes(open.sent_bytes);
  }
  for (const OpenStreams::Stream& open : deps.streams->List(limit)) {
    v1::OpenStream* const out = response->add_streams();
    out->set_protocol(open.protocol);
    out->set_method(open.method);
    out->set_peer(open.peer);
    out->set_identity(open.identity);
    out->set_tenant(open.tenant);
    out->set_object(open.object);
    api::ToProto(open.since, out->mutable_since());
    out->set_bytes(open.bytes);
  }
  response->set_open_connections(static_cast<int64_t>(deps.connections->count()));
  response->set_open_streams(static_cast<int64_t>(deps.streams->count()));
  response->set_node(deps.facts.node);
  return absl::OkStatus();
}

bool IsDay(const std::string& text) {
  absl::CivilDay day;
  return absl::ParseCivilTime(text, &day) && absl::FormatCivilTime(day) == text;
}

absl::Status GetUsage(const ApiDependencies& deps, const auth::Caller& caller,
                      const v1::GetUsageRequest& request, v1::GetUsageResponse* response) {
  jobs::FieldChecker check;
  const auto check_day = [&check](const char* field, const std::string& day) {
    if (!day.empty() && !IsDay(day)) check.Add(field, "is no day such as 2026-11-25");
  };
  check_day("from_day", request.from_day());
  check_day("to_day", request.to_day());
  RETURN_IF_ERROR(check.ToStatus());
  ASSIGN_OR_RETURN(const base::UsageDays days,
                   deps.admin->usage->Find({.from_day = request.from_day(),
                                            .to_day = request.to_day(),
                                            .tenant = request.tenant()}));
  for (const auto& [day, tenants] : days) {
    for (const auto& [tenant, usage] : tenants) {
      if (!caller.Sees(tenant)) continue;
      v1::TenantUsage* const out = response->add_usage();
      out->set_day(day);
      out->set_tenant(tenant);
      out->set_jobs(usage.jobs);
      out->set_succeeded(usage.succeeded);
      out->set_failed(usage.failed);
      out->set_cache_hits(usage.cache_hits);
      out->set_processor_seconds(static_cast<double>(usage.processor_micros) * 1e-6);
      out->set_uploaded_bytes(usage.uploaded_bytes);
      out->set_downloaded_bytes(usage.downloaded_bytes);
    }
  }
  return absl::OkStatus();
}

}  // namespace

void CheckReason(absl::string_view reason, jobs::FieldChecker& check) {
  if (reason.size() <= kMaxReasonBytes) return;
  check.Add("reason", absl::StrCat("has ", reason.size(), " bytes, at most ", kMaxReasonBytes,
                                   " are allowed"));
}

void ControlToProto(const executor::OperatorSwitch::State& state, v1::DispatchState* out) {
  out->set_paused(state.on);
  out->set_reason(state.reason);
  out->set_by(state.by);
  if (state.on) api::ToProto(state.since, out->mutable_since());
}

void ControlToProto(const ApiDependencies& deps, const executor::OperatorSwitch::State& state,
                    v1::CordonState* out) {
  out->set_cordoned(state.on);
  out->set_reason(state.reason);
  out->set_by(state.by);
  if (state.on) api::ToProto(state.since, out->mutable_since());
  out->set_node(deps.facts.node);
}

const Method<v1::SetDispatchRequest, v1::SetDispatchResponse> kSetDispatch = {
    "SetDispatch", auth::Right::kAdmin, SetDispatch};
const Method<v1::SetCordonRequest, v1::SetCordonResponse> kSetCordon = {
    "SetCordon", auth::Right::kAdmin, SetCordon};
const Method<v1::CancelJobsRequest, v1::CancelJobsResponse> kCancelJobs = {
    "CancelJobs", auth::Right::kAdmin, CancelJobs};
const Method<v1::RequeueJobsRequest, v1::RequeueJobsResponse> kRequeueJobs = {
    "RequeueJobs", auth::Right::kAdmin, RequeueJobs};
const Method<v1::ListConnectionsRequest, v1::ListConnectionsResponse> kListConnections = {
    "ListConnections", auth::Right::kAdmin, ListConnections};
const Method<v1::GetUsageRequest, v1::GetUsageResponse> kGetUsage = {"GetUsage", auth::Right::kRead,
                                                                     GetUsage};

void CountUsage(const ApiDependencies& deps, absl::string_view tenant, const base::Usage& usage) {
  if (deps.admin != nullptr) deps.admin->usage->Add(tenant, usage);
}

}  // namespace npuc::api
