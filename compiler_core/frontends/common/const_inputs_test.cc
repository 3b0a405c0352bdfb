#include "compiler_core/frontends/common/const_inputs.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::frontend {
namespace {

using ::testing::ElementsAre;

constexpr std::nullopt_t kNothing = std::nullopt;

ConstInput Number(double value) {
  return {"x", {value}, false, value == static_cast<int64_t>(value)};
}
ConstInput List(std::vector<double> values) { return {"x", std::move(values), true, true}; }

TEST(ConstInputsTest, ANumberFillsTheShape) {
  const auto filled = TensorOf(Number(0.5), DType::kFloat32, {{2, -1, 2}});
  ASSERT_TRUE(filled.ok()) << filled.status();
  EXPECT_EQ(filled->shape(), Shape({2, 1, 2}));
  EXPECT_THAT(filled->ToFloats(), ElementsAre(0.5, 0.5, 0.5, 0.5));
  EXPECT_EQ(TensorOf(Number(1), DType::kBool, kNothing)->type(), TensorType({DType::kBool, {}}));
}

TEST(ConstInputsTest, AListHasTheShapesNumbers) {
  EXPECT_EQ(TensorOf(List({1, 2, 3, 4}), DType::kInt64, {{2, 2}})->shape(), Shape({2, 2}));
  EXPECT_EQ(TensorOf(List({1, 2, 3, 4}), DType::kInt64, {{-1, 2}})->shape(), Shape({2, 2}));
  EXPECT_EQ(TensorOf(List({1, 2, 3, 4}), DType::kInt64, kNothing)->shape(), Shape({4}));
  EXPECT_FALSE(TensorOf(List({1, 2, 3}), DType::kInt64, {{2, 2}}).ok());
  EXPECT_FALSE(TensorOf(List({1, 2, 3}), DType::kInt64, {{-1, 2}}).ok());
  EXPECT_FALSE(TensorOf(List({1, 2, 3, 4}), DType::kInt64, {{-1, -1}}).ok());
}

TEST(ConstInputsTest, NumbersFitTheType) {
  EXPECT_TRUE(TensorOf(Number(-128), DType::kInt8, kNothing).ok());
  EXPECT_FALSE(TensorOf(Number(-129), DType::kInt8, kNothing).ok());
  EXPECT_FALSE(TensorOf(Number(2), DType::kBool, kNothing).ok());
  EXPECT_FALSE(TensorOf(Number(0.5), DType::kInt32, kNothing).ok());
}

TEST(ConstInputsTest, HugeShapesAreRefusedBeforeTheyAreFilled) {
  EXPECT_FALSE(TensorOf(Number(1), DType::kFloat32, {{1 << 20, 1 << 20}}).ok());
}

}  // namespace
}  // namespace npuc::frontend
