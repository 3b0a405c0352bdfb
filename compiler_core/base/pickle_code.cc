#include "compiler_core/base/pickle_code.h"

#include <bit>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc::pickle {

absl::Status CodeReader::Next(Instruction& instruction) {
  instruction = {.at = at_, .text = {}, .name = {}};
  absl::string_view byte;
  RETURN_IF_ERROR(Read(1, byte));
  instruction.opcode = static_cast<uint8_t>(byte[0]);
  uint64_t number = 0;
  switch (instruction.opcode) {
    case kProto:
    case kInt1:
    case kPut1:
    case kGet1:
      RETURN_IF_ERROR(ReadNumber(1, number));
      break;
    case kInt2:
      RETURN_IF_ERROR(ReadNumber(2, number));
      break;
    case kPut4:
    case kGet4:
      RETURN_IF_ERROR(ReadNumber(4, number));
      break;
    case kInt:
      RETURN_IF_ERROR(ReadNumber(4, number));
      instruction.integer = static_cast<int32_t>(number);
      return absl::OkStatus();
    case kFrame:  // a length, which nobody needs
      return ReadNumber(8, number);
    case kLong1:
      return ReadLong(instruction);
    case kFloat:
      return ReadFloat(instruction);
    case kBytes1:
    case kText1:
      return ReadText(1, instruction);
    case kBytes4:
    case kText4:
      return ReadText(4, instruction);
    case kBytes8:
    case kByteArray8:
    case kText8:
      return ReadText(8, instruction);
    case kGlobal:
      RETURN_IF_ERROR(ReadLine(instruction.text));
      return ReadLine(instruction.name);
    default:
      return absl::OkStatus();
  }
  instruction.integer = static_cast<int64_t>(number);
  return absl::OkStatus();
}

absl::Status CodeReader::Read(uint64_t count, absl::string_view& out) {
  if (count > bytes_.size() - at_) {
    return absl::InvalidArgumentError(absl::StrCat("the pickle ends inside an instruction: ", count,
                                                   " bytes are needed and ", bytes_.size() - at_,
                                                   " are left"));
  }
  out = bytes_.substr(at_, count);
  at_ += count;
  return absl::OkStatus();
}

absl::Status CodeReader::ReadNumber(size_t count, uint64_t& out) {
  absl::string_view raw;
  RETURN_IF_ERROR(Read(count, raw));
  out = 0;
  for (size_t i = count; i-- > 0;) out = out << 8 | static_cast<uint8_t>(raw[i]);
  return absl::OkStatus();
}

absl::Status CodeReader::ReadText(size_t length_bytes, Instruction& instruction) {
  uint64_t length = 0;
  RETURN_IF_ERROR(ReadNumber(length_bytes, length));
  return Read(length, instruction.text);
}

// Two's complement in as many bytes as are said.
absl::Status CodeReader::ReadLong(Instruction& instruction) {
  uint64_t length = 0;
  RETURN_IF_ERROR(ReadNumber(1, length));
  if (length > 8) {
    return absl::InvalidArgumentError(
        absl::StrCat("an int has ", length, " bytes; allowed are at most 8"));
  }
  uint64_t number = 0;
  RETURN_IF_ERROR(ReadNumber(static_cast<size_t>(length), number));
  if (length > 0 && length < 8 && (number >> (8 * length - 1)) != 0) {
    number |= ~uint64_t{0} << (8 * length);
  }
  instruction.integer = static_cast<int64_t>(number);
  return absl::OkStatus();
}

// The one number that is big-endian.
absl::Status CodeReader::ReadFloat(Instruction& instruction) {
  absl::string_view raw;
  RETURN_IF_ERROR(Read(8, raw));
  uint64_t bits = 0;
  for (const char c : raw) bits = bits << 8 | static_cast<uint8_t>(c);
  instruction.real = std::bit_cast<double>(bits);
  return absl::OkStatus();
}

absl::Status CodeReader::ReadLine(absl::string_view& out) {
  constexpr size_t kMaxLine = 512;
  const absl::string_view rest = bytes_.substr(at_, kMaxLine + 1);
  const size_t end = rest.find('\n');
  if (end == absl::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat("a module or class name does not end within ",
                                                   kMaxLine, " bytes, the most that is allowed"));
  }
  out = rest.substr(0, end);
  at_ += end + 1;
  return absl::OkStatus();
}

}  // namespace npuc::pickle
