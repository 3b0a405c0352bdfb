#ifndef NPUC_COMPILER_CORE_IR_CMD_VERIFY_H_
#define NPUC_COMPILER_CORE_IR_CMD_VERIFY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compiler_core/ir/cmd/command.h"

namespace npuc {

// What is wrong with one command, a sentence each (lower case, no full stop); empty where nothing
// is: operands that its kind needs or must not have, each operand's bytes inside its buffer and on
// an even offset, extents in 12, 12 and 8 bits, writes to data, output and tmp only.
// Operands whose size the command does not tell are checked for their first byte alone.
std::vector<std::string> CommandProblems(absl::Span<const Buffer> buffers, const Command& command);

// INTERNAL naming each faulty command (at most 20) of a program that the compiler made. Also checks
// that planned buffers lie within their slots, and that no two buffers are planned outside them.
absl::Status VerifyProgram(const Program& program);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_IR_CMD_VERIFY_H_
