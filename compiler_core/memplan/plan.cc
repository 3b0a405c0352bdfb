#include "compiler_core/memplan/plan.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/rounding.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/cmd/access.h"
#include "compiler_core/ir/integer/access.h"
#include "compiler_core/memplan/owners.h"

namespace npuc {
namespace {

// The kData buffers that some command touches, and the items that stand for them.
struct Items {
  std::vector<int32_t> buffers;
  std::vector<PlacementItem> items;  // sizes rounded up to the alignment
};

Items ItemsOf(absl::Span<const Buffer> buffers, const std::vector<LiveRange>& ranges,
              int64_t alignment_bytes) {
  Items result;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& buffer = buffers[i];
    const int64_t size = RoundUp(buffer.size_bytes, alignment_bytes);
    if (buffer.slot != Slot::kData || ranges[i].empty() || size == 0) continue;
    result.buffers.push_back(static_cast<int32_t>(i));
    result.items.push_back({size, ranges[i]});
  }
  return result;
}

std::vector<int32_t> OrderOfFirstUse(absl::Span<const PlacementItem> items) {
  std::vector<int32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t x, int32_t y) {
    return items[x].range.first < items[y].range.first;
  });
  return order;
}

// For each item those that are alive with it. Programs of tens of thousands of commands have few
// such pairs; where there are too many to keep, there are none.
class Neighbours {
 public:
  explicit Neighbours(absl::Span<const PlacementItem> items) : of_(items.size()) {
    constexpr size_t kMaxPairs = 1 << 22;
    std::vector<int32_t> alive;
    size_t pairs = 0;
    for (const int32_t index : OrderOfFirstUse(items)) {
      std::erase_if(
          alive, [&](int32_t other) { return items[other].range.last < items[index].range.first; });
      pairs += alive.size();
      if (pairs > kMaxPairs) {
        of_ = {};
        is_known_ = false;
        return;
      }
      for (const int32_t other : alive) {
        of_[index].push_back(other);
        of_[other].push_back(index);
      }
      alive.push_back(index);
    }
  }

  bool is_known() const { return is_known_; }
  const std::vector<int32_t>& Of(int32_t index) const { return of_[index]; }

 private:
  std::vector<std::vector<int32_t>> of_;
  bool is_known_ = true;
};

// Where the smallest gap begins that holds so many bytes, or the end of all. `taken`: [begin, end),
// by their begins; they may overlap.
template <typename Taken>
int64_t SmallestGap(const Taken& taken, int64_t size_bytes) {
  int64_t best = -1;
  int64_t best_gap = std::numeric_limits<int64_t>::max();
  int64_t cursor = 0;
  for (const auto& [begin, end] : taken) {
    const int64_t gap = begin - cursor;
    if (gap >= size_bytes && gap < best_gap) {
      best = cursor;
      best_gap = gap;
    }
    cursor = std::max(cursor, end);
  }
  return best >= 0 ? best : cursor;
}

// Places the items in the given order, each in the smallest gap between the already placed items
// alive with it that holds it; returns the arena's size, or that of a part as soon as it is no
// smaller than `limit_bytes`. offsets is by position in `items`.
int64_t PlaceInOrder(absl::Span<const PlacementItem> items, const Neighbours& neighbours,
                     const std::vector<int32_t>& order, int64_t limit_bytes, Offsets& offsets) {
  std::vector<std::pair<int64_t, int64_t>> taken;  // [begin, end)
  std::vector<bool> placed(items.size(), false);
  int64_t arena = 0;
  for (const int32_t index : order) {
    const PlacementItem& item = items[index];
    taken.clear();
    for (const int32_t other : neighbours.Of(index)) {
      if (!placed[other]) continue;
      taken.emplace_back(offsets[other], offsets[other] + items[other].size_bytes);
    }
    // The order of items that begin together does not matter: the farthest end counts.
    std::sort(taken.begin(), taken.end(),
              [](const auto& x, const auto& y) { return x.first < y.first; });
    offsets[index] = SmallestGap(taken, item.size_bytes);
    arena = std::max(arena, offsets[index] + item.size_bytes);
    if (arena >= limit_bytes) break;
    placed[index] = true;
  }
  return arena;
}

// Places the items in the order of first use, in the smallest gap between the items that are alive
// then. Serves items that have too many neighbours to list.
int64_t PlaceByTime(absl::Span<const PlacementItem> items, Offsets& offsets) {
  std::map<int64_t, int64_t> taken;                // [begin, end) of what is alive
  std::multimap<int32_t, int64_t> begins_by_last;  // of these
  int64_t arena = 0;
  for (const int32_t index : OrderOfFirstUse(items)) {
    const PlacementItem& item = items[index];
    while (!begins_by_last.empty() && begins_by_last.begin()->first < item.range.first) {
      taken.erase(begins_by_last.begin()->second);
      begins_by_last.erase(begins_by_last.begin());
    }
    offsets[index] = SmallestGap(taken, item.size_bytes);
    taken.emplace(offsets[index], offsets[index] + item.size_bytes);
    begins_by_last.emplace(item.range.last, offsets[index]);
    arena = std::max(arena, offsets[index] + item.size_bytes);
  }
  return arena;
}

// The orders worth trying, the vendor-like one (by first use) first.
std::vector<std::vector<int32_t>> CandidateOrders(absl::Span<const PlacementItem> items) {
  const std::vector<int32_t> by_time = OrderOfFirstUse(items);
  const auto sorted = [&](auto key) {
    std::vector<int32_t> order = by_time;
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t x, int32_t y) { return key(items[x]) > key(items[y]); });
    return order;
  };
  const auto length = [](const PlacementItem& item) {
    return static_cast<int64_t>(item.range.last) - item.range.first + 1;
  };
  return {by_time, sorted([](const PlacementItem& item) { return item.size_bytes; }),
          sorted([&](const PlacementItem& item) { return item.size_bytes * length(item); }),
          sorted([&](const PlacementItem& item) { return length(item); })};
}

// Widths of the beam, and shares of the program beyond which an item counts as long: tried in this
// order. The narrow beam finds most placements that there are, the wide ones cost as many times
// more.
constexpr int kBeamWidths[] = {8, 32, 128};
constexpr int kLongShares[] = {16, 12, 32, 8, 0};
constexpr size_t kMaxOrderedItems = 4096;
constexpr size_t kMaxExactItems = 512;

class Searcher {
 public:
  // fall_back: as Search.
  Searcher(absl::Span<const PlacementItem> items, int64_t alignment_bytes, int64_t max_nodes,
           const std::function<PlacementResult()>& fall_back, PlacementResult& result)
      : fall_back_(fall_back),
        items_(items),
        alignment_(alignment_bytes),
        max_nodes_(max_nodes),
        result_(result) {}

  void Run() {
    MemoryPlanResult& plan = result_.plan;
    for (const int width : kBeamWidths) {
      if (TryBeams(plan.lower_bound_bytes, width, max_nodes_ / 2)) return;
    }
    PlacementResult begin = fall_back_();
    result_.offsets = std::move(begin.offsets);
    plan.arena_bytes = begin.plan.arena_bytes;
    Bisect();
    plan.method = PlanMethod::kSearchEnded;
    if (items_.size() > kMaxExactItems) return;
    // The cost of a node grows with the items; so fewer are allowed where there are many.
    const int64_t divisor = std::max<int64_t>(1, static_cast<int64_t>(items_.size()) / 32);
    NodeBudget budget{(max_nodes_ - plan.search_nodes) / divisor};
    const int64_t before = budget.nodes;
    if (PlaceExactly(items_, plan.lower_bound_bytes, budget, result_.offsets)) {
      plan.method = PlanMethod::kSearchOptimal;
    }
    plan.search_nodes += before - budget.nodes;
    plan.arena_bytes = ArenaOf(items_, result_.offsets);
  }

 private:
  // Takes a placement within `capacity` where the beam of one of the shares finds one before
  // `max_nodes` were used in all.
  bool TryBeams(int64_t capacity, int width, int64_t max_nodes) {
    MemoryPlanResult& plan = result_.plan;
    for (const int share : kLongShares) {
      NodeBudget budget{max_nodes - plan.search_nodes};
      if (budget.nodes <= 0) return false;
      const int64_t before = budget.nodes;
      std::optional<Offsets> found = PlaceByBeam(items_, capacity, width, share, budget);
      plan.search_nodes += before - budget.nodes;
      if (!found.has_value()) continue;
      result_.offsets = *std::move(found);
      plan.arena_bytes = ArenaOf(items_, result_.offsets);
      plan.method = PlanMethod::kSearchOptimal;  // where it meets the bound
      return true;
    }
    return false;
  }

  // Where the bound is out of the beam's reach: the smallest arena within it.
  void Bisect() {
    int64_t failed = result_.plan.lower_bound_bytes;
    while (result_.plan.arena_bytes - failed > alignment_) {
      const int64_t steps = (result_.plan.arena_bytes - failed) / alignment_;
      const int64_t capacity = failed + steps / 2 * alignment_;
      if (!TryBeams(capacity, kBeamWidths[0], max_nodes_ / 4 * 3)) failed = capacity;
    }
  }

  const std::function<PlacementResult()>& fall_back_;
  const absl::Span<const PlacementItem> items_;
  const int64_t alignment_;
  const int64_t max_nodes_;
  PlacementResult& result_;
};

}  // namespace

int64_t ArenaOf(absl::Span<const PlacementItem> items, const Offsets& offsets) {
  int64_t arena = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    arena = std::max(arena, offsets[i] + items[i].size_bytes);
  }
  return arena;
}

int64_t LivenessBound(absl::Span<const PlacementItem> items) {
  std::vector<std::pair<int32_t, int64_t>> changes;
  for (const PlacementItem& item : items) {
    changes.emplace_back(item.range.first, item.size_bytes);
    changes.emplace_back(item.range.last + 1, -item.size_bytes);
  }
  std::sort(changes.begin(), changes.end());  // what ends comes before what begins there
  int64_t alive = 0;
  int64_t most = 0;
  for (const auto& [time, bytes] : changes) {
    alive += bytes;
    most = std::max(most, alive);
  }
  return most;
}

absl::string_view NameOf(PlanMethod method) {
  constexpr absl::string_view kNames[] = {
      "greedy: meets the bound", "search: proven optimal",
      "search: budget ended",    "greedy: too many buffers for the search",
      "rows: proven optimal",    "rows: budget ended"};
  return kNames[static_cast<size_t>(method)];
}

namespace {

// Greedy placement by several orders. The items must outlive it.
class Greedy {
 public:
  explicit Greedy(absl::Span<const PlacementItem> items)
      : items_(items),
        bound_(LivenessBound(items)),
        neighbours_(items),
        orders_(CandidateOrders(items)) {}

  // The smallest placement of all orders.
  PlacementResult Smallest() { return Place(std::numeric_limits<int64_t>::max()); }
  // The placement of the first order that meets the bound. Where none does: an arena above it, and
  // no offsets, which is much less work.
  PlacementResult MeetBound() { return Place(bound_ + 1); }

 private:
  // A placement that takes as much as the limit is broken off.
  PlacementResult Place(int64_t limit_bytes) {
    PlacementResult result;
    result.plan.lower_bound_bytes = bound_;
    result.plan.arena_bytes = limit_bytes;
    if (!neighbours_.is_known()) {
      result.offsets.resize(items_.size());
      result.plan.arena_bytes = PlaceByTime(items_, result.offsets);
      return result;
    }
    for (const std::vector<int32_t>& order : orders_) {
      Offsets offsets(items_.size());
      const int64_t arena =
          PlaceInOrder(items_, neighbours_, order, result.plan.arena_bytes, offsets);
      if (arena >= result.plan.arena_bytes) continue;  // of equal ones the first order's stays
      result.plan.arena_bytes = arena;
      result.offsets = std::move(offsets);
      if (arena == bound_) break;
    }
    return result;
  }

  const absl::Span<const PlacementItem> items_;
  const int64_t bound_;
  const Neighbours neighbours_;
  const std::vector<std::vector<int32_t>> orders_;
};

// fall_back: gives the placement to begin with where no beam meets the bound.
void Search(absl::Span<const PlacementItem> items, int64_t alignment_bytes, int64_t max_nodes,
            const std::function<PlacementResult()>& fall_back, PlacementResult& result) {
  if (result.plan.arena_bytes == result.plan.lower_bound_bytes) return;
  if (items.size() > kMaxOrderedItems) {
    result = fall_back();
    result.plan.method = PlanMethod::kTooLarge;
    return;
  }
  Searcher(items, alignment_bytes, max_nodes, fall_back, result).Run();
}

}  // namespace

PlacementResult PlaceGreedily(absl::Span<const PlacementItem> items) {
  return Greedy(items).Smallest();
}

void SearchPlacement(absl::Span<const PlacementItem> items, int64_t alignment_bytes,
                     int64_t max_nodes, PlacementResult& result) {
  const PlacementResult begin = result;
  Search(
      items, alignment_bytes, max_nodes, [&] { return begin; }, result);
}

PlacementResult Place(absl::Span<const PlacementItem> items, int64_t alignment_bytes,
                      int64_t max_nodes) {
  Greedy greedy(items);
  PlacementResult result = greedy.MeetBound();
  Search(
      items, alignment_bytes, max_nodes, [&] { return greedy.Smallest(); }, result);
  return result;
}

std::vector<LiveRange> LiveRangesOf(const CommandView& view) {
  std::vector<LiveRange> ranges(view.buffers.size(), {std::numeric_limits<int32_t>::max(), -1});
  for (size_t i = 0; i < view.command_count; ++i) {
    for (const Access& access : view.accesses(i)) {
      LiveRange& range = ranges[access.operand.buffer.value()];
      range.first = std::min(range.first, static_cast<int32_t>(i));
      range.last = std::max(range.last, static_cast<int32_t>(i));
    }
  }
  return ranges;
}

MemoryPlanResult PlanMemory(const CommandView& view, int64_t alignment_bytes) {
  const std::vector<LiveRange> ranges = LiveRangesOf(view);
  const Items items = ItemsOf(view.buffers, ranges, alignment_bytes);
  const PlacementResult result = Place(items.items, alignment_bytes, kPlacementNodes);
  for (Buffer& buffer : view.buffers) {
    if (buffer.slot == Slot::kData) buffer.offset_bytes = 0;
  }
  for (size_t i = 0; i < items.buffers.size(); ++i) {
    view.buffers[items.buffers[i]].offset_bytes = result.offsets[i];
  }
  return result.plan;
}

absl::Status CheckMemoryPlan(const CommandView& view, int64_t data_bytes) {
  Owners owners;
  for (size_t i = 0; i < view.command_count; ++i) {
    for (const Access& access : view.accesses(i)) {
      const int32_t id = access.operand.buffer.value();
      const Buffer& buffer = view.buffers[id];
      if (buffer.slot != Slot::kData) continue;
      const int64_t begin = buffer.offset_bytes + access.operand.offset_bytes;
      const int64_t size = access.size_bytes == Access::kUnknown
                               ? buffer.size_bytes - access.operand.offset_bytes
                               : access.size_bytes;
      if (buffer.offset_bytes < 0 || begin < 0 || size < 0 || begin + size > data_bytes) {
        return absl::InternalError(absl::StrCat("command ", i, " of node '",
                                                Printable(view.node(i)),
                                                "' reaches outside data_content"));
      }
      if (access.writes) {
        owners.Take(begin, begin + size, id);
        continue;
      }
      const Owners::Stranger stranger = owners.FindStranger(begin, begin + size, id);
      if (stranger.owner == Owners::kNobody) continue;
      return absl::InternalError(absl::StrCat(
          "command ", i, " of node '", Printable(view.node(i)), "' reads byte ", stranger.at,
          " of buffer ", id, ", which buffer ", stranger.owner, " has overwritten"));
    }
  }
  return absl::OkStatus();
}

namespace {

// Calls use(view) with what the plan sees of a program of either family.
template <typename P, typename Use>
auto WithView(const P& program, std::vector<Buffer>& buffers, const Use& use) {
  const auto accesses = [&program](size_t i) {
    if constexpr (std::is_same_v<P, Program>) {
      return AccessesOf(program.commands[i]);
    } else {
      return integer::AccessesOf(program.commands[i].body);
    }
  };
  const auto node = [&program](size_t i) -> absl::string_view {
    if constexpr (std::is_same_v<P, Program>) {
      return program.commands[i].node;
    } else {
      return program.commands[i].layer;
    }
  };
  return use(CommandView{absl::MakeSpan(buffers), program.commands.size(), accesses, node});
}

template <typename P>
MemoryPlanResult PlanProgram(P& program, int64_t alignment_bytes) {
  const MemoryPlanResult result = WithView(
      program, program.buffers,
      [alignment_bytes](const CommandView& view) { return PlanMemory(view, alignment_bytes); });
  program.data_bytes = result.arena_bytes;
  return result;
}

template <typename P>
std::vector<LiveRange> RangesOf(const P& program) {
  std::vector<Buffer> buffers = program.buffers;
  return WithView(program, buffers, [](const CommandView& view) { return LiveRangesOf(view); });
}

}  // namespace

std::vector<LiveRange> LiveRangesOf(const Program& program) { return RangesOf(program); }

std::vector<LiveRange> LiveRangesOf(const integer::Program& program) { return RangesOf(program); }

absl::StatusOr<MemoryPlanResult> PlanMemory(Program& program, int64_t alignment_bytes) {
  return PlanProgram(program, alignment_bytes);
}

absl::StatusOr<MemoryPlanResult> PlanMemory(integer::Program& program, int64_t alignment_bytes) {
  return PlanProgram(program, alignment_bytes);
}

absl::Status CheckMemoryPlan(const Program& program) {
  std::vector<Buffer> buffers = program.buffers;
  return WithView(program, buffers, [&program](const CommandView& view) {
    return CheckMemoryPlan(view, program.data_bytes);
  });
}

}  // namespace npuc
