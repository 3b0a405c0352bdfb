#include "compiler_core/frontends/common/evaluator.h"

#include "compiler_core/frontends/common/fold.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

TEST(EvaluatorTest, ComparesWithBroadcasting) {
  const Tensor a = Tensor::FromFloats({2, 1}, {1, 3});
  const Tensor b = Tensor::FromFloats({2}, {2, 3});
  const absl::StatusOr<Tensor> less = EvaluateBinary("Less", a, b);
  ASSERT_TRUE(less.ok()) << less.status();
  EXPECT_EQ(less->type(), (TensorType{DType::kBool, {2, 2}}));
  EXPECT_EQ(std::vector<uint8_t>(less->bytes().begin(), less->bytes().end()),
            (std::vector<uint8_t>{1, 1, 0, 0}));
}

TEST(EvaluatorTest, RefusesDivisionByZero) {
  const Tensor a = Tensor::FromInts({1}, {7});
  EXPECT_FALSE(EvaluateBinary("FloorDiv", a, Tensor::FromInts({1}, {0})).ok());
  EXPECT_EQ(EvaluateBinary("FloorMod", a, Tensor::FromInts({1}, {-4}))->int_at(0), -1);
}

TEST(FoldTest, KeepsTheLimits) {
  const Tensor x = Tensor::FromFloats({4}, {1, 2, 3, 4});
  FoldLimits limits{.bytes = 16, .work_each = 8, .work = 12};
  const auto sum = FoldOperator(Op::kNeg, {x}, {}, {}, limits);
  ASSERT_TRUE(sum.ok()) << sum.status();
  EXPECT_EQ((*sum)[0].ToFloats(), (std::vector<float>{-1, -2, -3, -4}));
  EXPECT_EQ(limits.work, 4);
  EXPECT_TRUE(absl::IsResourceExhausted(FoldOperator(Op::kNeg, {x}, {}, {}, limits).status()));
}

}  // namespace
}  // namespace npuc
