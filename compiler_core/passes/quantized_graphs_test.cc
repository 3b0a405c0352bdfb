#include <vector>

#include "compiler_core/ir/graph/text.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/passes/passes.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

Graph Parsed(absl::string_view text) {
  absl::StatusOr<Graph> graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *std::move(graph) : Graph();
}

// A convolution's weights per channel, its input and result as integers.
constexpr absl::string_view kQuantized = R"(graph "m" {
  %x = Placeholder() : f32[1,1,1,2] @"x"
  %qx = Quantize(%x) {axis = -1, dtype = "i8", scale = [0.5], zero_point = [-3]} : i8[1,1,1,2] @"x"
  %fx = Dequantize(%qx) {axis = -1, dtype = "f32", scale = [0.5], zero_point = [-3]} : f32[1,1,1,2] @"x"
  %w = Const() {value = i8[1,1,2,2] "01020304"} : i8[1,1,2,2] @"w" ("Const")
  %fw = Dequantize(%w) {axis = 3, dtype = "f32", scale = [0.5, 0.25], zero_point = [0, 1]} : f32[1,1,2,2] @"w"
  %y = Conv2D(%fx, %fw) {strides = [1, 1], pads = [0, 0, 0, 0]} : f32[1,1,1,2] @"y" ("CONV_2D")
  %qy = Quantize(%y) {axis = -1, dtype = "i8", scale = [0.125], zero_point = [0]} : i8[1,1,1,2] @"y"
  %fy = Dequantize(%qy) {axis = -1, dtype = "f32", scale = [0.125], zero_point = [0]} : f32[1,1,1,2] @"y"
  return %fy @"y"
}
)";

TEST(RunPasses, LeavesStoredIntegersAlone) {
  const absl::StatusOr<Graph> passed = RunPasses(Parsed(kQuantized));
  ASSERT_TRUE(passed.ok()) << passed.status();
  const std::string text = PrintGraph(*passed);
  EXPECT_NE(text.find("i8[1,1,2,2] \"01020304\""), std::string::npos) << text;
  const std::vector<Tensor> input = {Tensor::FromFloats({1, 1, 1, 2}, {1.3f, -2.1f})};
  const auto before = RunReference(Parsed(kQuantized), input);
  const auto after = RunReference(*passed, input);
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_EQ((*before)[0], (*after)[0]);
}

TEST(RemoveIdentity, QuantizingWhatWasJustDequantizedGivesTheIntegers) {
  const Graph graph = Parsed(R"(graph "m" {
  %x = Placeholder() : f32[2] @"x"
  %q = Quantize(%x) {dtype = "i8", scale = [0.3], zero_point = [-3]} : i8[2] @"q"
  %f = Dequantize(%q) {scale = [0.3], zero_point = [-3]} : f32[2] @"f"
  %r = Quantize(%f) {dtype = "i8", scale = [0.3], zero_point = [-3]} : i8[2] @"r"
  %g = Dequantize(%r) {scale = [0.3], zero_point = [-3]} : f32[2] @"g"
  %s = Quantize(%f) {dtype = "i8", scale = [0.2], zero_point = [-3]} : i8[2] @"s"
  %h = Dequantize(%s) {scale = [0.2], zero_point = [-3]} : f32[2] @"h"
  return %g @"g", %h @"h"
})");
  const absl::StatusOr<Graph> removed = RemoveIdentity(graph);
  ASSERT_TRUE(removed.ok()) << removed.status();
  int quantizers = 0;
  for (const Node& node : removed->nodes()) quantizers += node.op == Op::kQuantize ? 1 : 0;
  EXPECT_EQ(quantizers, 2) << PrintGraph(*removed);
}

}  // namespace
}  // namespace npuc
