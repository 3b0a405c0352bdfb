// The stored form of jobs and events: fields by number (field_codec.h). A number is never given to
// another field.
#include "absl/strings/str_cat.h"
#include "server/jobs/field_codec.h"
#include "server/jobs/job.h"

namespace npuc {
namespace {

int64_t EncodeTime(absl::Time time) {
  if (time == absl::InfinitePast()) return INT64_MIN;
  if (time == absl::InfiniteFuture()) return INT64_MAX;
  return absl::ToUnixMicros(time);
}

absl::Time DecodeTime(int64_t micros) {
  if (micros == INT64_MIN) return absl::InfinitePast();
  if (micros == INT64_MAX) return absl::InfiniteFuture();
  return absl::FromUnixMicros(micros);
}

template <typename Enum>
Enum DecodeEnum(int64_t value, Enum last) {
  // A record of a newer version may hold a number that this one does not know; format_version
  // guards against that, so such a number is damage and reads as the last one known.
  if (value < 0 || value > static_cast<int64_t>(last)) return last;
  return static_cast<Enum>(value);
}

std::string EncodeInput(const InputFile& input) {
  FieldWriter w;
  w.Bytes(1, input.role);
  w.Bytes(2, input.name);
  w.Bytes(3, input.sha256);
  w.Bytes(4, input.md5);
  w.Int(5, static_cast<int64_t>(input.size_bytes));
  return std::move(w).str();
}

bool DecodeInput(absl::string_view bytes, InputFile& input) {
  FieldReader r(bytes);
  while (r.Next()) {
    switch (r.tag()) {
      case 1:
        input.role = std::string(r.bytes());
        break;
      case 2:
        input.name = std::string(r.bytes());
        break;
      case 3:
        input.sha256 = std::string(r.bytes());
        break;
      case 4:
        input.md5 = std::string(r.bytes());
        break;
      case 5:
        input.size_bytes = static_cast<uint64_t>(r.integer());
        break;
      default:
        break;
    }
  }
  return r.ok();
}

std::string EncodeArtifact(const JobArtifact& artifact) {
  FieldWriter w;
  w.Bytes(1, artifact.name);
  w.Int(2, static_cast<int64_t>(artifact.size_bytes));
  w.Bytes(3, artifact.sha256);
  return std::move(w).str();
}

bool DecodeArtifact(absl::string_view bytes, JobArtifact& artifact) {
  FieldReader r(bytes);
  while (r.Next()) {
    if (r.tag() == 1) artifact.name = std::string(r.bytes());
    if (r.tag() == 2) artifact.size_bytes = static_cast<uint64_t>(r.integer());
    if (r.tag() == 3) artifact.sha256 = std::string(r.bytes());
  }
  return r.ok();
}

bool DecodeDiagnostic(absl::string_view bytes, JobDiagnostic& diagnostic) {
  std::string* const texts[11] = {nullptr,
                                  &diagnostic.id,
                                  nullptr,
                                  &diagnostic.file,
                                  nullptr,
                                  nullptr,
                                  &diagnostic.node,
                                  &diagnostic.op,
                                  &diagnostic.message,
                                  &diagnostic.limit_source,
                                  &diagnostic.fix};
  FieldReader r(bytes);
  while (r.Next()) {
    if (r.tag() == 2) {
      diagnostic.severity = DecodeEnum(r.integer(), JobDiagnostic::Severity::kError);
    } else if (r.tag() == 4) {
      diagnostic.line = static_cast<int32_t>(r.integer());
    } else if (r.tag() == 5) {
      diagnostic.column = static_cast<int32_t>(r.integer());
    } else if (r.tag() < 11 && texts[r.tag()] != nullptr) {
      *texts[r.tag()] = std::string(r.bytes());
    }
  }
  return r.ok();
}

std::string EncodeSpec(const JobSpec& spec) {
  FieldWriter w;
  w.Bytes(1, spec.config_name);
  for (const InputFile& input : spec.inputs) w.Entry(2, EncodeInput(input));
  w.Int(3, spec.priority);
  for (const auto& [key, value] : spec.labels) {
    FieldWriter pair;
    pair.Bytes(1, key);
    pair.Bytes(2, value);
    w.Entry(4, pair.str());
  }
  w.Int(5, absl::ToInt64Microseconds(spec.timeout));
  w.Int(6, spec.no_cache ? 1 : 0);
  if (spec.model_info_time_seconds.has_value()) {
    w.Int(7, 1);
    w.Int(8, *spec.model_info_time_seconds);
  }
  w.Bytes(9, spec.trace_id);
  w.Bytes(10, spec.pinned_to);
  return std::move(w).str();
}

bool DecodeSpec(absl::string_view bytes, JobSpec& spec) {
  FieldReader r(bytes);
  bool nested_ok = true;
  while (r.Next()) {
    switch (r.tag()) {
      case 1:
        spec.config_name = std::string(r.bytes());
        break;
      case 2:
        nested_ok = DecodeInput(r.bytes(), spec.inputs.emplace_back()) && nested_ok;
        break;
      case 3:
        spec.priority = static_cast<int32_t>(r.integer());
        break;
      case 4: {
        FieldReader pair(r.bytes());
        std::string key;
        std::string value;
        while (pair.Next()) (pair.tag() == 1 ? key : value) = std::string(pair.bytes());
        spec.labels.insert_or_assign(std::move(key), std::move(value));
        break;
      }
      case 5:
        spec.timeout = absl::Microseconds(r.integer());
        break;
      case 6:
        spec.no_cache = r.integer() != 0;
        break;
      case 7:
        spec.model_info_time_seconds = spec.model_info_time_seconds.value_or(0);
        break;
      case 8:
        spec.model_info_time_seconds = r.integer();
        break;
      case 9:
        spec.trace_id = std::string(r.bytes());
        break;
      case 10:
        spec.pinned_to = std::string(r.bytes());
        break;
      default:
        break;
    }
  }
  return r.ok() && nested_ok && !spec.inputs.empty();
}

// One text or number field of a job; false where the tag is of another kind of field.
bool DecodeJobText(const FieldReader& r, Job& job) {
  std::string* const texts[] = {
      nullptr, &job.id,          nullptr,       &job.request_id, &job.request_sha256,
      nullptr, &job.output_file, &job.cache_key};
  if (r.tag() < std::size(texts) && texts[r.tag()] != nullptr) {
    *texts[r.tag()] = std::string(r.bytes());
    return true;
  }
  if (r.tag() == 16) job.stage = std::string(r.bytes());
  if (r.tag() == 19) job.reason = std::string(r.bytes());
  if (r.tag() == 28) job.tenant = std::string(r.bytes());
  if (r.tag() == 29) job.owner = std::string(r.bytes());
  return r.tag() == 16 || r.tag() == 19 || r.tag() == 28 || r.tag() == 29;
}

void DecodeJobNumber(const FieldReader& r, Job& job) {
  const int64_t value = r.integer();
  switch (r.tag()) {
    case 2:
      job.revision = static_cast<uint64_t>(value);
      break;
    case 8:
      job.state = DecodeEnum(value, JobState::kExpired);
      break;
    case 9:
      job.accept_order = static_cast<uint64_t>(value);
      break;
    case 10:
      job.fence = static_cast<uint64_t>(value);
      break;
    case 11:
      job.attempts = static_cast<int32_t>(value);
      break;
    case 12:
      job.worker_losses = static_cast<int32_t>(value);
      break;
    case 13:
      job.daemon_losses = static_cast<int32_t>(value);
      break;
    case 14:
      job.cache_hit = value != 0;
      break;
    case 17:
      job.fraction = r.real();
      break;
    case 18:
      job.failure_kind = DecodeEnum(value, FailureKind::kInputLost);
      break;
    case 20:
      job.expired_in = DecodeEnum(value, JobState::kExpired);
      break;
    case 23:
      job.create_time = DecodeTime(value);
      break;
    case 24:
      job.start_time = DecodeTime(value);
      break;
    case 25:
      job.end_time = DecodeTime(value);
      break;
    case 26:
      job.deadline = DecodeTime(value);
      break;
    case 27:
      job.last_seq = value;
      break;
    case 30:
      job.lease_until = DecodeTime(value);
      break;
    default:
      job.unknown_fields.append(r.field().data(), r.field().size());
      break;
  }
}

enum BodyTag : uint32_t { kState = 4, kProgress = 5, kLog = 6, kArtifact = 7, kDiagnostic = 8 };

struct BodyEncoder {
  FieldWriter& w;

  void operator()(const StateChangedEvent& event) {
    FieldWriter body;
    body.Int(1, static_cast<int64_t>(event.state));
    body.Bytes(2, event.reason);
    body.Int(3, static_cast<int64_t>(event.failure_kind));
    body.Int(4, event.cache_hit ? 1 : 0);
    w.Entry(kState, body.str());
  }
  void operator()(const ProgressEvent& event) {
    FieldWriter body;
    body.Bytes(1, event.stage);
    body.Double(2, event.fraction);
    w.Entry(kProgress, body.str());
  }
  void operator()(const LogEvent& event) { w.Entry(kLog, event.text); }
  void operator()(const ArtifactEvent& event) {
    w.Entry(kArtifact, EncodeArtifact(event.artifact));
  }
  void operator()(const DiagnosticEvent& event) {
    w.Entry(kDiagnostic, EncodeDiagnostic(event.diagnostic));
  }
};

bool DecodeState(absl::string_view bytes, StateChangedEvent& event) {
  FieldReader r(bytes);
  while (r.Next()) {
    if (r.tag() == 1) event.state = DecodeEnum(r.integer(), JobState::kExpired);
    if (r.tag() == 2) event.reason = std::string(r.bytes());
    if (r.tag() == 3) event.failure_kind = DecodeEnum(r.integer(), FailureKind::kInputLost);
    if (r.tag() == 4) event.cache_hit = r.integer() != 0;
  }
  return r.ok();
}

bool DecodeProgress(absl::string_view bytes, ProgressEvent& event) {
  FieldReader r(bytes);
  while (r.Next()) {
    if (r.tag() == 1) event.stage = std::string(r.bytes());
    if (r.tag() == 2) event.fraction = r.real();
  }
  return r.ok();
}

// Reads one body field; false where it is damaged.
bool DecodeBody(const FieldReader& r, EventBody& body) {
  switch (r.tag()) {
    case kState:
      return DecodeState(r.bytes(), body.emplace<StateChangedEvent>());
    case kProgress:
      return DecodeProgress(r.bytes(), body.emplace<ProgressEvent>());
    case kLog:
      body = LogEvent{std::string(r.bytes())};
      return true;
    case kArtifact:
      return DecodeArtifact(r.bytes(), body.emplace<ArtifactEvent>().artifact);
    case kDiagnostic:
      return DecodeDiagnostic(r.bytes(), body.emplace<DiagnosticEvent>().diagnostic);
    default:
      return true;
  }
}

}  // namespace

std::string EncodeJobRecord(const Job& job) {
  FieldWriter w;
  w.Bytes(1, job.id);
  w.Int(2, static_cast<int64_t>(job.revision));
  w.Bytes(3, job.request_id);
  w.Bytes(4, job.request_sha256);
  w.Entry(5, EncodeSpec(job.spec));
  w.Bytes(6, job.output_file);
  w.Bytes(7, job.cache_key);
  w.Int(8, static_cast<int64_t>(job.state));
  w.Int(9, static_cast<int64_t>(job.accept_order));
  w.Int(10, static_cast<int64_t>(job.fence));
  w.Int(11, job.attempts);
  w.Int(12, job.worker_losses);
  w.Int(13, job.daemon_losses);
  w.Int(14, job.cache_hit ? 1 : 0);
  w.Bytes(16, job.stage);
  w.Double(17, job.fraction);
  w.Int(18, static_cast<int64_t>(job.failure_kind));
  w.Bytes(19, job.reason);
  if (job.expired_in.has_value()) w.Int(20, static_cast<int64_t>(*job.expired_in));
  for (const JobArtifact& artifact : job.artifacts) w.Entry(21, EncodeArtifact(artifact));
  for (const JobDiagnostic& diagnostic : job.diagnostics) {
    w.Entry(22, EncodeDiagnostic(diagnostic));
  }
  w.Int(23, EncodeTime(job.create_time));
  w.Int(24, EncodeTime(job.start_time));
  w.Int(25, EncodeTime(job.end_time));
  w.Int(26, EncodeTime(job.deadline));
  w.Int(27, job.last_seq);
  w.Bytes(28, job.tenant);
  w.Bytes(29, job.owner);
  w.Int(30, EncodeTime(job.lease_until));
  w.Fields(job.unknown_fields);
  return std::move(w).str();
}

absl::StatusOr<Job> DecodeJobRecord(absl::string_view bytes) {
  Job job;
  FieldReader r(bytes);
  bool nested_ok = true;
  while (r.Next()) {
    if (r.tag() == 5) {
      nested_ok = DecodeSpec(r.bytes(), job.spec) && nested_ok;
    } else if (r.tag() == 21) {
      nested_ok = DecodeArtifact(r.bytes(), job.artifacts.emplace_back()) && nested_ok;
    } else if (r.tag() == 22) {
      nested_ok = DecodeDiagnostic(r.bytes(), job.diagnostics.emplace_back()) && nested_ok;
    } else if (!DecodeJobText(r, job)) {
      DecodeJobNumber(r, job);
    }
  }
  if (!r.ok() || !nested_ok || job.id.empty() || job.spec.inputs.empty() || job.revision == 0) {
    return absl::DataLossError("a stored job record is damaged");
  }
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
  for (const InputFile& input : job.spec.inputs) live.input_sha256s.push_back(input.sha256);
  return live;
}

std::string EncodeLiveJob(const LiveJob& job) {
  FieldWriter w;
  w.Bytes(1, job.tenant);
  w.Int(2, static_cast<int64_t>(job.state));
  w.Int(3, job.priority);
  w.Int(4, static_cast<int64_t>(job.accept_order));
  w.Bytes(5, job.flight_key);
  w.Int(6, EncodeTime(job.create_time));
  w.Int(7, EncodeTime(job.deadline));
  for (const std::string& sha256 : job.input_sha256s) w.Entry(8, sha256);
  w.Bytes(9, job.pinned_to);
  return std::move(w).str();
}

absl::StatusOr<LiveJob> DecodeLiveJob(absl::string_view id, absl::string_view bytes) {
  LiveJob job{.id = std::string(id)};
  FieldReader r(bytes);
  while (r.Next()) {
    if (r.tag() == 1) job.tenant = std::string(r.bytes());
    if (r.tag() == 2) job.state = DecodeEnum(r.integer(), JobState::kExpired);
    if (r.tag() == 3) job.priority = static_cast<int32_t>(r.integer());
    if (r.tag() == 4) job.accept_order = static_cast<uint64_t>(r.integer());
    if (r.tag() == 5) job.flight_key = std::string(r.bytes());
    if (r.tag() == 6) job.create_time = DecodeTime(r.integer());
    if (r.tag() == 7) job.deadline = DecodeTime(r.integer());
    if (r.tag() == 8) job.input_sha256s.emplace_back(r.bytes());
    if (r.tag() == 9) job.pinned_to = std::string(r.bytes());
  }
  if (!r.ok() || IsTerminal(job.state)) {
    return absl::DataLossError("a stored entry of the jobs that have not ended is damaged");
  }
  return job;
}

std::string EncodeDiagnostic(const JobDiagnostic& diagnostic) {
  FieldWriter w;
  w.Bytes(1, diagnostic.id);
  w.Int(2, static_cast<int64_t>(diagnostic.severity));
  w.Bytes(3, diagnostic.file);
  w.Int(4, diagnostic.line);
  w.Int(5, diagnostic.column);
  w.Bytes(6, diagnostic.node);
  w.Bytes(7, diagnostic.op);
  w.Bytes(8, diagnostic.message);
  w.Bytes(9, diagnostic.limit_source);
  w.Bytes(10, diagnostic.fix);
  return std::move(w).str();
}

absl::StatusOr<JobDiagnostic> DecodeDiagnostic(absl::string_view bytes) {
  JobDiagnostic diagnostic;
  if (!DecodeDiagnostic(bytes, diagnostic)) {
    return absl::DataLossError("a stored diagnostic is damaged");
  }
  return diagnostic;
}

std::string EncodeEvent(const JobEvent& event) {
  FieldWriter w;
  w.Int(1, event.seq);
  w.Int(2, EncodeTime(event.time));
  w.Int(3, event.attempt);
  std::visit(BodyEncoder{w}, event.body);
  return std::move(w).str();
}

absl::StatusOr<JobEvent> DecodeEvent(absl::string_view bytes) {
  JobEvent event;
  FieldReader r(bytes);
  bool body_ok = false;
  while (r.Next()) {
    if (r.tag() == 1) event.seq = r.integer();
    if (r.tag() == 2) event.time = DecodeTime(r.integer());
    if (r.tag() == 3) event.attempt = static_cast<int32_t>(r.integer());
    if (r.tag() >= kState) body_ok = DecodeBody(r, event.body);
  }
  if (!r.ok() || !body_ok || event.seq < 1) {
    return absl::DataLossError("a stored event record is damaged");
  }
  return event;
}

}  // namespace npuc
