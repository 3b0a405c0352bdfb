#ifndef NPUC_COMPILER_CORE_IR_CMD_COMMAND_H_
#define NPUC_COMPILER_CORE_IR_CMD_COMMAND_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "compiler_core/base/strong_int.h"
#include "compiler_core/ir/graph/types.h"

namespace npuc {

// NPU commands of the fp16 core family (GRUS), between lowering and encoding. The same types hold
// a decoded command stream: then there is one buffer for each address slot, with offset 0.
// Field meanings and their evidence: compiler_core/target/ISA.md.

// Base slot of an address: its top four bits. The runtime adds the slot's base address.
enum class Slot : uint8_t {
  kOps = 0,
  kData = 1,
  kCmd = 2,
  kInput = 3,
  kOutput = 4,
  kTmp = 5,
  kWeight = 6,
  kCompletion = 7,
  kImmediate = 8,
};
inline constexpr int kSlotCount = 9;
// Bytes that an address can reach within its slot.
inline constexpr int64_t kSlotSpanBytes = int64_t{1} << 28;
// An element of fp16.
inline constexpr int64_t kHalfBytes = 2;
// Commands of one program.
inline constexpr size_t kMaxCommands = size_t{1} << 20;

using BufferId = StrongInt<struct BufferIdTag>;

// A stretch of memory that commands read or write.
struct Buffer {
  Slot slot = Slot::kData;
  int64_t size_bytes = 0;
  int64_t offset_bytes = -1;  // within the slot; -1 until planned. Fixed at once but for kData.
  std::string name;           // the source node that the contents belong to; for listings
};

// A place in a buffer; an invalid buffer id means "no operand" (encoded as zero).
struct Operand {
  BufferId buffer;
  int64_t offset_bytes = 0;
  bool present() const { return buffer.valid(); }
  Operand Plus(int64_t bytes) const { return {buffer, offset_bytes + bytes}; }
  bool operator==(const Operand&) const = default;
};

enum class Arithmetic : uint8_t { kAdd, kSub, kMul, kDiv, kPow, kExp, kLog };
enum class Activation : uint8_t { kRelu = 1, kSigmoid = 2, kTanh = 3, kSelu = 4 };

// Opcode 0x01: walks outer x middle x inner elements of fp16. The inner stride is one element;
// middle and outer strides are in elements.
struct VectorCommand {
  enum class Kind : uint8_t {
    kActivation = 0,    // d = f(a)
    kPool = 1,          // a [outer,middle,inner] -> d [outer/window_h, middle/window_w, inner]
    kCopy = 2,          // d = a
    kReduce = 3,        // d = immediate * sum of a over inner (d [outer,middle]), or over middle
                        // where reduce_middle (d [outer,inner])
    kTensorVector = 4,  // d = a op b, b [inner] repeats over outer and middle
    kTensorTensor = 5,  // d = a op b, b walks as a does; a or b may be the immediate
    kTensorScalar = 6,  // d = a op immediate; exp, log: of a alone
    kFormat = 7,        // d float32 = a fp16
    kBatchNorm = 8,     // d = a * b + c, b and c [inner]
  };
  Kind kind = Kind::kCopy;
  Arithmetic arithmetic = Arithmetic::kAdd;
  Activation activation = Activation::kRelu;
  bool average = false;         // kPool: mean instead of maximum
  bool reduce_middle = false;   // kReduce
  bool a_is_immediate = false;  // kTensorTensor: a is the immediate (slot 8)
  uint8_t window_h = 0;         // kPool: 1..15 rows (of outer) and columns (of middle)
  uint8_t window_w = 0;
  Operand a, b, c, d;
  std::array<uint16_t, 3> extents = {1, 1, 1};  // outer, middle, inner: 12, 12 and 8 bits
  uint16_t a_middle_stride = 0;                 // of b too in kTensorTensor
  uint16_t a_outer_stride = 0;
  uint16_t d_middle_stride = 0;
  uint16_t d_outer_stride = 0;
  uint16_t immediate = 0;  // fp16
  bool operator==(const VectorCommand&) const = default;
};

// The form in which a fully connected or a convolution command has its weights. Both 0: as GRUS,
// which has no other; the others are LEO's (ISA.md, "LEO").
struct WeightForm {
  uint8_t book_bits = 0;      // compressed: codes of 4 to 8 bits, behind a book of what each means
  uint8_t exponent_bits = 0;  // plain: 16-bit floats of 3, 4 or 6 exponent bits; 0: fp16
  bool operator==(const WeightForm&) const = default;

  // The bytes of the book in front of the codes: 2^book_bits fp16 values.
  int64_t book_bytes() const { return book_bits == 0 ? 0 : kHalfBytes << book_bits; }
};

// Opcode 0x40: d [n] = a [k] x weights [k,n].
struct FullyConnectedCommand {
  Operand a;
  Operand codes;  // compressed: one byte per set mask bit; else fp16 weights, in the same order
  Operand mask;   // absent where the weights are not compressed
  Operand d;
  uint16_t n = 0;     // outputs
  uint16_t k = 0;     // inputs
  uint16_t min = 0;   // fp16: value of code 0
  uint16_t step = 0;  // fp16
  WeightForm form;    // with a book, min and step are 0
  bool operator==(const FullyConnectedCommand&) const = default;
};

// Opcodes 0x41 (convolution), 0x42 (depthwise, or one input channel) and 0x43 (transpose), as raw
// payload words beside the operands, which are known: 0x41: +0 a, +4 codes, +8 d, +12 -, +16 mask;
// 0x42: +0 a, +4 weights, +8 d; 0x43: +0 a, +4 d. Their structured forms come with their operators.
struct RawCommand {
  uint8_t opcode = 0;
  Operand a, weights, mask, d;
  std::vector<uint32_t> words;  // the payload's words; operand words are ignored when encoding
  bool operator==(const RawCommand&) const = default;
};

struct Command {
  std::variant<VectorCommand, FullyConnectedCommand, RawCommand> body;
  // True for the first command of an operator: it waits for all earlier ones (header bit 8); the
  // other commands of one operator do not depend on each other (ISA.md, "header bits 8-9").
  bool waits = true;
  bool interrupts = false;  // header bit 22
  std::string node;         // source node that the command computes; for listings
  // The link word behind the header, where it is not the usual one: none between commands, and
  // 0x70000000 (signal completion) after the last.
  std::optional<uint32_t> link;
  bool operator==(const Command&) const = default;
};

// A tensor at the program's border, in header order.
struct PortTensor {
  std::string name;  // as the user named it; the header writes '/' and ':' as '_'
  Shape shape;
  DType dtype = DType::kFloat16;  // kFloat16, kFloat32 (outputs), or i8, u8, i16, u16
  int64_t offset_bytes = 0;       // within slot kInput or kOutput
  int state_input = -1;  // outputs: index of the input that it feeds in the next frame, or -1
  // Of integers: real value = (stored - zero_point) * scale. 0: not an integer port.
  double scale = 0;
  int64_t zero_point = 0;
};

struct Program {
  std::vector<Buffer> buffers;
  std::vector<Command> commands;
  std::vector<PortTensor> inputs;
  std::vector<PortTensor> outputs;
  std::vector<uint8_t> weights;  // contents of slot kWeight
  int64_t data_bytes = 0;        // size of slot kData; set by the memory plan
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_IR_CMD_COMMAND_H_
