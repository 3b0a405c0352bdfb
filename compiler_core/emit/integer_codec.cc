#include "compiler_core/emit/integer_codec.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/integer/access.h"
#include "compiler_core/ir/integer/fields.h"
#include "compiler_core/ir/integer/phases.h"

namespace npuc::integer {
namespace {

constexpr int64_t kWordBytes = 4;
constexpr std::array<DType, 4> kTypes = {DType::kInt8, DType::kUint8, DType::kInt16,
                                         DType::kUint16};
constexpr uint32_t kLastBit = 1u << 8;
constexpr uint32_t kDescendingBit = 1u << 9;
constexpr int kCoreShift = 10;
constexpr uint32_t kCoreMask = kMaxCores - 1;
constexpr uint32_t kBarrierBit = 1u << 13;
constexpr uint32_t kPixelBit = 1u << 14;  // the mask bit of d_pixel
constexpr uint32_t kZeroBits = 0x8000;

bool IsUsedSlot(Slot slot) {
  return slot == Slot::kData || slot == Slot::kInput || slot == Slot::kOutput ||
         slot == Slot::kWeight;
}

// A body's fields as words. The first field that does not fit is remembered.
struct IntegerEncoder {
  absl::Span<const Buffer> buffers;
  std::vector<uint32_t> words = {};
  std::string problem = {};

  void Fail(absl::string_view name, absl::string_view what) {
    if (problem.empty()) problem = absl::StrCat("field ", name, " ", what);
  }
  void Place(absl::string_view name, const Operand& operand) {
    if (!operand.present()) return words.push_back(0);
    const Buffer& buffer = buffers[operand.buffer.value()];
    const int64_t offset = buffer.offset_bytes + operand.offset_bytes;
    if (buffer.offset_bytes < 0 || offset < 0 || offset >= kSlotSpanBytes ||
        !IsUsedSlot(buffer.slot)) {
      Fail(name, absl::StrCat("is at ", offset, " of slot ", npuc::NameOf(buffer.slot)));
    }
    words.push_back(static_cast<uint32_t>(buffer.slot) << 28 | static_cast<uint32_t>(offset));
  }
  void Type(absl::string_view name, DType type) {
    const auto* const found = std::find(kTypes.begin(), kTypes.end(), type);
    if (found == kTypes.end()) Fail(name, "is no type of integers");
    words.push_back(static_cast<uint32_t>(found - kTypes.begin()) + 1);
  }
  template <typename E>
  void Choice(absl::string_view name, E value, int count) {
    if (static_cast<int>(value) >= count) Fail(name, "is not one of the choices");
    words.push_back(static_cast<uint32_t>(value));
  }
  void Number(absl::string_view name, int32_t value, int32_t lo, int32_t hi) {
    if (value < lo || value > hi) Fail(name, absl::StrCat(value, " is outside ", lo, "..", hi));
    words.push_back(static_cast<uint32_t>(value));
  }
  void Walk(absl::string_view name, const Extents& extents, int32_t lo) {
    for (const int32_t extent : extents) Number(name, extent, lo, kMaxNumber);
  }
};

// Words as a body's fields: as many as it has.
struct Decoder {
  absl::Span<const uint32_t> words;
  size_t at = 0;
  std::string problem = {};

  uint32_t Take() { return words[at++]; }
  void Fail(absl::string_view name, uint32_t word) {
    if (problem.empty()) problem = absl::StrCat("field ", name, " cannot be ", word);
  }
  void Place(absl::string_view name, Operand& operand) {
    const uint32_t word = Take();
    if (word == 0) return;
    if (!IsUsedSlot(static_cast<Slot>(word >> 28))) return Fail(name, word);
    operand = {BufferId(static_cast<int32_t>(word >> 28)), word & (kSlotSpanBytes - 1)};
  }
  void Type(absl::string_view name, DType& type) {
    const uint32_t word = Take();
    if (word < 1 || word > kTypes.size()) return Fail(name, word);
    type = kTypes[word - 1];
  }
  template <typename E>
  void Choice(absl::string_view name, E& value, int count) {
    const uint32_t word = Take();
    if (word >= static_cast<uint32_t>(count)) return Fail(name, word);
    value = static_cast<E>(word);
  }
  void Number(absl::string_view name, int32_t& value, int32_t lo, int32_t hi) {
    const uint32_t word = Take();
    value = static_cast<int32_t>(word);
    if (value < lo || value > hi) Fail(name, word);
  }
  void Walk(absl::string_view name, Extents& extents, int32_t lo) {
    for (int32_t& extent : extents) Number(name, extent, lo, kMaxNumber);
  }
};

// The words of a kind's fields at their usual values.
std::vector<uint32_t> UsualWords(size_t kind) {
  Body usual;
  MakeBody(kOpcodes[kind].code, usual);
  IntegerEncoder encoder{{}};
  VisitFields(encoder, usual);
  return std::move(encoder.words);
}

constexpr size_t kMaskBits = 32;

// Mask words, a bit for each field, set where the field's word follows; then those words.
std::vector<uint32_t> WithoutUsual(const std::vector<uint32_t>& words,
                                   const std::vector<uint32_t>& usual) {
  std::vector<uint32_t> packed((words.size() + kMaskBits - 1) / kMaskBits);
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == usual[i]) continue;
    packed[i / kMaskBits] |= 1u << (i % kMaskBits);
    packed.push_back(words[i]);
  }
  return packed;
}

// The words of all fields. What it takes is what WithoutUsual makes of them; else `problem` is set.
std::vector<uint32_t> WithUsual(absl::Span<const uint32_t> packed,
                                const std::vector<uint32_t>& usual, std::string& problem) {
  const size_t masks = (usual.size() + kMaskBits - 1) / kMaskBits;
  std::vector<uint32_t> words = usual;
  size_t at = masks;
  for (size_t i = 0; i < masks * kMaskBits && problem.empty(); ++i) {
    if (masks > packed.size()) {
      problem = "it has too few words";
    } else if ((packed[i / kMaskBits] >> (i % kMaskBits) & 1) == 0) {
      continue;
    } else if (i >= usual.size()) {
      problem = "its mask names a field that it lacks";
    } else if (at == packed.size()) {
      problem = "it has too few words";
    } else if (packed[at] == usual[i]) {
      problem = absl::StrCat("its mask names field ", i, ", which has its usual value");
    } else {
      words[i] = packed[at++];
    }
  }
  if (problem.empty() && at != packed.size()) problem = "it has too many words";
  return words;
}

void PutWord(uint32_t word, std::vector<uint8_t>& out) {
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<uint8_t>(word >> shift));
}

// The last word of a convolve's fields, d_pixel, has its mask bit in the header and follows behind
// the others; other kinds have none.
uint32_t TakePixelWord(size_t kind, std::vector<uint32_t>& words) {
  if (kOpcodes[kind].name != "convolve") return 0;
  const uint32_t pixel = words.back();
  words.pop_back();
  return pixel;
}

// The words of all fields, of those that follow a header. Else `problem` is set.
std::vector<uint32_t> AllWords(uint32_t header, size_t kind, absl::Span<const uint32_t> packed,
                               std::string& problem) {
  std::vector<uint32_t> usual = UsualWords(kind);
  const size_t fields = usual.size();
  uint32_t pixel = TakePixelWord(kind, usual);
  if ((header & kPixelBit) != 0) {
    if (fields == usual.size() || packed.empty() || packed.back() == 0) {
      problem = "it has no word for the field d_pixel";
      return {};
    }
    pixel = packed.back();
    packed.remove_suffix(1);
  }
  std::vector<uint32_t> words = WithUsual(packed, usual, problem);
  if (fields > usual.size()) words.push_back(pixel);
  return words;
}

}  // namespace

uint32_t WordAt(absl::Span<const uint8_t> bytes, int64_t offset) {
  uint32_t word = 0;
  for (int64_t i = 0; i < kWordBytes; ++i) {
    word |= uint32_t{bytes[static_cast<size_t>(offset + i)]} << (8 * i);
  }
  return word;
}

absl::StatusOr<std::vector<uint8_t>> EncodeCommands(const Program& program) {
  std::vector<uint8_t> out;
  for (size_t i = 0; i < program.commands.size(); ++i) {
    const Body& body = program.commands[i].body;
    IntegerEncoder encoder{program.buffers};
    VisitFields(encoder, body);
    if (!encoder.problem.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("command ", i, " (", NameOf(body), "): ", encoder.problem));
    }
    const Command& command = program.commands[i];
    if (command.core < 0 || command.core >= kMaxCores) {
      return absl::InvalidArgumentError(
          absl::StrCat("command ", i, " is of core ", command.core, "; 0..", kMaxCores - 1));
    }
    std::vector<uint32_t> usual = UsualWords(body.index());
    TakePixelWord(body.index(), usual);
    const uint32_t pixel = TakePixelWord(body.index(), encoder.words);
    std::vector<uint32_t> packed = WithoutUsual(encoder.words, usual);
    if (pixel != 0) packed.push_back(pixel);
    const bool last = i + 1 == program.commands.size();
    PutWord(kOpcodes[body.index()].code | (last ? kLastBit : 0) |
                (command.descending ? kDescendingBit : 0) |
                static_cast<uint32_t>(command.core) << kCoreShift |
                (command.barrier ? kBarrierBit : 0) | (pixel != 0 ? kPixelBit : 0) |
                static_cast<uint32_t>(packed.size()) << 16,
            out);
    for (const uint32_t word : packed) PutWord(word, out);
  }
  return out;
}

absl::StatusOr<DecodedCommand> DecodeCommand(absl::Span<const uint8_t> bytes, int64_t offset) {
  const auto fail = [offset](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("byte ", offset, ": ", what));
  };
  if (offset < 0 || offset > static_cast<int64_t>(bytes.size()) - kWordBytes) {
    return fail("the stream ends inside a command");
  }
  const uint32_t word = WordAt(bytes, offset);
  DecodedCommand decoded;
  if ((word & kZeroBits) != 0 || !MakeBody(static_cast<uint8_t>(word & 0xff), decoded.body)) {
    return fail(absl::StrCat("no command begins with ", absl::Hex(word, absl::kZeroPad8)));
  }
  decoded.last = (word & kLastBit) != 0;
  decoded.descending = (word & kDescendingBit) != 0;
  decoded.core = static_cast<int32_t>(word >> kCoreShift & kCoreMask);
  decoded.barrier = (word & kBarrierBit) != 0;
  decoded.size_bytes = kWordBytes * (1 + static_cast<int64_t>(word >> 16));
  if (decoded.size_bytes > static_cast<int64_t>(bytes.size()) - offset) {
    return fail("the stream ends inside a command");
  }
  std::vector<uint32_t> packed;
  for (int64_t at = kWordBytes; at < decoded.size_bytes; at += kWordBytes) {
    packed.push_back(WordAt(bytes, offset + at));
  }
  std::string problem;
  const std::vector<uint32_t> words = AllWords(word, decoded.body.index(), packed, problem);
  Decoder fields{words};
  if (problem.empty()) VisitFields(fields, decoded.body);
  if (problem.empty()) problem = fields.problem;
  if (!problem.empty()) return fail(absl::StrCat(NameOf(decoded.body), ": ", problem));
  return decoded;
}

}  // namespace npuc::integer
