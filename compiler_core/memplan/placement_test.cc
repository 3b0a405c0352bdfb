#include "compiler_core/memplan/placement.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "compiler_core/memplan/plan.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using Items = std::vector<PlacementItem>;

constexpr int64_t kAlignment = 4;

Items RandomItems(std::mt19937& random, int count, int commands, int max_units, int max_length) {
  Items items;
  for (int i = 0; i < count; ++i) {
    const int32_t first = static_cast<int32_t>(random() % commands);
    const int32_t last =
        std::min<int32_t>(commands - 1, first + static_cast<int32_t>(random() % max_length));
    items.push_back({kAlignment * (1 + static_cast<int64_t>(random() % max_units)), {first, last}});
  }
  return items;
}

// Whether items that are alive together lie apart, all of them from 0 on.
bool Disjoint(const Items& items, const Offsets& offsets) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (offsets[i] < 0 || offsets[i] % kAlignment != 0) return false;
    for (size_t j = 0; j < i; ++j) {
      if (items[i].range.first > items[j].range.last ||
          items[j].range.first > items[i].range.last) {
        continue;
      }
      if (offsets[i] < offsets[j] + items[j].size_bytes &&
          offsets[j] < offsets[i] + items[i].size_bytes) {
        return false;
      }
    }
  }
  return true;
}

// The smallest arena, by trying every offset of every item: shares nothing with the search.
void Enumerate(const Items& items, size_t next, Offsets& offsets, int64_t arena, int64_t& best) {
  if (arena >= best) return;
  if (next == items.size()) {
    best = arena;
    return;
  }
  for (int64_t at = 0; at + items[next].size_bytes < best; at += kAlignment) {
    offsets[next] = at;
    const Items some(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(next) + 1);
    if (!Disjoint(some, offsets)) continue;
    Enumerate(items, next + 1, offsets, std::max(arena, at + items[next].size_bytes), best);
  }
}

int64_t SmallestArena(const Items& items) {
  int64_t best = 1;
  for (const PlacementItem& item : items) best += item.size_bytes;
  Offsets offsets(items.size(), 0);
  Enumerate(items, 0, offsets, 0, best);
  return best;
}

// More pairs that are alive together than are listed: 4,498,500, some of which end early.
TEST(Placement, PlacesItemsOfManyNeighbours) {
  std::mt19937 random(20261126);
  Items items;
  for (int32_t i = 0; i < 3000; ++i) {
    const int32_t last = i % 100 == 0 ? i + 1 : 3000;
    items.push_back({kAlignment * (1 + static_cast<int64_t>(random() % 16)), {i, last}});
  }
  const PlacementResult result = PlaceGreedily(items);
  EXPECT_TRUE(Disjoint(items, result.offsets));
  EXPECT_EQ(result.plan.arena_bytes, ArenaOf(items, result.offsets));
  EXPECT_LT(result.plan.arena_bytes, result.plan.lower_bound_bytes * 11 / 10);
}

TEST(Placement, BranchAndBoundEqualsEnumeration) {
  std::mt19937 random(20261121);
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE(round);
    const Items items = RandomItems(random, 2 + round % 6, 6, 4, 4);
    const int64_t smallest = SmallestArena(items);
    Offsets offsets(items.size());
    int64_t top = 0;  // the worst placement: all side by side
    for (size_t i = 0; i < items.size(); ++i) {
      offsets[i] = top;
      top += items[i].size_bytes;
    }
    NodeBudget budget{1 << 20};
    ASSERT_TRUE(PlaceExactly(items, LivenessBound(items), budget, offsets));
    EXPECT_TRUE(Disjoint(items, offsets));
    EXPECT_EQ(ArenaOf(items, offsets), smallest);
    PlacementResult result = PlaceGreedily(items);
    SearchPlacement(items, kAlignment, kPlacementNodes, result);
    EXPECT_EQ(result.plan.arena_bytes, smallest);
    EXPECT_NE(result.plan.method, PlanMethod::kSearchEnded);
    EXPECT_TRUE(Disjoint(items, result.offsets));
  }
}

TEST(Placement, SearchFromTheSmallestPlacementOrFromNoneIsTheSame) {
  std::mt19937 random(8);
  for (int round = 0; round < 60; ++round) {
    const int count = 5 + 7 * round;
    const Items items = RandomItems(random, count, count, 40, 1 + count / 4);
    const int64_t max_nodes = 300 << round % 10;  // some searches end for want of nodes
    PlacementResult alone = PlaceGreedily(items);
    SearchPlacement(items, kAlignment, max_nodes, alone);
    const PlacementResult both = Place(items, kAlignment, max_nodes);
    EXPECT_EQ(both.plan.method, alone.plan.method);
    EXPECT_EQ(both.plan.search_nodes, alone.plan.search_nodes);
    EXPECT_EQ(both.offsets, alone.offsets) << count << " items";
    EXPECT_EQ(both.plan.arena_bytes, alone.plan.arena_bytes);
  }
}

TEST(Placement, ProvesThatTheBoundIsOutOfReach) {
  const Items items = {{12, {3, 5}}, {4, {3, 6}}, {16, {6, 9}}, {16, {1, 2}},
                       {16, {2, 3}}, {8, {4, 6}}, {16, {9, 9}}};
  EXPECT_EQ(LivenessBound(items), 32);
  EXPECT_EQ(SmallestArena(items), 36);
  PlacementResult result = PlaceGreedily(items);
  SearchPlacement(items, kAlignment, kPlacementNodes, result);
  EXPECT_EQ(result.plan.method, PlanMethod::kSearchOptimal);
  EXPECT_EQ(result.plan.arena_bytes, 36);
  EXPECT_GT(result.plan.search_nodes, 0);
  EXPECT_TRUE(Disjoint(items, result.offsets));
}

TEST(Placement, LargerOnesStayDisjointAndNeverLoseToGreedy) {
  std::mt19937 random(3);
  for (const int count : {20, 60, 200, 500}) {
    for (int round = 0; round < 6; ++round) {
      SCOPED_TRACE(testing::Message() << count << " items, round " << round);
      const Items items = RandomItems(random, count, count, 40, 1 + count / (2 + round));
      const PlacementResult greedy = PlaceGreedily(items);
      PlacementResult result = greedy;
      SearchPlacement(items, kAlignment, 60'000, result);
      EXPECT_TRUE(Disjoint(items, result.offsets));
      EXPECT_EQ(result.plan.arena_bytes, ArenaOf(items, result.offsets));
      EXPECT_LE(result.plan.arena_bytes, greedy.plan.arena_bytes);
      EXPECT_GE(result.plan.arena_bytes, result.plan.lower_bound_bytes);
      PlacementResult again = greedy;
      SearchPlacement(items, kAlignment, 60'000, again);
      EXPECT_EQ(result.offsets, again.offsets);
    }
  }
}

// A placement that fills the bound at every moment exists by construction: a rectangle cut in two
// again and again, along time or along memory.
void Cut(std::mt19937& random, int32_t first, int32_t last, int64_t units, int depth,
         Items& items) {
  const bool by_time = random() % 2 == 0;
  if (depth == 0 || (by_time && first == last) || (!by_time && units == 1)) {
    items.push_back({units * kAlignment, {first, last}});
  } else if (by_time) {
    const int32_t middle = first + static_cast<int32_t>(random() % (last - first));
    Cut(random, first, middle, units, depth - 1, items);
    Cut(random, middle + 1, last, units, depth - 1, items);
  } else {
    const int64_t part = 1 + static_cast<int64_t>(random() % (units - 1));
    Cut(random, first, last, part, depth - 1, items);
    Cut(random, first, last, units - part, depth - 1, items);
  }
}

TEST(Placement, FindsPlacementsWithoutAGap) {
  std::mt19937 random(11);
  int met = 0;
  int greedy_met = 0;
  constexpr int kRounds = 60;
  for (int round = 0; round < kRounds; ++round) {
    Items items;
    Cut(random, 0, 40, 200, 6, items);
    std::shuffle(items.begin(), items.end(), random);
    PlacementResult result = PlaceGreedily(items);
    ASSERT_EQ(result.plan.lower_bound_bytes, 200 * kAlignment);
    if (result.plan.arena_bytes == result.plan.lower_bound_bytes) ++greedy_met;
    SearchPlacement(items, kAlignment, kPlacementNodes, result);
    EXPECT_TRUE(Disjoint(items, result.offsets));
    if (result.plan.arena_bytes == result.plan.lower_bound_bytes) ++met;
  }
  EXPECT_LT(greedy_met, met);
  EXPECT_GE(met, kRounds * 3 / 4);  // such puzzles are harder than any net
}

TEST(Placement, SaysWhenTheBudgetEnded) {
  std::mt19937 random(5);
  Items items;
  Cut(random, 0, 200, 5000, 9, items);
  PlacementResult result = PlaceGreedily(items);
  ASSERT_GT(result.plan.arena_bytes, result.plan.lower_bound_bytes);
  const int64_t greedy = result.plan.arena_bytes;
  SearchPlacement(items, kAlignment, 10, result);
  EXPECT_EQ(result.plan.method, PlanMethod::kSearchEnded);
  EXPECT_LE(result.plan.arena_bytes, greedy);
  EXPECT_TRUE(Disjoint(items, result.offsets));
}

TEST(Placement, TooManyItemsAreLeftToGreedy) {
  std::mt19937 random(5);
  const Items items = RandomItems(random, 4097, 1000, 50, 30);
  PlacementResult result = PlaceGreedily(items);
  ASSERT_GT(result.plan.arena_bytes, result.plan.lower_bound_bytes);
  SearchPlacement(items, kAlignment, kPlacementNodes, result);
  EXPECT_EQ(result.plan.method, PlanMethod::kTooLarge);
  EXPECT_EQ(result.plan.search_nodes, 0);
}

}  // namespace
}  // namespace npuc
