#ifndef NPUC_COMPILER_CORE_IR_CMD_ACCESS_H_
#define NPUC_COMPILER_CORE_IR_CMD_ACCESS_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler_core/ir/cmd/command.h"

namespace npuc {

// Which bytes a command touches.
enum class OperandRole : uint8_t {
  kA,
  kB,
  kC,
  kD,
  kCodes,
  kMask,
  kWeights,
  kBias,
  kFactors,
  kTable
};
absl::string_view NameOf(OperandRole role);  // "a", "b", "c", "d", "codes", "mask" ...

struct Access {
  OperandRole role;
  Operand operand;
  bool writes;
  // Bytes from the operand's start to behind the last byte touched; strides leave gaps in between.
  // kUnknown where the command alone does not tell: the codes of compressed weights (one byte for
  // each set mask bit), and raw commands whose words are not all known.
  int64_t size_bytes;
  static constexpr int64_t kUnknown = -1;
};

// The operands that are present, reads before writes. Pure; any field values are accepted.
std::vector<Access> AccessesOf(const Command& command);

// The input buffer that each output buffer's struct member may lie over, by output buffer; -1:
// none. Applications may lay the output struct over the next frame's states.
std::vector<int32_t> StatesUnderOutputs(const Program& program);

// Elements that the command computes, counting each multiply-add of matrix and convolution
// commands; 0 for raw commands that are not understood. At most 2^57.
int64_t WorkOf(const Command& command);

// Whether the command has two sources walked together (kinds 4, 5 and 8), also where one of them
// is a weight: header bit 9 goes with it.
bool HasTwoSources(const VectorCommand& command);

// What a command is called wherever people read of it: "pool", "fully_connected", "convolution"
// ...; "raw" for an opcode that is not known.
absl::string_view NameOf(const Command& command);
absl::string_view NameOfOpcode(uint8_t opcode);  // of a raw command

// "data", "input" ...; "immediate".
absl::string_view NameOf(Slot slot);
absl::string_view NameOf(VectorCommand::Kind kind);  // "activation", "tensor_vector" ...
absl::string_view NameOf(Arithmetic arithmetic);     // "add" ...
absl::string_view NameOf(Activation activation);     // "relu" ...

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_IR_CMD_ACCESS_H_
