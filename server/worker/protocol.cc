#include "server/worker/protocol.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/status.h"
#include "npuc/worker/v1/worker.pb.h"

namespace npuc::worker {
namespace {

constexpr absl::string_view kGreeting = "npuc-worker ";

namespace wire = ::npuc::worker::v1;

std::string Cut(absl::string_view text, size_t max_bytes) {
  return std::string(text.substr(0, max_bytes));
}

// A parsed message takes memory in proportion to its bytes, so these are bounded first.
template <typename Message>
bool Parse(absl::string_view bytes, size_t max_bytes, Message& message) {
  return bytes.size() <= max_bytes &&
         message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

// Takes a text of at most max_bytes, made printable; false where it is longer.
bool Take(const std::string& from, size_t max_bytes, std::string& to) {
  to = Printable(from, max_bytes);
  return from.size() <= max_bytes;
}

// Into the first bytes of the frame, little endian.
void WriteLength(size_t length, std::string& frame) {
  for (size_t i = 0; i < kFrameHeaderBytes; ++i, length >>= 8) {
    frame[i] = static_cast<char>(length & 0xff);
  }
}

size_t ReadLength(absl::string_view frame) {
  size_t length = 0;
  for (size_t i = kFrameHeaderBytes; i-- > 0;) {
    length = (length << 8) | static_cast<uint8_t>(frame[i]);
  }
  return length;
}

absl::Status Broken(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("worker protocol: malformed ", what));
}

void WriteDiagnostic(const Diagnostic& diagnostic, wire::Event::Diagnostic* out) {
  out->set_kind(static_cast<uint32_t>(diagnostic.kind));
  out->set_line(diagnostic.line);
  out->set_column(diagnostic.column);
  out->set_message(Cut(diagnostic.message, kMaxTextBytes));
  out->set_file(Cut(diagnostic.file, kMaxTextBytes));
  out->set_node(Cut(diagnostic.node, kMaxTextBytes));
  out->set_op(Cut(diagnostic.op, kMaxTextBytes));
  out->set_limit_source(Cut(diagnostic.limit_source, kMaxTextBytes));
  out->set_fix(Cut(diagnostic.fix, kMaxTextBytes));
}

// False: a kind that this build does not know, or too long a text.
bool ReadDiagnostic(const wire::Event::Diagnostic& from, Diagnostic& diagnostic) {
  const auto kinds = AllDiagnosticKinds();
  const bool known = std::any_of(kinds.begin(), kinds.end(), [&](const DiagnosticKindInfo& info) {
    return static_cast<uint32_t>(info.kind) == from.kind();
  });
  if (!known) return false;
  diagnostic.kind = static_cast<DiagnosticKind>(from.kind());
  diagnostic.line = std::max(0, from.line());
  diagnostic.column = std::max(0, from.column());
  return Take(from.message(), kMaxTextBytes, diagnostic.message) &&
         Take(from.file(), kMaxTextBytes, diagnostic.file) &&
         Take(from.node(), kMaxTextBytes, diagnostic.node) &&
         Take(from.op(), kMaxTextBytes, diagnostic.op) &&
         Take(from.limit_source(), kMaxTextBytes, diagnostic.limit_source) &&
         Take(from.fix(), kMaxTextBytes, diagnostic.fix);
}

// False: a mechanism that this build does not know, or too many.
bool ReadReport(const wire::Control& from, SandboxReport& report) {
  report.in_force = from.walls_in_force();
  if ((report.in_force & ~kAllMechanisms) != 0 ||
      from.walls_missing_size() > static_cast<int>(kMechanismCount)) {
    return false;
  }
  for (const wire::Control::MissingWall& wall : from.walls_missing()) {
    if (wall.mechanism() >= kMechanismCount) return false;
    SandboxReport::Missing& missing = report.missing.emplace_back();
    missing.mechanism = static_cast<Mechanism>(wall.mechanism());
    if (!Take(wall.why(), kMaxMechanismReasonBytes, missing.why)) return false;
  }
  return true;
}

bool ReadStage(const wire::Event::Stage& from, WorkerEvent& event) {
  event.fraction = from.fraction();
  return std::isfinite(event.fraction) && Take(from.name(), kMaxTextBytes, event.text);
}

// The name is judged by IsValidArtifactName, not made printable.
bool ReadArtifact(const wire::Event::Artifact& from, WorkerEvent& event) {
  event.text = from.name();
  event.size_bytes = from.size_bytes();
  return event.text.size() <= kMaxTextBytes;
}

bool ReadResult(const wire::Event::Result& from, WorkerEvent& event) {
  event.end = static_cast<WorkerEvent::End>(from.end());
  event.code = static_cast<absl::StatusCode>(from.code());
  event.dropped_diagnostics = from.dropped_diagnostics();
  event.dropped_log_bytes = from.dropped_log_bytes();
  return from.end() <= static_cast<uint32_t>(WorkerEvent::End::kOurFault) &&
         from.code() <= static_cast<uint32_t>(absl::StatusCode::kUnauthenticated) &&
         Take(from.message(), kMaxTextBytes, event.text);
}

bool ReadEvent(const wire::Event& from, WorkerEvent& event) {
  switch (from.body_case()) {
    case wire::Event::kBegin:
      event.type = WorkerEvent::Type::kBegin;
      return true;
    case wire::Event::kLog:
      event.type = WorkerEvent::Type::kLog;
      return Take(from.log(), kMaxWorkerLineBytes, event.text);
    case wire::Event::kStage:
      event.type = WorkerEvent::Type::kStage;
      return ReadStage(from.stage(), event);
    case wire::Event::kDiagnostic:
      event.type = WorkerEvent::Type::kDiagnostic;
      return ReadDiagnostic(from.diagnostic(), event.diagnostic);
    case wire::Event::kArtifact:
      event.type = WorkerEvent::Type::kArtifact;
      return ReadArtifact(from.artifact(), event);
    case wire::Event::kResult:
      event.type = WorkerEvent::Type::kResult;
      return ReadResult(from.result(), event);
    case wire::Event::BODY_NOT_SET:
      return false;
  }
  return false;
}

}  // namespace

std::string EncodeGreeting(absl::string_view build_id) {
  return absl::StrCat(kGreeting, kProtocolVersion, " ", build_id);
}

absl::Status CheckGreeting(absl::string_view bytes, absl::string_view build_id) {
  if (!absl::ConsumePrefix(&bytes, kGreeting)) {
    return absl::FailedPreconditionError("it is of an older build, which does not say which");
  }
  const std::vector<absl::string_view> words = absl::StrSplit(bytes, absl::MaxSplits(' ', 1));
  if (words[0] != absl::StrCat(kProtocolVersion)) {
    return absl::FailedPreconditionError(absl::StrCat("it speaks version ", Printable(words[0], 20),
                                                      " of the worker protocol, npucd ",
                                                      kProtocolVersion));
  }
  const absl::string_view theirs = words.size() == 2 ? words[1] : "";
  if (build_id.empty() || theirs == build_id) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "its compiler is build '", Printable(theirs, 100), "', npucd's is '", build_id, "'"));
}

std::string EncodeControl(const ControlMessage& message) {
  wire::Control out;
  out.set_type(static_cast<uint32_t>(message.type));
  out.set_run(message.run);
  out.set_pid(message.pid);
  out.set_error(message.error);
  out.set_wait_status(message.wait_status);
  out.set_cpu_microseconds(message.cpu_microseconds);
  out.set_peak_memory_bytes(message.peak_memory_bytes);
  out.set_memory_bytes(message.memory_bytes);
  out.set_output_bytes(message.output_bytes);
  out.set_log_bytes(message.log_bytes);
  out.set_cpu_seconds(message.cpu_seconds);
  out.set_inputs(message.inputs);
  out.set_spares(message.spares);
  out.set_walls_in_force(message.sandbox.in_force);
  for (const SandboxReport::Missing& missing : message.sandbox.missing) {
    wire::Control::MissingWall* wall = out.add_walls_missing();
    wall->set_mechanism(static_cast<uint32_t>(missing.mechanism));
    wall->set_why(Cut(missing.why, kMaxMechanismReasonBytes));
  }
  return out.SerializeAsString();
}

absl::StatusOr<ControlMessage> DecodeControl(absl::string_view bytes) {
  wire::Control in;
  ControlMessage message;
  if (!Parse(bytes, kMaxControlBytes, in) || in.type() < 1 ||
      in.type() > static_cast<uint32_t>(ControlMessage::Type::kExited) ||
      in.inputs() > kMaxInputs || !ReadReport(in, message.sandbox)) {
    return Broken("control message");
  }
  message.type = static_cast<ControlMessage::Type>(in.type());
  message.run = in.run();
  message.pid = in.pid();
  message.error = in.error();
  message.wait_status = in.wait_status();
  message.cpu_microseconds = in.cpu_microseconds();
  message.peak_memory_bytes = in.peak_memory_bytes();
  message.memory_bytes = in.memory_bytes();
  message.output_bytes = in.output_bytes();
  message.log_bytes = in.log_bytes();
  message.cpu_seconds = in.cpu_seconds();
  message.inputs = in.inputs();
  message.spares = in.spares();
  return message;
}

std::string EncodeWatch(const WatchMessage& message) {
  wire::Watch out;
  out.set_type(static_cast<uint32_t>(message.type));
  out.set_wait_status(message.wait_status);
  out.set_cpu_microseconds(message.cpu_microseconds);
  out.set_peak_memory_bytes(message.peak_memory_bytes);
  out.set_alone(message.alone);
  out.set_text(Cut(message.text, kMaxMechanismReasonBytes));
  return out.SerializeAsString();
}

absl::StatusOr<WatchMessage> DecodeWatch(absl::string_view bytes) {
  wire::Watch in;
  WatchMessage message;
  if (!Parse(bytes, kMaxControlBytes, in) || in.type() < 1 ||
      in.type() > static_cast<uint32_t>(WatchMessage::Type::kEnded) ||
      !Take(in.text(), kMaxMechanismReasonBytes, message.text)) {
    return Broken("watch message");
  }
  message.type = static_cast<WatchMessage::Type>(in.type());
  message.wait_status = in.wait_status();
  message.cpu_microseconds = in.cpu_microseconds();
  message.peak_memory_bytes = in.peak_memory_bytes();
  message.alone = in.alone();
  return message;
}

std::string EncodeOrder(const WorkOrder& order) {
  wire::Job out;
  out.set_config_text(order.config_text);
  out.set_config_name(order.config_name);
  out.set_timestamp_seconds(order.timestamp_seconds);
  for (const base::InputFile& input : order.inputs) {
    wire::Job::Input* to = out.add_inputs();
    to->set_role(input.role);
    to->set_name(input.name);
    to->set_sha256(input.sha256);
    to->set_md5(input.md5);
  }
  if (order.inspection.has_value()) {
    wire::Job::Inspection& to = *out.mutable_inspection();
    for (const std::string& text : order.inspection->shapes) to.add_shapes(text);
    for (const std::string& text : order.inspection->dims) to.add_dims(text);
    for (const std::string& text : order.inspection->constants) to.add_constants(text);
  }
  return out.SerializeAsString();
}

absl::StatusOr<WorkOrder> DecodeOrder(absl::string_view bytes) {
  wire::Job in;
  if (!Parse(bytes, kMaxJobBytes, in) || in.inputs_size() > static_cast<int>(kMaxInputs)) {
    return Broken("job");
  }
  WorkOrder order{.config_text = in.config_text(),
                  .config_name = in.config_name(),
                  .timestamp_seconds = in.timestamp_seconds(),
                  .inputs = {}};
  if (in.has_inspection()) {
    const wire::Job::Inspection& stated = in.inspection();
    order.inspection = {.shapes = {stated.shapes().begin(), stated.shapes().end()},
                        .dims = {stated.dims().begin(), stated.dims().end()},
                        .constants = {stated.constants().begin(), stated.constants().end()}};
  }
  for (const wire::Job::Input& input : in.inputs()) {
    order.inputs.push_back(
        {.role = input.role(), .name = input.name(), .sha256 = input.sha256(), .md5 = input.md5()});
  }
  return order;
}

std::string EncodeEvent(const WorkerEvent& event) {
  wire::Event out;
  switch (event.type) {
    case WorkerEvent::Type::kBegin:
      out.set_begin(true);
      break;
    case WorkerEvent::Type::kLog:
      out.set_log(Cut(event.text, kMaxWorkerLineBytes));
      break;
    case WorkerEvent::Type::kStage:
      out.mutable_stage()->set_name(Cut(event.text, kMaxTextBytes));
      out.mutable_stage()->set_fraction(event.fraction);
      break;
    case WorkerEvent::Type::kDiagnostic:
      WriteDiagnostic(event.diagnostic, out.mutable_diagnostic());
      break;
    case WorkerEvent::Type::kArtifact:
      out.mutable_artifact()->set_name(Cut(event.text, kMaxTextBytes));
      out.mutable_artifact()->set_size_bytes(event.size_bytes);
      break;
    case WorkerEvent::Type::kResult:
      out.mutable_result()->set_end(static_cast<uint32_t>(event.end));
      out.mutable_result()->set_code(static_cast<uint32_t>(event.code));
      out.mutable_result()->set_message(Cut(event.text, kMaxTextBytes));
      out.mutable_result()->set_dropped_diagnostics(event.dropped_diagnostics);
      out.mutable_result()->set_dropped_log_bytes(event.dropped_log_bytes);
      break;
  }
  std::string frame(kFrameHeaderBytes, '\0');
  out.AppendToString(&frame);
  WriteLength(frame.size() - kFrameHeaderBytes, frame);
  return frame;
}

absl::StatusOr<bool> EventDecoder::Next(WorkerEvent& event) {
  const absl::string_view rest = absl::string_view(buffer_).substr(begin_);
  const size_t size = rest.size() < kFrameHeaderBytes ? 0 : ReadLength(rest);
  if (size > kMaxFrameBytes) return Broken("frame");
  if (rest.size() < kFrameHeaderBytes + size) {
    buffer_.erase(0, std::exchange(begin_, 0));
    return false;
  }
  event = WorkerEvent();
  wire::Event in;
  if (!Parse(rest.substr(kFrameHeaderBytes, size), kMaxFrameBytes, in) || !ReadEvent(in, event)) {
    return Broken("event");
  }
  begin_ += kFrameHeaderBytes + size;
  return true;
}

}  // namespace npuc::worker
