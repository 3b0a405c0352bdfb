#include "compiler_core/ir/graph/types.h"

#include <cmath>
#include <limits>

#include "compiler_core/base/fp16.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using ::testing::ElementsAre;

TEST(DType, NamesRoundTripAndSizesAreThoseOfTheElements) {
  for (int i = 1; i <= static_cast<int>(DType::kBool); ++i) {
    const DType dtype = static_cast<DType>(i);
    EXPECT_EQ(DTypeFromName(NameOf(dtype)), dtype);
    EXPECT_EQ(IsFloat(dtype) + IsInteger(dtype) + (dtype == DType::kBool), 1);
  }
  EXPECT_EQ(SizeOf(DType::kFloat16), 2);
  EXPECT_EQ(SizeOf(DType::kInt64), 8);
  EXPECT_EQ(SizeOf(DType::kInvalid), 0);
  EXPECT_EQ(DTypeFromName("invalid"), DType::kInvalid);
  EXPECT_EQ(DTypeFromName("f8"), DType::kInvalid);
}

TEST(Shape, LimitsHoldAlsoBesideAZeroDimension) {
  EXPECT_TRUE(CheckShape({}).ok());
  EXPECT_TRUE(CheckShape({0, 3}).ok());
  EXPECT_TRUE(CheckShape({kMaxElements}).ok());
  EXPECT_FALSE(CheckShape({kMaxElements, 2}).ok());
  EXPECT_FALSE(CheckShape({0, kMaxElements, 2}).ok());
  EXPECT_FALSE(CheckShape({-1}).ok());
  EXPECT_FALSE(CheckShape({std::numeric_limits<int64_t>::max(), 2}).ok());
  EXPECT_FALSE(CheckShape(Shape(kMaxRank + 1, 1)).ok());
  EXPECT_TRUE(CheckShape(Shape(kMaxRank, 1)).ok());
  EXPECT_EQ(ElementCount({}), 1);
  EXPECT_EQ(ElementCount(Shape(8, int64_t{1} << 28)), std::numeric_limits<int64_t>::max());
}

TEST(Tensor, CopiesAndReshapesShareTheirBytes) {
  const Tensor a = Tensor::FromFloats({2, 2}, {1, 2, 3, 4});
  // The copy is what is tested.
  const Tensor b = a;  // NOLINT(performance-unnecessary-copy-initialization)
  const Tensor c = a.WithShape({4});
  EXPECT_EQ(a.bytes().data(), b.bytes().data());
  EXPECT_EQ(a.bytes().data(), c.bytes().data());
  EXPECT_EQ(a, b);
  EXPECT_FALSE(a == c);
  EXPECT_THAT(c.as<float>(), ElementsAre(1, 2, 3, 4));
}

TEST(Tensor, ZeroElements) {
  const Tensor empty = Tensor::Zeros({DType::kFloat32, {0, 4}});
  EXPECT_EQ(empty.element_count(), 0);
  EXPECT_TRUE(empty.ToFloats().empty());
  EXPECT_EQ(empty, Tensor::FromFloats({0, 4}, {}));
}

TEST(CastTensor, FloatToIntegerTruncatesAndClamps) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor t = Tensor::FromFloats({7}, {-1.9f, 1.9f, 300.0f, -300.0f, inf, -inf, NAN});
  const Tensor i8 = CastTensor(t, DType::kInt8);
  EXPECT_THAT(i8.as<int8_t>(), ElementsAre(-1, 1, 127, -128, 127, -128, 0));
  const Tensor u8 = CastTensor(t, DType::kUint8);
  EXPECT_THAT(u8.as<uint8_t>(), ElementsAre(0, 1, 255, 0, 255, 0, 0));
  const Tensor i64 = CastTensor(t, DType::kInt64);
  EXPECT_EQ(i64.as<int64_t>()[4], std::numeric_limits<int64_t>::max());
  EXPECT_EQ(i64.as<int64_t>()[5], std::numeric_limits<int64_t>::min());
}

TEST(CastTensor, BoolHalfAndWrappingIntegers) {
  const Tensor t = Tensor::FromFloats({4}, {0.0f, -0.0f, 0.5f, 2.0f});
  const Tensor truth = CastTensor(t, DType::kBool);
  EXPECT_THAT(truth.as<bool>(), ElementsAre(false, false, true, true));
  const Tensor back = CastTensor(truth, DType::kFloat16);
  EXPECT_THAT(back.as<uint16_t>(), ElementsAre(0, 0, 0x3c00, 0x3c00));
  EXPECT_EQ(back.at(2), 1.0);
  const Tensor ints = Tensor::FromInts({3}, {-1, 257, int64_t{1} << 40});
  const Tensor bytes = CastTensor(ints, DType::kUint8);
  EXPECT_THAT(bytes.as<uint8_t>(), ElementsAre(255, 1, 0));
  const Tensor third = CastTensor(Tensor::ScalarFloat(1.0f / 3), DType::kFloat16);
  EXPECT_EQ(third.at(0), RoundToHalf(1.0f / 3));
}

TEST(CastTensor, SixtyFourBitIntegersRoundOnceToFloat) {
  // 2^60 + 2^36 + 1 lies just above a midpoint of two floats; through double it would be one.
  const int64_t value = (int64_t{1} << 60) + (int64_t{1} << 36) + 1;
  const Tensor t = Tensor::FromInts({1}, {value});
  EXPECT_EQ(CastTensor(t, DType::kFloat32).as<float>()[0], static_cast<float>(value));
  EXPECT_EQ(t.ToFloats()[0], static_cast<float>(value));
  EXPECT_GT(static_cast<float>(value), 0x1p60f);
}

TEST(Tensor, ElementAccessConverts) {
  const Tensor t = Tensor::FromInts({2}, {-3, (int64_t{1} << 62) + 1});
  EXPECT_EQ(t.at(0), -3.0);
  EXPECT_EQ(t.int_at(1), (int64_t{1} << 62) + 1);
  EXPECT_EQ(Tensor::ScalarFloat(-2.7f).int_at(0), -2);
}

}  // namespace
}  // namespace npuc
