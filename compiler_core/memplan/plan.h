#ifndef NPUC_COMPILER_CORE_MEMPLAN_PLAN_H_
#define NPUC_COMPILER_CORE_MEMPLAN_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler_core/ir/cmd/command.h"

namespace npuc {

// The commands during which a buffer's contents matter: from the first that touches it to the last,
// both inclusive. first > last: never touched.
struct LiveRange {
  int32_t first = 0;
  int32_t last = -1;
  bool empty() const { return first > last; }
  bool Overlaps(const LiveRange& other) const {
    return !empty() && !other.empty() && first <= other.last && other.first <= last;
  }
};

// By buffer id. Pure.
std::vector<LiveRange> LiveRangesOf(const Program& program);

struct MemoryPlanResult {
  int64_t arena_bytes = 0;        // size of data_content
  int64_t lower_bound_bytes = 0;  // most bytes alive at once: no plan can be smaller
};

// Gives every kData buffer an offset within data_content, a multiple of `alignment_bytes`, such
// that buffers alive together never overlap; sets program.data_bytes. Greedy best fit under several
// orders, the smallest arena wins; deterministic. Buffers that no command touches get offset 0.
absl::StatusOr<MemoryPlanResult> PlanMemory(Program& program, int64_t alignment_bytes);

// Proves a plan by another way than it was made: walks the commands with one owner per byte of
// data_content, and requires that whatever a command reads of a buffer still belongs to that
// buffer. INTERNAL names the command and both buffers.
absl::Status CheckMemoryPlan(const Program& program);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_MEMPLAN_PLAN_H_
