#include <algorithm>
#include <iterator>
#include <utility>

#include "compiler_core/memplan/placement.h"

namespace npuc {
namespace {

struct Placed {
  int64_t begin = 0;
  int64_t end = 0;
  int32_t item = -1;
  bool operator<(const Placed& other) const { return begin < other.begin; }
  bool operator==(const Placed&) const = default;
};

// A partial placement: what is alive of it, by offset, and how it came about.
struct BeamState {
  std::vector<Placed> live;
  int32_t parent = -1;  // in the level before
  int64_t offset = -1;  // of the level's item
};

// One more item put into a state; its live list is written out only where it stays in the beam.
struct Candidate {
  double score = 0;  // sum of the squares of the gaps: few large ones score higher
  int32_t parent = -1;
  int64_t offset = -1;
};

class Beam {
 public:
  Beam(absl::Span<const PlacementItem> items, int64_t capacity, int width, NodeBudget& budget)
      : items_(items), capacity_(capacity), width_(width), budget_(budget) {}

  std::optional<Offsets> Run(int long_share) {
    offsets_.assign(items_.size(), -1);
    if (!StackLong(long_share)) return std::nullopt;
    std::vector<int32_t> order;
    for (size_t i = 0; i < items_.size(); ++i) {
      if (offsets_[i] < 0) order.push_back(static_cast<int32_t>(i));
    }
    std::stable_sort(order.begin(), order.end(), [&](int32_t x, int32_t y) {
      const PlacementItem& a = items_[x];
      const PlacementItem& b = items_[y];
      return a.range.first != b.range.first ? a.range.first < b.range.first
                                            : a.size_bytes > b.size_bytes;
    });
    std::vector<BeamState> states(1);
    std::vector<BeamState> next;
    for (const int32_t item : order) {
      Extend(states, item, next);
      if (next.empty()) return std::nullopt;
      std::swap(states, next);
      std::vector<std::pair<int32_t, int64_t>>& level = levels_.emplace_back();
      for (const BeamState& state : states) level.emplace_back(state.parent, state.offset);
    }
    int32_t at = 0;
    for (size_t i = order.size(); i-- > 0;) {
      offsets_[order[i]] = levels_[i][at].second;
      at = levels_[i][at].first;
    }
    return offsets_;
  }

 private:
  // Places what lives long; false where it does not fit.
  bool StackLong(int long_share) {
    if (long_share == 0) return true;
    int64_t total = 0;
    for (const PlacementItem& item : items_) {
      total = std::max<int64_t>(total, int64_t{item.range.last} + 1);
    }
    const auto length = [&](int32_t i) {
      return int64_t{items_[i].range.last} - items_[i].range.first + 1;
    };
    for (size_t i = 0; i < items_.size(); ++i) {
      const int32_t item = static_cast<int32_t>(i);
      if (length(item) * long_share > total) long_.push_back(item);
    }
    std::stable_sort(long_.begin(), long_.end(),
                     [&](int32_t x, int32_t y) { return length(x) > length(y); });
    for (const int32_t item : long_) {
      int64_t cursor = 0;
      for (const Placed& placed : LongAliveWith(item)) {
        if (placed.begin - cursor >= items_[item].size_bytes) break;
        cursor = std::max(cursor, placed.end);
      }
      offsets_[item] = cursor;
      if (cursor + items_[item].size_bytes > capacity_) return false;
    }
    // All are placed: from here on LongAliveWith has only to leave some out.
    std::stable_sort(long_.begin(), long_.end(),
                     [&](int32_t x, int32_t y) { return offsets_[x] < offsets_[y]; });
    return true;
  }

  // The stacked items that are placed and alive with an item, by offset.
  std::vector<Placed> LongAliveWith(int32_t item) const {
    std::vector<Placed> result;
    for (const int32_t other : long_) {
      if (offsets_[other] < 0 || !items_[other].range.Overlaps(items_[item].range)) continue;
      result.push_back({offsets_[other], offsets_[other] + items_[other].size_bytes, other});
    }
    if (!std::is_sorted(result.begin(), result.end())) std::sort(result.begin(), result.end());
    return result;
  }

  bool AliveAt(const Placed& placed, int32_t time) const {
    return items_[placed.item].range.last >= time;
  }

  // The best `width` states with the item placed as well; none where the budget ended.
  void Extend(std::vector<BeamState>& states, int32_t item, std::vector<BeamState>& next) {
    for (BeamState& state : next) spare_.push_back(std::move(state.live));
    next.clear();
    const std::vector<Placed> fixed = LongAliveWith(item);
    const int32_t now = items_[item].range.first;
    candidates_.clear();
    for (size_t i = 0; i < states.size(); ++i) {
      std::erase_if(states[i].live, [&](const Placed& placed) { return !AliveAt(placed, now); });
      taken_.resize(states[i].live.size() + fixed.size());
      std::merge(states[i].live.begin(), states[i].live.end(), fixed.begin(), fixed.end(),
                 taken_.begin());
      AddCandidates(taken_, item, static_cast<int32_t>(i), candidates_);
      if (budget_.IsOver()) return;
    }
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Candidate& x, const Candidate& y) { return x.score > y.score; });
    KeepDistinct(states, item, next);
  }

  void AddCandidates(const std::vector<Placed>& taken, int32_t item, int32_t parent,
                     std::vector<Candidate>& candidates) {
    const int64_t size = items_[item].size_bytes;
    const auto square = [](int64_t gap) {
      return static_cast<double>(gap) * static_cast<double>(gap);
    };
    const size_t first = candidates.size();
    double total = 0;
    int64_t cursor = 0;
    const auto gap_until = [&](int64_t end) {
      const int64_t gap = end - cursor;
      if (gap <= 0) return;
      total += square(gap);
      if (gap < size) return;
      // At either end the gap that is left is the same.
      const double change = square(gap - size) - square(gap);
      candidates.push_back({change, parent, cursor});
      if (gap > size) candidates.push_back({change, parent, end - size});
    };
    for (const Placed& placed : taken) {
      gap_until(placed.begin);
      cursor = std::max(cursor, placed.end);
    }
    gap_until(capacity_);
    for (size_t i = first; i < candidates.size(); ++i) candidates[i].score += total;
    budget_.Take(static_cast<int64_t>(candidates.size() - first));
  }

  // The candidates written out, in order, without those that leave the same items at the same
  // places, until there are enough.
  void KeepDistinct(const std::vector<BeamState>& states, int32_t item,
                    std::vector<BeamState>& kept) {
    seen_.clear();
    for (const Candidate& candidate : candidates_) {
      const std::vector<Placed>& live = states[candidate.parent].live;
      const Placed added{candidate.offset, candidate.offset + items_[item].size_bytes, item};
      const auto at = std::upper_bound(live.begin(), live.end(), added);
      if (spare_.empty()) spare_.emplace_back();
      std::vector<Placed>& written = spare_.back();
      written.resize(live.size() + 1);
      const auto to = std::copy(live.begin(), at, written.begin());
      *to = added;
      std::copy(at, live.end(), to + 1);
      const size_t hash = HashOf(written);
      bool is_new = true;
      for (size_t i = 0; i < kept.size() && is_new; ++i) {
        is_new = seen_[i] != hash || kept[i].live != written;
      }
      if (!is_new) continue;
      seen_.push_back(hash);
      kept.push_back({std::move(written), candidate.parent, candidate.offset});
      spare_.pop_back();
      if (static_cast<int>(kept.size()) == width_) break;
    }
  }

  static size_t HashOf(const std::vector<Placed>& live) {
    size_t hash = 0;
    for (const Placed& placed : live) {
      constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 over the golden ratio
      const uint64_t key = static_cast<uint64_t>(placed.begin) << 16 ^ placed.item;
      hash = (hash ^ key) * kOdd;
    }
    return hash;
  }

  const absl::Span<const PlacementItem> items_;
  const int64_t capacity_;
  const int width_;
  NodeBudget& budget_;
  std::vector<int32_t> long_;
  Offsets offsets_;
  std::vector<std::vector<std::pair<int32_t, int64_t>>> levels_;  // parent and offset
  // Of one level, kept for their memory.
  std::vector<Candidate> candidates_;
  std::vector<Placed> taken_;
  std::vector<std::vector<Placed>> spare_;  // live lists of states that are no more
  std::vector<size_t> seen_;                // by kept state: a hash of its live list
};

}  // namespace

std::optional<Offsets> PlaceByBeam(absl::Span<const PlacementItem> items, int64_t capacity,
                                   int width, int long_share, NodeBudget& budget) {
  return Beam(items, capacity, width, budget).Run(long_share);
}

}  // namespace npuc
