#include "client/npuc_remote/output.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/lib/service_error.h"
#include "client/npuc_remote/exit_codes.h"

namespace npuc::remote {
namespace {

using Json = nlohmann::ordered_json;

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

std::string WithoutPrefix(absl::string_view name, absl::string_view prefix) {
  if (!absl::StartsWith(name, prefix)) return "UNKNOWN";
  return std::string(name.substr(prefix.size()));
}

absl::Time ToTime(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

Json TimeJson(const google::protobuf::Timestamp& time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", ToTime(time), absl::UTCTimeZone());
}

Json ArtifactJson(const v1::Artifact& artifact) {
  return {
      {"name", artifact.name()}, {"size", artifact.size_bytes()}, {"sha256", artifact.sha256()}};
}

Json DiagnosticJson(const v1::Diagnostic& diagnostic) {
  return {{"id", diagnostic.id()},
          {"severity", absl::AsciiStrToLower(
                           WithoutPrefix(v1::Severity_Name(diagnostic.severity()), "SEVERITY_"))},
          {"file", diagnostic.file()},
          {"line", diagnostic.line()},
          {"column", diagnostic.column()},
          {"node", diagnostic.node()},
          {"op", diagnostic.op()},
          {"message", diagnostic.message()},
          {"limit_source", diagnostic.limit_source()},
          {"fix", diagnostic.fix()}};
}

template <typename Items, typename Function>
Json ListJson(const Items& items, Function to_json) {
  Json list = Json::array();
  for (const auto& item : items) list.push_back(to_json(item));
  return list;
}

Json ReadinessJson(const v1::GetServerInfoResponse& info) {
  Json conditions = Json::object();
  for (const v1::ReadinessCondition& condition : info.conditions()) {
    conditions[condition.name()] = condition.reason().empty() ? "ok" : condition.reason();
  }
  return {{"ready", IsReady(info)}, {"conditions", std::move(conditions)}};
}

// Message: TenantState or TenantLimits; limits have the same names in both. A limit that is not set
// is null.
template <typename Message>
void AddLimits(const Message& of, Json& json) {
  const auto add = [&json](const char* name, bool is_set, int64_t value) {
    json[name] = is_set ? Json(value) : Json(nullptr);
  };
  add("max_queued_jobs", of.has_max_queued_jobs(), of.max_queued_jobs());
  add("max_running_jobs", of.has_max_running_jobs(), of.max_running_jobs());
  add("max_job_bytes", of.has_max_job_bytes(), of.max_job_bytes());
  add("max_stored_bytes", of.has_max_stored_bytes(), of.max_stored_bytes());
  add("max_result_bytes", of.has_max_result_bytes(), of.max_result_bytes());
  add("max_upload_rate", of.has_max_upload_rate(), of.max_upload_rate());
  add("max_call_rate", of.has_max_call_rate(), of.max_call_rate());
}

void AddPlaceFields(const v1::QueuePosition& place, Json& json) {
  json["wait_reason"] = WaitReasonName(place.wait_reason());
  if (place.has_estimated_start_time()) {
    json["estimated_start_time"] = TimeJson(place.estimated_start_time());
  }
}

void AddEventFields(const v1::JobEvent& event, Json& json) {
  switch (event.event_case()) {
    case v1::JobEvent::kStateChanged: {
      const v1::StateChanged& change = event.state_changed();
      json["type"] = "state_changed";
      json["state"] = StateName(change.state());
      json["reason"] = change.reason();
      if (change.state() == v1::JOB_STATE_FAILED) {
        json["failure_kind"] = FailureKindName(change.failure_kind());
      }
      if (change.state() == v1::JOB_STATE_SUCCEEDED) json["cache_hit"] = change.cache_hit();
      break;
    }
    case v1::JobEvent::kQueuePosition:
      json["type"] = "queue_position";
      json["position"] = event.queue_position().position();
      AddPlaceFields(event.queue_position(), json);
      break;
    case v1::JobEvent::kProgress:
      json["type"] = "progress";
      json["stage"] = event.progress().stage();
      json["fraction"] = event.progress().fraction();
      break;
    case v1::JobEvent::kLogLine:
      json["type"] = "log_line";
      json["text"] = event.log_line().text();
      break;
    case v1::JobEvent::kArtifactReady:
      json["type"] = "artifact_ready";
      json.update(ArtifactJson(event.artifact_ready()));
      break;
    case v1::JobEvent::kDiagnostic:
      json["type"] = "diagnostic";
      json.update(DiagnosticJson(event.diagnostic()));
      break;
    case v1::JobEvent::kHeartbeat:
      json["type"] = "heartbeat";
      break;
    case v1::JobEvent::EVENT_NOT_SET:
      json["type"] = "unknown";
      break;
  }
}

}  // namespace

std::string StateName(v1::JobState state) {
  return WithoutPrefix(v1::JobState_Name(state), "JOB_STATE_");
}

std::string FailureKindName(v1::FailureKind kind) {
  return WithoutPrefix(v1::FailureKind_Name(kind), "FAILURE_KIND_");
}

std::string WaitReasonName(v1::WaitReason reason) {
  return WithoutPrefix(v1::WaitReason_Name(reason), "WAIT_REASON_");
}

v1::QueuePosition PlaceOf(const v1::Queued& queued) {
  v1::QueuePosition place;
  place.set_position(queued.position());
  place.set_wait_reason(queued.wait_reason());
  if (queued.has_estimated_start_time()) {
    *place.mutable_estimated_start_time() = queued.estimated_start_time();
  }
  return place;
}

std::string DescribePlace(const v1::QueuePosition& place, absl::Time now) {
  std::string text;
  switch (place.wait_reason()) {
    case v1::WAIT_REASON_NEXT_IN_LINE:
      text = "next in line";
      break;
    case v1::WAIT_REASON_TENANT_LIMIT:
      text = "its tenant runs as many jobs as it may";
      break;
    case v1::WAIT_REASON_EQUAL_JOB:
      return "an equal job is being compiled, whose result it will have";
    default:  // JOBS_AHEAD, and what older and newer servers say
      break;
  }
  if (place.position() > 0) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", place.position(), " before it");
  }
  if (text.empty() || !place.has_estimated_start_time()) return text;
  const absl::Duration left = absl::FromUnixSeconds(place.estimated_start_time().seconds()) - now;
  if (left < absl::Seconds(1)) return text;
  absl::StrAppend(&text, ", starts in about ",
                  absl::FormatDuration(absl::Trunc(left, absl::Seconds(1))));
  return text;
}

bool ParseState(absl::string_view name, v1::JobState& state) {
  return v1::JobState_Parse(absl::StrCat("JOB_STATE_", absl::AsciiStrToUpper(name)), &state) &&
         state != v1::JOB_STATE_UNSPECIFIED;
}

v1::JobState StateOf(const v1::CompileJob& job) {
  switch (job.state_case()) {
    case v1::CompileJob::kQueued:
      return v1::JOB_STATE_QUEUED;
    case v1::CompileJob::kRunning:
      return v1::JOB_STATE_RUNNING;
    case v1::CompileJob::kSucceeded:
      return v1::JOB_STATE_SUCCEEDED;
    case v1::CompileJob::kFailed:
      return v1::JOB_STATE_FAILED;
    case v1::CompileJob::kCancelled:
      return v1::JOB_STATE_CANCELLED;
    case v1::CompileJob::kExpired:
      return v1::JOB_STATE_EXPIRED;
    case v1::CompileJob::STATE_NOT_SET:
      break;
  }
  return v1::JOB_STATE_UNSPECIFIED;
}

bool HasEnded(const v1::CompileJob& job) {
  const v1::JobState state = StateOf(job);
  return state != v1::JOB_STATE_UNSPECIFIED && state != v1::JOB_STATE_QUEUED &&
         state != v1::JOB_STATE_RUNNING;
}

std::string ReasonOf(const v1::CompileJob& job) {
  if (job.has_failed()) return job.failed().message();
  if (job.has_cancelled()) return job.cancelled().reason();
  if (job.has_expired()) {
    return absl::StrCat("its time ran out while it was ", StateName(job.expired().was()));
  }
  if (job.has_queued()) return job.queued().retry_reason();
  return "";
}

DiagnosticText TextOf(const v1::Diagnostic& d) {
  return {.severity = d.severity() == v1::SEVERITY_NOTE      ? Severity::kNote
                      : d.severity() == v1::SEVERITY_WARNING ? Severity::kWarning
                                                             : Severity::kError,
          .id = d.id(),
          .message = d.message(),
          .file = d.file(),
          .line = d.line(),
          .column = d.column(),
          .node = d.node(),
          .op = d.op(),
          .limit_source = d.limit_source(),
          .fix = d.fix()};
}

v1::Diagnostic ToWire(const Diagnostic& diagnostic) {
  v1::Diagnostic wire;
  wire.set_id(IdOf(diagnostic.kind));
  switch (diagnostic.severity()) {
    case Severity::kNote:
      wire.set_severity(v1::SEVERITY_NOTE);
      break;
    case Severity::kWarning:
      wire.set_severity(v1::SEVERITY_WARNING);
      break;
    case Severity::kError:
      wire.set_severity(v1::SEVERITY_ERROR);
      break;
  }
  wire.set_file(diagnostic.file);
  wire.set_line(diagnostic.line);
  wire.set_column(diagnostic.column);
  wire.set_node(diagnostic.node);
  wire.set_op(diagnostic.op);
  wire.set_message(diagnostic.message);
  wire.set_limit_source(diagnostic.limit_source);
  wire.set_fix(diagnostic.fix);
  return wire;
}

std::string JobJson(const v1::CompileJob& job) {
  Json json = {{"job", job.job_id()},
               {"state", StateName(StateOf(job))},
               {"cache_hit", job.cache_hit()},
               {"attempts", job.attempts()},
               {"artifacts", ListJson(job.artifacts(), ArtifactJson)},
               {"diagnostics", ListJson(job.diagnostics(), DiagnosticJson)},
               {"reason", ReasonOf(job)},
               {"request_id", job.request_id()},
               {"config_name", job.spec().config_name()},
               {"output_file", job.output_file()},
               {"model_md5", job.model_md5()},
               {"tenant", job.tenant()},
               {"submitter", job.submitter()},
               {"trace_id", job.trace_id()},
               {"core", job.core()},
               {"framework", job.framework()},
               {"priority", job.spec().priority()},
               {"labels", Json::object()},
               {"last_seq", job.last_seq()}};
  for (const auto& [key, value] : job.spec().labels()) json["labels"][key] = value;
  if (job.has_failed()) json["failure_kind"] = FailureKindName(job.failed().kind());
  if (job.has_queued()) {
    json["position"] = job.queued().position();
    AddPlaceFields(PlaceOf(job.queued()), json);
  }
  if (job.has_running()) {
    json["stage"] = job.running().stage();
    json["fraction"] = job.running().fraction();
  }
  if (job.has_create_time()) json["create_time"] = TimeJson(job.create_time());
  if (job.has_start_time()) json["start_time"] = TimeJson(job.start_time());
  if (job.has_end_time()) json["end_time"] = TimeJson(job.end_time());
  if (job.has_deadline_time()) json["deadline_time"] = TimeJson(job.deadline_time());
  return Dump(json);
}

std::string EventJson(absl::string_view job_id, const v1::JobEvent& event) {
  Json json = {{"job", std::string(job_id)}, {"seq", event.seq()}};
  AddEventFields(event, json);
  json["attempt"] = event.attempt();
  if (event.has_event_time()) json["time"] = TimeJson(event.event_time());
  return Dump(json);
}

std::string ErrorJson(const absl::Status& status, const std::vector<v1::Diagnostic>& diagnostics) {
  const client::ServiceError details = client::ServiceErrorOf(status);
  Json error = {{"code", absl::StatusCodeToString(status.code())},
                {"reason", details.reason},
                {"message", std::string(status.message())},
                {"problems", ListJson(details.problems, [](const std::string& p) { return p; })},
                {"exit_code", static_cast<int>(ExitCodeOf(status))}};
  return Dump(
      {{"error", std::move(error)}, {"diagnostics", ListJson(diagnostics, DiagnosticJson)}});
}

std::string ServerJson(const v1::GetServerInfoResponse& info) {
  Json server = {{"version", info.version()},
                 {"compiler_build_id", info.compiler_build_id()},
                 {"cores", ListJson(info.cores(), [](const std::string& core) { return core; })},
                 {"workers", info.workers()},
                 {"max_blob_bytes", info.max_blob_bytes()},
                 {"max_queued_jobs", info.max_queued_jobs()},
                 {"default_timeout_seconds", info.default_timeout().seconds()},
                 {"queued_jobs", info.queued_jobs()},
                 {"running_jobs", info.running_jobs()}};
  if (!info.conditions().empty()) server.update(ReadinessJson(info));
  return Dump(server);
}

std::string HealthJson(const v1::GetServerInfoResponse& info) { return Dump(ReadinessJson(info)); }

bool IsReady(const v1::GetServerInfoResponse& info) {
  return !info.conditions().empty() &&
         std::all_of(info.conditions().begin(), info.conditions().end(),
                     [](const auto& condition) { return condition.reason().empty(); });
}

std::vector<std::string> ReadinessLines(const v1::GetServerInfoResponse& info) {
  if (info.conditions().empty()) return {};
  if (IsReady(info)) return {"ready"};
  std::vector<std::string> lines = {"not ready"};
  for (const v1::ReadinessCondition& condition : info.conditions()) {
    if (condition.reason().empty()) continue;
    lines.push_back(
        absl::StrCat(Printable(condition.name()), ": ", Printable(condition.reason(), 1000)));
  }
  return lines;
}

std::string InspectionJson(const v1::InspectModelResponse& answer) {
  std::string text = "{}";
  if (answer.has_inspection()) {
    text.clear();
    if (!google::protobuf::util::MessageToJsonString(answer.inspection(), &text).ok()) text = "{}";
  }
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) json = Json::object();
  json["ok"] = answer.has_inspection();
  json["diagnostics"] = ListJson(answer.diagnostics(), DiagnosticJson);
  return Dump(json);
}

std::string DispatchJson(const v1::DispatchState& state) {
  Json json = {{"paused", state.paused()}, {"reason", state.reason()}, {"by", state.by()}};
  if (state.has_since()) json["since"] = TimeJson(state.since());
  return Dump(json);
}

std::string CordonJson(const v1::CordonState& state) {
  Json json = {{"node", state.node()},
               {"cordoned", state.cordoned()},
               {"reason", state.reason()},
               {"by", state.by()}};
  if (state.has_since()) json["since"] = TimeJson(state.since());
  return Dump(json);
}

std::string RotationJson(const v1::RotateTokenResponse& answer, const std::string& token) {
  Json json = Json::object();
  if (!token.empty()) json["token"] = token;
  if (answer.has_old_tokens_end_time()) {
    json["old_tokens_end_time"] = TimeJson(answer.old_tokens_end_time());
  }
  return Dump(json);
}

std::string DroppedJson(const v1::DropUploadsResponse& answer) {
  return Dump({{"dropped", answer.dropped()}, {"dropped_bytes", answer.dropped_bytes()}});
}

std::string EvictedJson(const v1::EvictContentResponse& answer) {
  Json evicted = Json::array();
  for (const std::string& name : answer.evicted()) evicted.push_back(name);
  return Dump({{"evicted", evicted}});
}

std::string CountJson(const char* name, int64_t count) { return Dump({{name, count}}); }

std::string RequeueJson(const v1::RequeueJobsResponse& answer) {
  return Dump({{"requeued", answer.requeued()},
               {"already_requeued", answer.already_requeued()},
               {"failures", ListJson(answer.failures(), [](const v1::RequeueFailure& failure) {
                  return Json{{"job", failure.job_id()}, {"message", failure.message()}};
                })}});
}

std::string TenantJson(const v1::TenantState& tenant) {
  Json temporary = nullptr;
  if (tenant.has_temporary()) {
    const v1::TenantLimits& set = tenant.temporary().limits();
    temporary = {{"end_time", TimeJson(tenant.temporary().end_time())},
                 {"by", tenant.temporary().by()},
                 {"reason", tenant.temporary().reason()},
                 {"weight", set.has_weight() ? Json(set.weight()) : Json(nullptr)}};
    AddLimits(set, temporary);
  }
  Json json = {{"tenant", tenant.name()},
               {"stored_bytes", tenant.stored_bytes()},
               {"open_uploads", tenant.open_uploads()},
               {"temporary", temporary},
               {"weight", tenant.weight()},
               {"queued_jobs", tenant.queued_jobs()},
               {"running_jobs", tenant.running_jobs()}};
  AddLimits(tenant, json);
  return Dump(json);
}

std::string ConnectionJson(const v1::Connection& connection, const std::string& node) {
  return Dump({{"kind", "connection"},
               {"node", node},
               {"protocol", connection.protocol()},
               {"peer", connection.peer()},
               {"identity", connection.identity()},
               {"tenant", connection.tenant()},
               {"last_method", connection.last_method()},
               {"calls", connection.calls()},
               {"since", TimeJson(connection.since())},
               {"received_bytes", connection.received_bytes()},
               {"sent_bytes", connection.sent_bytes()}});
}

std::string StreamJson(const v1::OpenStream& stream, const std::string& node) {
  return Dump({{"kind", "stream"},
               {"node", node},
               {"protocol", stream.protocol()},
               {"method", stream.method()},
               {"peer", stream.peer()},
               {"identity", stream.identity()},
               {"tenant", stream.tenant()},
               {"object", stream.object()},
               {"since", TimeJson(stream.since())},
               {"bytes", stream.bytes()}});
}

std::string AuditJson(const v1::AuditEntry& entry) {
  return Dump({{"time", TimeJson(entry.time())},
               {"node", entry.node()},
               {"action", entry.action()},
               {"identity", entry.identity()},
               {"tenant", entry.tenant()},
               {"peer", entry.peer()},
               {"object", entry.object()},
               {"result", entry.result()},
               {"detail", entry.detail()},
               {"left_out", entry.left_out()}});
}

std::string UsageJson(const v1::TenantUsage& usage) {
  return Dump({{"day", usage.day()},
               {"tenant", usage.tenant()},
               {"jobs", usage.jobs()},
               {"succeeded", usage.succeeded()},
               {"failed", usage.failed()},
               {"cache_hits", usage.cache_hits()},
               {"processor_seconds", usage.processor_seconds()},
               {"uploaded_bytes", usage.uploaded_bytes()},
               {"downloaded_bytes", usage.downloaded_bytes()}});
}

std::string CallerJson(const v1::GetCallerResponse& caller) {
  return Dump(
      {{"identity", caller.identity()},
       {"tenant", caller.tenant()},
       {"rights", ListJson(caller.rights(), [](const std::string& right) { return right; })}});
}

std::string CoreJson(absl::string_view core) { return Dump({{"core", std::string(core)}}); }

std::string OperatorJson(const v1::Operator& op) {
  return Dump({{"core", op.core()},
               {"framework", op.framework()},
               {"op", op.op()},
               {"restrictions",
                ListJson(op.restrictions(), [](const std::string& text) { return text; })}});
}

std::string OrDash(const std::string& text) { return text.empty() ? "-" : Printable(text); }

std::string HumanBytes(int64_t bytes) {
  constexpr const char* kUnits[] = {"kB", "MB", "GB", "TB"};
  if (bytes < 1000) return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  while (value >= 999.95 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  return absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

std::string HumanTime(const google::protobuf::Timestamp& time) {
  if (time.seconds() == 0) return "-";
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", ToTime(time), absl::LocalTimeZone());
}

}  // namespace npuc::remote
