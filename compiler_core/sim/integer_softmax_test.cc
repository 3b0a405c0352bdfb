#include <cstdint>
#include <vector>

#include "compiler_core/ir/integer/command.h"
#include "compiler_core/sim/integer_kernels.h"
#include "gtest/gtest.h"

namespace npuc::integer {
namespace {

// The share of each of `length` equal numbers by TFLite's fixed point, in steps of 1/256.
int ShareOfEqual(int length) {
  Softmax c;
  c.kind = Softmax::Kind::kFixed;
  c.a_type = DType::kInt8;
  c.multiplier = 1 << 30;
  c.left = 20;
  c.diff_min = -255;
  c.rows = 1;
  c.length = length;
  c.result.type = DType::kInt8;
  c.result.zero = -128;
  c.result.min = -128;
  c.result.max = 127;
  const std::vector<uint8_t> a(static_cast<size_t>(length), 5);
  std::vector<uint8_t> d(a.size());
  Run(c, {}, a.data(), nullptr, d.data(), /*descending=*/false);
  for (const uint8_t one : d) EXPECT_EQ(one, d[0]);
  return static_cast<int8_t>(d[0]) + 128;
}

// Behind 512 equal numbers the result is shifted by more than 31 bits, for which TFLite's kernel
// has no rule.
TEST(IntegerSoftmax, ManyEqualNumbersShareOne) {
  EXPECT_EQ(ShareOfEqual(100), 3);
  EXPECT_EQ(ShareOfEqual(511), 1);
  EXPECT_EQ(ShareOfEqual(520), 0);
  EXPECT_EQ(ShareOfEqual(1254), 0);
  EXPECT_EQ(ShareOfEqual(4095), 0);
}

}  // namespace
}  // namespace npuc::integer
