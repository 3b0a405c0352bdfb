#include "compiler_core/memplan/plan.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/cmd/access.h"

namespace npuc {
namespace {

int64_t RoundUp(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

// A kData buffer that some command touches.
struct Item {
  int32_t buffer = 0;
  int64_t size_bytes = 0;  // rounded up to the alignment
  LiveRange range;
};

std::vector<Item> ItemsOf(const Program& program, const std::vector<LiveRange>& ranges,
                          int64_t alignment_bytes) {
  std::vector<Item> items;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& buffer = program.buffers[i];
    if (buffer.slot != Slot::kData || ranges[i].empty()) continue;
    items.push_back(
        {static_cast<int32_t>(i), RoundUp(buffer.size_bytes, alignment_bytes), ranges[i]});
  }
  return items;
}

int64_t LowerBound(const std::vector<Item>& items, size_t command_count) {
  std::vector<int64_t> change(command_count + 1, 0);
  for (const Item& item : items) {
    change[item.range.first] += item.size_bytes;
    change[item.range.last + 1] -= item.size_bytes;
  }
  int64_t alive = 0;
  int64_t most = 0;
  for (const int64_t bytes : change) {
    alive += bytes;
    most = std::max(most, alive);
  }
  return most;
}

// Places the items in the given order, each in the smallest gap between the already placed items
// alive with it that holds it; returns the arena's size. offsets is by position in `items`.
int64_t PlaceInOrder(const std::vector<Item>& items, const std::vector<int32_t>& order,
                     std::vector<int64_t>& offsets) {
  std::vector<std::pair<int64_t, int64_t>> taken;  // [begin, end)
  std::vector<int32_t> placed;
  int64_t arena = 0;
  for (const int32_t index : order) {
    const Item& item = items[index];
    taken.clear();
    for (const int32_t other : placed) {
      if (!items[other].range.Overlaps(item.range)) continue;
      taken.emplace_back(offsets[other], offsets[other] + items[other].size_bytes);
    }
    std::sort(taken.begin(), taken.end());
    int64_t best = -1;
    int64_t best_gap = std::numeric_limits<int64_t>::max();
    int64_t cursor = 0;
    for (const auto& [begin, end] : taken) {
      const int64_t gap = begin - cursor;
      if (gap >= item.size_bytes && gap < best_gap) {
        best = cursor;
        best_gap = gap;
      }
      cursor = std::max(cursor, end);
    }
    offsets[index] = best >= 0 ? best : cursor;
    arena = std::max(arena, offsets[index] + item.size_bytes);
    placed.push_back(index);
  }
  return arena;
}

// The orders worth trying, the vendor-like one (by first use) first.
std::vector<std::vector<int32_t>> CandidateOrders(const std::vector<Item>& items) {
  std::vector<int32_t> by_time(items.size());
  std::iota(by_time.begin(), by_time.end(), 0);
  std::stable_sort(by_time.begin(), by_time.end(), [&](int32_t x, int32_t y) {
    return items[x].range.first < items[y].range.first;
  });
  const auto sorted = [&](auto key) {
    std::vector<int32_t> order = by_time;
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t x, int32_t y) { return key(items[x]) > key(items[y]); });
    return order;
  };
  const auto length = [](const Item& item) {
    return static_cast<int64_t>(item.range.last) - item.range.first + 1;
  };
  return {by_time, sorted([](const Item& item) { return item.size_bytes; }),
          sorted([&](const Item& item) { return item.size_bytes * length(item); }),
          sorted([&](const Item& item) { return length(item); })};
}

}  // namespace

std::vector<LiveRange> LiveRangesOf(const Program& program) {
  std::vector<LiveRange> ranges(program.buffers.size(), {std::numeric_limits<int32_t>::max(), -1});
  for (size_t i = 0; i < program.commands.size(); ++i) {
    for (const Access& access : AccessesOf(program.commands[i])) {
      LiveRange& range = ranges[access.operand.buffer.value()];
      range.first = std::min(range.first, static_cast<int32_t>(i));
      range.last = std::max(range.last, static_cast<int32_t>(i));
    }
  }
  return ranges;
}

absl::StatusOr<MemoryPlanResult> PlanMemory(Program& program, int64_t alignment_bytes) {
  const std::vector<LiveRange> ranges = LiveRangesOf(program);
  const std::vector<Item> items = ItemsOf(program, ranges, alignment_bytes);
  MemoryPlanResult result;
  result.lower_bound_bytes = LowerBound(items, program.commands.size());
  std::vector<int64_t> best;
  std::vector<int64_t> offsets(items.size(), 0);
  result.arena_bytes = std::numeric_limits<int64_t>::max();
  for (const std::vector<int32_t>& order : CandidateOrders(items)) {
    const int64_t arena = PlaceInOrder(items, order, offsets);
    if (arena < result.arena_bytes) {
      result.arena_bytes = arena;
      best = offsets;
    }
    if (result.arena_bytes == result.lower_bound_bytes) break;
  }
  for (Buffer& buffer : program.buffers) {
    if (buffer.slot == Slot::kData) buffer.offset_bytes = 0;
  }
  for (size_t i = 0; i < items.size(); ++i) {
    program.buffers[items[i].buffer].offset_bytes = best[i];
  }
  program.data_bytes = result.arena_bytes;
  return result;
}

absl::Status CheckMemoryPlan(const Program& program) {
  constexpr int32_t kNobody = -1;
  std::vector<int32_t> owners(program.data_bytes, kNobody);
  for (size_t i = 0; i < program.commands.size(); ++i) {
    for (const Access& access : AccessesOf(program.commands[i])) {
      const int32_t id = access.operand.buffer.value();
      const Buffer& buffer = program.buffers[id];
      if (buffer.slot != Slot::kData) continue;
      const int64_t begin = buffer.offset_bytes + access.operand.offset_bytes;
      const int64_t size = access.size_bytes == Access::kUnknown
                               ? buffer.size_bytes - access.operand.offset_bytes
                               : access.size_bytes;
      if (buffer.offset_bytes < 0 || begin < 0 || size < 0 || begin + size > program.data_bytes) {
        return absl::InternalError(absl::StrCat("command ", i, " of node '",
                                                Printable(program.commands[i].node),
                                                "' reaches outside data_content"));
      }
      for (int64_t byte = begin; byte < begin + size; ++byte) {
        if (access.writes) {
          owners[byte] = id;
        } else if (owners[byte] != id && owners[byte] != kNobody) {
          return absl::InternalError(absl::StrCat(
              "command ", i, " of node '", Printable(program.commands[i].node), "' reads byte ",
              byte, " of buffer ", id, ", which buffer ", owners[byte], " has overwritten"));
        }
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace npuc
