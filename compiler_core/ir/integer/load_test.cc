#include "compiler_core/ir/integer/load.h"

#include <algorithm>
#include <map>
#include <random>

#include "gtest/gtest.h"

namespace npuc::integer {
namespace {

constexpr MacArray kArray = {8, 8, 2, 16};

Convolve Make(int32_t rows, int32_t columns, int32_t in_c, int32_t out_c, int32_t kernel,
              int32_t groups) {
  Convolve c;
  c.in_h = c.out_h = rows;
  c.in_w = c.out_w = columns;
  c.in_c = in_c;
  c.out_c = out_c;
  c.groups = groups;
  c.window.kernel_h = c.window.kernel_w = kernel;
  return c;
}

TEST(ArrayCycles, FullLanesReachThePeak) {
  const Convolve c = Make(4, 4, 64, 64, 3, 1);
  EXPECT_EQ(ArrayCycles(c, kArray), 16 * 64 * 9 * 64 / 128);
}

// A first layer has few inputs, a depthwise one has one a channel: up to four taps share the lanes.
TEST(ArrayCycles, FewInputsLeaveLanesIdle) {
  EXPECT_EQ(ArrayCycles(Make(25, 5, 1, 64, 3, 1), kArray), 63 * 8 * 3);
  EXPECT_EQ(ArrayCycles(Make(25, 5, 64, 64, 3, 64), kArray), 63 * 8 * 3);
  EXPECT_EQ(ArrayCycles(Make(25, 5, 3, 8, 3, 1), kArray), 63 * 3 * 2);
  EXPECT_EQ(ArrayCycles(Make(25, 5, 8, 12, 1, 4), kArray), 63 * 4);
}

TEST(ArrayCycles, DecodingMayTakeLonger) {
  Convolve c = Make(1, 1, 640, 128, 1, 1);
  EXPECT_EQ(ArrayCycles(c, kArray), 16 * 80);
  c.coded_bytes = 1000;
  EXPECT_EQ(ArrayCycles(c, kArray), 640 * 128 / 16);
}

// Never below the peak, and what counts is the loop that target/README.md states.
TEST(ArrayCycles, CountsTheStatedLoop) {
  std::mt19937 random(22);
  for (int round = 0; round < 500; ++round) {
    const auto below = [&random](uint32_t end) { return 1 + static_cast<int32_t>(random() % end); };
    const int32_t groups = below(3);
    const Convolve c =
        Make(below(6), below(6), groups * below(20), groups * below(20), below(4), groups);
    const int64_t inputs = c.in_c / groups;
    const int64_t lanes_by_taps = kArray.inputs / 4;
    int64_t cycles = 0;
    for (int64_t pixel = 0; pixel < c.out_h * c.out_w; pixel += kArray.pixels) {
      const int64_t sides = inputs == 1 ? 1 : groups;
      for (int64_t side = 0; side < sides; ++side) {
        for (int64_t o = 0; o < c.out_c / sides; o += kArray.outputs) {
          int64_t by_tap = 0;
          int64_t by_taps = 0;
          const int64_t taps = c.window.kernel_h * c.window.kernel_w;
          for (int64_t tap = 0; tap < taps; ++tap) {
            for (int64_t i = 0; i < inputs; i += kArray.inputs) ++by_tap;
          }
          for (int64_t tap = 0; tap < taps; tap += 4) {
            for (int64_t i = 0; i < inputs; i += lanes_by_taps) ++by_taps;
          }
          cycles += std::min(by_tap, by_taps);
        }
      }
    }
    ASSERT_EQ(ArrayCycles(c, kArray), cycles) << round;
    ASSERT_GE(cycles * 128, LoadOf(c, nullptr).macs) << round;
  }
}

// A part of the channels stores these alone, though it reaches over the others.
TEST(LoadOf, CountsNoBytesBetweenPixels) {
  Convolve c;
  c.a = c.result.d = {BufferId(0), 0};
  c.out_w = 10;
  c.out_c = 3;
  const CommandLoad whole = LoadOf(c, nullptr);
  c.d_pixel = 8;
  EXPECT_EQ(LoadOf(c, nullptr), whole);
  EXPECT_EQ(whole.written_bytes, 30);
}

TEST(PhaseClock, WaitsForTheSlowestCoreOfEachPhase) {
  PhaseClock clock;
  clock.Add(0, 0, 10);
  clock.Add(0, 1, 30);
  clock.Add(0, 0, 5);
  EXPECT_EQ(clock.cycles(), 30);
  clock.Add(1, 2, 7);
  clock.Add(1, 1, 3);
  EXPECT_EQ(clock.cycles(), 37);
  EXPECT_EQ(clock.busy(), (std::map<int32_t, int64_t>{{0, 15}, {1, 33}, {2, 7}}));
}

constexpr CycleModel kModel = {64, 2, 1, 1, 1};  // a cycle for each element

CommandLoad Elements(int64_t count) {
  CommandLoad load;
  load.elements = count;
  return load;
}

// Each command's cycles begin with the wait for its fetch: 64 before the first, none behind a
// command of 100, 34 behind one of 30.
TEST(StreamClock, FetchesTheNextCommandWhileOneRuns) {
  StreamClock clock(kModel, 1);
  EXPECT_EQ(clock.Run(0, 0, Elements(100)), 64 + 100);
  EXPECT_EQ(clock.Run(0, 0, Elements(30)), 30);
  EXPECT_EQ(clock.Run(0, 0, Elements(10)), 34 + 10);
  EXPECT_EQ(clock.cycles(), 64 + 100 + 30 + 34 + 10);
}

TEST(StreamClock, FetchesBetweenCommandsWithOneSetOfRegisters) {
  CycleModel model = kModel;
  model.register_sets = 1;
  StreamClock clock(model, 2);
  EXPECT_EQ(clock.Run(0, 0, Elements(100)), 64 + 100);
  EXPECT_EQ(clock.Run(0, 0, Elements(30)), 64 + 30);
  EXPECT_EQ(clock.Run(1, 1, Elements(10)), 64 + 10);
  EXPECT_EQ(clock.cycles(), 3 * 64 + 140);
}

// A barrier holds the begin of a command and not its fetch.
TEST(StreamClock, FetchesBeforeABarrier) {
  StreamClock clock(kModel, 3);
  EXPECT_EQ(clock.Run(0, 0, Elements(20)), 84);
  EXPECT_EQ(clock.Run(0, 1, Elements(30)), 94);
  EXPECT_EQ(clock.Run(1, 2, Elements(5)), 5);         // core 2 has waited since 64
  EXPECT_EQ(clock.Run(2, 0, Elements(40)), 29 + 40);  // fetched from 64 on, the phase begins at 99
  EXPECT_EQ(clock.cycles(), 99 + 69);
}

// Searches add up the frame's time but for its ends.
TEST(StreamClock, IsTheSumOfTheCommandsOfACore) {
  std::mt19937 random(27);
  for (int round = 0; round < 200; ++round) {
    StreamClock clock(kModel, 1);
    int64_t sum = 0;
    int64_t last = 0;
    for (int i = 0; i < 20; ++i) {
      last = 1 + static_cast<int64_t>(random() % 130);
      sum += EstimateCycles(kModel, Elements(last));
      clock.Run(0, 0, Elements(last));
    }
    ASSERT_EQ(clock.cycles(), 64 + sum - std::max<int64_t>(0, 64 - last)) << round;
  }
}

TEST(ArrayCycles, OfProducts) {
  Product p;
  p.extents = {1, 1, 2, 3, 9, 17};
  EXPECT_EQ(ArrayCycles(p, kArray), 2 * 2 * 2 * 3);
  EXPECT_EQ(ArrayCycles(Fill(), kArray), 0);
  EXPECT_EQ(LoadOf(p, &kArray).array_cycles, 24);
  EXPECT_EQ(LoadOf(p, nullptr).array_cycles, 0);
}

}  // namespace
}  // namespace npuc::integer
