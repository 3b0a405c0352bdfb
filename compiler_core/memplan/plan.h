#ifndef NPUC_COMPILER_CORE_MEMPLAN_PLAN_H_
#define NPUC_COMPILER_CORE_MEMPLAN_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/ir/cmd/access.h"
#include "compiler_core/ir/cmd/command.h"
#include "compiler_core/ir/integer/command.h"
#include "compiler_core/ir/integer/steps.h"
#include "compiler_core/memplan/placement.h"

namespace npuc {

// What a plan sees of a program, whatever its commands are. Views; valid during a call.
struct CommandView {
  absl::Span<Buffer> buffers;
  size_t command_count = 0;
  absl::FunctionRef<std::vector<Access>(size_t command)> accesses;
  absl::FunctionRef<absl::string_view(size_t command)> node;  // that it belongs to, for messages
};

// By buffer id. Pure.
std::vector<LiveRange> LiveRangesOf(const CommandView& view);
std::vector<LiveRange> LiveRangesOf(const Program& program);
std::vector<LiveRange> LiveRangesOf(const integer::Program& program);

// How the placement was found, and what is known of it.
enum class PlanMethod : uint8_t {
  kGreedy,         // by greedy placement, which meets the liveness bound
  kSearchOptimal,  // by search; no placement is smaller
  kSearchEnded,    // the smallest found within the budget of nodes; there may be a smaller one
  kTooLarge,       // by greedy placement alone: too many buffers for the search
  kRowsOptimal,    // by rows; no placement is smaller
  kRowsEnded,      // by rows; there may be a smaller one
};
// "greedy: meets the bound", "search: proven optimal", "search: budget ended" ...
absl::string_view NameOf(PlanMethod method);

// The outcome of a search for stripes of rows (stripes.h), for people.
struct StripeReport {
  struct Chain {
    std::string first_layer, last_layer;
    int64_t commands = 0;  // before
    int64_t stripes = 0;
    int64_t pieces = 0;  // commands that compute
    int64_t copies = 0;  // commands that copy rows for the next stripe
    bool operator==(const Chain&) const = default;
  };
  std::vector<Chain> chains;
  int64_t arena_before_bytes = 0;
  int64_t arena_bytes = 0;
  int64_t cycles_before = 0;
  int64_t cycles = 0;
  int64_t macs_before = 0;
  int64_t macs = 0;
  int64_t nodes = 0;  // commands planned by the search
  bool budget_ended = false;
};

struct MemoryPlanResult {
  int64_t arena_bytes = 0;        // size of data_content
  int64_t lower_bound_bytes = 0;  // most bytes alive at once: no plan can be smaller
  PlanMethod method = PlanMethod::kGreedy;
  int64_t search_nodes = 0;   // items tried at an offset; 0 without a search
  bool is_reordered = false;  // the commands are in another order than the model's (order.h)
  // The most bytes of whole buffers alive between two layers, in the best order; 0 where
  // that is not known.
  int64_t order_bound_bytes = 0;
  std::optional<StripeReport> stripes = std::nullopt;  // of a search for stripes
};

// Gives every kData buffer an offset within data_content, a multiple of `alignment_bytes`, such
// that buffers alive together never overlap; sets program.data_bytes. Greedy best fit under several
// orders, the smallest arena wins, the first of equal ones; where that is above the liveness bound,
// SearchPlacement. Deterministic. Buffers that no
// command touches get offset 0.
absl::StatusOr<MemoryPlanResult> PlanMemory(Program& program, int64_t alignment_bytes);
absl::StatusOr<MemoryPlanResult> PlanMemory(integer::Program& program, int64_t alignment_bytes);
MemoryPlanResult PlanMemory(const CommandView& view, int64_t alignment_bytes);

// As PlanMemory, but a command's result may lie over what no later step of it reads of an operand
// (ir/integer/steps.h): sets the commands' directions, too. lower_bound_bytes is the most bytes
// alive at once, counted by steps. ports_in_data: the inputs and the outputs lie in slot kData with
// all other buffers, which may reuse the inputs' bytes when these are read no more, and the
// outputs' before these are stored. Where an output is a state, the two do not overlap, so that
// it can be copied to its input.
absl::StatusOr<MemoryPlanResult> PlanMemoryByRows(integer::Program& program,
                                                  int64_t alignment_bytes, bool ports_in_data);

// Bytes of each buffer, by its number: stored before the first command of a part of a program, and
// needed behind the last one.
struct RowBorders {
  std::vector<integer::ByteRange> stored;
  std::vector<integer::ByteRange> needed;
};
// The bytes that a few commands of a program take by rows, with all that others have stored and
// will read. max_nodes: of the placement. Null: the part is too large, or is_worth_it says false of
// the most bytes alive at once.
std::optional<int64_t> ArenaOfPart(const integer::Program& part, const RowBorders& borders,
                                   int64_t alignment_bytes, bool ports_in_data, int64_t max_nodes,
                                   absl::FunctionRef<bool(int64_t bound_bytes)> is_worth_it);

// What PlanMemory does, without a program.
struct PlacementResult {
  Offsets offsets;
  MemoryPlanResult plan;
};
inline constexpr int64_t kPlacementNodes = 200'000;
PlacementResult PlaceGreedily(absl::Span<const PlacementItem> items);
// Looks for a smaller placement than the one given: beam searches for one that meets the bound,
// then for ever smaller ones, then branch and bound. Sizes and offsets must be multiples of
// `alignment_bytes`.
void SearchPlacement(absl::Span<const PlacementItem> items, int64_t alignment_bytes,
                     int64_t max_nodes, PlacementResult& result);
// Both, one after the other.
PlacementResult Place(absl::Span<const PlacementItem> items, int64_t alignment_bytes,
                      int64_t max_nodes);

// Proves a plan by another way than it was made: walks the commands with one owner per byte of
// data_content, and requires that whatever a command reads of a buffer still belongs to that
// buffer. Commands of the integer cores are walked step by step, and a step's results take their
// bytes before its operands are read. INTERNAL names the command and both buffers.
absl::Status CheckMemoryPlan(const Program& program);
absl::Status CheckMemoryPlan(const integer::Program& program);
absl::Status CheckMemoryPlan(const CommandView& view, int64_t data_bytes);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_MEMPLAN_PLAN_H_
