#ifndef NPUC_COMPILER_CORE_IR_INTEGER_PHASES_H_
#define NPUC_COMPILER_CORE_IR_INTEGER_PHASES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compiler_core/ir/integer/command.h"

namespace npuc::integer {

// A command with a barrier begins when all commands before it, of every core, have ended. The
// commands from one barrier to the next are a phase: each core takes its own ones in the stream's
// order, and the cores run side by side. So nothing that a command of a phase stores may be read or
// stored by a command that another core has in the same phase (target/INTEGER_ISA.md).

// Three bits of a command's header.
inline constexpr int32_t kMaxCores = 8;
// A phase in which several cores work has at most this many commands.
inline constexpr size_t kMaxPhaseCommands = 64;

// A command of a phase.
struct PhaseCommand {
  const Body* body = nullptr;
  int32_t core = 0;
};

// The reason that cores cannot run a phase's commands side by side, as a sentence (lower case, no
// full stop); null: they can. Each command has no problem of its own (verify.h). Buffers without an
// offset lie apart from all others.
std::optional<std::string> PhaseProblem(absl::Span<const Buffer> buffers,
                                        absl::Span<const PhaseCommand> phase);

// Calls `take` for the commands [first, end) of each phase.
void ForEachPhase(const Program& program, absl::FunctionRef<void(size_t first, size_t end)> take);

// INTERNAL naming the first phase of a program that the compiler made which cores cannot run side
// by side, or a command of a core that there is not.
absl::Status VerifyPhases(const Program& program, int64_t cores);

}  // namespace npuc::integer

#endif  // NPUC_COMPILER_CORE_IR_INTEGER_PHASES_H_
