#include "compiler_core/frontends/common/positions.h"

#include "gtest/gtest.h"

namespace npuc {
namespace {

TEST(PositionsTest, FindsWhatIsNotZero) {
  const absl::StatusOr<Tensor> found =
      EvaluateNonZero(Tensor::FromFloats({2, 3}, {0, -1, 0, 0.5f, 0, 2}));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, Tensor::FromInts({3, 2}, {0, 1, 1, 0, 1, 2}));
  EXPECT_EQ(EvaluateNonZero(Tensor::FromInts({}, {5}))->shape(), (Shape{1, 0}));
}

TEST(PositionsTest, FillsADenseTensorAtPositions) {
  const Tensor zero = Tensor::FromInts({}, {0});
  EXPECT_EQ(*EvaluateSparseToDense(Tensor::FromInts({2, 2}, {0, 1, 1, 0}), {2, 2},
                                   Tensor::FromInts({2}, {7, 8}), zero),
            Tensor::FromInts({2, 2}, {0, 7, 8, 0}));
  EXPECT_EQ(*EvaluateSparseToDense(Tensor::FromInts({1}, {2}), {3}, Tensor::FromInts({1}, {9}),
                                   Tensor::FromInts({1}, {1})),
            Tensor::FromInts({3}, {1, 1, 9}));
  EXPECT_FALSE(EvaluateSparseToDense(Tensor::FromInts({1}, {3}), {3}, zero, zero).ok());
  EXPECT_FALSE(EvaluateSparseToDense(Tensor::FromInts({3}, {0, 1, 2}), {2, 2}, zero, zero).ok());
  EXPECT_FALSE(
      EvaluateSparseToDense(Tensor::FromInts({1}, {0}), {3}, Tensor::ScalarFloat(1), zero).ok());
}

}  // namespace
}  // namespace npuc
