#ifndef NPUC_COMPILER_CORE_IR_INTEGER_STEPS_H_
#define NPUC_COMPILER_CORE_IR_INTEGER_STEPS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "compiler_core/ir/integer/command.h"

namespace npuc::integer {

// Bytes [begin, end), counted from an operand's place or from the begin of a memory.
struct ByteRange {
  int64_t begin = 0;
  int64_t end = 0;
  bool empty() const { return begin >= end; }
  int64_t size() const { return empty() ? 0 : end - begin; }
  bool Overlaps(const ByteRange& other) const {
    return !empty() && !other.empty() && begin < other.end && other.begin < end;
  }
  ByteRange Plus(int64_t bytes) const { return {begin + bytes, end + bytes}; }
  bool operator==(const ByteRange&) const = default;
};
// From the first byte of either to behind the last.
ByteRange HullOf(const ByteRange& a, const ByteRange& b);
// Bytes of both.
ByteRange CommonOf(const ByteRange& a, const ByteRange& b);

// The bytes that one step of a command reads of operands a and b and stores of its result, each
// from the lowest byte to behind the highest, counted from the operand's place.
struct Step {
  std::array<ByteRange, 2> reads;
  ByteRange writes;
};

// A command has at most this many steps: of more rows or elements, each step takes several.
inline constexpr int64_t kMaxSteps = 1024;

// The steps of a command without problems (verify.h), ascending. target/INTEGER_ISA.md states what
// a step is of each kind.
std::vector<Step> StepsOf(const Body& body);

// Operands a and b; one that the kind lacks is absent.
std::array<Operand, 2> OperandsOf(const Body& body);
const Result& ResultOf(const Body& body);

// True where operand 0 (a) or 1 (b) is walked element by element as the result is, byte for byte,
// and ever upwards: then an element of the result may lie over the same element of the operand.
bool WalksWithResult(const Body& body, size_t operand);

// True where the result, `distance` bytes above the operand's place (below: negative), lies over
// bytes of operand 0 or 1 that the same or a later step reads.
bool Clobbers(const Body& body, const std::vector<Step>& steps, size_t operand, int64_t distance,
              bool descending);

}  // namespace npuc::integer

#endif  // NPUC_COMPILER_CORE_IR_INTEGER_STEPS_H_
