#include "compiler_core/base/fixed_point.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace npuc {
namespace {

TEST(MakeFactor, NearestFactorOfSoManyBits) {
  EXPECT_EQ(MakeFactor(0.5, 31), (Factor{1 << 30, 31}));
  EXPECT_EQ(MakeFactor(1.0, 15), (Factor{1 << 14, 14}));
  EXPECT_EQ(MakeFactor(1.0 - 1e-12, 15), (Factor{1 << 14, 14}));  // rounds up into the next power
  EXPECT_EQ(MakeFactor(0, 15), Factor{});
  EXPECT_EQ(MakeFactor(std::ldexp(1.0, -32), 31), (Factor{1 << 30, 62}));
  EXPECT_EQ(MakeFactor(std::ldexp(1.0, -33), 31), Factor{});  // as TFLite has it
  EXPECT_EQ(MakeFactor(std::ldexp(1.0, -48), 15), (Factor{1 << 14, 62}));
  EXPECT_EQ(MakeFactor(std::ldexp(1.0, -49), 15), Factor{});
  EXPECT_EQ(MakeFactor(1e30, 15), (Factor{32767, 0}));
  for (const int bits : {2, 8, 15, 31}) {
    for (double value = 1e-6; value < 2; value *= 1.37) {
      const Factor factor = MakeFactor(value, bits);
      EXPECT_NEAR(ValueOf(factor) / value, 1, std::ldexp(1.0, -bits)) << value << " " << bits;
    }
  }
}

TEST(KeepHighBits, LeavesPlacesOfTheLargest) {
  std::vector<int64_t> numbers = {100, -37, 9, 3, 0};
  KeepHighBits(4, numbers);
  EXPECT_EQ(numbers, (std::vector<int64_t>{96, -32, 16, 0, 0}));
  // 31 becomes 32, which four bits hold in steps of 8 alone.
  numbers = {31, -5, 3};
  KeepHighBits(4, numbers);
  EXPECT_EQ(numbers, (std::vector<int64_t>{32, -8, 0}));
  const std::vector<int64_t> once = numbers;
  KeepHighBits(4, numbers);
  EXPECT_EQ(numbers, once);
  numbers = {7, -7};
  KeepHighBits(4, numbers);
  EXPECT_EQ(numbers, (std::vector<int64_t>{7, -7}));
  numbers = {INT64_MIN, INT64_MAX, 1};
  KeepHighBits(2, numbers);
  EXPECT_EQ(numbers, (std::vector<int64_t>{INT64_MIN, INT64_MAX, 0}));
}

TEST(Multiply, RoundsAsStated) {
  const Factor half = MakeFactor(0.5, 15);
  const int64_t even[] = {-2, -2, -1, 0, 0, 0, 1, 2, 2};
  const int64_t up[] = {-2, -1, -1, 0, 0, 1, 1, 2, 2};
  for (int x = -4; x <= 4; ++x) {
    EXPECT_EQ(Multiply(x, half, Rounding::kEven), even[x + 4]) << x;
    EXPECT_EQ(Multiply(x, half, Rounding::kUp), up[x + 4]) << x;
    EXPECT_EQ(Multiply(x, MakeFactor(0.5, 31), Rounding::kDouble), up[x + 4]) << x;
  }
  // 3/8 becomes 1.5 in halves of a half first, hence 2, then 2/4, hence 1.
  EXPECT_EQ(Multiply(3, {1 << 30, 33}, Rounding::kDouble), 1);
  EXPECT_EQ(Multiply(3, {1 << 30, 33}, Rounding::kEven), 0);
  EXPECT_EQ(Multiply(std::numeric_limits<int64_t>::max(), {INT32_MAX, 0}, Rounding::kEven),
            std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Multiply(std::numeric_limits<int64_t>::min(), {INT32_MAX, 0}, Rounding::kUp),
            std::numeric_limits<int64_t>::min());
}

TEST(Rounding, OfRealNumbers) {
  EXPECT_EQ(RoundHalfEven(2.5), 2);
  EXPECT_EQ(RoundHalfEven(3.5), 4);
  EXPECT_EQ(RoundHalfEven(-2.5), -2);
  EXPECT_EQ(RoundHalfEven(-0.5), 0);
  EXPECT_EQ(RoundHalfEven(2.51), 3);
  EXPECT_EQ(RoundHalfAway(-2.5), -3);
  EXPECT_EQ(RoundHalfAway(1e300), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(RoundHalfEven(-1e300), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(RoundHalfEven(std::nan("")), 0);
}

TEST(FixedPointFunctions, AgreeWithRealOnes) {
  for (double x = -31.5; x <= 0; x += 0.0173) {
    const int32_t raw = static_cast<int32_t>(std::lround(std::ldexp(x, 26)));
    const double exact = std::exp(std::ldexp(static_cast<double>(raw), -26));
    EXPECT_NEAR(std::ldexp(ExpOnNegative(raw), -31), exact, 2e-7) << x;
  }
  EXPECT_EQ(ExpOnNegative(0), INT32_MAX);
  for (double x = 0; x < 1; x += 0.0097) {
    const int32_t raw = static_cast<int32_t>(std::ldexp(x, 31));
    EXPECT_NEAR(std::ldexp(OneOverOnePlus(raw), -31), 1 / (1 + x), 1e-7) << x;
  }
}

}  // namespace
}  // namespace npuc
