#include "server/worker/protocol.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/status.h"

namespace npuc {
namespace {

constexpr absl::string_view kGreeting = "npuc-worker ";

class Writer {
 public:
  void Number(uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i, value >>= 8) out_.push_back(static_cast<char>(value & 0xff));
  }
  void U8(uint8_t value) { Number(value, 1); }
  void U32(uint32_t value) { Number(value, 4); }
  void I32(int32_t value) { Number(static_cast<uint32_t>(value), 4); }
  void U64(uint64_t value) { Number(value, 8); }
  void Text(absl::string_view text, size_t max_bytes) {
    const absl::string_view kept = text.substr(0, std::min(text.size(), max_bytes));
    U32(static_cast<uint32_t>(kept.size()));
    out_.append(kept.data(), kept.size());
  }
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

// Reads what Writer wrote. After the first failure every read gives zero, and Done() is false.
class Reader {
 public:
  explicit Reader(absl::string_view bytes) : rest_(bytes) {}

  uint64_t Number(size_t bytes) {
    if (rest_.size() < bytes) {
      ok_ = false;
      rest_ = {};
      return 0;
    }
    uint64_t value = 0;
    for (size_t i = bytes; i-- > 0;) value = (value << 8) | static_cast<uint8_t>(rest_[i]);
    rest_.remove_prefix(bytes);
    return value;
  }
  uint8_t U8() { return static_cast<uint8_t>(Number(1)); }
  uint32_t U32() { return static_cast<uint32_t>(Number(4)); }
  int32_t I32() { return static_cast<int32_t>(U32()); }
  uint64_t U64() { return Number(8); }
  std::string Text(size_t max_bytes) {
    const uint32_t size = U32();
    if (size > max_bytes || size > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return "";
    }
    std::string text(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return text;
  }
  std::string PrintableText(size_t max_bytes) { return Printable(Text(max_bytes), max_bytes); }
  // Everything was there, and nothing is left.
  bool Done() const { return ok_ && rest_.empty(); }

 private:
  absl::string_view rest_;
  bool ok_ = true;
};

absl::Status Broken(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("worker protocol: malformed ", what));
}

void WriteDiagnostic(const Diagnostic& diagnostic, Writer& out) {
  out.U32(static_cast<uint32_t>(diagnostic.kind));
  out.I32(diagnostic.line);
  out.I32(diagnostic.column);
  for (const std::string* text : {&diagnostic.message, &diagnostic.file, &diagnostic.node,
                                  &diagnostic.op, &diagnostic.limit_source, &diagnostic.fix}) {
    out.Text(*text, kMaxTextBytes);
  }
}

// False: a kind that this build does not know.
bool ReadDiagnostic(Reader& in, Diagnostic& diagnostic) {
  const uint32_t kind = in.U32();
  const auto kinds = AllDiagnosticKinds();
  const bool known = std::any_of(kinds.begin(), kinds.end(), [&](const DiagnosticKindInfo& info) {
    return static_cast<uint32_t>(info.kind) == kind;
  });
  if (!known) return false;
  diagnostic.kind = static_cast<DiagnosticKind>(kind);
  diagnostic.line = std::max(0, in.I32());
  diagnostic.column = std::max(0, in.I32());
  for (std::string* text : {&diagnostic.message, &diagnostic.file, &diagnostic.node, &diagnostic.op,
                            &diagnostic.limit_source, &diagnostic.fix}) {
    *text = in.PrintableText(kMaxTextBytes);
  }
  return true;
}

// False: a mechanism that this build does not know, or too many.
bool ReadReport(Reader& in, SandboxReport& report) {
  report.in_force = in.U32();
  const uint8_t count = in.U8();
  if ((report.in_force & ~kAllMechanisms) != 0 || count > kMechanismCount) return false;
  for (uint8_t i = 0; i < count; ++i) {
    const uint8_t mechanism = in.U8();
    if (mechanism >= kMechanismCount) return false;
    report.missing.push_back(
        {static_cast<Mechanism>(mechanism), in.PrintableText(kMaxMechanismReasonBytes)});
  }
  return true;
}

// The payload of an event whose type is read already.
bool ReadPayload(Reader& in, WorkerEvent& event) {
  switch (event.type) {
    case WorkerEvent::Type::kBegin:
      return true;
    case WorkerEvent::Type::kLog:
      event.text = in.PrintableText(kMaxWorkerLineBytes);
      return true;
    case WorkerEvent::Type::kStage:
      event.text = in.PrintableText(kMaxTextBytes);
      event.fraction = std::bit_cast<double>(in.U64());
      return std::isfinite(event.fraction);
    case WorkerEvent::Type::kDiagnostic:
      return ReadDiagnostic(in, event.diagnostic);
    case WorkerEvent::Type::kArtifact:
      event.text = in.Text(kMaxTextBytes);
      event.size_bytes = in.U64();
      return true;
    case WorkerEvent::Type::kResult: {
      const uint8_t end = in.U8();
      const uint32_t code = in.U32();
      event.end = static_cast<WorkerEvent::End>(end);
      event.code = static_cast<absl::StatusCode>(code);
      event.text = in.PrintableText(kMaxTextBytes);
      event.dropped_diagnostics = in.U64();
      event.dropped_log_bytes = in.U64();
      return end <= static_cast<uint8_t>(WorkerEvent::End::kOurFault) &&
             code <= static_cast<uint32_t>(absl::StatusCode::kUnauthenticated);
    }
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
  Writer out;
  out.U8(static_cast<uint8_t>(message.type));
  out.U64(message.run);
  out.I32(message.pid);
  out.I32(message.error);
  out.I32(message.wait_status);
  out.U64(message.cpu_microseconds);
  out.U64(message.peak_memory_bytes);
  out.U64(message.memory_bytes);
  out.U64(message.output_bytes);
  out.U64(message.log_bytes);
  out.U32(message.cpu_seconds);
  out.U32(message.inputs);
  out.U32(message.spares);
  out.U32(message.sandbox.in_force);
  out.U8(static_cast<uint8_t>(message.sandbox.missing.size()));
  for (const SandboxReport::Missing& missing : message.sandbox.missing) {
    out.U8(static_cast<uint8_t>(missing.mechanism));
    out.Text(missing.why, kMaxMechanismReasonBytes);
  }
  return out.Take();
}

absl::StatusOr<ControlMessage> DecodeControl(absl::string_view bytes) {
  Reader in(bytes);
  ControlMessage message;
  const uint8_t type = in.U8();
  message.type = static_cast<ControlMessage::Type>(type);
  message.run = in.U64();
  message.pid = in.I32();
  message.error = in.I32();
  message.wait_status = in.I32();
  message.cpu_microseconds = in.U64();
  message.peak_memory_bytes = in.U64();
  message.memory_bytes = in.U64();
  message.output_bytes = in.U64();
  message.log_bytes = in.U64();
  message.cpu_seconds = in.U32();
  message.inputs = in.U32();
  message.spares = in.U32();
  const bool report_ok = ReadReport(in, message.sandbox);
  if (!report_ok || !in.Done() || type < 1 || type > 6 || message.inputs > kMaxInputs) {
    return Broken("control message");
  }
  return message;
}

std::string EncodeWatch(const WatchMessage& message) {
  Writer out;
  out.U8(static_cast<uint8_t>(message.type));
  out.I32(message.wait_status);
  out.U64(message.cpu_microseconds);
  out.U64(message.peak_memory_bytes);
  out.U8(message.alone ? 1 : 0);
  out.Text(message.text, kMaxMechanismReasonBytes);
  return out.Take();
}

absl::StatusOr<WatchMessage> DecodeWatch(absl::string_view bytes) {
  Reader in(bytes);
  WatchMessage message;
  const uint8_t type = in.U8();
  message.type = static_cast<WatchMessage::Type>(type);
  message.wait_status = in.I32();
  message.cpu_microseconds = in.U64();
  message.peak_memory_bytes = in.U64();
  message.alone = in.U8() != 0;
  message.text = in.PrintableText(kMaxMechanismReasonBytes);
  if (!in.Done() || type < 1 || type > 3) return Broken("watch message");
  return message;
}

std::string EncodeOrder(const WorkOrder& order) {
  Writer out;
  out.Text(order.config_text, kMaxJobBytes);
  out.Text(order.config_name, kMaxTextBytes);
  out.U64(static_cast<uint64_t>(order.timestamp_seconds));
  out.U32(static_cast<uint32_t>(order.inputs.size()));
  for (const InputFile& input : order.inputs) {
    out.Text(input.role, kMaxTextBytes);
    out.Text(input.name, kMaxTextBytes);
    out.Text(input.sha256, kMaxTextBytes);
    out.Text(input.md5, kMaxTextBytes);
  }
  return out.Take();
}

absl::StatusOr<WorkOrder> DecodeOrder(absl::string_view bytes) {
  Reader in(bytes);
  WorkOrder job;
  job.config_text = in.Text(kMaxJobBytes);
  job.config_name = in.Text(kMaxTextBytes);
  job.timestamp_seconds = static_cast<int64_t>(in.U64());
  const uint32_t inputs = in.U32();
  if (inputs > kMaxInputs) return Broken("job");
  for (uint32_t i = 0; i < inputs; ++i) {
    job.inputs.push_back({in.Text(kMaxTextBytes), in.Text(kMaxTextBytes), in.Text(kMaxTextBytes),
                          in.Text(kMaxTextBytes)});
  }
  if (!in.Done()) return Broken("job");
  return job;
}

std::string EncodeEvent(const WorkerEvent& event) {
  Writer out;
  switch (event.type) {
    case WorkerEvent::Type::kBegin:
      break;
    case WorkerEvent::Type::kLog:
      out.Text(event.text, kMaxWorkerLineBytes);
      break;
    case WorkerEvent::Type::kStage:
      out.Text(event.text, kMaxTextBytes);
      out.U64(std::bit_cast<uint64_t>(event.fraction));
      break;
    case WorkerEvent::Type::kDiagnostic:
      WriteDiagnostic(event.diagnostic, out);
      break;
    case WorkerEvent::Type::kArtifact:
      out.Text(event.text, kMaxTextBytes);
      out.U64(event.size_bytes);
      break;
    case WorkerEvent::Type::kResult:
      out.U8(static_cast<uint8_t>(event.end));
      out.U32(static_cast<uint32_t>(event.code));
      out.Text(event.text, kMaxTextBytes);
      out.U64(event.dropped_diagnostics);
      out.U64(event.dropped_log_bytes);
      break;
  }
  const std::string payload = out.Take();
  Writer frame;
  frame.U32(static_cast<uint32_t>(payload.size()));
  frame.U8(static_cast<uint8_t>(event.type));
  return frame.Take() + payload;
}

absl::StatusOr<bool> EventDecoder::Next(WorkerEvent& event) {
  const absl::string_view rest = absl::string_view(buffer_).substr(begin_);
  if (rest.size() < kFrameHeaderBytes) {
    buffer_.erase(0, std::exchange(begin_, 0));
    return false;
  }
  Reader header(rest.substr(0, kFrameHeaderBytes));
  const uint32_t size = header.U32();
  const uint8_t type = header.U8();
  if (size > kMaxFrameBytes || type < 1 ||
      type > static_cast<uint8_t>(WorkerEvent::Type::kResult)) {
    return Broken("frame");
  }
  if (rest.size() - kFrameHeaderBytes < size) {
    buffer_.erase(0, std::exchange(begin_, 0));
    return false;
  }
  event = WorkerEvent();
  event.type = static_cast<WorkerEvent::Type>(type);
  Reader payload(rest.substr(kFrameHeaderBytes, size));
  if (!ReadPayload(payload, event) || !payload.Done()) return Broken("event");
  begin_ += kFrameHeaderBytes + size;
  return true;
}

}  // namespace npuc
