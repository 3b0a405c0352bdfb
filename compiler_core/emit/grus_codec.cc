#include "compiler_core/emit/grus_codec.h"

#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/cmd/access.h"
#include "compiler_core/ir/cmd/raw_forms.h"

namespace npuc {
namespace {

using Kind = VectorCommand::Kind;

constexpr uint8_t kOpcodeVector = 0x01;
constexpr uint8_t kOpcodeFullyConnected = 0x40;
constexpr uint8_t kOpcodeConvolution = 0x41;
constexpr uint8_t kOpcodeDepthwise = 0x42;
constexpr uint8_t kOpcodeTranspose = 0x43;

constexpr uint32_t kWaitsBit = 1u << 8;
constexpr uint32_t kTwoSourcesBit = 1u << 9;
constexpr uint32_t kFollowsBit = 1u << 17;
constexpr uint32_t kInterruptBit = 1u << 22;
constexpr uint32_t kKnownHeaderBits =
    0xffu | kWaitsBit | kTwoSourcesBit | kFollowsBit | kInterruptBit;

// Payload words, header excluded; 0: unknown opcode.
size_t PayloadWords(uint8_t opcode) {
  switch (opcode) {
    case kOpcodeVector:
      return 10;
    case kOpcodeFullyConnected:
      return 11;
    case kOpcodeConvolution:
      return 14;
    case kOpcodeDepthwise:
      return 11;
    case kOpcodeTranspose:
      return 5;
    default:
      return 0;
  }
}
constexpr size_t kMaxPayloadWords = 14;
using Words = std::array<uint32_t, kMaxPayloadWords>;

// The words of a raw command that hold operands; -1: the opcode has none.
struct RawLayout {
  int a, weights, mask, d;
};
RawLayout LayoutOf(uint8_t opcode) {
  switch (opcode) {
    case kOpcodeConvolution:
      return {0, 1, 4, 2};
    case kOpcodeDepthwise:
      return {0, 1, -1, 2};
    default:
      return {0, -1, -1, 1};
  }
}

// What selu's four 16-bit words at +32 hold (seen in published headers): scale, zero, minus and
// plus scale * alpha, as fp16.
constexpr uint16_t kSeluScale = 0x3c34;
constexpr uint32_t kSeluTail = 0x3f08bf08u;

constexpr uint32_t kFormatToFloatBit = 1u << 16;
constexpr uint32_t kAverageBit = 1u << 4;
constexpr uint32_t kReduceMiddleBit = 1u << 7;

// Where a kind's arithmetic lies in the control word.
struct ArithmeticField {
  int shift;
  uint32_t limit;  // first value that is unknown
};
ArithmeticField ArithmeticFieldOf(Kind kind) {
  switch (kind) {
    case Kind::kTensorVector:
      return {9, 4};
    case Kind::kTensorTensor:
      return {11, 4};
    case Kind::kTensorScalar:
      return {13, 7};
    default:
      return {0, 0};
  }
}

uint32_t ControlWord(const VectorCommand& v) {
  uint32_t control = static_cast<uint32_t>(v.kind);
  switch (v.kind) {
    case Kind::kActivation:
      return control | static_cast<uint32_t>(v.activation) << 4;
    case Kind::kPool:
      return control | (v.average ? kAverageBit : 0);
    case Kind::kReduce:
      return control | (v.reduce_middle ? kReduceMiddleBit : 0);
    case Kind::kFormat:
      return control | kFormatToFloatBit;
    case Kind::kTensorVector:
    case Kind::kTensorTensor:
    case Kind::kTensorScalar:
      return control | static_cast<uint32_t>(v.arithmetic) << ArithmeticFieldOf(v.kind).shift;
    case Kind::kCopy:
    case Kind::kBatchNorm:
      break;
  }
  return control;
}

// --- encoding -----------------------------------------------------------------------------------

class Encoder {
 public:
  explicit Encoder(const Program& program) : program_(program) {}

  absl::StatusOr<std::vector<uint8_t>> Run() {
    if (program_.commands.empty()) return absl::InternalError("a program without commands");
    for (size_t i = 0; i < program_.commands.size(); ++i) {
      const absl::Status status = Encode(program_.commands[i], i + 1 == program_.commands.size());
      if (!status.ok()) {
        return absl::InternalError(absl::StrCat("command ", i, ": ", status.message()));
      }
    }
    return std::move(bytes_);
  }

  // The header word, its link bit apart, and the payload.
  absl::Status EncodeBody(const Command& command, uint32_t& header, Words& words) const {
    if (const auto* v = std::get_if<VectorCommand>(&command.body)) {
      header = kOpcodeVector;
      if (command.waits && HasTwoSources(*v)) header |= kTwoSourcesBit;
      RETURN_IF_ERROR(EncodeVector(*v, words));
    } else if (const auto* fc = std::get_if<FullyConnectedCommand>(&command.body)) {
      header = kOpcodeFullyConnected;
      RETURN_IF_ERROR(EncodeFullyConnected(*fc, words));
    } else {
      const RawCommand& raw = std::get<RawCommand>(command.body);
      header = raw.opcode;
      RETURN_IF_ERROR(EncodeRaw(raw, words));
    }
    if (command.waits) header |= kWaitsBit;
    if (command.interrupts) header |= kInterruptBit;
    return absl::OkStatus();
  }

 private:
  absl::Status Encode(const Command& command, bool last) {
    if (last && !std::holds_alternative<VectorCommand>(command.body)) {
      return absl::InternalError("the last command must be a vector command (opcode 0x01)");
    }
    Words words = {};
    uint32_t header = 0;
    RETURN_IF_ERROR(EncodeBody(command, header, words));
    const size_t count = PayloadWords(static_cast<uint8_t>(header));
    const bool linked = last || command.link.has_value();
    Put(linked ? header : header | kFollowsBit);
    if (linked) Put(command.link.value_or(kEndLink));
    for (size_t i = 0; i < count; ++i) Put(words[i]);
    return absl::OkStatus();
  }

  absl::Status EncodeVector(const VectorCommand& v, Words& words) const {
    if (v.a_is_immediate) {
      words[0] = static_cast<uint32_t>(Slot::kImmediate) << 28;
    } else {
      RETURN_IF_ERROR(Address(v.a, words[0]));
    }
    RETURN_IF_ERROR(Address(v.b, words[1]));
    RETURN_IF_ERROR(Address(v.c, words[2]));
    RETURN_IF_ERROR(Address(v.d, words[3]));
    const ArithmeticField field = ArithmeticFieldOf(v.kind);
    if (field.limit != 0 && static_cast<uint32_t>(v.arithmetic) >= field.limit) {
      return absl::InternalError(
          absl::StrCat(NameOf(v.kind), " cannot encode ", NameOf(v.arithmetic)));
    }
    if (v.extents[0] > 0xfff || v.extents[1] > 0xfff || v.extents[2] > 0xff) {
      return absl::InternalError(absl::StrCat("extents ", v.extents[0], "x", v.extents[1], "x",
                                              v.extents[2], " do not fit 12, 12 and 8 bits"));
    }
    if (v.window_h > 15 || v.window_w > 15) {
      return absl::InternalError("a pool window side does not fit 4 bits");
    }
    words[4] = ControlWord(v);
    words[5] = uint32_t{v.extents[0]} << 20 | uint32_t{v.extents[1]} << 8 | v.extents[2];
    words[6] = uint32_t{v.a_outer_stride} << 16 | v.a_middle_stride;
    words[7] = uint32_t{v.d_outer_stride} << 16 | v.d_middle_stride;
    words[8] = v.immediate;
    if (v.kind == Kind::kPool) {
      words[8] |= (uint32_t{v.window_h} << 4 | v.window_w) << 16;
    } else if (v.kind == Kind::kActivation && v.activation == Activation::kSelu) {
      words[8] = kSeluScale;
      words[9] = kSeluTail;
    }
    return absl::OkStatus();
  }

  absl::Status EncodeFullyConnected(const FullyConnectedCommand& fc, Words& words) const {
    RETURN_IF_ERROR(Address(fc.a, words[0]));
    RETURN_IF_ERROR(Address(fc.codes, words[1]));
    RETURN_IF_ERROR(Address(fc.d, words[2]));
    RETURN_IF_ERROR(Address(fc.mask, words[4]));
    const uint32_t n_blocks = (uint32_t{fc.n} + 31) / 32;
    const uint32_t k_blocks = (uint32_t{fc.k} + 31) / 32;
    const uint32_t mask_bits = n_blocks * k_blocks * 1024;
    if (n_blocks < 1 || n_blocks > 255 || k_blocks < 1 || k_blocks > 255 ||
        (fc.mask.present() && mask_bits > 0xffff)) {
      return absl::InternalError(absl::StrCat("a fully connected layer of n = ", fc.n,
                                              ", k = ", fc.k, " has no encoding"));
    }
    words[3] = WordOf(fc.form);
    words[5] = uint32_t{fc.k} << 16 | fc.n;
    words[6] = k_blocks << 24 | n_blocks << 16 | (fc.k - 32 * (k_blocks - 1)) << 8 |
               (fc.n - 32 * (n_blocks - 1));
    words[7] = 0x01000000;
    words[9] = uint32_t{fc.step} << 16 | fc.min;
    words[10] = fc.mask.present() ? 0x80000000u | mask_bits : 0;
    return absl::OkStatus();
  }

  absl::Status EncodeRaw(const RawCommand& raw, Words& words) const {
    const size_t count = PayloadWords(raw.opcode);
    if (raw.opcode < kOpcodeConvolution || count == 0 || raw.words.size() != count) {
      return absl::InternalError(absl::StrFormat("opcode 0x%02x with %u words has no raw encoding",
                                                 raw.opcode, raw.words.size()));
    }
    std::copy(raw.words.begin(), raw.words.end(), words.begin());
    const RawLayout layout = LayoutOf(raw.opcode);
    const std::array<std::pair<int, const Operand*>, 4> operands = {{{layout.a, &raw.a},
                                                                     {layout.weights, &raw.weights},
                                                                     {layout.mask, &raw.mask},
                                                                     {layout.d, &raw.d}}};
    for (const auto& [word, operand] : operands) {
      if (word >= 0) RETURN_IF_ERROR(Address(*operand, words[static_cast<size_t>(word)]));
    }
    return absl::OkStatus();
  }

  absl::Status Address(const Operand& operand, uint32_t& word) const {
    word = 0;
    if (!operand.present()) return absl::OkStatus();
    if (static_cast<size_t>(operand.buffer.value()) >= program_.buffers.size()) {
      return absl::InternalError(absl::StrCat("no buffer ", operand.buffer.value()));
    }
    const Buffer& buffer = program_.buffers[static_cast<size_t>(operand.buffer.value())];
    const int64_t offset = buffer.offset_bytes + operand.offset_bytes;
    if (buffer.offset_bytes < 0 || operand.offset_bytes < 0 || offset >= kSlotSpanBytes) {
      return absl::InternalError(absl::StrCat("buffer ", operand.buffer.value(),
                                              " has no usable offset: ", buffer.offset_bytes));
    }
    word = static_cast<uint32_t>(buffer.slot) << 28 | static_cast<uint32_t>(offset);
    if (word == 0) return absl::InternalError("an operand at ops+0 has no encoding");
    return absl::OkStatus();
  }

  void Put(uint32_t word) {
    for (int shift = 0; shift < 32; shift += 8) {
      bytes_.push_back(static_cast<uint8_t>(word >> shift));
    }
  }

  const Program& program_;
  std::vector<uint8_t> bytes_;
};

// --- decoding -----------------------------------------------------------------------------------

uint32_t LoadWord(const uint8_t* bytes) {
  return uint32_t{bytes[0]} | uint32_t{bytes[1]} << 8 | uint32_t{bytes[2]} << 16 |
         uint32_t{bytes[3]} << 24;
}

absl::Status DecodeOperand(uint32_t word, absl::string_view name, Operand& operand) {
  if (word == 0) return absl::OkStatus();
  const uint32_t slot = word >> 28;
  if (slot >= static_cast<uint32_t>(Slot::kImmediate)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("operand %s is address 0x%08x; the slots are 0 to 7", name, word));
  }
  operand.buffer = BufferId(static_cast<int32_t>(slot));
  operand.offset_bytes = word & 0x0fffffffu;
  return absl::OkStatus();
}

absl::Status DecodeControl(uint32_t control, VectorCommand& v) {
  const absl::Status unknown =
      absl::InvalidArgumentError(absl::StrFormat("unknown control word 0x%08x", control));
  if ((control & 15u) > static_cast<uint32_t>(Kind::kBatchNorm)) return unknown;
  v.kind = static_cast<Kind>(control & 15u);
  switch (v.kind) {
    case Kind::kActivation: {
      const uint32_t function = control >> 4 & 7u;
      if (function < 1 || function > 4) return unknown;
      v.activation = static_cast<Activation>(function);
      break;
    }
    case Kind::kPool:
      v.average = (control & kAverageBit) != 0;
      break;
    case Kind::kReduce:
      v.reduce_middle = (control & kReduceMiddleBit) != 0;
      break;
    case Kind::kTensorVector:
    case Kind::kTensorTensor:
    case Kind::kTensorScalar: {
      const ArithmeticField field = ArithmeticFieldOf(v.kind);
      const uint32_t value = control >> field.shift & 7u;
      if (value >= field.limit) return unknown;
      v.arithmetic = static_cast<Arithmetic>(value);
      break;
    }
    case Kind::kCopy:
    case Kind::kFormat:
    case Kind::kBatchNorm:
      break;
  }
  return ControlWord(v) == control ? absl::OkStatus() : unknown;
}

absl::Status DecodeVector(const uint32_t* words, VectorCommand& v) {
  RETURN_IF_ERROR(DecodeControl(words[4], v));
  v.a_is_immediate =
      v.kind == Kind::kTensorTensor && words[0] == static_cast<uint32_t>(Slot::kImmediate) << 28;
  if (!v.a_is_immediate) RETURN_IF_ERROR(DecodeOperand(words[0], "a", v.a));
  RETURN_IF_ERROR(DecodeOperand(words[1], "b", v.b));
  RETURN_IF_ERROR(DecodeOperand(words[2], "c", v.c));
  RETURN_IF_ERROR(DecodeOperand(words[3], "d", v.d));
  v.extents = {static_cast<uint16_t>(words[5] >> 20), static_cast<uint16_t>(words[5] >> 8 & 0xfff),
               static_cast<uint16_t>(words[5] & 0xff)};
  v.a_middle_stride = static_cast<uint16_t>(words[6]);
  v.a_outer_stride = static_cast<uint16_t>(words[6] >> 16);
  v.d_middle_stride = static_cast<uint16_t>(words[7]);
  v.d_outer_stride = static_cast<uint16_t>(words[7] >> 16);
  if (v.kind == Kind::kActivation && v.activation == Activation::kSelu) {
    return absl::OkStatus();  // its constants are checked by encoding back
  }
  v.immediate = static_cast<uint16_t>(words[8]);
  if (v.kind == Kind::kPool) {
    v.window_h = static_cast<uint8_t>(words[8] >> 20 & 15u);
    v.window_w = static_cast<uint8_t>(words[8] >> 16 & 15u);
  }
  return absl::OkStatus();
}

absl::Status DecodeFullyConnected(const uint32_t* words, FullyConnectedCommand& fc) {
  RETURN_IF_ERROR(DecodeOperand(words[0], "a", fc.a));
  RETURN_IF_ERROR(DecodeOperand(words[1], "codes", fc.codes));
  RETURN_IF_ERROR(DecodeOperand(words[2], "d", fc.d));
  RETURN_IF_ERROR(DecodeOperand(words[4], "mask", fc.mask));
  ASSIGN_OR_RETURN(fc.form, ParseWeightForm(words[3], fc.mask.present()));
  fc.n = static_cast<uint16_t>(words[5]);
  fc.k = static_cast<uint16_t>(words[5] >> 16);
  fc.min = static_cast<uint16_t>(words[9]);
  fc.step = static_cast<uint16_t>(words[9] >> 16);
  return absl::OkStatus();
}

absl::Status DecodeRaw(const uint32_t* words, RawCommand& raw) {
  raw.words.assign(words, words + PayloadWords(raw.opcode));
  const RawLayout layout = LayoutOf(raw.opcode);
  const std::array<std::pair<int, Operand*>, 4> operands = {{{layout.a, &raw.a},
                                                             {layout.weights, &raw.weights},
                                                             {layout.mask, &raw.mask},
                                                             {layout.d, &raw.d}}};
  for (const auto& [word, operand] : operands) {
    if (word < 0) continue;
    uint32_t& value = raw.words[static_cast<size_t>(word)];
    RETURN_IF_ERROR(DecodeOperand(value, absl::StrCat("word ", word), *operand));
    value = 0;
  }
  return absl::OkStatus();
}

// What was decoded must encode to the very same words, so that no field is ever lost unseen.
absl::Status CheckEncodesBack(uint32_t header, const uint32_t* words, const Command& command) {
  Program slots;
  slots.buffers = SlotBuffers();
  Words back = {};
  uint32_t back_header = 0;
  const absl::Status status = Encoder(slots).EncodeBody(command, back_header, back);
  if (!status.ok()) return absl::InvalidArgumentError(status.message());
  if ((header & ~kFollowsBit) != back_header) {
    return absl::InvalidArgumentError(
        absl::StrFormat("header word 0x%08x; a command of its kind has 0x%08x", header,
                        back_header | (header & kFollowsBit)));
  }
  for (size_t i = 0; i < PayloadWords(static_cast<uint8_t>(header)); ++i) {
    if (words[i] == back[i]) continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "payload word +%u is 0x%08x; its other fields imply 0x%08x", 4 * i, words[i], back[i]));
  }
  return absl::OkStatus();
}

absl::Status DecodeBody(uint32_t header, const uint32_t* words, Command& command) {
  const uint8_t opcode = static_cast<uint8_t>(header);
  command.waits = (header & kWaitsBit) != 0;
  command.interrupts = (header & kInterruptBit) != 0;
  if (opcode == kOpcodeVector) {
    VectorCommand v;
    RETURN_IF_ERROR(DecodeVector(words, v));
    command.body = v;
  } else if (opcode == kOpcodeFullyConnected) {
    FullyConnectedCommand fc;
    RETURN_IF_ERROR(DecodeFullyConnected(words, fc));
    command.body = fc;
  } else {
    RawCommand raw;
    raw.opcode = opcode;
    RETURN_IF_ERROR(DecodeRaw(words, raw));
    command.body = std::move(raw);
  }
  return CheckEncodesBack(header, words, command);
}

absl::Status AtOffset(int64_t offset, const absl::Status& status) {
  return absl::InvalidArgumentError(
      absl::StrCat("command at byte ", offset, ": ", status.message()));
}

}  // namespace

absl::StatusOr<std::vector<uint8_t>> EncodeCommands(const Program& program) {
  return Encoder(program).Run();
}

int64_t CommandSizeAt(absl::Span<const uint8_t> bytes, int64_t offset_bytes) {
  if (offset_bytes < 0 || offset_bytes > static_cast<int64_t>(bytes.size()) - 4) return 0;
  const uint32_t header = LoadWord(bytes.data() + offset_bytes);
  const size_t payload_words = PayloadWords(static_cast<uint8_t>(header));
  if (payload_words == 0) return 0;
  const size_t words = 1 + payload_words + ((header & kFollowsBit) == 0 ? 1 : 0);
  const int64_t size = static_cast<int64_t>(4 * words);
  return size <= static_cast<int64_t>(bytes.size()) - offset_bytes ? size : 0;
}

absl::StatusOr<DecodedCommand> DecodeCommand(absl::Span<const uint8_t> bytes,
                                             int64_t offset_bytes) {
  DecodedCommand decoded;
  decoded.offset_bytes = offset_bytes;
  decoded.size_bytes = CommandSizeAt(bytes, offset_bytes);
  if (decoded.size_bytes == 0) {
    const int64_t left = static_cast<int64_t>(bytes.size()) - offset_bytes;
    if (offset_bytes >= 0 && left >= 4 &&
        PayloadWords(bytes[static_cast<size_t>(offset_bytes)]) == 0) {
      return AtOffset(offset_bytes, absl::InvalidArgumentError(absl::StrFormat(
                                        "unknown opcode 0x%02x; known are 0x01 and 0x40 to 0x43",
                                        bytes[static_cast<size_t>(offset_bytes)])));
    }
    return AtOffset(offset_bytes, absl::InvalidArgumentError(absl::StrCat(
                                      "the stream ends within it, ", left, " bytes are left")));
  }
  const uint8_t* at = bytes.data() + offset_bytes;
  const uint32_t header = LoadWord(at);
  at += 4;
  if ((header & ~kKnownHeaderBits) != 0) {
    return AtOffset(offset_bytes, absl::InvalidArgumentError(
                                      absl::StrFormat("header word 0x%08x has unknown bits 0x%08x",
                                                      header, header & ~kKnownHeaderBits)));
  }
  if ((header & kFollowsBit) == 0) {
    const uint32_t link = LoadWord(at);
    at += 4;
    decoded.last = link >> 28 == static_cast<uint32_t>(Slot::kCompletion);
    if (link != kEndLink) decoded.command.link = link;
  }
  Words words = {};
  const size_t count = PayloadWords(static_cast<uint8_t>(header));
  for (size_t i = 0; i < count; ++i) words[i] = LoadWord(at + 4 * i);
  const absl::Status status = DecodeBody(header, words.data(), decoded.command);
  if (!status.ok()) return AtOffset(offset_bytes, status);
  return decoded;
}

absl::StatusOr<Program> DecodeCommands(absl::Span<const uint8_t> bytes,
                                       std::vector<int64_t>* offsets) {
  if (static_cast<int64_t>(bytes.size()) > kMaxCommandBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a command stream of ", bytes.size(), " bytes; at most ", kMaxCommandBytes));
  }
  Program program;
  program.buffers = SlotBuffers();
  int64_t offset = 0;
  bool last = false;
  while (!last) {
    ASSIGN_OR_RETURN(DecodedCommand decoded, DecodeCommand(bytes, offset));
    if (offsets != nullptr) offsets->push_back(offset);
    offset += decoded.size_bytes;
    last = decoded.last;
    program.commands.push_back(std::move(decoded.command));
  }
  if (!std::holds_alternative<VectorCommand>(program.commands.back().body)) {
    return absl::InvalidArgumentError("the last command is not of opcode 0x01");
  }
  if (offset != static_cast<int64_t>(bytes.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("the stream ends at byte ", offset, ", but has ", bytes.size(), " bytes"));
  }
  return program;
}

std::vector<Buffer> SlotBuffers() {
  std::vector<Buffer> buffers;
  for (int slot = 0; slot < static_cast<int>(Slot::kImmediate); ++slot) {
    const Slot s = static_cast<Slot>(slot);
    buffers.push_back({s, kSlotSpanBytes, 0, std::string(NameOf(s))});
  }
  return buffers;
}

}  // namespace npuc
