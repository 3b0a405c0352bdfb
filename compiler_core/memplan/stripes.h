#ifndef NPUC_COMPILER_CORE_MEMPLAN_STRIPES_H_
#define NPUC_COMPILER_CORE_MEMPLAN_STRIPES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler_core/ir/integer/command.h"
#include "compiler_core/memplan/plan.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {

// Commands in stripes of rows: of a chain of commands, each stripe computes some rows of the last
// result, with the rows of the results before it that these need. What lies between never exists
// whole, or lies over rows that are dead. Outputs are the same to the bit: each row is computed by
// the same command as before, from the same rows.

// Where a later stripe finds the rows of a result that it reads again.
enum class StripeKeep : uint8_t {
  kWhole,       // the result has a buffer of its full size, of which few rows are alive at a time
  kRecomputed,  // each stripe has a buffer of its own and computes them once more
  kCopied,      // the same, but they are copied from the buffer of the stripe before
};

struct StripedChain {
  size_t first = 0;  // commands [first, end) of the program
  size_t end = 0;
  int64_t units = 0;              // of the last command's result (ir/integer/pieces.h), a stripe
  bool upwards = false;           // from the last stripe to the first
  std::vector<StripeKeep> keeps;  // by command of the chain; the last one's result is kept whole
};

// Which commands write and read each buffer of a program.
class BufferUses {
 public:
  explicit BufferUses(const integer::Program& program);
  const std::vector<size_t>& writers(BufferId buffer) const { return writers_[Index(buffer)]; }
  const std::vector<size_t>& readers(BufferId buffer) const { return readers_[Index(buffer)]; }
  // True where something behind command `end` - 1 reads the buffer, the reader of the outputs as
  // well.
  bool IsNeededBehind(BufferId buffer, size_t end) const;

 private:
  static size_t Index(BufferId buffer) { return static_cast<size_t>(buffer.value()); }
  std::vector<std::vector<size_t>> writers_, readers_;
};

// The stripes of a chain: commands in place of the chain's, and buffers behind the program's; their
// numbers begin at `first_buffer`.
struct Stripes {
  std::vector<integer::Command> commands;
  std::vector<Buffer> buffers;
  int64_t count = 0;   // stripes
  int64_t copies = 0;  // commands that only copy rows
};
// A chain has at most this many pieces.
inline constexpr size_t kMaxPieces = 4096;
// Null where the chain cannot be cut so: a command that has no pieces, a buffer with several
// writers, a result that is needed behind the chain and not kept whole, too many pieces.
std::optional<Stripes> CutInStripes(const integer::Program& program, const BufferUses& uses,
                                    const StripedChain& chain, int32_t first_buffer);

// The goal of a search for stripes.
struct StripeGoal {
  // Bytes of slot data, the fewest cycles within these; 0: as few bytes as may be had for at most
  // kMoreCyclesPercent more cycles.
  int64_t limit_bytes = 0;
  int64_t alignment_bytes = 1;
  bool ports_in_data = false;
};
inline constexpr int64_t kMoreCyclesPercent = 10;

// No way to compute this program's rows takes fewer bytes of slot data: the inputs, the outputs,
// or what one row of one command reads and stores.
int64_t RowBound(const integer::Program& program, bool ports_in_data);

// Looks for the chains and stripes that reach the goal, within a budget of commands planned, never
// of time. program: not planned yet. `planned`: by PlanMemoryByRows in the best order without
// stripes, and `memory` what that gave; both stay where no stripes are better, else they are
// replaced by the striped program and its plan. Where no plan keeps to the limit: the smallest one
// that was found. memory.stripes says what was done, and what was not.
absl::Status PlanInStripes(const integer::Program& program, const CoreSpec& core,
                           const StripeGoal& goal, integer::Program& planned,
                           MemoryPlanResult& memory);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_MEMPLAN_STRIPES_H_
