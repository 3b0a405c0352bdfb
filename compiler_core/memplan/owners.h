#ifndef NPUC_COMPILER_CORE_MEMPLAN_OWNERS_H_
#define NPUC_COMPILER_CORE_MEMPLAN_OWNERS_H_

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

namespace npuc {

// Which buffer wrote each byte last, as stretches: what a check by bytes would find, at the cost of
// the commands instead of the bytes.
class Owners {
 public:
  static constexpr int32_t kNobody = -1;
  struct Stranger {
    int64_t at = 0;
    int32_t owner = kNobody;
  };

  void Take(int64_t begin, int64_t end, int32_t owner) {
    if (begin >= end) return;
    auto it = Split(begin);
    // A neighbour of the same owner grows, so that commands that fill a buffer bit by bit leave one
    // stretch.
    if (it != stretches_.begin()) {
      const auto before = std::prev(it);
      if (before->second.end == begin && before->second.owner == owner) {
        begin = before->first;
        it = before;
      }
    }
    Split(end);
    while (it != stretches_.end() && it->first < end) it = stretches_.erase(it);
    stretches_.emplace_hint(it, begin, Stretch{end, owner});
  }

  // The first byte of [begin, end) that somebody else than `owner` wrote last. An empty range, as
  // of a row of windows wholly in padding, has none.
  Stranger FindStranger(int64_t begin, int64_t end, int32_t owner) const {
    if (begin >= end) return {};
    auto it = stretches_.upper_bound(begin);
    if (it != stretches_.begin() && std::prev(it)->second.end > begin) --it;
    for (; it != stretches_.end() && it->first < end; ++it) {
      if (it->second.owner != owner) return {std::max(begin, it->first), it->second.owner};
    }
    return {};
  }

 private:
  struct Stretch {
    int64_t end = 0;
    int32_t owner = kNobody;
  };

  // Makes `at` a border; the first stretch that begins there or behind it.
  std::map<int64_t, Stretch>::iterator Split(int64_t at) {
    const auto it = stretches_.lower_bound(at);
    if (it == stretches_.begin()) return it;
    const auto before = std::prev(it);
    if (before->second.end <= at) return it;
    const Stretch back{before->second.end, before->second.owner};
    before->second.end = at;
    return stretches_.emplace_hint(it, at, back);
  }

  std::map<int64_t, Stretch> stretches_;  // by first byte; they do not overlap
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_MEMPLAN_OWNERS_H_
