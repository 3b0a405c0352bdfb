#ifndef NPUC_COMPILER_CORE_MEMPLAN_ORDER_H_
#define NPUC_COMPILER_CORE_MEMPLAN_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compiler_core/memplan/plan.h"

namespace npuc {

// An order of a program's commands that computes the same.
struct CommandOrder {
  std::vector<size_t> commands;  // by their indices in the program as it is
  // The most bytes of whole buffers that are alive between two layers.
  int64_t peak_bytes = 0;
  // In the program as it is. Where both are equal, `commands` is the order as it is.
  int64_t given_peak_bytes = 0;
  bool is_optimal = false;  // no order has a smaller peak_bytes
  int64_t nodes = 0;        // orders begun, by the set of layers that are done
};

// The rules of an order, beside the dependences of the commands.
struct OrderRules {
  bool ports_in_data = false;  // as PlanMemoryByRows has it; else ports take no memory
  bool last_stays = false;     // the last layer's commands come last
  // By buffer: another one whose memory it may lie over, as StatesUnderOutputs has it; -1: none.
  std::vector<int32_t> lies_over = {};
};

// Looks for the order in which the fewest bytes are alive. The commands of a layer (view.node) that
// follow each other stay together; commands that touch the same bytes, one of them to write, keep
// their order. Best-first search over the sets of layers that are done, which finds the best order
// and proves it within `max_nodes`; beyond, the best of a beam search. Counts nodes, never time.
// Programs of more than kMaxOrderedLayers layers stay as they are.
inline constexpr size_t kMaxOrderedLayers = 1024;
inline constexpr int64_t kOrderNodes = 1'000;
CommandOrder OrderForMemory(const CommandView& view, const OrderRules& rules,
                            int64_t max_nodes = kOrderNodes);

// Plans the commands as they are and, where another order may need less memory, in that order, too;
// the smaller plan stays, and with it the program's order. The first one by PlanMemory, the second
// one by PlanMemoryByRows.
absl::StatusOr<MemoryPlanResult> PlanInBestOrder(Program& program, int64_t alignment_bytes);
absl::StatusOr<MemoryPlanResult> PlanInBestOrder(integer::Program& program, int64_t alignment_bytes,
                                                 bool ports_in_data);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_MEMPLAN_ORDER_H_
