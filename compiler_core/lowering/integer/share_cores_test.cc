#include "compiler_core/lowering/integer/share_cores.h"

#include <array>
#include <string>
#include <variant>
#include <vector>

#include "compiler_core/ir/integer/load.h"
#include "compiler_core/ir/integer/phases.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using integer::Command;
using integer::Convolve;
using integer::Program;
using integer::Sharing;

const CoreSpec& ThreeCores() { return *FindCore("X2_1204MP3"); }

// A convolution of side x side pixels from buffer `from` to the next one.
Command Layer(const std::string& name, int32_t from, int32_t side, int32_t in_c, int32_t out_c) {
  Convolve c;
  c.a = {BufferId(from), 0};
  c.result.d = {BufferId(from + 1), 0};
  c.in_h = c.in_w = c.out_h = c.out_w = side;
  c.in_c = in_c;
  c.out_c = out_c;
  c.window.kernel_h = c.window.kernel_w = 3;
  c.window.pad_top = c.window.pad_left = 1;
  c.weights = c.bias = c.factors = {BufferId(4), from * (1 << 18)};
  return {c, name};
}

// A large map, then one of many weights, then one that is too small to share.
Program ThreeLayers() {
  Program program;
  program.buffers.resize(5);
  for (size_t i = 0; i < 4; ++i) program.buffers[i].size_bytes = 40 * 40 * 16;
  program.buffers[4] = {Slot::kWeight, 1 << 20, 0, ""};
  program.commands = {Layer("map", 0, 40, 8, 8), Layer("weights", 1, 2, 128, 256),
                      Layer("small", 2, 1, 4, 4)};
  return program;
}

void PlaceApart(Program& program) {
  for (size_t i = 0; i < 4; ++i) {
    program.buffers[i].offset_bytes = static_cast<int64_t>(i) * program.buffers[i].size_bytes;
  }
}

std::vector<std::string> LinesOf(const Program& program) {
  std::vector<std::string> lines;
  for (const Command& command : program.commands) {
    lines.push_back(command.layer + " " + std::to_string(command.core) +
                    (command.barrier ? " barrier" : ""));
  }
  return lines;
}

TEST(CoreSharing, TakesRowsOrChannelsByTheCycleModel) {
  Program program = ThreeLayers();
  const CoreSharing sharing(ThreeCores(), 3, {});
  sharing.Choose(program);
  EXPECT_EQ(program.commands[0].sharing, (Sharing{Sharing::Axis::kRows, 3}));
  EXPECT_EQ(program.commands[1].sharing, (Sharing{Sharing::Axis::kChannels, 3}));
  EXPECT_EQ(program.commands[2].sharing, Sharing());
  PlaceApart(program);
  ASSERT_TRUE(sharing.Share(program).ok()) << sharing.Share(program);
  EXPECT_THAT(LinesOf(program), testing::ElementsAre("map 0", "map 1", "map 2", "weights 0 barrier",
                                                     "weights 1", "weights 2", "small 0 barrier"));
}

// Each core fetches its next command while the others run theirs.
TEST(CoreSharing, TakesTurnsAtCommandsThatAreShorterThanAFetch) {
  Program program = ThreeLayers();
  program.commands.clear();
  for (const char* name : {"a", "b", "c", "d"}) program.commands.push_back(Layer(name, 0, 1, 4, 4));
  PlaceApart(program);
  const int64_t on_one_core = integer::FrameLoadOf(program, ThreeCores()).cycles;
  const CoreSharing sharing(ThreeCores(), 3, {});
  sharing.Choose(program);
  ASSERT_TRUE(sharing.Share(program).ok());
  EXPECT_THAT(LinesOf(program),
              testing::ElementsAre("a 0", "b 1 barrier", "c 2 barrier", "d 0 barrier"));
  const int64_t fetch = ThreeCores().cycles->command_cycles;
  EXPECT_GT(on_one_core, 4 * fetch);
  EXPECT_LT(integer::FrameLoadOf(program, ThreeCores()).cycles, 3 * fetch);
}

// A result over rows of its operand is for one core, whatever was wished for.
TEST(CoreSharing, LeavesWhatLiesOverItsOperand) {
  Program program = ThreeLayers();
  const CoreSharing sharing(ThreeCores(), 3, {});
  sharing.Choose(program);
  PlaceApart(program);
  program.buffers[0].offset_bytes = program.buffers[1].offset_bytes + 40 * 8 * 2;
  ASSERT_TRUE(sharing.Share(program).ok());
  EXPECT_EQ(LinesOf(program)[0], "map 0");
  EXPECT_EQ(LinesOf(program)[1], "weights 0 barrier");
}

// Weights that a command must read whole are not stored in parts for another one as well.
TEST(CoreSharing, ReadsWeightsInOneWay) {
  for (const bool is_apart : {true, false}) {
    Program program = ThreeLayers();
    program.commands = {Layer("first", 1, 2, 128, 256), Layer("second", 1, 2, 128, 256)};
    std::get<Convolve>(program.commands[1].body).a.buffer = BufferId(3);
    std::get<Convolve>(program.commands[1].body).result.d.buffer = BufferId(0);
    const CoreSharing sharing(ThreeCores(), 3, {});
    sharing.Choose(program);
    PlaceApart(program);
    if (!is_apart) program.buffers[3].offset_bytes = 64;
    ASSERT_TRUE(sharing.Share(program).ok());
    const Sharing by_channels = {Sharing::Axis::kChannels, 3};
    EXPECT_EQ(program.commands.front().sharing == by_channels, is_apart);
    EXPECT_EQ(program.commands.back().sharing == by_channels, is_apart);
  }
}

TEST(CoreSharing, GivesRowsThatAreAskedFor) {
  Program program = ThreeLayers();
  ManualRows manual;
  manual.of_layers = {{"map", 5}, {"small", 2}};
  EXPECT_EQ(manual.Of("map"), 5);
  EXPECT_EQ(manual.Of("weights"), 0);
  const CoreSharing sharing(ThreeCores(), 3, manual);
  PlaceApart(program);
  ASSERT_TRUE(sharing.Share(program).ok());
  EXPECT_THAT(LinesOf(program),
              testing::ElementsAre("map 0", "map 0", "map 1", "map 1", "map 2", "weights 0 barrier",
                                   "weights 1", "weights 2", "small 0 barrier"));
  // A third of 40 rows reads two rows more, and forty parts read most rows three times.
  for (const auto& [rows, percent, commands] :
       {std::array<int64_t, 3>{3, 50, 3}, {40, 50, 1}, {40, 200, 40}}) {
    program = ThreeLayers();
    program.commands.resize(1);
    PlaceApart(program);
    manual = {{}, rows, percent};
    ASSERT_TRUE(CoreSharing(ThreeCores(), 3, manual).Share(program).ok());
    EXPECT_EQ(program.commands.size(), static_cast<size_t>(commands)) << rows << " " << percent;
  }
}

}  // namespace
}  // namespace npuc
