#include "compiler_core/passes/layout.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <random>

#include "compiler_core/ops/op.h"
#include "compiler_core/passes/min_cut.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

TEST(Layout, NeighboursThatStayTogetherAreOne) {
  EXPECT_EQ(Canonical({{2, 3, 4}, {1, 2, 0}}), (Layout{{2, 12}, {1, 0}}));
  EXPECT_EQ(Canonical({{2, 3, 4}, {0, 1, 2}}), (Layout{{24}, {0}}));
  EXPECT_TRUE(Canonical({{2, 3, 4}, {0, 1, 2}}).natural());
  EXPECT_EQ(Canonical({{2, 3, 4}, {2, 1, 0}}), (Layout{{2, 3, 4}, {2, 1, 0}}));
  EXPECT_TRUE(NaturalLayout(1).natural());
}

TEST(Layout, RefinementCutsAtWholeDimensionsOnly) {
  EXPECT_EQ(Refined({{4, 6}, {1, 0}}, {2, 2, 1, 6}), (Layout{{2, 2, 6}, {2, 0, 1}}));
  EXPECT_EQ(Refined({{4, 6}, {1, 0}}, {4, 2, 3}), (Layout{{4, 2, 3}, {1, 2, 0}}));
  EXPECT_EQ(Refined({{4, 6}, {1, 0}}, {24}), (Layout{{4, 6}, {1, 0}}));
  EXPECT_EQ(Refined({{4, 6}, {1, 0}}, {3, 8}), std::nullopt);
  EXPECT_EQ(Refined({{4, 6}, {1, 0}}, {4, 5}), std::nullopt);
  EXPECT_EQ(Refined({{4, 6}, {1, 0}}, {4, 6, 2}), std::nullopt);
}

TEST(Layout, StorageKeepsDimensionsOfOneInTheirPlaces) {
  const Layout layout = *ThroughTranspose(NaturalLayout(60), {1, 3, 4, 5}, {0, 3, 1, 2});
  EXPECT_EQ(layout, (Layout{{5, 12}, {1, 0}}));
  EXPECT_EQ(StorageShape(layout, {1, 5, 3, 4}), (Shape{1, 3, 4, 5}));
  EXPECT_EQ(StorageShape(layout, {5, 12}), (Shape{12, 5}));
  EXPECT_EQ(StorageShape(layout, {1, 60}), (Shape{12, 5}));
  EXPECT_EQ(StorageShape(layout, {12, 5}), std::nullopt);
}

// Every way from one permutation to another gives what the operator's own reference does.
TEST(Layout, ConversionsDoWhatTransposesDo) {
  std::mt19937 random(1);
  const Shape shape = {2, 1, 3, 4};
  std::vector<int64_t> numbers(24);
  std::iota(numbers.begin(), numbers.end(), 0);
  const Tensor x = Tensor::FromInts(shape, numbers);
  const auto transpose = [](const Tensor& tensor, const std::vector<int64_t>& perm) {
    const Node node{Op::kTranspose, {}, {}, {{"perm", perm}}, {}};
    return (*DefOf(Op::kTranspose).reference(node, {tensor}))[0];
  };
  std::vector<int64_t> a = {0, 1, 2, 3};
  do {
    std::vector<int64_t> b = {0, 1, 2, 3};
    std::shuffle(b.begin(), b.end(), random);
    // Both as layouts of x: stored in the order that the transpose makes.
    const auto layout = [&](const std::vector<int64_t>& perm) {
      Shape moved;
      for (const int64_t axis : perm) moved.push_back(shape[axis]);
      return *ThroughTranspose(NaturalLayout(24), moved, InversePermutation(perm));
    };
    const Conversion conversion = *ConversionOf(layout(a), layout(b));
    const Tensor from = transpose(x, a).WithShape(conversion.shape);
    const Tensor to = conversion.moves() ? transpose(from, conversion.perm) : from;
    EXPECT_EQ(to.WithShape({24}), transpose(x, b).WithShape({24}));
  } while (std::next_permutation(a.begin(), a.end()));
}

TEST(Layout, CommandsOfAConversion) {
  EXPECT_EQ(CommandsOf({{10, 20}, {1, 0}}), 1);
  EXPECT_EQ(CommandsOf({{10, 20, 30}, {1, 0, 2}}), 10);   // 20 rows of 30 at a time
  EXPECT_EQ(CommandsOf({{10, 20, 30}, {0, 2, 1}}), 200);  // 30 single elements at a time
}

// The cheapest cut of small random graphs by trying all of them.
TEST(MinCut, EqualsEnumeration) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    const int nodes = 2 + static_cast<int>(random() % 6);
    MinCut cut;
    for (int i = 2; i < nodes; ++i) cut.AddNode();
    std::vector<std::array<int64_t, 3>> edges;
    for (int i = 0; i < 2 * nodes; ++i) {
      const int64_t from = random() % nodes;
      const int64_t to = random() % nodes;
      const int64_t capacity = random() % 10;
      if (from == to || (from == 0 && to == 1)) continue;
      edges.push_back({from, to, capacity});
      cut.AddEdge(static_cast<int>(from), static_cast<int>(to), capacity);
    }
    int64_t best = MinCut::kInfinite;
    for (int side = 0; side < 1 << nodes; ++side) {  // bit set: on the source's side
      if ((side & 3) != 1) continue;
      int64_t cost = 0;
      for (const auto& [from, to, capacity] : edges) {
        if ((side >> from & 1) != 0 && (side >> to & 1) == 0) cost += capacity;
      }
      best = std::min(best, cost);
    }
    EXPECT_EQ(cut.Solve(), best);
    int64_t cost = 0;
    for (const auto& [from, to, capacity] : edges) {
      if (cut.OnSourceSide(static_cast<int>(from)) && !cut.OnSourceSide(static_cast<int>(to))) {
        cost += capacity;
      }
    }
    EXPECT_EQ(cost, best);
  }
}

}  // namespace
}  // namespace npuc
