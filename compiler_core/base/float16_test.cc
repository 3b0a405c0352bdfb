#include "compiler_core/base/float16.h"

#include <cmath>
#include <limits>
#include <random>

#include "compiler_core/base/fp16.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

TEST(Float16, FiveExponentBitsAreFp16) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    const uint16_t half = static_cast<uint16_t>(bits);
    const float value = HalfToFloat(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(Float16ToFloat(half, 5)));
      continue;
    }
    ASSERT_EQ(Float16ToFloat(half, 5), value) << bits;
    ASSERT_EQ(FloatToFloat16(value, 5), half) << bits;
  }
  std::mt19937 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const float value = std::ldexp(static_cast<float>(random()) / 2147483648.0f - 1.0f,
                                   static_cast<int>(random() % 44) - 28);
    ASSERT_EQ(FloatToFloat16(value, 5), FloatToHalf(value)) << value;
  }
}

TEST(Float16, EachFormatReadsBackAndRoundsToNearest) {
  for (const int exponent_bits : {3, 4, 6}) {
    float before = 0;
    for (int bits = 1; Float16ToFloat(static_cast<uint16_t>(bits), exponent_bits) <=
                       std::numeric_limits<float>::max();
         ++bits) {
      const uint16_t code = static_cast<uint16_t>(bits);
      const float value = Float16ToFloat(code, exponent_bits);
      ASSERT_GT(value, before);
      ASSERT_EQ(FloatToFloat16(value, exponent_bits), code);
      ASSERT_EQ(FloatToFloat16(-value, exponent_bits), code | 0x8000);
      const float middle = (before + value) / 2;  // exact: a bit more than the format has
      const int even = bits % 2 == 0 ? bits : bits - 1;
      ASSERT_EQ(FloatToFloat16(middle, exponent_bits), even);
      ASSERT_EQ(FloatToFloat16(std::nextafter(middle, before), exponent_bits), bits - 1);
      ASSERT_EQ(FloatToFloat16(std::nextafter(middle, value), exponent_bits), bits);
      before = value;
    }
    EXPECT_EQ(before, LargestFloat16(exponent_bits));
  }
}

TEST(Float16, EndsOfTheFormats) {
  EXPECT_EQ(LargestFloat16(3), 15.998046875f);  // (2 - 2^-12) x 2^3
  EXPECT_EQ(LargestFloat16(4), 255.9375f);
  EXPECT_EQ(LargestFloat16(5), 65504.0f);
  EXPECT_EQ(LargestFloat16(6), 4290772992.0f);
  EXPECT_EQ(SmallestFloat16(3), 0x1p-14f);
  EXPECT_EQ(SmallestFloat16(5), 0x1p-24f);
  EXPECT_EQ(SmallestFloat16(6), 0x1p-39f);
  EXPECT_EQ(Float16ToFloat(FloatToFloat16(1e30f, 4), 4), LargestFloat16(4));
  EXPECT_EQ(Float16ToFloat(FloatToFloat16(-1e30f, 4), 4), -LargestFloat16(4));
  EXPECT_TRUE(std::isinf(Float16ToFloat(FloatToFloat16(INFINITY, 6), 6)));
  EXPECT_TRUE(std::isnan(Float16ToFloat(FloatToFloat16(NAN, 6), 6)));
  EXPECT_TRUE(std::signbit(Float16ToFloat(FloatToFloat16(-0.0f, 3), 3)));
}

}  // namespace
}  // namespace npuc
