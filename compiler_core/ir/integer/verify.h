#ifndef NPUC_COMPILER_CORE_IR_INTEGER_VERIFY_H_
#define NPUC_COMPILER_CORE_IR_INTEGER_VERIFY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compiler_core/ir/integer/command.h"

namespace npuc::integer {

// What is wrong with one command, a sentence each (lower case, no full stop); empty where nothing
// is: fields in their ranges, operands that its kind needs, each inside its buffer and on a
// multiple of its element's size, results to data and output only and never over what the same or
// a later step (steps.h) reads, types that the command takes. A command without problems runs
// without touching anything else.
std::vector<std::string> CommandProblems(absl::Span<const Buffer> buffers, const Body& body,
                                         bool descending = false);

// The fields that are out of their ranges, of a command that is too large for the core.
std::vector<std::string> FieldProblems(const Body& body);

// INTERNAL naming each faulty command (at most 20) of a program that the compiler made.
absl::Status VerifyProgram(const Program& program);

}  // namespace npuc::integer

#endif  // NPUC_COMPILER_CORE_IR_INTEGER_VERIFY_H_
