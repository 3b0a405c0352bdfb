#include "compiler_core/quant/kept/whole_numbers.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler_core/ir/graph/text.h"
#include "compiler_core/ops/op.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

// As DORY writes a layer, after the import of an ONNX model: floor((64 x * kappa + lambda) * 3 /
// 384) between 0 and 255, in the order of channels first.
constexpr absl::string_view kLayer = R"(graph "m" {
  %x = Placeholder() : f32[1,1,2,1] @"x"
  %w = Const() {value = f32[1,1,1,2] "0000804200008042"} : f32[1,1,1,2] @"w"
  %c = Conv2D(%x, %w) {strides = [1, 1], pads = [0, 0, 0, 0]} : f32[1,1,2,2] @"c"
  %t = Transpose(%c) {perm = [0, 3, 1, 2]} : f32[1,2,1,2] @"c"
  %k = Const() {value = f32[1,2,1,1] "0000004000004040"} : f32[1,2,1,1] @"kappa"
  %p = Mul(%k, %t) : f32[1,2,1,2] @"p"
  %l = Const() {value = f32[1,2,1,1] "00008043000080c3"} : f32[1,2,1,1] @"lambda"
  %s = Add(%p, %l) : f32[1,2,1,2] @"s"
  %i = Cast(%s) {dtype = "i64"} : i64[1,2,1,2] @"i"
  %m = Const() {value = i64[1] "0300000000000000"} : i64[1] @"m"
  %im = Mul(%i, %m) : i64[1,2,1,2] @"im"
  %d = Const() {value = i64[1] "8001000000000000"} : i64[1] @"d"
  %id = Div(%im, %d) : i64[1,2,1,2] @"id"
  %f = Cast(%id) {dtype = "f32"} : f32[1,2,1,2] @"f"
  %y = RESULT(%f) : f32[1,2,1,2] @"y"
  return %y @"y"
}
)";

Graph Layer(const std::string& result) {
  absl::StatusOr<Graph> graph = ParseGraph(absl::StrReplaceAll(kLayer, {{"RESULT", result}}));
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *std::move(graph) : Graph();
}

std::vector<float> Answers(const Graph& graph) {
  EXPECT_TRUE(VerifyGraph(graph).ok()) << VerifyGraph(graph);
  const auto results = RunReference(graph, {Tensor::FromFloats({1, 1, 2, 1}, {3, 10})});
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? results->front().ToFloats() : std::vector<float>();
}

// (64 * 3 * 2 + 256) / 128 = 5, (64 * 10 * 2 + 256) / 128 = 12; with 3 and -256: 2.5 and 13.
TEST(WholeNumbers, AStepGoesIntoTheWeight) {
  const Graph graph = Layer("Relu");
  EXPECT_THAT(Answers(graph), testing::ElementsAre(5, 12, 2, 13));
  const WholeNumbersForm form = FloatWholeNumbers(graph);
  EXPECT_EQ(form.steps, 1);
  EXPECT_THAT(Answers(form.graph), testing::ElementsAre(4.5f, 11.5f, 2, 12.5f));
  // Nothing that the result depends on computes with integers, nor multiplies behind the weight.
  const Node& sum = form.graph.def(form.graph.def(form.graph.outputs()[0].value).inputs[0]);
  ASSERT_EQ(sum.op, Op::kAdd);
  const Node& moved = form.graph.def(sum.inputs[0]);
  ASSERT_EQ(moved.op, Op::kTranspose);
  EXPECT_EQ(form.graph.def(moved.inputs[0]).op, Op::kConv2D);
}

// A result that may be negative is not shifted: division drops fractions towards zero.
TEST(WholeNumbers, FractionsOfBothSignsStay) {
  const WholeNumbersForm form = FloatWholeNumbers(Layer("Neg"));
  EXPECT_EQ(form.steps, 1);
  EXPECT_THAT(Answers(form.graph), testing::ElementsAre(-5, -12, -2.5f, -13));
}

void ExpectLeftAlone(absl::StatusOr<Graph> graph) {
  ASSERT_TRUE(graph.ok()) << graph.status();
  const std::string before = PrintGraph(*graph);
  EXPECT_EQ(CountWholeNumberSteps(*graph), 0);
  const WholeNumbersForm form = FloatWholeNumbers(*std::move(graph));
  EXPECT_EQ(form.steps, 0);
  EXPECT_EQ(PrintGraph(form.graph), before);
}

TEST(WholeNumbers, AModelWithoutStepsIsLeftAlone) {
  ExpectLeftAlone(ParseGraph(R"(graph "m" {
  %x = Placeholder() : f32[2] @"x"
  %y = Relu(%x) : f32[2] @"y"
  return %y @"y"
})"));
}

// x - trunc(x), as models write it.
TEST(WholeNumbers, CastsThatDropFractionsAreLeftAlone) {
  ExpectLeftAlone(ParseGraph(R"(graph "m" {
  %x = Placeholder() : f32[2] @"x"
  %i = Cast(%x) {dtype = "i32"} : i32[2] @"i"
  %f = Cast(%i) {dtype = "f32"} : f32[2] @"f"
  %y = Sub(%x, %f) : f32[2] @"y"
  return %y @"y"
})"));
  // So are they behind a weight of whole numbers.
  ExpectLeftAlone(ParseGraph(
      absl::StrReplaceAll(kLayer, {{"RESULT", "Relu"}, {"Div(%im, %d)", "Mul(%im, %d)"}})));
}

// The sums are of no whole numbers: 0.5 is among the weights.
TEST(WholeNumbers, DivisionsBehindOtherWeightsAreLeftAlone) {
  ExpectLeftAlone(ParseGraph(
      absl::StrReplaceAll(kLayer, {{"RESULT", "Relu"}, {"0000804200008042", "000080420000003f"}})));
}

}  // namespace
}  // namespace npuc
