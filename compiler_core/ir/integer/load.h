#ifndef NPUC_COMPILER_CORE_IR_INTEGER_LOAD_H_
#define NPUC_COMPILER_CORE_IR_INTEGER_LOAD_H_

#include "compiler_core/ir/cmd/load.h"
#include "compiler_core/ir/integer/command.h"
#include "compiler_core/target/mac_array.h"

namespace npuc::integer {

// The load of one command (ir/cmd/load.h). array: of its core; null: none is stated.
CommandLoad LoadOf(const Body& body, const MacArray* array);

// The estimated cycles of a frame, and its multiply-adds. core: has a cycle model.
struct FrameLoad {
  CommandLoad load;
  int64_t cycles = 0;
};
FrameLoad FrameLoadOf(const Program& program, const CoreSpec& core);

// The cycles of a Convolve's or a Product's multiply-adds in an array; 0 of other commands.
// target/README.md states what is counted.
int64_t ArrayCycles(const Body& body, const MacArray& array);

}  // namespace npuc::integer

#endif  // NPUC_COMPILER_CORE_IR_INTEGER_LOAD_H_
