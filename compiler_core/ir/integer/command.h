#ifndef NPUC_COMPILER_CORE_IR_INTEGER_COMMAND_H_
#define NPUC_COMPILER_CORE_IR_INTEGER_COMMAND_H_

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "compiler_core/base/fixed_point.h"
#include "compiler_core/ir/cmd/command.h"
#include "compiler_core/ir/graph/types.h"

namespace npuc::integer {

// NPU commands of the integer cores, between lowering and encoding; also what a decoded stream is.
// What each computes, to the rounding: compiler_core/target/INTEGER_ISA.md. Buffers, operands,
// slots and ports are those of ir/cmd. Every number is an int32 in the encoding.

// A factor record in memory: a number of 40 bits, the multiplier in bits 0-30, the shift in 31-36.
inline constexpr int64_t kFactorBytes = 5;
// Constants but factors begin on multiples of this.
inline constexpr int64_t kConstantAlignment = 4;
inline constexpr int kMaxExtents = 6;
using Extents = std::array<int32_t, kMaxExtents>;

// Where results go: d = clamp(value + zero, min, max), stored as `type`.
struct Result {
  Operand d;
  DType type = DType::kInt8;  // i8, u8, i16, u16
  int32_t zero = 0;
  int32_t min = -128;
  int32_t max = 127;
  bool operator==(const Result&) const = default;
};

// A window over height and width; taps outside the operand are padding.
struct Window {
  int32_t kernel_h = 1;
  int32_t kernel_w = 1;
  int32_t stride_h = 1;
  int32_t stride_w = 1;
  int32_t dilation_h = 1;
  int32_t dilation_w = 1;
  int32_t pad_top = 0;
  int32_t pad_left = 0;
  bool operator==(const Window&) const = default;
};

// a [n,in_h,in_w,in_c], weights [out_c,kernel_h,kernel_w,in_c/groups], bias [out_c] ->
// d [n,out_h,out_w,out_c]. Sums are of 32 bits where operand and weights have 8, else of 48.
struct Convolve {
  Operand a;
  DType a_type = DType::kInt8;
  int32_t pad_value = 0;  // what padding holds: the operand's zero point
  Operand weights;
  DType weight_type = DType::kInt8;  // i8 or i16
  int32_t coded_bytes = 0;           // of i8 weights in their code (weight_code.h); 0: as they are
  Operand table;                     // of coded weights
  Operand bias;                      // i32, or 48 bits where sums have 48
  Operand factors;                   // one record, or out_c of them
  int32_t factor_count = 1;
  Rounding rounding = Rounding::kEven;
  int32_t n = 1;
  int32_t in_h = 1, in_w = 1, in_c = 1;
  int32_t out_h = 1, out_w = 1, out_c = 1;
  int32_t groups = 1;
  Window window;
  Result result;
  int32_t d_pixel = 0;  // elements from a pixel of the result to the next one; 0: out_c
  bool operator==(const Convolve&) const = default;
};

// a [n,in_h,in_w,c] -> d [n,out_h,out_w,c]; padding is never counted.
struct Pool {
  enum class Kind : uint8_t {
    kMax = 0,     // the largest
    kMean = 1,    // sum / count, rounded to nearest, ties away from zero
    kScaled = 2,  // (sum - count * a_zero) times a factor: of the one record, or, where there are
                  // kernel_h * kernel_w of them, of record count - 1
  };
  Kind kind = Kind::kMax;
  Operand a;
  DType a_type = DType::kInt8;
  int32_t a_zero = 0;
  Operand factors;
  int32_t factor_count = 0;
  Rounding rounding = Rounding::kEven;
  int32_t n = 1;
  int32_t in_h = 1, in_w = 1, c = 1;
  int32_t out_h = 1, out_w = 1;
  Window window;
  Result result;
  bool operator==(const Pool&) const = default;
};

// Two operands element by element, each walked by strides of its own (0 repeats).
// x = (a - a_zero) << left, y = (b - b_zero) << left; with factors f0, f1, f2:
// kAdd, kSub, kMax, kMin: value = f2 * (f0 * x op f1 * y). kMul: value = f2 * (x * y). kDiv: value
// = f2 * (x / (b - b_zero)).
struct Combine {
  enum class Kind : uint8_t { kAdd = 0, kSub = 1, kMul = 2, kMax = 3, kMin = 4, kDiv = 5 };
  Kind kind = Kind::kAdd;
  Operand a;
  DType a_type = DType::kInt8;
  int32_t a_zero = 0;
  Operand b;
  DType b_type = DType::kInt8;
  int32_t b_zero = 0;
  int32_t left = 0;  // 0..30
  Operand factors;   // three records
  Rounding rounding = Rounding::kEven;
  Extents extents = {1, 1, 1, 1, 1, 1};
  Extents a_strides = {};  // in elements
  Extents b_strides = {};
  Extents d_strides = {};
  Result result;
  bool operator==(const Combine&) const = default;
};

// d = a, walked by strides: copies, slices, transposes, repetitions. With a factor,
// value = f * (a - a_zero); without one a's and d's types are the same and the integers are copied.
struct Move {
  Operand a;
  DType a_type = DType::kInt8;
  int32_t a_zero = 0;
  Operand factors;  // one record, or none
  Rounding rounding = Rounding::kEven;
  Extents extents = {1, 1, 1, 1, 1, 1};
  Extents a_strides = {};
  Extents d_strides = {};
  Result result;
  bool operator==(const Move&) const = default;
};

// d [count] = zero: `result.zero`, within min..max.
struct Fill {
  int32_t count = 1;
  Result result;
  bool operator==(const Fill&) const = default;
};

// d [count] = table(a [count]). Of an 8-bit operand the table has 256 entries and the index is
// a - lowest. Of a 16-bit one it has 2^index_bits + 1, between which it is linear.
struct Lookup {
  Operand a;
  DType a_type = DType::kInt8;
  Operand table;  // entries of the result's type
  int32_t index_bits = 8;
  int32_t count = 1;
  Result result;
  bool operator==(const Lookup&) const = default;
};

// a [rows,length] -> d [rows,length], along the rows.
struct Softmax {
  enum class Kind : uint8_t {
    kTable = 0,  // exponentials from a table of u32
    kFixed = 1,  // TFLite's fixed-point arithmetic
  };
  Kind kind = Kind::kTable;
  Operand a;
  DType a_type = DType::kInt8;
  Operand table;           // kTable: 2^index_bits + 1 entries (16-bit operand) or 256
  int32_t index_bits = 8;  // kTable
  int32_t multiplier = 0;  // kFixed: of differences, with `left`
  int32_t left = 0;        // kFixed: 0..31
  int32_t diff_min = 0;    // kFixed: differences below give 0
  Operand factors;         // kTable: one record, of shares of 24 fraction bits
  Rounding rounding = Rounding::kEven;
  int32_t rows = 1;
  int32_t length = 1;
  Result result;
  bool operator==(const Softmax&) const = default;
};

// Products of two operands, each walked by strides of its own (0 repeats), summed along the last
// extent: d [the other extents] = f * sum of (a - a_zero) * (b - b_zero). Sums are of 32 bits where
// both operands have 8, else of 48.
struct Product {
  Operand a;
  DType a_type = DType::kInt8;
  int32_t a_zero = 0;
  Operand b;
  DType b_type = DType::kInt8;
  int32_t b_zero = 0;
  Operand factors;  // one record
  Rounding rounding = Rounding::kEven;
  Extents extents = {1, 1, 1, 1, 1, 1};
  Extents a_strides = {};  // in elements
  Extents b_strides = {};
  Result result;
  bool operator==(const Product&) const = default;
};

using Body = std::variant<Convolve, Pool, Combine, Move, Fill, Lookup, Softmax, Product>;

// The parts of a command that several cores run (parts.h).
struct Sharing {
  enum class Axis : uint8_t { kRows, kChannels };
  Axis axis = Axis::kRows;
  int32_t parts = 1;  // 1: one core does all of it
  bool operator==(const Sharing&) const = default;
};

struct Command {
  Body body;
  std::string layer;        // that it belongs to; not encoded
  bool descending = false;  // takes its steps (steps.h) from the last to the first
  int32_t core = 0;         // that runs it
  bool barrier = false;     // begins when all commands before it have ended (phases.h)
  // Before cores share the program: how they will share this command, so that the memory plan keeps
  // its result apart from its operands. Behind that: what it is a part of. Not encoded.
  Sharing sharing = {};
};

struct Program {
  std::vector<Buffer> buffers;
  std::vector<Command> commands;
  std::vector<PortTensor> inputs;
  std::vector<PortTensor> outputs;
  std::vector<uint8_t> weights;  // contents of slot kWeight
  int64_t data_bytes = 0;        // size of slot kData; set by the memory plan
  // Where the packed inputs and outputs lie in slot kData; -1: in slots of their own. Set by the
  // memory plan. Their buffers are the first two.
  int64_t input_offset = -1;
  int64_t output_offset = -1;
};

}  // namespace npuc::integer

#endif  // NPUC_COMPILER_CORE_IR_INTEGER_COMMAND_H_
