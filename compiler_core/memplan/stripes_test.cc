#include "compiler_core/memplan/stripes.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/ir/integer/access.h"
#include "compiler_core/ir/integer/verify.h"
#include "compiler_core/memplan/row_nets_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

constexpr int64_t kAlignment = 16;

StripeReport Search(const integer::Program& program, int64_t limit_bytes,
                    integer::Program& planned) {
  planned = program;
  auto memory = PlanMemoryByRows(planned, kAlignment, /*ports_in_data=*/true);
  EXPECT_TRUE(memory.ok()) << memory.status();
  const StripeGoal goal{limit_bytes, kAlignment, /*ports_in_data=*/true};
  const absl::Status status = PlanInStripes(program, *FindCore("REF128"), goal, planned, *memory);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(CheckMemoryPlan(planned).ok()) << CheckMemoryPlan(planned);
  EXPECT_TRUE(integer::VerifyProgram(planned).ok()) << integer::VerifyProgram(planned);
  EXPECT_EQ(memory->arena_bytes, planned.data_bytes);
  EXPECT_GE(planned.data_bytes, RowBound(program, true));
  return memory->stripes.value_or(StripeReport());
}

// The visual wake words net begins so: a map of 36,864 bytes between two of 18,432 and 9,216.
Nets GrowingNet() {
  Nets nets({96, 96, 3}, {24, 24, 16});
  const int32_t first = nets.Add({48, 48, 8});
  nets.Convolution(0, first, 3, 2, "a");
  const int32_t depthwise = nets.Add({48, 48, 8});
  nets.Convolution(first, depthwise, 3, 1, "b");
  const int32_t wide = nets.Add({48, 48, 16});
  nets.Convolution(depthwise, wide, 1, 1, "c");
  nets.Convolution(wide, 1, 3, 2, "d");
  return nets;
}

TEST(PlanInStripes, AWideMapBetweenNarrowOnesNeverExistsWhole) {
  const Nets nets = GrowingNet();
  integer::Program planned;
  const StripeReport report = Search(nets.program, 28'672, planned);
  EXPECT_GT(report.arena_before_bytes, 36'864);
  EXPECT_LE(planned.data_bytes, 28'672);
  ASSERT_EQ(report.chains.size(), 1);
  EXPECT_EQ(report.chains[0].last_layer, "d");
  EXPECT_FALSE(report.budget_ended);
}

TEST(PlanInStripes, ALimitIsKeptForFewCycles) {
  Nets nets({32, 32, 3}, {16, 16, 32});
  const Map map{32, 32, 16};
  const int32_t skip = nets.Add(map);
  nets.Convolution(0, skip, 3, 1, "a");
  const int32_t middle = nets.Add(map);
  nets.Convolution(skip, middle, 3, 1, "b");
  const int32_t last = nets.Add(map);
  nets.Convolution(middle, last, 3, 1, "c");
  const int32_t sum = nets.Add(map);
  nets.Sum(skip, last, sum);
  nets.Convolution(sum, 1, 3, 2, "d");
  integer::Program planned;
  const StripeReport loose = Search(nets.program, 24'000, planned);
  EXPECT_LE(planned.data_bytes, 24'000);
  const StripeReport tight = Search(nets.program, 20'480, planned);
  EXPECT_LE(planned.data_bytes, 20'480);
  EXPECT_LE(loose.cycles, tight.cycles);
  EXPECT_LT(tight.cycles, tight.cycles_before * 110 / 100);
}

TEST(PlanInStripes, ALimitThatCannotBeMetGivesTheSmallestPlan) {
  const Nets nets = GrowingNet();
  integer::Program planned;
  Search(nets.program, 1000, planned);
  const int64_t bound = RowBound(nets.program, true);
  EXPECT_EQ(bound, 96 * 96 * 3);
  EXPECT_LT(planned.data_bytes, bound + bound / 20);
  integer::Program as_it_was;
  const StripeReport unused = Search(nets.program, 1'000'000, as_it_was);
  EXPECT_TRUE(unused.chains.empty());
  EXPECT_EQ(as_it_was.commands.size(), nets.program.commands.size());
}

TEST(CutInStripes, RefusesWhatIsReadElsewhere) {
  const Nets nets = GrowingNet();
  const BufferUses uses(nets.program);
  StripedChain chain{1, 4, 2, false, {3, StripeKeep::kWhole}};
  const int32_t next = static_cast<int32_t>(nets.program.buffers.size());
  EXPECT_TRUE(CutInStripes(nets.program, uses, chain, next).has_value());
  chain.end = 3;
  chain.keeps = {StripeKeep::kWhole, StripeKeep::kCopied};  // the next layer reads it
  EXPECT_FALSE(CutInStripes(nets.program, uses, chain, next).has_value());
}

// Executes programs on rows of numbers: a row of a result is a hash of what its taps read.
class Executor {
 public:
  explicit Executor(const integer::Program& program) : memory_(program.buffers.size()) {
    for (size_t i = 0; i < memory_.size(); ++i) {
      memory_[i].resize(static_cast<size_t>(program.buffers[i].size_bytes));
    }
    for (size_t i = 0; i < memory_[0].size(); ++i) memory_[0][i] = Mixed(i + 1);
    for (const integer::Command& command : program.commands) Run(command.body);
  }
  const std::vector<uint64_t>& output() const { return memory_[1]; }

 private:
  static uint64_t Mixed(uint64_t value) {
    value = (value ^ (value >> 31)) * 0x9e3779b97f4a7c15u;
    return value ^ (value >> 29);
  }
  uint64_t* At(const Operand& operand) {
    return memory_[static_cast<size_t>(operand.buffer.value())].data() + operand.offset_bytes;
  }

  void Run(const integer::Body& body) {
    if (const auto* c = std::get_if<integer::Convolve>(&body)) return RunWindows(*c);
    if (const auto* c = std::get_if<integer::Combine>(&body)) {
      for (int32_t i = 0; i < c->extents[5]; ++i) {
        At(c->result.d)[i] = Mixed(At(c->a)[i] + 3 * At(c->b)[i]);
      }
      return;
    }
    const auto& c = std::get<integer::Move>(body);
    for (int32_t i = 0; i < c.extents[5]; ++i) At(c.result.d)[i] = At(c.a)[i];
  }

  void RunWindows(const integer::Convolve& c) {
    const int64_t in_row = int64_t{c.in_w} * c.in_c;
    const int64_t out_row = int64_t{c.out_w} * c.out_c;
    for (int64_t row = 0; row < c.out_h; ++row) {
      uint64_t sum = 0;
      for (int64_t tap = 0; tap < c.window.kernel_h; ++tap) {
        const int64_t y = row * c.window.stride_h - c.window.pad_top + tap;
        sum = Mixed(sum + static_cast<uint64_t>(tap));
        if (y < 0 || y >= c.in_h) continue;
        for (int64_t i = 0; i < in_row; ++i) sum = Mixed(sum + At(c.a)[y * in_row + i]);
      }
      for (int64_t i = 0; i < out_row; ++i) {
        At(c.result.d)[row * out_row + i] = Mixed(sum + static_cast<uint64_t>(i));
      }
    }
  }

  std::vector<std::vector<uint64_t>> memory_;
};

// Nets that branch, of maps of several sizes, in each kind of stripes, both ways: the same outputs.
TEST(CutInStripes, ComputesTheSame) {
  std::mt19937 random(22);
  const auto below = [&random](uint32_t end) { return static_cast<int32_t>(random() % end); };
  int64_t cut = 0;
  for (int round = 0; round < 1500; ++round) {
    SCOPED_TRACE(round);
    Map map{4 + below(9), 1 + below(2), 1 + below(3)};
    Nets nets(map, {1, 1, 1});
    std::vector<int32_t> made = {0};
    const int commands = 2 + below(7);
    for (int i = 0; i < commands; ++i) {
      const int32_t a = made[made.size() - 1 - random() % std::min<size_t>(made.size(), 3)];
      const int32_t b = made.back();
      const Map& from = nets.map(a);
      const int32_t kind = below(6);
      const int32_t stride = kind == 1 ? 2 : 1;
      const bool sums = kind == 0 && a != b && nets.map(b).size_bytes() == from.size_bytes();
      const Map to_map = {kind > 2 || sums ? from.h : (from.h - 1) / stride + 1, from.w,
                          kind == 2 ? 1 + below(4) : from.c};
      const int32_t to = nets.Add(to_map);
      if (sums) {
        nets.Sum(a, b, to);
      } else if (kind == 3) {
        nets.Copy(a, to);
      } else {
        nets.Convolution(a, to, 1 + 2 * below(3), kind < 3 ? stride : 1);
      }
      made.push_back(to);
    }
    nets.program.buffers[1].size_bytes = nets.map(made.back()).size_bytes();
    nets.Copy(made.back(), 1);
    const integer::Program& program = nets.program;
    const BufferUses uses(program);
    StripedChain chain;
    chain.first = static_cast<size_t>(below(static_cast<uint32_t>(program.commands.size())));
    chain.end = program.commands.size() - static_cast<size_t>(below(2));
    if (chain.end <= chain.first) continue;
    chain.units = 1 + below(4);
    if (below(4) == 0) chain.units *= 5;
    chain.upwards = below(2) == 0;
    for (size_t i = chain.first; i < chain.end; ++i) {
      const BufferId d = integer::ResultOf(program.commands[i].body).d.buffer;
      const bool is_free = i + 1 < chain.end && !uses.IsNeededBehind(d, chain.end);
      chain.keeps.push_back(is_free ? static_cast<StripeKeep>(below(3)) : StripeKeep::kWhole);
    }
    std::optional<Stripes> stripes =
        CutInStripes(program, uses, chain, static_cast<int32_t>(program.buffers.size()));
    if (!stripes.has_value()) continue;
    ++cut;
    integer::Program striped = program;
    const auto begin = striped.commands.begin();
    striped.commands.erase(begin + static_cast<std::ptrdiff_t>(chain.first),
                           begin + static_cast<std::ptrdiff_t>(chain.end));
    striped.commands.insert(striped.commands.begin() + static_cast<std::ptrdiff_t>(chain.first),
                            stripes->commands.begin(), stripes->commands.end());
    striped.buffers.insert(striped.buffers.end(), stripes->buffers.begin(), stripes->buffers.end());
    ASSERT_EQ(Executor(striped).output(), Executor(program).output());
    ASSERT_TRUE(integer::VerifyProgram(striped).ok()) << integer::VerifyProgram(striped);
  }
  EXPECT_GT(cut, 1000);
}

}  // namespace
}  // namespace npuc
