#include "compiler_core/quant/finite_constants.h"

#include "compiler_core/ir/graph/text.h"
#include "compiler_core/ops/op.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

TEST(WithFiniteConstants, MasksAreFiniteAndOtherConstantsStay) {
  // "000080ff" is -infinity, "0000807f" infinity.
  const Graph graph = WithFiniteConstants(*ParseGraph(R"(graph "m" {
  %0 = Placeholder() : f32[2] @"x"
  %1 = Const() {value = f32[2] "00000000000080ff"} : f32[2] @"mask"
  %2 = Add(%0, %1) : f32[2] @"masked"
  %3 = Const() {value = f32[2] "0000803f0000807f"} : f32[2] @"factor"
  %4 = Mul(%2, %3) : f32[2] @"scaled"
  return %4 @"y"
})"));
  EXPECT_TRUE(VerifyGraph(graph).ok()) << VerifyGraph(graph);
  EXPECT_THAT(graph.ConstantOf(ValueId(1))->ToFloats(), testing::ElementsAre(0, -65504));
  EXPECT_EQ(graph.ConstantOf(ValueId(3))->at(1), HUGE_VAL);
}

}  // namespace
}  // namespace npuc
