#include "compiler_core/memplan/order.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using ::testing::ElementsAre;

// A program as its accesses alone: each command has a name and touches parts of buffers.
struct Sketch {
  std::vector<Buffer> buffers = {{Slot::kInput, 0, 0, "input"}, {Slot::kOutput, 0, 0, "output"}};
  std::vector<std::vector<Access>> commands;
  std::vector<std::string> names;

  int32_t Add(int64_t size, Slot slot = Slot::kData) {
    buffers.push_back({slot, size, -1, ""});
    return static_cast<int32_t>(buffers.size()) - 1;
  }
  static Access Touch(int32_t buffer, bool writes, int64_t begin, int64_t size) {
    return {writes ? OperandRole::kD : OperandRole::kA, {BufferId(buffer), begin}, writes, size};
  }
  // Reads whole buffers, and stores into a part of one.
  void Command(const std::vector<int32_t>& reads, int32_t to, int64_t begin = 0,
               int64_t size = -1) {
    std::vector<Access>& accesses = commands.emplace_back();
    for (const int32_t from : reads) {
      accesses.push_back(Touch(from, false, 0, buffers[static_cast<size_t>(from)].size_bytes));
    }
    if (size < 0) size = buffers[static_cast<size_t>(to)].size_bytes;
    accesses.push_back(Touch(to, true, begin, size));
    names.push_back(absl::StrCat("layer", names.size()));
  }
  CommandOrder Order(int64_t max_nodes = kOrderNodes) {
    return OrderForMemory(
        {absl::MakeSpan(buffers), commands.size(), [this](size_t i) { return commands[i]; },
         [this](size_t i) -> absl::string_view { return names[i]; }},
        rules, max_nodes);
  }

  OrderRules rules = {.ports_in_data = true};
};

// Bytes alive behind each command, counted from first and last use: by another way than Net's.
int64_t PeakOf(const Sketch& net, const std::vector<size_t>& order) {
  const auto end = static_cast<int64_t>(order.size());
  std::vector<int64_t> alive(order.size() + 1, 0);
  for (size_t b = 0; b < net.buffers.size(); ++b) {
    int64_t first = end, last = -1;
    for (int64_t at = 0; at < end; ++at) {
      for (const Access& access : net.commands[order[static_cast<size_t>(at)]]) {
        if (access.operand.buffer.value() != static_cast<int32_t>(b)) continue;
        first = std::min(first, at);
        last = at;
      }
    }
    if (last < 0) continue;
    if (net.buffers[b].slot == Slot::kInput) first = -1;
    if (net.buffers[b].slot == Slot::kOutput) last = end;
    for (int64_t behind = first + 1; behind <= std::min(last, end); ++behind) {
      alive[static_cast<size_t>(behind)] += net.buffers[b].size_bytes;
    }
  }
  return *std::max_element(alive.begin(), alive.end());
}

bool KeepsOrder(const Sketch& net, const std::vector<size_t>& order) {
  for (size_t i = 0; i < order.size(); ++i) {
    for (size_t k = i + 1; k < order.size(); ++k) {
      if (order[i] < order[k]) continue;
      for (const Access& a : net.commands[order[i]]) {
        for (const Access& b : net.commands[order[k]]) {
          const bool overlap = a.operand.offset_bytes < b.operand.offset_bytes + b.size_bytes &&
                               b.operand.offset_bytes < a.operand.offset_bytes + a.size_bytes;
          if (a.operand.buffer == b.operand.buffer && (a.writes || b.writes) && overlap) {
            return false;
          }
        }
      }
    }
  }
  return true;
}

TEST(OrderForMemoryTest, AChainStaysAsItIs) {
  Sketch net;
  net.buffers[0].size_bytes = 100;
  net.buffers[1].size_bytes = 10;
  const int32_t a = net.Add(400);
  const int32_t b = net.Add(50);
  net.Command({0}, a);
  net.Command({a}, b);
  net.Command({b}, 1);
  const CommandOrder order = net.Order();
  EXPECT_THAT(order.commands, ElementsAre(0, 1, 2));
  EXPECT_EQ(order.peak_bytes, 400);
  EXPECT_TRUE(order.is_optimal);
  EXPECT_EQ(order.nodes, 0);
}

// Two branches that grow and shrink: one at a time, not side by side as the model has them.
TEST(OrderForMemoryTest, BranchesAreDoneOneAfterTheOther) {
  Sketch net;
  net.buffers[0].size_bytes = 10;
  net.buffers[1].size_bytes = 10;
  const int32_t wide_a = net.Add(1000), wide_b = net.Add(1000);
  const int32_t small_a = net.Add(10), small_b = net.Add(10);
  net.Command({0}, wide_a);
  net.Command({0}, wide_b);
  net.Command({wide_a}, small_a);
  net.Command({wide_b}, small_b);
  net.Command({small_a, small_b}, 1);
  const CommandOrder order = net.Order();
  EXPECT_EQ(order.given_peak_bytes, 2000);
  EXPECT_EQ(order.peak_bytes, 1010);
  EXPECT_TRUE(order.is_optimal);
  EXPECT_THAT(order.commands, ElementsAre(0, 2, 1, 3, 4));
}

TEST(OrderForMemoryTest, CommandsOfALayerStayTogether) {
  Sketch net;
  net.buffers[0].size_bytes = 10;
  net.buffers[1].size_bytes = 10;
  const int32_t wide_a = net.Add(1000), wide_b = net.Add(1000);
  net.Command({0}, wide_a);
  net.Command({0}, wide_b);
  net.Command({wide_b}, 1, 0, 5);
  net.Command({wide_a}, 1, 5, 5);
  net.names[1] = net.names[0];
  EXPECT_EQ(net.Order().peak_bytes, 2000);
  net.names[1] = "another";
  EXPECT_EQ(net.Order().peak_bytes, 1010);
}

// Two wide values, and the commands that shrink them behind both.
struct Branches : Sketch {
  Branches() {
    buffers[0].size_bytes = 10;
    wide_a = Add(1000);
    wide_b = Add(1000);
    Command({0}, wide_a);
    Command({0}, wide_b);
  }
  int32_t wide_a, wide_b;
};

TEST(OrderForMemoryTest, TheLastLayerStaysLastWhereItMust) {
  Branches net;
  net.buffers[1].size_bytes = 20;
  net.Command({net.wide_b}, 1, 0, 10);
  net.Command({net.wide_a}, 1, 10, 10);
  EXPECT_EQ(net.Order().peak_bytes, 1020);
  net.rules.last_stays = true;
  const CommandOrder order = net.Order();
  EXPECT_EQ(order.peak_bytes, 1020);
  EXPECT_THAT(order.commands, ElementsAre(1, 2, 0, 3));
}

// The second command writes over what the first one stored, in a port that takes no memory.
TEST(OrderForMemoryTest, WritesOfOnePortKeepTheirOrder) {
  Branches net;
  net.buffers[1].size_bytes = 10;
  net.rules.ports_in_data = false;
  net.Command({net.wide_b}, 1);
  net.Command({net.wide_a}, 1, 0, 5);
  EXPECT_THAT(net.Order().commands, ElementsAre(1, 2, 0, 3));
}

// An application may lay the state's output over the next frame's input.
TEST(OrderForMemoryTest, AStateIsWrittenBehindTheCommandsThatReadIt) {
  Branches net;
  const int32_t state = net.Add(10, Slot::kInput);
  net.buffers[1].size_bytes = 10;
  net.rules.ports_in_data = false;
  const int32_t small_a = net.Add(500), small_b = net.Add(10);
  net.Command({net.wide_a, state}, small_a);
  net.Command({net.wide_b}, 1);
  net.Command({net.wide_b}, small_b);
  net.Command({small_a, small_b}, net.Add(10));
  EXPECT_THAT(net.Order().commands, ElementsAre(1, 3, 4, 0, 2, 5));
  net.rules.lies_over.assign(net.buffers.size(), -1);
  net.rules.lies_over[1] = state;
  EXPECT_THAT(net.Order().commands, ElementsAre(0, 2, 1, 3, 4, 5));
}

// Random nets whose results may be parts of one buffer, as those of a concatenation are. A command
// may read nothing, as one that stores padding.
Sketch RandomNet(std::mt19937& random, int commands) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
  Sketch net;
  net.buffers[0].size_bytes = 1 + below(100);
  net.buffers[1].size_bytes = 1 + below(50);
  std::vector<int32_t> made = {0};
  std::set<int32_t> unread = {0};
  int32_t parts = -1;
  for (int i = 0; i + 1 < commands; ++i) {
    std::vector<int32_t> reads;
    for (int k = below(3); k > 0; --k) {
      reads.push_back(made[static_cast<size_t>(below(static_cast<int>(made.size())))]);
      unread.erase(reads.back());
    }
    if (below(4) == 0 && parts < 0) {
      parts = net.Add(60);
      net.Command(reads, parts, 0, 30);
      continue;
    }
    if (parts >= 0 && below(2) == 0) {
      net.Command(reads, parts, 30, 30);
      made.push_back(parts);
      unread.insert(parts);
      parts = -1;
      continue;
    }
    const int32_t to = net.Add(1 + below(200));
    net.Command(reads, to);
    made.push_back(to);
    unread.insert(to);
  }
  net.Command({unread.begin(), unread.end()}, 1);
  return net;
}

// Layers with padding: a constant border, a copy into it, and two results that the next one adds.
TEST(OrderForMemoryTest, BordersDoNotDoubleTheSetsToLookAt) {
  Sketch net;
  int32_t at = 0;
  constexpr int kLayers = 30;
  for (int i = 0; i < kLayers; ++i) {
    const int32_t padded = net.Add(100), wide = net.Add(300), narrow = net.Add(20);
    const int32_t next = net.Add(80);
    net.Command({}, padded, 0, 20);
    net.Command({at}, padded, 20, 80);
    net.Command({padded}, wide);
    net.Command({padded}, narrow);
    net.Command({wide, narrow}, next);
    at = next;
  }
  const CommandOrder order = net.Order();
  EXPECT_TRUE(order.is_optimal);
  EXPECT_LT(order.nodes, 5 * kLayers);
}

TEST(OrderForMemoryTest, FindsTheBestOfAllOrders) {
  std::mt19937 random(7);
  int improved = 0;
  for (int round = 0; round < 300; ++round) {
    Sketch net = RandomNet(random, 3 + round % 5);
    const CommandOrder found = net.Order();
    std::vector<size_t> order(net.commands.size());
    std::iota(order.begin(), order.end(), 0);
    ASSERT_EQ(found.given_peak_bytes, PeakOf(net, order));
    int64_t best = found.given_peak_bytes;
    do {
      if (KeepsOrder(net, order)) best = std::min(best, PeakOf(net, order));
    } while (std::next_permutation(order.begin(), order.end()));
    ASSERT_TRUE(KeepsOrder(net, found.commands));
    ASSERT_EQ(PeakOf(net, found.commands), found.peak_bytes);
    ASSERT_EQ(found.peak_bytes, best) << "round " << round;
    ASSERT_TRUE(found.is_optimal);
    improved += best < found.given_peak_bytes ? 1 : 0;
  }
  EXPECT_GT(improved, 50);
}

TEST(OrderForMemoryTest, WithoutNodesTheBeamIsNoWorseThanTheModel) {
  std::mt19937 random(11);
  int improved = 0;
  for (int round = 0; round < 20; ++round) {
    Sketch net = RandomNet(random, 25);
    const CommandOrder found = net.Order(/*max_nodes=*/1);
    ASSERT_TRUE(KeepsOrder(net, found.commands));
    ASSERT_EQ(PeakOf(net, found.commands), found.peak_bytes);
    ASSERT_LE(found.peak_bytes, found.given_peak_bytes);
    ASSERT_GE(found.peak_bytes, net.Order().peak_bytes);
    improved += found.peak_bytes < found.given_peak_bytes ? 1 : 0;
  }
  EXPECT_GT(improved, 10);
}

}  // namespace
}  // namespace npuc
