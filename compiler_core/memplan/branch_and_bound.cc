#include <algorithm>
#include <limits>
#include <utility>

#include "compiler_core/memplan/placement.h"

namespace npuc {
namespace {

constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

// Every placement can be pushed down until each item lies at 0 or on another one that is alive with
// it, and the items of such a placement can be named in order of offset. So the search places one
// item after the other, at offsets that never fall, each directly on what lies below it.
class BranchAndBound {
 public:
  BranchAndBound(absl::Span<const PlacementItem> items, int64_t lower_bound, NodeBudget& budget,
                 Offsets& best)
      : items_(items), lower_bound_(lower_bound), budget_(budget), best_(best) {
    arena_ = ArenaOf(items, best);
    // Sections: what is alive changes for the worse only where an item begins.
    std::vector<int32_t> starts;
    for (const PlacementItem& item : items) starts.push_back(item.range.first);
    std::sort(starts.begin(), starts.end());
    starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
    skyline_.assign(starts.size(), 0);
    remaining_.assign(starts.size(), 0);
    lowest_.resize(starts.size());
    for (const PlacementItem& item : items) {
      const auto first = std::lower_bound(starts.begin(), starts.end(), item.range.first);
      const auto end = std::upper_bound(starts.begin(), starts.end(), item.range.last);
      sections_.emplace_back(first - starts.begin(), end - starts.begin());
      for (auto s = first; s != end; ++s) remaining_[s - starts.begin()] += item.size_bytes;
    }
    offsets_.assign(items.size(), -1);
    floors_.resize(items.size());
  }

  bool Run() {
    Place(0, 0, -1);
    return budget_.nodes >= 0 || arena_ == lower_bound_;
  }

 private:
  bool Done() const { return budget_.nodes < 0 || arena_ == lower_bound_; }

  // Places the items that are left, at `last_offset` or above; of those exactly there only ones
  // behind `last_item`, since their order does not matter. Recursion ends after all items.
  void Place(size_t placed, int64_t last_offset, int32_t last_item) {
    if (placed == items_.size()) {
      arena_ = ArenaOf(items_, offsets_);
      best_ = offsets_;
      return;
    }
    if (!CanBeat(last_offset)) return;
    // An item that fits below this height could be moved down there from wherever it ends up.
    int64_t ceiling = kNone;
    for (size_t i = 0; i < items_.size(); ++i) {
      if (offsets_[i] < 0) ceiling = std::min(ceiling, floors_[i] + items_[i].size_bytes);
    }
    std::vector<std::pair<int64_t, int32_t>> candidates;
    for (size_t i = 0; i < items_.size(); ++i) {
      const int32_t item = static_cast<int32_t>(i);
      if (offsets_[i] >= 0 || floors_[i] < last_offset || floors_[i] >= ceiling) continue;
      if (floors_[i] == last_offset && item < last_item) continue;
      candidates.emplace_back(floors_[i], item);
    }
    std::stable_sort(candidates.begin(), candidates.end(), [&](const auto& x, const auto& y) {
      return x.first != y.first ? x.first < y.first : AreaOf(x.second) > AreaOf(y.second);
    });
    for (const auto& [offset, item] : candidates) {
      if (!budget_.Take() || Done()) return;
      Try(placed, offset, item);
    }
  }

  int64_t AreaOf(int32_t item) const {
    return items_[item].size_bytes * (sections_[item].second - sections_[item].first);
  }

  void Try(size_t placed, int64_t offset, int32_t item) {
    const auto [first, end] = sections_[item];
    const std::vector<int64_t> below(skyline_.begin() + first, skyline_.begin() + end);
    for (int64_t s = first; s < end; ++s) {
      skyline_[s] = offset + items_[item].size_bytes;
      remaining_[s] -= items_[item].size_bytes;
    }
    offsets_[item] = offset;
    Place(placed + 1, offset, item);
    offsets_[item] = -1;
    for (int64_t s = first; s < end; ++s) remaining_[s] += items_[item].size_bytes;
    std::copy(below.begin(), below.end(), skyline_.begin() + first);
  }

  // Computes the floors of all items that are left, and says whether every section has room for
  // its own above its lowest one in an arena smaller than the best.
  bool CanBeat(int64_t last_offset) {
    std::fill(lowest_.begin(), lowest_.end(), kNone);
    for (size_t i = 0; i < items_.size(); ++i) {
      if (offsets_[i] >= 0) continue;
      const auto [first, end] = sections_[i];
      int64_t floor = 0;
      for (int64_t s = first; s < end; ++s) floor = std::max(floor, skyline_[s]);
      floors_[i] = floor;
      const int64_t above = std::max(floor, last_offset);
      for (int64_t s = first; s < end; ++s) lowest_[s] = std::min(lowest_[s], above);
    }
    for (size_t s = 0; s < lowest_.size(); ++s) {
      if (lowest_[s] != kNone && lowest_[s] + remaining_[s] >= arena_) return false;
    }
    return true;
  }

  const absl::Span<const PlacementItem> items_;
  const int64_t lower_bound_;
  NodeBudget& budget_;
  Offsets& best_;
  int64_t arena_ = 0;                                  // of best_
  std::vector<std::pair<int64_t, int64_t>> sections_;  // by item: [first, end)
  std::vector<int64_t> skyline_, remaining_, lowest_;  // by section
  Offsets offsets_;                                    // -1: not placed
  std::vector<int64_t> floors_;                        // of items that are not placed
};

}  // namespace

bool PlaceExactly(absl::Span<const PlacementItem> items, int64_t lower_bound, NodeBudget& budget,
                  Offsets& offsets) {
  return BranchAndBound(items, lower_bound, budget, offsets).Run();
}

}  // namespace npuc
