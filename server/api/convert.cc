#include "server/api/convert.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "server/jobs/service_error.h"

namespace npuc::api {
namespace {

v1::FailureKind ToProto(jobs::FailureKind kind) {
  switch (kind) {
    case jobs::FailureKind::kNone:
      return v1::FAILURE_KIND_UNSPECIFIED;
    case jobs::FailureKind::kInvalidInput:
      return v1::FAILURE_KIND_INVALID_INPUT;
    case jobs::FailureKind::kLimitExceeded:
      return v1::FAILURE_KIND_LIMIT_EXCEEDED;
    case jobs::FailureKind::kWorkerDied:
      return v1::FAILURE_KIND_WORKER_DIED;
    case jobs::FailureKind::kInternal:
      return v1::FAILURE_KIND_INTERNAL;
    case jobs::FailureKind::kInputLost:
      return v1::FAILURE_KIND_INPUT_LOST;
  }
  return v1::FAILURE_KIND_UNSPECIFIED;
}

v1::Severity ToProto(base::JobDiagnostic::Severity severity) {
  switch (severity) {
    case base::JobDiagnostic::Severity::kNote:
      return v1::SEVERITY_NOTE;
    case base::JobDiagnostic::Severity::kWarning:
      return v1::SEVERITY_WARNING;
    case base::JobDiagnostic::Severity::kError:
      return v1::SEVERITY_ERROR;
  }
  return v1::SEVERITY_UNSPECIFIED;
}

void ToProto(const jobs::JobArtifact& artifact, v1::Artifact* out) {
  out->set_name(artifact.name);
  out->set_size_bytes(static_cast<int64_t>(artifact.size_bytes));
  out->set_sha256(artifact.sha256);
}

void ToProto(const base::InputFile& input, v1::BlobDigest* out) {
  out->set_sha256(input.sha256);
  out->set_size_bytes(static_cast<int64_t>(input.size_bytes));
}

void ToProto(absl::Duration duration, google::protobuf::Duration* out) {
  out->set_seconds(absl::ToInt64Seconds(duration));
  out->set_nanos(static_cast<int32_t>(
      absl::ToInt64Nanoseconds(duration - absl::Seconds(absl::ToInt64Seconds(duration)))));
}

void SpecToProto(const jobs::JobSpec& spec, v1::CompileJobSpec* out) {
  out->set_config_name(spec.config_name);
  ToProto(spec.inputs.front(), out->mutable_model());
  for (size_t i = 1; i < spec.inputs.size(); ++i) {
    v1::SideInput* side = out->add_side_inputs();
    side->set_role(spec.inputs[i].role);
    side->set_name(spec.inputs[i].name);
    ToProto(spec.inputs[i], side->mutable_digest());
  }
  out->set_priority(spec.priority);
  out->mutable_labels()->insert(spec.labels.begin(), spec.labels.end());
  ToProto(spec.timeout, out->mutable_timeout());
  out->set_no_cache(spec.no_cache);
  if (spec.model_info_time_seconds.has_value()) {
    out->mutable_model_info_time()->set_seconds(*spec.model_info_time_seconds);
  }
}

v1::WaitReason ToProto(jobs::JobWait::Reason reason) {
  switch (reason) {
    case jobs::JobWait::Reason::kNextInLine:
      return v1::WAIT_REASON_NEXT_IN_LINE;
    case jobs::JobWait::Reason::kJobsAhead:
      return v1::WAIT_REASON_JOBS_AHEAD;
    case jobs::JobWait::Reason::kTenantLimit:
      return v1::WAIT_REASON_TENANT_LIMIT;
    case jobs::JobWait::Reason::kEqualJob:
      return v1::WAIT_REASON_EQUAL_JOB;
  }
  return v1::WAIT_REASON_UNSPECIFIED;
}

// Queued and QueuePosition tell the same of a wait.
template <typename Message>
void WaitToProto(const jobs::JobWait& wait, Message* out) {
  out->set_position(wait.position);
  out->set_wait_reason(ToProto(wait.reason));
  if (wait.estimated_start != absl::InfinitePast()) {
    api::ToProto(wait.estimated_start, out->mutable_estimated_start_time());
  }
}

void StateToProto(const jobs::Job& job, const std::optional<jobs::JobWait>& wait,
                  v1::CompileJob* out) {
  switch (job.state) {
    case jobs::JobState::kQueued:
      if (wait.has_value()) {
        WaitToProto(*wait, out->mutable_queued());
      } else {
        out->mutable_queued()->set_position(-1);
      }
      out->mutable_queued()->set_retry_reason(job.reason);
      break;
    case jobs::JobState::kRunning:
      out->mutable_running()->set_stage(job.stage);
      out->mutable_running()->set_fraction(job.fraction);
      break;
    case jobs::JobState::kSucceeded:
      out->mutable_succeeded();
      break;
    case jobs::JobState::kFailed:
      out->mutable_failed()->set_kind(ToProto(job.failure_kind));
      out->mutable_failed()->set_message(job.reason);
      break;
    case jobs::JobState::kCancelled:
      out->mutable_cancelled()->set_reason(job.reason);
      break;
    case jobs::JobState::kExpired:
      out->mutable_expired()->set_was(
          api::ToProto(job.expired_in.value_or(jobs::JobState::kQueued)));
      break;
  }
}

struct BodyConverter {
  v1::JobEvent* out;

  void operator()(const jobs::StateChangedEvent& event) const {
    v1::StateChanged* body = out->mutable_state_changed();
    body->set_state(api::ToProto(event.state));
    body->set_reason(event.reason);
    body->set_failure_kind(ToProto(event.failure_kind));
    body->set_cache_hit(event.cache_hit);
  }
  void operator()(const jobs::ProgressEvent& event) const {
    out->mutable_progress()->set_stage(event.stage);
    out->mutable_progress()->set_fraction(event.fraction);
  }
  void operator()(const jobs::LogEvent& event) const {
    out->mutable_log_line()->set_text(event.text);
  }
  void operator()(const jobs::ArtifactEvent& event) const {
    ToProto(event.artifact, out->mutable_artifact_ready());
  }
  void operator()(const jobs::DiagnosticEvent& event) const {
    api::ToProto(event.diagnostic, out->mutable_diagnostic());
  }
};

}  // namespace

absl::Status CheckJobId(absl::string_view job_id) {
  if (jobs::IsValidJobId(job_id)) return absl::OkStatus();
  jobs::FieldChecker check;
  check.Add("job_id", absl::StrCat("'", Printable(job_id, 64),
                                   "' is not a job id: 'j' and 26 digits and letters"));
  return check.ToStatus();
}

v1::JobState ToProto(jobs::JobState state) {
  switch (state) {
    case jobs::JobState::kQueued:
      return v1::JOB_STATE_QUEUED;
    case jobs::JobState::kRunning:
      return v1::JOB_STATE_RUNNING;
    case jobs::JobState::kSucceeded:
      return v1::JOB_STATE_SUCCEEDED;
    case jobs::JobState::kFailed:
      return v1::JOB_STATE_FAILED;
    case jobs::JobState::kCancelled:
      return v1::JOB_STATE_CANCELLED;
    case jobs::JobState::kExpired:
      return v1::JOB_STATE_EXPIRED;
  }
  return v1::JOB_STATE_UNSPECIFIED;
}

std::optional<jobs::JobState> FromProto(v1::JobState state) {
  for (const jobs::JobState candidate :
       {jobs::JobState::kQueued, jobs::JobState::kRunning, jobs::JobState::kSucceeded,
        jobs::JobState::kFailed, jobs::JobState::kCancelled, jobs::JobState::kExpired}) {
    if (ToProto(candidate) == state) return candidate;
  }
  return std::nullopt;
}

void ToProto(absl::Time time, google::protobuf::Timestamp* out) {
  const int64_t micros = absl::ToUnixMicros(time);
  const int64_t seconds = micros / 1'000'000;
  out->set_seconds(seconds);
  out->set_nanos(static_cast<int32_t>((micros - seconds * 1'000'000) * 1000));
}

absl::Time FromProto(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

absl::Duration DurationOf(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

void ToProto(const base::JobDiagnostic& diagnostic, v1::Diagnostic* out) {
  out->set_id(diagnostic.id);
  out->set_severity(ToProto(diagnostic.severity));
  out->set_file(diagnostic.file);
  out->set_line(diagnostic.line);
  out->set_column(diagnostic.column);
  out->set_node(diagnostic.node);
  out->set_op(diagnostic.op);
  out->set_message(diagnostic.message);
  out->set_limit_source(diagnostic.limit_source);
  out->set_fix(diagnostic.fix);
}

absl::Status StructOfJson(absl::string_view json, google::protobuf::Struct* out) {
  const auto status = google::protobuf::util::JsonStringToMessage({json.data(), json.size()}, out);
  if (status.ok()) return absl::OkStatus();
  const std::string why(status.message().data(), status.message().size());
  return absl::InternalError(absl::StrCat("the worker sent no JSON object: ", Printable(why, 256)));
}

void ToProto(const cache::BlobDigest& digest, v1::BlobDigest* out) {
  out->set_sha256(digest.sha256);
  out->set_size_bytes(static_cast<int64_t>(digest.size_bytes));
}

absl::StatusOr<cache::BlobDigest> FromProto(const v1::BlobDigest& digest, absl::string_view field) {
  if (digest.size_bytes() < 0) {
    jobs::FieldChecker check;
    check.Add(absl::StrCat(field, ".size_bytes"),
              absl::StrCat(digest.size_bytes(), " is negative"));
    return check.ToStatus();
  }
  return cache::BlobDigest{.sha256 = digest.sha256(),
                           .size_bytes = static_cast<uint64_t>(digest.size_bytes())};
}

absl::StatusOr<executor::SubmitRequest> FromProto(const v1::CreateCompileJobRequest& request) {
  const v1::CompileJobSpec& spec = request.spec();
  executor::SubmitRequest out;
  out.request_id = request.request_id();
  out.config_text = spec.config_text();
  out.config_name = spec.config_name();
  ASSIGN_OR_RETURN(const cache::BlobDigest model, FromProto(spec.model(), "spec.model"));
  out.model = {.sha256 = model.sha256, .size_bytes = model.size_bytes};
  for (int i = 0; i < spec.side_inputs_size(); ++i) {
    const v1::SideInput& side = spec.side_inputs(i);
    ASSIGN_OR_RETURN(cache::BlobDigest digest,
                     FromProto(side.digest(), absl::StrCat("spec.side_inputs[", i, "].digest")));
    out.side_inputs.push_back({.role = side.role(),
                               .name = side.name(),
                               .sha256 = std::move(digest.sha256),
                               .size_bytes = digest.size_bytes});
  }
  out.priority = spec.priority();
  out.labels.insert(spec.labels().begin(), spec.labels().end());
  if (spec.has_timeout()) out.timeout = DurationOf(spec.timeout());
  out.no_cache = spec.no_cache();
  if (spec.has_model_info_time()) out.model_info_time_seconds = spec.model_info_time().seconds();
  return out;
}

void ToProto(const jobs::JobWait& wait, v1::QueuePosition* out) { WaitToProto(wait, out); }

void ToProto(const jobs::Job& job, const std::optional<jobs::JobWait>& wait, v1::CompileJob* out) {
  out->set_job_id(job.id);
  out->set_request_id(job.request_id);
  SpecToProto(job.spec, out->mutable_spec());
  StateToProto(job, wait, out);
  out->set_attempts(job.attempts);
  out->set_cache_hit(job.cache_hit);
  for (const jobs::JobArtifact& artifact : job.artifacts) ToProto(artifact, out->add_artifacts());
  for (const base::JobDiagnostic& diagnostic : job.diagnostics) {
    ToProto(diagnostic, out->add_diagnostics());
  }
  ToProto(job.create_time, out->mutable_create_time());
  if (job.start_time != absl::InfinitePast()) ToProto(job.start_time, out->mutable_start_time());
  if (job.end_time != absl::InfinitePast()) ToProto(job.end_time, out->mutable_end_time());
  if (job.deadline != absl::InfiniteFuture()) {
    ToProto(job.deadline, out->mutable_deadline_time());
  }
  out->set_last_seq(job.last_seq);
  out->set_model_md5(job.model().md5);
  out->set_output_file(job.output_file);
  out->set_tenant(job.tenant);
  out->set_core(job.spec.core);
  out->set_framework(job.spec.framework);
  out->set_submitter(job.spec.submitter);
  out->set_trace_id(job.spec.trace.trace_id);
}

void ToProto(const jobs::JobEvent& event, v1::JobEvent* out) {
  out->set_seq(event.seq);
  ToProto(event.time, out->mutable_event_time());
  out->set_attempt(event.attempt);
  std::visit(BodyConverter{out}, event.body);
}

}  // namespace npuc::api
