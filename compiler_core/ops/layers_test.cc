#include "compiler_core/ops/layers.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/ir/graph/text.h"
#include "compiler_core/ops/op.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Graph Parse(absl::string_view text) {
  absl::StatusOr<Graph> graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE(VerifyGraph(*graph).ok()) << VerifyGraph(*graph);
  return *std::move(graph);
}

std::string Ids(const std::vector<ValueId>& values) {
  return absl::StrJoin(values, ",",
                       [](std::string* out, ValueId id) { absl::StrAppend(out, id.value()); });
}

// "name: type(inputs; weight; bias) -> outputs" for each layer.
std::vector<std::string> Told(const std::vector<Layer>& layers) {
  std::vector<std::string> out;
  for (const Layer& layer : layers) {
    out.push_back(absl::StrCat(layer.name, ": ", layer.type, "(", Ids(layer.inputs), "; ",
                               layer.weight.value(), "; ", layer.bias.value(), ") -> ",
                               Ids(layer.outputs)));
  }
  return out;
}

constexpr absl::string_view kNet = R"(graph "net" {
  %0 = Placeholder() : f32[1,4,4,2] @"x"
  %1 = Const() {value = f32[1,1,2,3] splat "0000803f"} : f32[1,1,2,3] @"w"
  %2 = Const() {value = f32[3] splat "0000803f"} : f32[3] @"b"
  %3 = Conv2D(%0, %1) {strides = [1, 1], pads = [0, 0, 0, 0]} : f32[1,4,4,3] @"conv"
  %4 = Add(%3, %2) : f32[1,4,4,3] @"bias"
  %5 = Relu6(%4) : f32[1,4,4,3] @"relu"
  %6 = Reshape(%5) {shape = [1, 48]} : f32[1,48] @"flat"
  %7 = Const() {value = f32[48,3] splat "0000803f"} : f32[48,3] @"m"
  %8 = MatMul(%6, %7) : f32[1,3] @"fc"
  %9 = Add(%8, %8) : f32[1,3] @"twice"
  %10 = Add(%9, %2) : f32[1,3] @"fc"
  %11 = Relu(%10) : f32[1,3] @"end"
  return %11 @"y"
})";

TEST(GroupLayers, JoinsBiasAndActivationWhereNothingElseReadsBetween) {
  EXPECT_THAT(Told(GroupLayers(Parse(kNet))),
              ElementsAre("x: Input(; -1; -1) -> 0", "conv: Convolution(0; 1; 2) -> 5",
                          "flat: Reshape(5; -1; -1) -> 6", "fc: FullyConnected(6; 7; -1) -> 8",
                          "twice: Eltwise(8,8; -1; -1) -> 9", "fc_2: Eltwise(9; 2; -1) -> 11"));
}

TEST(GroupLayers, BordersStayBetweenLayers) {
  EXPECT_THAT(Told(GroupLayers(Parse(kNet), {ValueId(4), ValueId(10)})),
              ElementsAre("x: Input(; -1; -1) -> 0", "conv: Convolution(0; 1; 2) -> 4",
                          "relu: Activation(4; -1; -1) -> 5", "flat: Reshape(5; -1; -1) -> 6",
                          "fc: FullyConnected(6; 7; -1) -> 8", "twice: Eltwise(8,8; -1; -1) -> 9",
                          "fc_2: Eltwise(9; 2; -1) -> 10", "end: Activation(10; -1; -1) -> 11"));
}

TEST(GroupLayers, GraphOutputsAreBorders) {
  const std::vector<Layer> layers = GroupLayers(Parse(R"(graph "g" {
  %0 = Placeholder() : f32[1,2] @"x"
  %1 = Const() {value = f32[2,2] splat "0000803f"} : f32[2,2] @"w"
  %2 = MatMul(%0, %1) : f32[1,2] @"fc"
  %3 = Relu(%2) : f32[1,2] @"relu"
  return %2 @"a", %3 @"b"
})"));
  EXPECT_THAT(Told(layers),
              ElementsAre("x: Input(; -1; -1) -> 0", "fc: FullyConnected(0; 1; -1) -> 2",
                          "relu: Activation(2; -1; -1) -> 3"));
  EXPECT_THAT(layers[1].nodes, ElementsAre(NodeId(2)));
}

// Between borders, sums and products of one value with single numbers are one function; clamps join
// the layer before them.
TEST(GroupLayers, FunctionsBetweenBordersAreOneLayer) {
  const Graph graph = Parse(R"(graph "g" {
  %0 = Placeholder() : f32[1,4] @"x"
  %1 = Const() {value = f32[] splat "00004040"} : f32[] @"three"
  %2 = Add(%0, %1) : f32[1,4] @"swish"
  %3 = Relu6(%2) : f32[1,4] @"swish"
  %4 = Mul(%0, %3) : f32[1,4] @"swish"
  %5 = Const() {value = f32[4,4] splat "0000803f"} : f32[4,4] @"w"
  %6 = MatMul(%4, %5) : f32[1,4] @"fc"
  %7 = Maximum(%6, %1) : f32[1,4] @"low"
  %8 = Minimum(%7, %1) : f32[1,4] @"high"
  return %8 @"y"
})");
  const std::vector<Layer> layers = GroupLayers(graph, {ValueId(0), ValueId(4), ValueId(8)});
  EXPECT_THAT(Told(layers),
              ElementsAre("x: Input(; -1; -1) -> 0", "swish: Activation(0; -1; -1) -> 4",
                          "fc: FullyConnected(4; 5; -1) -> 8"));
  EXPECT_THAT(layers[1].nodes, ElementsAre(NodeId(2), NodeId(3), NodeId(4)));
  EXPECT_THAT(layers[2].nodes, ElementsAre(NodeId(6), NodeId(7), NodeId(8)));
}

// Products of two activations, of a constant in front and of a stack of matrices take clamps, no
// bias.
TEST(GroupLayers, OtherProductsAreLayersWithoutABias) {
  const Graph graph = Parse(R"(graph "g" {
  %0 = Placeholder() : f32[2,3,3] @"x"
  %1 = Const() {value = f32[2,3,3] splat "0000803f"} : f32[2,3,3] @"w"
  %2 = Const() {value = f32[3] splat "0000803f"} : f32[3] @"b"
  %3 = MatMul(%0, %1) : f32[2,3,3] @"stack"
  %4 = Add(%3, %2) : f32[2,3,3] @"bias"
  %5 = Const() {value = f32[3,3] splat "0000803f"} : f32[3,3] @"m"
  %6 = MatMul(%5, %4) : f32[2,3,3] @"front"
  %7 = MatMul(%6, %0) : f32[2,3,3] @"two"
  %8 = Relu(%7) : f32[2,3,3] @"relu"
  return %8 @"y"
})");
  EXPECT_THAT(Told(GroupLayers(graph)),
              ElementsAre("x: Input(; -1; -1) -> 0", "stack: MatMul(0; 1; -1) -> 3",
                          "bias: Eltwise(3; 2; -1) -> 4", "front: MatMul(4; 5; -1) -> 6",
                          "two: MatMul(6,0; -1; -1) -> 8"));
}

// A convolution clamped to [0.5, 2] by limits on either side, and one whose limit is a tensor.
TEST(GroupLayers, LimitsOfOneNumberAreClamps) {
  const Graph graph = Parse(R"(graph "g" {
  %0 = Placeholder() : f32[1,4,4,2] @"x"
  %1 = Const() {value = f32[1,1,2,3] splat "0000803f"} : f32[1,1,2,3] @"w"
  %2 = Conv2D(%0, %1) {strides = [1, 1], pads = [0, 0, 0, 0]} : f32[1,4,4,3] @"a"
  %3 = Const() {value = f32[1] splat "0000003f"} : f32[1] @"half"
  %4 = Maximum(%2, %3) : f32[1,4,4,3] @"low"
  %5 = Const() {value = f32[] splat "00000040"} : f32[] @"two"
  %6 = Minimum(%5, %4) : f32[1,4,4,3] @"high"
  %7 = Conv2D(%0, %1) {strides = [1, 1], pads = [0, 0, 0, 0]} : f32[1,4,4,3] @"b"
  %8 = Const() {value = f32[3] splat "0000003f"} : f32[3] @"halves"
  %9 = Maximum(%7, %8) : f32[1,4,4,3] @"rows"
  return %6 @"y", %9 @"z"
})");
  const std::vector<Layer> layers = GroupLayers(graph);
  EXPECT_THAT(Told(layers),
              ElementsAre("x: Input(; -1; -1) -> 0", "a: Convolution(0; 1; -1) -> 6",
                          "b: Convolution(0; 1; -1) -> 7", "rows: Eltwise(7; 8; -1) -> 9"));
  EXPECT_EQ(ClampsOf(graph, layers[1]), (ClampRange{0.5, 2}));
  EXPECT_EQ(ClampsOf(graph, layers[2]), ClampRange());
  EXPECT_EQ(ClampsOf(graph, layers[3]), ClampRange());
}

// A number that is divided has integers; what it is divided by becomes reciprocals.
TEST(GroupLayers, ADivisorIsNoWeight) {
  EXPECT_THAT(
      Told(GroupLayers(Parse(R"(graph "g" {
  %0 = Placeholder() : f32[1,2] @"x"
  %1 = Const() {value = f32[2] splat "0000003f"} : f32[2] @"halves"
  %2 = Div(%0, %1) : f32[1,2] @"by"
  %3 = Div(%1, %2) : f32[1,2] @"of"
  return %3 @"y"
})"))),
      ElementsAre("x: Input(; -1; -1) -> 0", "by: Div(0; -1; -1) -> 2", "of: Div(2; 1; -1) -> 3"));
}

// x + x is a sum with a command of its own, and its clamp joins it: a table of 16-bit values would
// be less exact.
TEST(GroupLayers, ASumOfOneValueIsNoFunction) {
  const std::vector<Layer> layers = GroupLayers(Parse(R"(graph "g" {
  %0 = Placeholder() : f32[1,4] @"x"
  %1 = Add(%0, %0) : f32[1,4] @"twice"
  %2 = Relu6(%1) : f32[1,4] @"twice"
  return %2 @"y"
})"),
                                                {ValueId(0), ValueId(2)});
  EXPECT_THAT(Told(layers),
              ElementsAre("x: Input(; -1; -1) -> 0", "twice: Eltwise(0,0; -1; -1) -> 2"));
}

// Behind a border a Maximum of one number without integers is a layer of its own, and its clamp.
TEST(GroupLayers, AClampThatStandsAloneIsCounted) {
  const Graph graph = Parse(R"(graph "g" {
  %0 = Placeholder() : f32[1,4] @"x"
  %1 = Const() {value = f32[] splat "0000003f"} : f32[] @"half"
  %2 = Maximum(%0, %1) : f32[1,4] @"low"
  return %2 @"y"
})");
  const std::vector<Layer> kept = GroupLayers(graph, {ValueId(0), ValueId(2)});
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[1].type, "Activation");
  EXPECT_EQ(ClampsOf(graph, kept[1]).low, 0.5);
  // With integers of its own the number is the operand of an element-wise layer.
  const std::vector<Layer> eltwise = GroupLayers(graph, {ValueId(0), ValueId(1), ValueId(2)});
  ASSERT_EQ(eltwise.size(), 2u);
  EXPECT_EQ(eltwise[1].type, "Eltwise");
  EXPECT_EQ(ClampsOf(graph, eltwise[1]), ClampRange());
}

TEST(GroupLayers, AnEmptyGraphHasNone) { EXPECT_THAT(GroupLayers(Graph()), IsEmpty()); }

}  // namespace
}  // namespace npuc
