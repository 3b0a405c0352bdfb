#include <algorithm>
#include <random>
#include <variant>
#include <vector>

#include "compiler_core/ir/integer/command.h"
#include "compiler_core/memplan/plan.h"
#include "compiler_core/memplan/row_nets_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

constexpr int64_t kAlignment = 16;

MemoryPlanResult Plan(integer::Program& program) {
  const auto plan = PlanMemoryByRows(program, kAlignment, /*ports_in_data=*/true);
  EXPECT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(CheckMemoryPlan(program).ok()) << CheckMemoryPlan(program);
  return plan.ok() ? *plan : MemoryPlanResult();
}

// The keyword net's maps: two of 8,000 bytes do not lie side by side but two rows apart.
TEST(PlanMemoryByRows, ChainsOfWindowsTakeOneMapAndTwoRows) {
  const Map map{25, 5, 64};
  Nets nets({49, 10, 1}, {1, 1, 12});
  int32_t last = nets.Add(map);
  nets.Convolution(0, last, 5, 2);
  for (int i = 0; i < 4; ++i) {
    const int32_t depthwise = nets.Add(map);
    nets.Convolution(last, depthwise, 3);
    last = nets.Add(map);
    nets.Convolution(depthwise, last, 1);
  }
  nets.Convolution(last, 1, 1);
  const MemoryPlanResult plan = Plan(nets.program);
  EXPECT_EQ(plan.arena_bytes, 25 * 320 + 2 * 320);
  EXPECT_EQ(plan.lower_bound_bytes, plan.arena_bytes);
  EXPECT_EQ(NameOf(plan.method), "rows: proven optimal");
  EXPECT_TRUE(std::any_of(nets.program.commands.begin(), nets.program.commands.end(),
                          [](const integer::Command& c) { return c.descending; }));
}

// The input's bytes are reused, sums lie over an operand, and the output over what is dead.
TEST(PlanMemoryByRows, SumsAndPortsTakeNoBytesOfTheirOwn) {
  const Map map{8, 4, 4};
  Nets nets(map, map);
  const int32_t a = nets.Add(map);
  const int32_t b = nets.Add(map);
  nets.Copy(0, a);
  nets.Convolution(a, b, 1);
  nets.Sum(a, b, 1);
  const MemoryPlanResult plan = Plan(nets.program);
  EXPECT_EQ(plan.arena_bytes, 256);
  EXPECT_EQ(nets.program.data_bytes, 256);
  EXPECT_GE(nets.program.output_offset, 0);
}

TEST(PlanMemoryByRows, AStateIsNeverOverItsInput) {
  const Map map{8, 4, 4};
  Nets nets(map, map);
  nets.program.outputs[0].state_input = 0;
  nets.Copy(0, 1);
  EXPECT_EQ(Plan(nets.program).arena_bytes, 256);
}

// A part of a buffer is alive from the command on that stores it.
TEST(PlanMemoryByRows, PartsOfAConcatenationLieOverDeadOperands) {
  const Map half{4, 4, 4};
  const Map whole{8, 4, 4};
  Nets nets(half, whole);
  const int32_t a = nets.Add(half);
  nets.Copy(0, a);
  nets.Copy(a, 1, 0);
  nets.Copy(0, 1, 64);
  // The input lies one element, which alignment makes 16, above its place in the output.
  EXPECT_EQ(Plan(nets.program).arena_bytes, 144);
}

// The last row of windows of one pixel lies in the padding below the map, and reads nothing.
TEST(CheckMemoryPlan, RowsOfPaddingAloneReadNothing) {
  Nets nets({8, 8, 3}, {10, 10, 8});
  nets.Convolution(0, 1, 1);
  auto& c = std::get<integer::Convolve>(nets.program.commands[0].body);
  c.window.pad_top = c.window.pad_left = 1;
  Plan(nets.program);
}

TEST(CheckMemoryPlan, RefusesOneRowTooMuch) {
  const Map map{8, 4, 4};
  Nets nets(map, map);
  const int32_t a = nets.Add(map);
  nets.Copy(0, a);
  nets.Convolution(a, 1, 3);
  EXPECT_EQ(Plan(nets.program).arena_bytes, 160);
  integer::Program moved = nets.program;
  Buffer& upper = moved.buffers[static_cast<size_t>(
      moved.buffers[1].offset_bytes > moved.buffers[3].offset_bytes ? 1 : 3)];
  upper.offset_bytes -= kAlignment;
  EXPECT_THAT(std::string(CheckMemoryPlan(moved).message()), testing::HasSubstr("overwritten"));
  integer::Program turned = nets.program;
  turned.commands[1].descending = !turned.commands[1].descending;
  EXPECT_THAT(std::string(CheckMemoryPlan(turned).message()), testing::HasSubstr("overwritten"));
}

// Nets that branch: every plan is proven by the checker, and none takes more than whole buffers.
TEST(PlanMemoryByRows, RandomNets) {
  std::mt19937 random(20261125);
  int64_t by_rows = 0;
  int64_t by_buffers = 0;
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const auto below = [&random](uint32_t end) { return static_cast<int32_t>(random() % end); };
    const Map map{4 + below(5), 1 + below(4), 1 + below(4)};
    Nets nets(map, map);
    std::vector<int32_t> made = {0};
    const int commands = 2 + below(12);
    for (int i = 0; i < commands; ++i) {
      const auto recent = [&] {
        return made[made.size() - 1 - random() % std::min<size_t>(made.size(), 3)];
      };
      const int32_t to = i + 1 == commands ? 1 : nets.Add(map);
      const int32_t a = recent();
      const int32_t b = recent();
      if (a != b && below(3) == 0) {
        nets.Sum(a, b, to);
      } else if (below(3) == 0) {
        nets.Copy(a, to);
      } else {
        nets.Convolution(a, to, 1 + 2 * below(2));
      }
      made.push_back(to);
    }
    integer::Program whole = nets.program;
    const auto buffers = PlanMemory(whole, kAlignment);
    ASSERT_TRUE(buffers.ok());
    const MemoryPlanResult plan = Plan(nets.program);
    const int64_t ports = 2 * ((map.size_bytes() + kAlignment - 1) / kAlignment * kAlignment);
    ASSERT_LE(plan.arena_bytes, buffers->arena_bytes + ports);
    ASSERT_GE(plan.arena_bytes, plan.lower_bound_bytes);
    by_rows += plan.arena_bytes;
    by_buffers += buffers->arena_bytes + ports;
  }
  EXPECT_LT(static_cast<double>(by_rows), 0.7 * static_cast<double>(by_buffers));
}

// The smallest arena of items at these distances, by trying every offset of every item.
void Enumerate(const std::vector<PlacementItem>& items, const Distances& distances, size_t next,
               Offsets& offsets, int64_t arena, int64_t& best) {
  if (arena >= best) return;
  if (next == items.size()) {
    best = arena;
    return;
  }
  for (int64_t at = 0; at + items[next].size_bytes < best; ++at) {
    const bool fits =
        std::all_of(distances[next].begin(), distances[next].end(), [&](const Apart& apart) {
          if (static_cast<size_t>(apart.other) >= next) return true;
          const int64_t other = offsets[static_cast<size_t>(apart.other)];
          return at >= other + apart.above || at <= other - apart.below;
        });
    if (!fits) continue;
    offsets[next] = at;
    Enumerate(items, distances, next + 1, offsets, std::max(arena, at + items[next].size_bytes),
              best);
  }
}

TEST(PlaceByDistances, EqualsEnumeration) {
  std::mt19937 random(22);
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE(round);
    std::vector<PlacementItem> items;
    const int count = 2 + round % 4;
    for (int i = 0; i < count; ++i) {
      items.push_back({1 + static_cast<int64_t>(random() % 5), {i, i + 1}});
    }
    Distances distances(items.size());
    int64_t sum = 1;
    for (int32_t x = 0; x < count; ++x) {
      sum += items[static_cast<size_t>(x)].size_bytes;
      for (int32_t y = 0; y < x; ++y) {
        if (random() % 4 == 0) continue;
        const int64_t over_y =
            static_cast<int64_t>(random() % (items[static_cast<size_t>(y)].size_bytes + 1));
        const int64_t over_x =
            static_cast<int64_t>(random() % (items[static_cast<size_t>(x)].size_bytes + 1));
        distances[static_cast<size_t>(x)].push_back({y, over_y, over_x});
        distances[static_cast<size_t>(y)].push_back({x, over_x, over_y});
      }
    }
    int64_t smallest = sum;
    Offsets tried(items.size());
    Enumerate(items, distances, 0, tried, 0, smallest);
    NodeBudget budget{1 << 20};
    Offsets offsets;
    ASSERT_TRUE(PlaceByDistances(items, distances, 0, budget, offsets));
    ASSERT_EQ(ArenaOf(items, offsets), smallest);
  }
}

}  // namespace
}  // namespace npuc
