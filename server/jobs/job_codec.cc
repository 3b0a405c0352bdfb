// The stored form of jobs, events and results: npuc.store.v1.
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "google/protobuf/unknown_field_set.h"
#include "npuc/store/v1/job.pb.h"
#include "server/jobs/job.h"
#include "server/jobs/service_error.h"

namespace npuc::jobs {
namespace {

namespace pb = ::npuc::store::v1;

// The numbers of the enumerators are those of the schema.
static_assert(static_cast<int>(JobState::kExpired) == pb::JOB_STATE_EXPIRED);
static_assert(static_cast<int>(FailureKind::kInputLost) == pb::FAILURE_KIND_INPUT_LOST);
static_assert(static_cast<int>(base::JobDiagnostic::Severity::kError) == pb::SEVERITY_ERROR);

pb::JobState ToStored(JobState state) { return static_cast<pb::JobState>(state); }
pb::FailureKind ToStored(FailureKind kind) { return static_cast<pb::FailureKind>(kind); }

// The functions named Read return DATA_LOSS for what no build ever stores, and RecordTooNew for an
// enumerator above those that this build knows.
template <typename Kept, typename Stored>
absl::Status ReadEnumerator(Stored stored, Stored first, Stored last, absl::string_view name,
                            Kept& kept) {
  kept = static_cast<Kept>(stored);
  if (stored > last) return RecordTooNew(absl::StrCat(name, " ", static_cast<int>(stored)));
  if (stored < first) return absl::DataLossError("a stored record is damaged");
  return absl::OkStatus();
}

absl::Status Read(pb::JobState stored, JobState& state) {
  return ReadEnumerator(stored, pb::JOB_STATE_QUEUED, pb::JOB_STATE_EXPIRED, "job state", state);
}

absl::Status Read(pb::FailureKind stored, FailureKind& kind) {
  return ReadEnumerator(stored, pb::FailureKind{}, pb::FAILURE_KIND_INPUT_LOST, "failure kind",
                        kind);
}

absl::Status Read(pb::Severity stored, base::JobDiagnostic::Severity& severity) {
  return ReadEnumerator(stored, pb::SEVERITY_NOTE, pb::SEVERITY_ERROR, "severity", severity);
}

// The fields of a message that the schema lacks, as they are stored.
std::string UnknownFieldsOf(const google::protobuf::Message& message) {
  std::string bytes;
  message.GetReflection()->GetUnknownFields(message).SerializeToString(&bytes);
  return bytes;
}

void WriteUnknownFields(const std::string& bytes, google::protobuf::Message* out) {
  if (!bytes.empty()) out->GetReflection()->MutableUnknownFields(out)->ParseFromString(bytes);
}

void Write(const base::InputFile& input, pb::InputFile* out) {
  out->set_role(input.role);
  out->set_name(input.name);
  out->set_sha256(input.sha256);
  out->set_md5(input.md5);
  out->set_size_bytes(input.size_bytes);
}

base::InputFile ReadInput(const pb::InputFile& stored) {
  return {.role = stored.role(),
          .name = stored.name(),
          .sha256 = stored.sha256(),
          .md5 = stored.md5(),
          .size_bytes = stored.size_bytes()};
}

void Write(const JobArtifact& artifact, pb::Artifact* out) {
  out->set_name(artifact.name);
  out->set_size_bytes(artifact.size_bytes);
  out->set_sha256(artifact.sha256);
}

JobArtifact ReadArtifact(const pb::Artifact& stored) {
  return {.name = stored.name(), .size_bytes = stored.size_bytes(), .sha256 = stored.sha256()};
}

void Write(const base::JobDiagnostic& diagnostic, pb::Diagnostic* out) {
  out->set_id(diagnostic.id);
  out->set_severity(static_cast<pb::Severity>(diagnostic.severity));
  out->set_file(diagnostic.file);
  out->set_line(diagnostic.line);
  out->set_column(diagnostic.column);
  out->set_node(diagnostic.node);
  out->set_op(diagnostic.op);
  out->set_message(diagnostic.message);
  out->set_limit_source(diagnostic.limit_source);
  out->set_fix(diagnostic.fix);
}

absl::Status Read(const pb::Diagnostic& stored, base::JobDiagnostic& diagnostic) {
  diagnostic = {.id = stored.id(),
                .file = stored.file(),
                .line = stored.line(),
                .column = stored.column(),
                .node = stored.node(),
                .op = stored.op(),
                .message = stored.message(),
                .limit_source = stored.limit_source(),
                .fix = stored.fix()};
  return Read(stored.severity(), diagnostic.severity);
}

void Write(const JobSpec& spec, pb::JobSpec* out) {
  WriteUnknownFields(spec.unknown_fields, out);
  out->set_config_name(spec.config_name);
  for (const base::InputFile& input : spec.inputs) Write(input, out->add_inputs());
  out->set_priority(spec.priority);
  for (const auto& [key, value] : spec.labels) {
    pb::JobSpec::Label* label = out->add_labels();
    label->set_key(key);
    label->set_value(value);
  }
  out->set_timeout_micros(absl::ToInt64Microseconds(spec.timeout));
  out->set_no_cache(spec.no_cache);
  if (spec.model_info_time_seconds.has_value()) {
    out->set_model_info_time_seconds(*spec.model_info_time_seconds);
  }
  out->set_trace_id(spec.trace.trace_id);
  out->set_trace_span_id(spec.trace.span_id);
  out->set_trace_sampled(spec.trace.sampled);
  out->set_pinned_to(spec.pinned_to);
  out->set_core(spec.core);
  out->set_framework(spec.framework);
  out->set_submitter(spec.submitter);
}

JobSpec ReadSpec(const pb::JobSpec& stored) {
  JobSpec spec;
  spec.unknown_fields = UnknownFieldsOf(stored);
  spec.config_name = stored.config_name();
  for (const pb::InputFile& input : stored.inputs()) spec.inputs.push_back(ReadInput(input));
  spec.priority = stored.priority();
  for (const pb::JobSpec::Label& label : stored.labels()) {
    spec.labels.insert_or_assign(label.key(), label.value());
  }
  spec.timeout = absl::Microseconds(stored.timeout_micros());
  spec.no_cache = stored.no_cache();
  if (stored.has_model_info_time_seconds()) {
    spec.model_info_time_seconds = stored.model_info_time_seconds();
  }
  spec.trace = {.trace_id = stored.trace_id(),
                .span_id = stored.trace_span_id(),
                .sampled = stored.trace_sampled()};
  spec.pinned_to = stored.pinned_to();
  spec.core = stored.core();
  spec.framework = stored.framework();
  spec.submitter = stored.submitter();
  return spec;
}

void WriteTimes(const Job& job, pb::JobRecord* out) {
  out->set_create_time_micros(absl::ToUnixMicros(job.create_time));
  if (job.start_time != absl::InfinitePast()) {
    out->set_start_time_micros(absl::ToUnixMicros(job.start_time));
  }
  if (job.end_time != absl::InfinitePast()) {
    out->set_end_time_micros(absl::ToUnixMicros(job.end_time));
  }
  if (job.deadline != absl::InfiniteFuture()) {
    out->set_deadline_micros(absl::ToUnixMicros(job.deadline));
  }
  if (job.lease_until != absl::InfinitePast()) {
    out->set_lease_until_micros(absl::ToUnixMicros(job.lease_until));
  }
}

void ReadTimes(const pb::JobRecord& stored, Job& job) {
  job.create_time = absl::FromUnixMicros(stored.create_time_micros());
  if (stored.has_start_time_micros()) {
    job.start_time = absl::FromUnixMicros(stored.start_time_micros());
  }
  if (stored.has_end_time_micros()) job.end_time = absl::FromUnixMicros(stored.end_time_micros());
  if (stored.has_deadline_micros()) job.deadline = absl::FromUnixMicros(stored.deadline_micros());
  if (stored.has_lease_until_micros()) {
    job.lease_until = absl::FromUnixMicros(stored.lease_until_micros());
  }
}

// The job's progress and its end.
void WriteProgress(const Job& job, pb::JobRecord* out) {
  out->set_state(ToStored(job.state));
  out->set_fence(job.fence);
  out->set_owner(job.owner);
  out->set_attempts(job.attempts);
  out->set_worker_losses(job.worker_losses);
  out->set_daemon_losses(job.daemon_losses);
  out->set_cache_hit(job.cache_hit);
  out->set_stage(job.stage);
  out->set_fraction(job.fraction);
  out->set_failure_kind(ToStored(job.failure_kind));
  out->set_reason(job.reason);
  if (job.expired_in.has_value()) out->set_expired_in(ToStored(*job.expired_in));
  for (const JobArtifact& artifact : job.artifacts) Write(artifact, out->add_artifacts());
  for (const base::JobDiagnostic& diagnostic : job.diagnostics)
    Write(diagnostic, out->add_diagnostics());
  out->set_last_seq(job.last_seq);
}

absl::Status ReadProgress(const pb::JobRecord& stored, Job& job) {
  RETURN_IF_ERROR(Read(stored.state(), job.state));
  RETURN_IF_ERROR(Read(stored.failure_kind(), job.failure_kind));
  job.fence = stored.fence();
  job.owner = stored.owner();
  job.attempts = stored.attempts();
  job.worker_losses = stored.worker_losses();
  job.daemon_losses = stored.daemon_losses();
  job.cache_hit = stored.cache_hit();
  job.stage = stored.stage();
  job.fraction = stored.fraction();
  job.reason = stored.reason();
  if (stored.expired_in() != pb::JOB_STATE_UNSPECIFIED) {
    RETURN_IF_ERROR(Read(stored.expired_in(), job.expired_in.emplace()));
  }
  for (const pb::Artifact& artifact : stored.artifacts()) {
    job.artifacts.push_back(ReadArtifact(artifact));
  }
  for (const pb::Diagnostic& diagnostic : stored.diagnostics()) {
    RETURN_IF_ERROR(Read(diagnostic, job.diagnostics.emplace_back()));
  }
  job.last_seq = stored.last_seq();
  return absl::OkStatus();
}

struct BodyWriter {
  pb::Event* out;

  void operator()(const StateChangedEvent& event) {
    pb::Event::StateChanged* body = out->mutable_state_changed();
    body->set_state(ToStored(event.state));
    body->set_reason(event.reason);
    body->set_failure_kind(ToStored(event.failure_kind));
    body->set_cache_hit(event.cache_hit);
  }
  void operator()(const ProgressEvent& event) {
    out->mutable_progress()->set_stage(event.stage);
    out->mutable_progress()->set_fraction(event.fraction);
  }
  void operator()(const LogEvent& event) { out->set_log(event.text); }
  void operator()(const ArtifactEvent& event) { Write(event.artifact, out->mutable_artifact()); }
  void operator()(const DiagnosticEvent& event) {
    Write(event.diagnostic, out->mutable_diagnostic());
  }
};

absl::Status ReadBody(const pb::Event& stored, EventBody& body) {
  switch (stored.body_case()) {
    case pb::Event::kStateChanged: {
      const pb::Event::StateChanged& from = stored.state_changed();
      StateChangedEvent& event = body.emplace<StateChangedEvent>();
      event.reason = from.reason();
      event.cache_hit = from.cache_hit();
      RETURN_IF_ERROR(Read(from.state(), event.state));
      return Read(from.failure_kind(), event.failure_kind);
    }
    case pb::Event::kProgress:
      body = ProgressEvent{stored.progress().stage(), stored.progress().fraction()};
      return absl::OkStatus();
    case pb::Event::kLog:
      body = LogEvent{stored.log()};
      return absl::OkStatus();
    case pb::Event::kArtifact:
      body = ArtifactEvent{ReadArtifact(stored.artifact())};
      return absl::OkStatus();
    case pb::Event::kDiagnostic:
      return Read(stored.diagnostic(), body.emplace<DiagnosticEvent>().diagnostic);
    case pb::Event::BODY_NOT_SET:
      break;
  }
  // The body of an event of another kind is a field that this build does not know.
  if (!UnknownFieldsOf(stored).empty()) return RecordTooNew("a kind of event");
  return absl::DataLossError("a stored event is damaged");
}

template <typename Message>
bool Parse(absl::string_view bytes, Message& message) {
  return bytes.size() <= INT32_MAX &&
         message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

}  // namespace

std::string EncodeJobRecord(const Job& job) {
  pb::JobRecord record;
  WriteUnknownFields(job.unknown_fields, &record);
  record.set_id(job.id);
  record.set_tenant(job.tenant);
  record.set_revision(job.revision);
  record.set_request_id(job.request_id);
  record.set_request_sha256(job.request_sha256);
  Write(job.spec, record.mutable_spec());
  record.set_output_file(job.output_file);
  record.set_cache_key(job.cache_key);
  record.set_accept_order(job.accept_order);
  WriteProgress(job, &record);
  WriteTimes(job, &record);
  return record.SerializeAsString();
}

absl::StatusOr<Job> DecodeJobRecord(absl::string_view bytes) {
  pb::JobRecord record;
  Job job;
  if (!Parse(bytes, record) || record.id().empty() || record.spec().inputs().empty() ||
      record.revision() == 0) {
    return absl::DataLossError("a stored job record is damaged");
  }
  RETURN_IF_ERROR(ReadProgress(record, job));
  job.unknown_fields = UnknownFieldsOf(record);
  job.id = record.id();
  job.tenant = record.tenant();
  job.revision = record.revision();
  job.request_id = record.request_id();
  job.request_sha256 = record.request_sha256();
  job.spec = ReadSpec(record.spec());
  job.output_file = record.output_file();
  job.cache_key = record.cache_key();
  job.accept_order = record.accept_order();
  ReadTimes(record, job);
  return job;
}

LiveJob ToLiveJob(const Job& job) {
  LiveJob live{.id = job.id,
               .tenant = job.tenant,
               .state = job.state,
               .priority = job.spec.priority,
               .accept_order = job.accept_order,
               .flight_key = job.flight_key(),
               .pinned_to = job.spec.pinned_to,
               .create_time = job.create_time,
               .deadline = job.deadline};
  for (const base::InputFile& input : job.spec.inputs) live.input_sha256s.push_back(input.sha256);
  return live;
}

std::string EncodeLiveJob(const LiveJob& job) {
  pb::LiveJob record;
  record.set_tenant(job.tenant);
  record.set_state(ToStored(job.state));
  record.set_priority(job.priority);
  record.set_accept_order(job.accept_order);
  record.set_flight_key(job.flight_key);
  record.set_pinned_to(job.pinned_to);
  record.set_create_time_micros(absl::ToUnixMicros(job.create_time));
  if (job.deadline != absl::InfiniteFuture()) {
    record.set_deadline_micros(absl::ToUnixMicros(job.deadline));
  }
  for (const std::string& sha256 : job.input_sha256s) record.add_input_sha256s(sha256);
  return record.SerializeAsString();
}

absl::StatusOr<LiveJob> DecodeLiveJob(absl::string_view id, absl::string_view bytes) {
  pb::LiveJob record;
  LiveJob job{.id = std::string(id)};
  const absl::Status damaged =
      absl::DataLossError("a stored entry of the jobs that have not ended is damaged");
  if (!Parse(bytes, record)) return damaged;
  RETURN_IF_ERROR(Read(record.state(), job.state));
  if (IsTerminal(job.state)) return damaged;
  job.tenant = record.tenant();
  job.priority = record.priority();
  job.accept_order = record.accept_order();
  job.flight_key = record.flight_key();
  job.pinned_to = record.pinned_to();
  job.create_time = absl::FromUnixMicros(record.create_time_micros());
  if (record.has_deadline_micros()) job.deadline = absl::FromUnixMicros(record.deadline_micros());
  job.input_sha256s.assign(record.input_sha256s().begin(), record.input_sha256s().end());
  return job;
}

std::string EncodeEvent(const JobEvent& event) {
  pb::Events record;
  pb::Event* out = record.add_events();
  out->set_seq(event.seq);
  out->set_time_micros(absl::ToUnixMicros(event.time));
  out->set_attempt(event.attempt);
  std::visit(BodyWriter{out}, event.body);
  return record.SerializeAsString();
}

absl::StatusOr<std::vector<StoredEvent>> DecodeEvents(absl::string_view bytes) {
  pb::Events record;
  std::vector<StoredEvent> events;
  const absl::Status damaged = absl::DataLossError("a stored record of events is damaged");
  if (!Parse(bytes, record) || record.events().empty()) return damaged;
  for (const pb::Event& stored : record.events()) {
    JobEvent event{.seq = stored.seq(),
                   .time = absl::FromUnixMicros(stored.time_micros()),
                   .attempt = stored.attempt(),
                   .body = {}};
    RETURN_IF_ERROR(ReadBody(stored, event.body));
    if (event.seq < 1) return damaged;
    events.push_back({std::move(event), stored.ByteSizeLong()});
  }
  return events;
}

std::string EncodeResultMetadata(const std::vector<base::JobDiagnostic>& diagnostics) {
  pb::ResultMetadata record;
  for (const base::JobDiagnostic& diagnostic : diagnostics) {
    Write(diagnostic, record.add_diagnostics());
  }
  return record.SerializeAsString();
}

absl::StatusOr<std::vector<base::JobDiagnostic>> DecodeResultMetadata(absl::string_view bytes) {
  pb::ResultMetadata record;
  std::vector<base::JobDiagnostic> diagnostics;
  if (!Parse(bytes, record)) {
    return absl::DataLossError("the metadata of a cached result is damaged");
  }
  for (const pb::Diagnostic& stored : record.diagnostics()) {
    RETURN_IF_ERROR(Read(stored, diagnostics.emplace_back()));
  }
  return diagnostics;
}

}  // namespace npuc::jobs
