#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "compiler_core/memplan/placement.h"

namespace npuc {
namespace {

using Order = std::vector<int32_t>;

constexpr int64_t kNoArena = std::numeric_limits<int64_t>::max();
// More items are placed by orders alone: a node of the search takes their square of time.
constexpr size_t kMaxSearchedItems = 256;

class DistancePlacer {
 public:
  DistancePlacer(absl::Span<const PlacementItem> items, const Distances& distances,
                 int64_t lower_bound, NodeBudget& budget, Offsets& best)
      : items_(items),
        distances_(distances),
        lower_bound_(lower_bound),
        budget_(budget),
        best_(best),
        offsets_(items.size(), -1),
        floors_(items.size(), 0) {}

  bool Run() {
    Order order = TryOrders();
    if (arena_ > lower_bound_) TryExchanges(order);
    if (arena_ == lower_bound_) return true;
    if (items_.size() > kMaxSearchedItems || budget_.IsOver()) return false;
    std::fill(offsets_.begin(), offsets_.end(), -1);
    Search(0, 0);
    return !budget_.IsOver() || arena_ == lower_bound_;
  }

 private:
  // Places items one after the other, each as low as those before it allow.
  int64_t PlaceInOrder(const Order& order) {
    std::fill(offsets_.begin(), offsets_.end(), -1);
    int64_t arena = 0;
    for (const int32_t item : order) {
      taken_.clear();
      for (const Apart& apart : distances_[item]) {
        const int64_t at = offsets_[apart.other];
        if (at >= 0) taken_.emplace_back(at - apart.below, at + apart.above);
      }
      std::sort(taken_.begin(), taken_.end());
      int64_t lowest = 0;
      for (const auto& [behind, from] : taken_) {
        if (lowest > behind) lowest = std::max(lowest, from);
      }
      offsets_[item] = lowest;
      arena = std::max(arena, lowest + items_[item].size_bytes);
      budget_.Take();
    }
    if (best_.empty() || arena < arena_) {
      arena_ = arena;
      best_ = offsets_;
    }
    return arena;
  }

  // The best of the orders by time, size, area and length.
  Order TryOrders() {
    Order by_time(items_.size());
    std::iota(by_time.begin(), by_time.end(), 0);
    std::stable_sort(by_time.begin(), by_time.end(), [&](int32_t x, int32_t y) {
      return items_[x].range.first < items_[y].range.first;
    });
    const auto sorted = [&](auto key) {
      Order order = by_time;
      std::stable_sort(order.begin(), order.end(),
                       [&](int32_t x, int32_t y) { return key(items_[x]) > key(items_[y]); });
      return order;
    };
    const auto length = [](const PlacementItem& item) {
      return int64_t{item.range.last} - item.range.first + 1;
    };
    const std::vector<Order> orders = {
        by_time, sorted([](const PlacementItem& item) { return item.size_bytes; }),
        sorted([&](const PlacementItem& item) { return item.size_bytes * length(item); }),
        sorted(length)};
    Order best;
    for (const Order& order : orders) {
      const int64_t before = best_.empty() ? kNoArena : arena_;
      if (PlaceInOrder(order) < before) best = order;
      if (arena_ == lower_bound_) break;
    }
    return best;
  }

  // Exchanges two items of the order, and keeps what does not make the arena larger.
  void TryExchanges(Order& order) {
    const size_t count = order.size();
    if (count < 2) return;
    int64_t current = arena_;
    uint64_t random = 1;
    const auto next = [&random, count] {
      random = random * 6364136223846793005u + 1442695040888963407u;  // Knuth's MMIX generator
      return static_cast<size_t>((random >> 33) % count);
    };
    const int64_t until = budget_.nodes / 2;
    while (arena_ > lower_bound_ && budget_.nodes > until) {
      const size_t x = next();
      const size_t y = next();
      std::swap(order[x], order[y]);
      const int64_t arena = PlaceInOrder(order);
      if (arena <= current) {
        current = arena;
      } else {
        std::swap(order[x], order[y]);
      }
    }
  }

  // Places the items that are left, at `last_offset` or above. Every placement can be pushed down
  // until each item lies at 0 or as near to a lower one as their distance allows, and its items can
  // be named from the lowest up; so this finds the smallest. Recursion ends after all items.
  void Search(size_t placed, int64_t last_offset) {
    if (placed == items_.size()) {
      arena_ = ArenaOf(items_, offsets_);
      best_ = offsets_;
      return;
    }
    int64_t ceiling = kNoArena;  // an item that ends below could be moved down there afterwards
    for (size_t i = 0; i < items_.size(); ++i) {
      if (offsets_[i] >= 0) continue;
      int64_t floor = 0;
      for (const Apart& apart : distances_[i]) {
        if (offsets_[apart.other] >= 0)
          floor = std::max(floor, offsets_[apart.other] + apart.above);
      }
      floors_[i] = floor;
      if (std::max(floor, last_offset) + items_[i].size_bytes >= arena_) return;
      ceiling = std::min(ceiling, floor + items_[i].size_bytes);
    }
    std::vector<std::pair<int64_t, int32_t>> candidates;
    for (size_t i = 0; i < items_.size(); ++i) {
      if (offsets_[i] >= 0 || floors_[i] < last_offset || floors_[i] >= ceiling) continue;
      candidates.emplace_back(floors_[i], static_cast<int32_t>(i));
    }
    std::stable_sort(candidates.begin(), candidates.end(), [&](const auto& x, const auto& y) {
      return x.first != y.first ? x.first < y.first
                                : items_[x.second].size_bytes > items_[y.second].size_bytes;
    });
    for (const auto& [offset, item] : candidates) {
      if (!budget_.Take() || arena_ == lower_bound_) return;
      offsets_[item] = offset;
      Search(placed + 1, offset);
      offsets_[item] = -1;
    }
  }

  const absl::Span<const PlacementItem> items_;
  const Distances& distances_;
  const int64_t lower_bound_;
  NodeBudget& budget_;
  Offsets& best_;
  int64_t arena_ = 0;  // of best_
  Offsets offsets_;    // -1: not placed
  std::vector<int64_t> floors_;
  std::vector<std::pair<int64_t, int64_t>> taken_;  // offsets behind the first and below the second
};

}  // namespace

bool PlaceByDistances(absl::Span<const PlacementItem> items, const Distances& distances,
                      int64_t lower_bound, NodeBudget& budget, Offsets& offsets) {
  offsets.clear();
  if (items.empty()) return true;
  return DistancePlacer(items, distances, lower_bound, budget, offsets).Run();
}

}  // namespace npuc
