#include "compiler_core/quant/finite_constants.h"

#include "compiler_core/ir/graph/text.h"
#include "compiler_core/ops/op.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

// "000080ff" is -infinity, "0000807f" infinity.
TEST(WithFiniteConstants, MasksAreFiniteAndOtherConstantsStay) {
  const Graph graph = WithFiniteConstants(*ParseGraph(R"(graph "m" {
  %0 = Placeholder() : f32[2] @"x"
  %1 = Const() {value = f32[2] "00000000000080ff"} : f32[2] @"mask"
  %2 = Add(%0, %1) : f32[2] @"masked"
  %3 = Reshape(%2) {shape = [1, 2]} : f32[1,2] @"row"
  %4 = Softmax(%3) : f32[1,2] @"shares"
  %5 = Const() {value = f32[1,2] "0000803f0000807f"} : f32[1,2] @"factor"
  %6 = Mul(%4, %5) : f32[1,2] @"scaled"
  return %6 @"y"
})"));
  EXPECT_TRUE(VerifyGraph(graph).ok()) << VerifyGraph(graph);
  EXPECT_THAT(graph.ConstantOf(ValueId(1))->ToFloats(), testing::ElementsAre(0, -65504));
  EXPECT_EQ(graph.ConstantOf(ValueId(5))->at(1), HUGE_VAL);
}

// A sum that something else reads, too, would be another one.
TEST(WithFiniteConstants, SumsThatMoreThanSoftmaxReadsStay) {
  const Graph graph = WithFiniteConstants(*ParseGraph(R"(graph "m" {
  %0 = Placeholder() : f32[2] @"x"
  %1 = Const() {value = f32[2] "00000000000080ff"} : f32[2] @"given"
  %2 = Add(%0, %1) : f32[2] @"output"
  %3 = Const() {value = f32[2] "00000000000080ff"} : f32[2] @"scaled"
  %4 = Add(%0, %3) : f32[2] @"masked"
  %5 = Const() {value = f32[1] "17b7d138"} : f32[1] @"factor"
  %6 = Mul(%4, %5) : f32[2] @"small"
  %7 = Softmax(%6) : f32[2] @"shares"
  return %2 @"y", %7 @"z"
})"));
  EXPECT_TRUE(VerifyGraph(graph).ok()) << VerifyGraph(graph);
  EXPECT_EQ(graph.ConstantOf(ValueId(1))->at(1), -HUGE_VAL);
  EXPECT_EQ(graph.ConstantOf(ValueId(3))->at(1), -HUGE_VAL);
}

}  // namespace
}  // namespace npuc
