#include <cstring>
#include <random>
#include <variant>
#include <vector>

#include "compiler_core/ir/integer/access.h"
#include "compiler_core/ir/integer/command.h"
#include "compiler_core/ir/integer/steps.h"
#include "compiler_core/sim/integer_kernels.h"
#include "gtest/gtest.h"

namespace npuc::integer {
namespace {

using Bytes = std::vector<uint8_t>;

int32_t Below(std::mt19937& random, int32_t end) { return static_cast<int32_t>(random() % end); }

Window RandomWindow(std::mt19937& random) {
  Window window;
  window.kernel_h = 1 + Below(random, 4);
  window.stride_h = 1 + Below(random, 3);
  window.dilation_h = 1 + Below(random, 2);
  window.pad_top = Below(random, window.kernel_h);
  return window;
}

Body RandomConvolve(std::mt19937& random) {
  Convolve c;
  c.n = 1 + Below(random, 2);
  c.in_h = 1 + Below(random, 6);
  c.in_w = c.out_w = 1 + Below(random, 3);
  c.in_c = 1 + Below(random, 3);
  c.out_h = 1 + Below(random, 6);
  c.out_c = 1 + Below(random, 3);
  c.window = RandomWindow(random);
  return c;
}

Body RandomPool(std::mt19937& random) {
  Pool c;
  c.n = 1 + Below(random, 2);
  c.in_h = 1 + Below(random, 6);
  c.in_w = c.out_w = 1 + Below(random, 3);
  c.c = 1 + Below(random, 3);
  c.out_h = 1 + Below(random, 6);
  c.window = RandomWindow(random);
  return c;
}

// Places one behind the other, in the order of the extents or in another.
Extents RandomStrides(std::mt19937& random, const Extents& extents) {
  Extents strides = {};
  int32_t stride = 1;
  const bool reversed = random() % 3 == 0;
  for (int i = 0; i < kMaxExtents; ++i) {
    const int axis = reversed ? i : kMaxExtents - 1 - i;
    strides[axis] = stride;
    stride *= extents[axis];
  }
  return strides;
}

Body RandomMove(std::mt19937& random) {
  Move c;
  for (int i = 3; i < kMaxExtents; ++i) c.extents[i] = 1 + Below(random, 4);
  c.a_strides = RandomStrides(random, c.extents);
  c.d_strides = RandomStrides(random, c.extents);
  return c;
}

Body RandomSoftmax(std::mt19937& random) {
  Softmax c;
  c.kind = Softmax::Kind::kFixed;
  c.multiplier = 1 << 30;
  c.left = 20;
  c.diff_min = -255;
  c.rows = 1 + Below(random, 5);
  c.length = 1 + Below(random, 5);
  return c;
}

Body RandomLookup(std::mt19937& random) {
  Lookup c;
  c.count = 1 + Below(random, 20);
  return c;
}

// Runs the command with its operand at `a` and its result at `d` of one memory.
void RunIn(const Body& body, Bytes& memory, int64_t a, int64_t d, bool descending) {
  uint8_t* const from = memory.data() + a;
  uint8_t* const to = memory.data() + d;
  if (const auto* c = std::get_if<Convolve>(&body)) {
    ConvolveConstants constants;
    constants.weights.assign(static_cast<size_t>(WeightCount(*c)), 3);
    for (size_t i = 0; i < constants.weights.size(); i += 2) constants.weights[i] = -2;
    constants.offsets.assign(static_cast<size_t>(c->out_c), 5);
    constants.factors = {{1 << 14, 15}};
    Run(*c, constants, from, to, descending);
  } else if (const auto* p = std::get_if<Pool>(&body)) {
    Run(*p, {}, from, to, descending);
  } else if (const auto* m = std::get_if<Move>(&body)) {
    Run(*m, {}, from, to, descending);
  } else if (const auto* s = std::get_if<Softmax>(&body)) {
    Run(*s, {}, from, nullptr, to, descending);
  } else if (const auto* l = std::get_if<Lookup>(&body)) {
    Bytes table(256);
    for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<uint8_t>(7 * i + 1);
    Run(*l, from, table.data(), to, descending);
  }
}

int64_t BytesOf(const Body& body, bool writes) {
  int64_t bytes = 0;
  for (const Access& access : AccessesOf(body)) {
    if (access.writes == writes && (writes || access.role == OperandRole::kA)) {
      bytes = access.size_bytes;
    }
  }
  return bytes;
}

// Where the rules of steps.h let a result lie over its operand, it is what it would be elsewhere;
// where they do not, the commands run in such an order that it often is not.
TEST(IntegerOrder, OverlapsThatStepsAllowChangeNothing) {
  std::mt19937 random(20261125);
  const std::vector<Body (*)(std::mt19937&)> kinds = {RandomConvolve, RandomPool, RandomMove,
                                                      RandomSoftmax, RandomLookup};
  int allowed = 0;
  int spoiled = 0;
  for (int round = 0; round < 1500; ++round) {
    SCOPED_TRACE(round);
    Body body = kinds[static_cast<size_t>(round) % kinds.size()](random);
    std::visit(
        [](auto& c) {
          if constexpr (requires { c.a; }) c.a = {BufferId(0), 0};
          c.result.d = {BufferId(0), 0};
        },
        body);
    const std::vector<Step> steps = StepsOf(body);
    const int64_t in = BytesOf(body, false);
    const int64_t out = BytesOf(body, true);
    Bytes start(static_cast<size_t>(in + 2 * out));
    for (uint8_t& byte : start) byte = static_cast<uint8_t>(random());
    for (const bool descending : {false, true}) {
      Bytes apart = start;
      RunIn(body, apart, out, out + in, descending);
      for (int64_t d = 0; d <= out + in; ++d) {
        Bytes memory = start;
        RunIn(body, memory, out, d, descending);
        const bool equal =
            std::memcmp(memory.data() + d, apart.data() + out + in, static_cast<size_t>(out)) == 0;
        const bool clobbers = Clobbers(body, steps, 0, d - out, descending);
        ASSERT_TRUE(clobbers || equal) << d - out << " " << descending;
        allowed += !clobbers && d > 0 && d < out + in ? 1 : 0;
        spoiled += equal ? 0 : 1;
      }
    }
  }
  EXPECT_GT(allowed, 5000);
  EXPECT_GT(spoiled, 5000);
}

}  // namespace
}  // namespace npuc::integer
