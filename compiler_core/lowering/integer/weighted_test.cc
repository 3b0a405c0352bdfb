#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "compiler_core/lowering/integer/lower_integer.h"
#include "compiler_core/ops/graph_builder.h"
#include "compiler_core/ops/layers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using testing::HasSubstr;

constexpr int64_t kSize = 2;  // of each dimension, so that scales of each fit the result channels

// A layer of x and a weight [2,2] or [2,2,2,2] with two scales along `axis`, then a bias whose
// integers have a zero point.
absl::Status Lowered(Op op, int axis, bool transpose_b = false, int64_t bias_zero = 0) {
  Graph graph;
  GraphBuilder builder(&graph);
  const bool is_product = op == Op::kMatMul;
  const Shape shape(is_product ? 2 : 4, kSize);
  const ValueId x = graph.AddInput("x", {DType::kFloat32, shape});
  const auto count = static_cast<size_t>(ElementCount(shape));
  const ValueId w =
      builder.Const(Tensor::FromFloats(shape, std::vector<float>(count, 1)), {"w", "Const"});
  const AttrMap window = {{"strides", Shape{1, 1}}, {"pads", Shape{0, 0, 0, 0}}};
  const ValueId sums = *builder.AddOne(
      op, {x, w}, is_product ? AttrMap{{"transpose_b", transpose_b}} : window, {"layer", "Layer"});
  const int64_t channels = graph.type(sums).shape.back();
  const Tensor bias =
      Tensor::FromFloats({channels}, std::vector<float>(static_cast<size_t>(channels), 3));
  const ValueId b = builder.Const(bias, {"b", "Const"});
  const ValueId y = *builder.AddOne(Op::kAdd, {sums, b}, {}, {"bias", "BiasAdd"});
  graph.AddOutput({"y", y});
  QuantPlan plan;
  for (const ValueId value : {x, y}) plan.values[value] = {DType::kInt8, -128, 127, -1, {1.0}, {0}};
  plan.values[w] = {DType::kInt8, -127, 127, axis, {1.0, 2.0}, {0, 0}};
  plan.values[b] = {DType::kInt32, INT32_MIN, INT32_MAX, -1, {1.0}, {bias_zero}};
  plan.constants.emplace(b, CastTensor(bias, DType::kInt32));
  plan.layers = GroupLayers(graph);
  plan.settings.resize(plan.layers.size());
  Diagnostics diagnostics;
  return LowerInteger(graph, plan, "m", diagnostics).status();
}

// As many scales as there are result channels, along a dimension that is not theirs, would scale
// each product by the wrong number.
TEST(Weighted, ScalesRunAlongTheResultChannels) {
  EXPECT_TRUE(Lowered(Op::kMatMul, 1).ok()) << Lowered(Op::kMatMul, 1);
  EXPECT_TRUE(Lowered(Op::kMatMul, 0, /*transpose_b=*/true).ok());
  EXPECT_TRUE(Lowered(Op::kConv2D, 3).ok()) << Lowered(Op::kConv2D, 3);
  EXPECT_TRUE(Lowered(Op::kDepthwiseConv2D, 2).ok()) << Lowered(Op::kDepthwiseConv2D, 2);
  EXPECT_TRUE(Lowered(Op::kDepthwiseConv2D, 3).ok());
  const auto refusal = [](Op op, int axis, bool transpose_b = false) {
    return std::string(Lowered(op, axis, transpose_b).message());
  };
  EXPECT_THAT(refusal(Op::kMatMul, 0),
              HasSubstr("2 weight scales along axis 0 for 2 result channels"));
  EXPECT_THAT(refusal(Op::kMatMul, 1, /*transpose_b=*/true), HasSubstr("along axis 1 for 2"));
  for (const int axis : {0, 1, 2}) {
    EXPECT_THAT(refusal(Op::kConv2D, axis), HasSubstr("2 weight scales along axis")) << axis;
  }
  for (const int axis : {0, 1}) {
    EXPECT_THAT(refusal(Op::kDepthwiseConv2D, axis), HasSubstr("2 weight scales along")) << axis;
  }
}

// TFLite's kernels take no other bias, either: conv.cc, "bias->params.zero_point, 0".
TEST(Weighted, ABiasHasNoZeroPoint) {
  EXPECT_THAT(std::string(Lowered(Op::kMatMul, 1, false, /*bias_zero=*/5).message()),
              HasSubstr("its bias is asymmetric"));
}

}  // namespace
}  // namespace npuc
