#ifndef NPUC_COMPILER_CORE_BASE_PICKLE_CODE_H_
#define NPUC_COMPILER_CORE_BASE_PICKLE_CODE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace npuc::pickle {

// The instructions of Python's pickles, as far as torch and NumPy write them. A pickle is a program
// for a machine of a stack and a memo; each reader has a machine of its own, which knows the values
// that it wants and refuses the rest. Source: Python's pickletools.py.
enum Opcode : uint8_t {
  kProto = 0x80,
  kFrame = 0x95,
  kStop = '.',
  kMark = '(',
  kNone = 'N',
  kTrue = 0x88,
  kFalse = 0x89,
  kInt = 'J',
  kInt1 = 'K',
  kInt2 = 'M',
  kLong1 = 0x8a,
  kFloat = 'G',
  kBytes1 = 'C',
  kBytes4 = 'B',
  kBytes8 = 0x8e,
  kByteArray8 = 0x96,
  kText1 = 0x8c,
  kText4 = 'X',
  kText8 = 0x8d,
  kEmptyTuple = ')',
  kTuple = 't',
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kEmptyList = ']',
  kAppend = 'a',
  kAppends = 'e',
  kEmptyDict = '}',
  kSetItem = 's',
  kSetItems = 'u',
  kPut1 = 'q',
  kPut4 = 'r',
  kMemoize = 0x94,
  kGet1 = 'h',
  kGet4 = 'j',
  kGlobal = 'c',
  kStackGlobal = 0x93,
  kNewObject = 0x81,
  kReduce = 'R',
  kBuild = 'b',
  kPersistentId = 'Q',
};

struct Instruction {
  uint8_t opcode = 0;      // may be none of the above; it is then read as one without operands
  size_t at = 0;           // of its first byte
  int64_t integer = 0;     // a number, a place in the memo, a protocol
  double real = 0;         // of kFloat
  absl::string_view text;  // bytes or a text, in the pickle; of kGlobal the module
  absl::string_view name;  // of kGlobal
};

class CodeReader {
 public:
  explicit CodeReader(absl::string_view bytes) : bytes_(bytes) {}

  bool at_end() const { return at_ == bytes_.size(); }
  size_t size() const { return bytes_.size(); }
  // Reads the next instruction; its `at` is set in any case. INVALID_ARGUMENT where the pickle ends
  // inside it, an integer has more than 8 bytes, or a name more than 512.
  absl::Status Next(Instruction& instruction);

 private:
  absl::Status Read(uint64_t count, absl::string_view& out);
  absl::Status ReadNumber(size_t count, uint64_t& out);  // little-endian
  absl::Status ReadText(size_t length_bytes, Instruction& instruction);
  absl::Status ReadLong(Instruction& instruction);
  absl::Status ReadFloat(Instruction& instruction);
  absl::Status ReadLine(absl::string_view& out);

  absl::string_view bytes_;
  size_t at_ = 0;
};

}  // namespace npuc::pickle

#endif  // NPUC_COMPILER_CORE_BASE_PICKLE_CODE_H_
