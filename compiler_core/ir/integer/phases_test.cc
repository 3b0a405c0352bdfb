#include "compiler_core/ir/integer/phases.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::integer {
namespace {

using testing::HasSubstr;

constexpr int64_t kBytes = 256;

std::vector<Buffer> OneMemory() {
  std::vector<Buffer> buffers(1);
  buffers[0].offset_bytes = 0;
  buffers[0].size_bytes = kBytes;
  return buffers;
}

// A 1x1 convolution of `pixels` pixels.
Body Pixels(int64_t a, int64_t d, int32_t pixels, int32_t in_c, int32_t out_c, int32_t d_pixel) {
  Convolve c;
  c.a = {BufferId(0), a};
  c.in_w = c.out_w = pixels;
  c.in_c = in_c;
  c.out_c = out_c;
  c.d_pixel = d_pixel;
  c.result.d = {BufferId(0), d};
  return c;
}

// Which bytes a Pixels command reads and stores, one by one.
void Mark(const Body& body, std::vector<bool>& reads, std::vector<bool>& writes) {
  const Convolve& c = std::get<Convolve>(body);
  for (int64_t i = 0; i < c.in_w * c.in_c; ++i) {
    reads[static_cast<size_t>(c.a.offset_bytes + i)] = true;
  }
  for (int64_t p = 0; p < c.out_w; ++p) {
    for (int64_t o = 0; o < c.out_c; ++o) {
      const int64_t pixel = c.d_pixel > 0 ? c.d_pixel : c.out_c;
      writes[static_cast<size_t>(c.result.d.offset_bytes + p * pixel + o)] = true;
    }
  }
}

// Where two cores share a byte that one of them stores, the phase is refused; where they share none
// and their results have one distance between pixels, it is taken.
TEST(PhaseProblem, FindsEachByteThatTwoCoresFightFor) {
  std::mt19937 random(27);
  const auto below = [&](int end) { return static_cast<int32_t>(random() % end); };
  const std::vector<Buffer> buffers = OneMemory();
  int refused = 0;
  int taken = 0;
  for (int round = 0; round < 20000; ++round) {
    const int32_t d_pixel = 6 + below(3);
    Body bodies[2];
    std::vector<bool> reads[2], writes[2];
    for (int i = 0; i < 2; ++i) {
      reads[i].resize(kBytes);
      writes[i].resize(kBytes);
      bodies[i] =
          Pixels(below(40), 60 + below(40), 1 + below(4), 1 + below(4), 1 + below(5), d_pixel);
      Mark(bodies[i], reads[i], writes[i]);
    }
    bool fight = false;
    for (size_t at = 0; at < kBytes; ++at) {
      fight = fight || (writes[0][at] && (reads[1][at] || writes[1][at])) ||
              (reads[0][at] && writes[1][at]);
    }
    const PhaseCommand phase[] = {{&bodies[0], 0}, {&bodies[1], 2}};
    const auto problem = PhaseProblem(buffers, phase);
    // By the hull of what lies between pixels a refusal may be too strict; never the other way.
    if (fight) {
      ASSERT_TRUE(problem.has_value()) << round;
    }
    ++(fight ? refused : taken);
    if (!fight && std::get<Convolve>(bodies[0]).out_w == std::get<Convolve>(bodies[1]).out_w) {
      EXPECT_EQ(problem, std::nullopt) << round;
    }
    const PhaseCommand one_core[] = {{&bodies[0], 1}, {&bodies[1], 1}};
    EXPECT_EQ(PhaseProblem(buffers, one_core), std::nullopt);
  }
  EXPECT_GT(refused, 3000);
  EXPECT_GT(taken, 3000);
}

TEST(PhaseProblem, SaysWhatIsWrong) {
  const std::vector<Buffer> buffers = OneMemory();
  const Body first = Pixels(0, 100, 4, 2, 2, 0);
  const Body reads = Pixels(104, 150, 2, 2, 2, 0);
  const Body stores = Pixels(0, 104, 2, 2, 2, 0);
  const PhaseCommand read[] = {{&first, 0}, {&reads, 1}};
  EXPECT_THAT(*PhaseProblem(buffers, read),
              HasSubstr("(convolve, core 0) and 1 (convolve, core 1), the first stores bytes that "
                        "the other reads"));
  const PhaseCommand turned[] = {{&reads, 1}, {&first, 0}};
  EXPECT_THAT(*PhaseProblem(buffers, turned), HasSubstr("the first reads bytes that the other"));
  const PhaseCommand store[] = {{&first, 0}, {&stores, 1}};
  EXPECT_THAT(*PhaseProblem(buffers, store), HasSubstr("stores bytes that the other stores"));
  std::vector<PhaseCommand> many(kMaxPhaseCommands + 1, {&first, 0});
  EXPECT_EQ(PhaseProblem(buffers, many), std::nullopt);
  many.back().core = 1;
  EXPECT_THAT(*PhaseProblem(buffers, many), HasSubstr("has 65 commands; at most 64"));
}

TEST(VerifyPhases, LooksBetweenBarriersAndAtCores) {
  Program program;
  program.buffers = OneMemory();
  program.commands.resize(3);
  program.commands[0].body = Pixels(0, 100, 4, 2, 2, 0);
  program.commands[1].body = Pixels(100, 150, 2, 2, 2, 0);
  program.commands[2].body = Pixels(104, 160, 2, 2, 2, 0);
  program.commands[1].barrier = true;
  program.commands[2].core = 2;
  EXPECT_TRUE(VerifyPhases(program, 3).ok()) << VerifyPhases(program, 3);
  EXPECT_THAT(VerifyPhases(program, 2).message(), HasSubstr("command 2 is of core 2; there are 2"));
  program.commands[1].barrier = false;
  EXPECT_THAT(VerifyPhases(program, 3).message(), HasSubstr("the phase from command 0"));
}

}  // namespace
}  // namespace npuc::integer
