#ifndef NPUC_COMPILER_CORE_MEMPLAN_PLACEMENT_H_
#define NPUC_COMPILER_CORE_MEMPLAN_PLACEMENT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"

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

// What has to lie somewhere: items alive together must not overlap. Sizes are positive.
struct PlacementItem {
  int64_t size_bytes = 0;
  LiveRange range;
};

// By position in the items; all bounded above by what the function was asked to keep to.
using Offsets = std::vector<int64_t>;

// Counts down the nodes of a search: one node is one item tried at one offset. Counting nodes and
// never time keeps plans the same on every machine.
struct NodeBudget {
  int64_t nodes = 0;
  bool Take(int64_t count = 1) {
    nodes -= count;
    return nodes >= 0;
  }
  bool IsOver() const { return nodes < 0; }
};

int64_t ArenaOf(absl::Span<const PlacementItem> items, const Offsets& offsets);

// Most bytes alive at once: no placement is smaller.
int64_t LivenessBound(absl::Span<const PlacementItem> items);

// A placement within `capacity` bytes, or null. Beam search: items in order of first use, each at
// the lower and the upper end of every gap that holds it; of all partial placements the `width`
// least fragmented ones go on. Items that live longer than 1/`long_share` of the program are
// stacked beforehand, longest at the bottom (0: none), since what they leave free should stay in
// one piece. Null says nothing about whether there is one.
std::optional<Offsets> PlaceByBeam(absl::Span<const PlacementItem> items, int64_t capacity,
                                   int width, int long_share, NodeBudget& budget);

// Branch and bound over all placements: makes `offsets` the smallest one, and returns true where
// that is proven; false where the budget ended first, then `offsets` is the best one found.
// Takes items^2 time a node at worst: for up to a few hundred items.
bool PlaceExactly(absl::Span<const PlacementItem> items, int64_t lower_bound, NodeBudget& budget,
                  Offsets& offsets);

// The least distance of two items: item `other` and the one that has this in its list. It
// begins `above` bytes or more above the other's begin, or `below` bytes or more below it.
// 0 <= above <= the other's size, 0 <= below <= its own.
struct Apart {
  int32_t other = -1;
  int64_t above = 0;
  int64_t below = 0;
};
// By item; both items of a pair have it. Those without a pair may overlap.
using Distances = std::vector<std::vector<Apart>>;

// A placement that keeps distances: several greedy orders, then exchanges in the best order, then
// branch and bound over all placements. True where none is smaller, which the lower bound or the
// whole search shows; else the budget ended.
bool PlaceByDistances(absl::Span<const PlacementItem> items, const Distances& distances,
                      int64_t lower_bound, NodeBudget& budget, Offsets& offsets);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_MEMPLAN_PLACEMENT_H_
