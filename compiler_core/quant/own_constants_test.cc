#include "compiler_core/quant/own_constants.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "compiler_core/ir/graph/text.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/quant/quantize.h"
#include "compiler_core/quant/test_nets_test_util.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

// Two layers of one weight and one bias; the second's operand is a thousandth of the first's.
constexpr absl::string_view kShared = R"(graph "m" {
  %0 = Placeholder() : f32[1,4] @"x"
  %1 = Const() {value = f32[4,3] splat "0000003f"} : f32[4,3] @"w"
  %2 = Const() {value = f32[3] "00004040000080c00000a040"} : f32[3] @"b"
  %3 = MatMul(%0, %1) : f32[1,3] @"m1"
  %4 = Add(%3, %2) : f32[1,3] @"y1"
  %5 = Const() {value = f32[1] splat "6f12833a"} : f32[1] @"k"
  %6 = Mul(%0, %5) : f32[1,4] @"xs"
  %7 = MatMul(%6, %1) : f32[1,3] @"m2"
  %8 = Add(%2, %7) : f32[1,3] @"y2"
  return %4 @"y1", %8 @"y2"
})";

TEST(OwnConstants, TheGraphComputesTheSame) {
  const Graph graph = *ParseGraph(kShared);
  const OwnConstants own = GiveOwnConstants(graph);
  EXPECT_TRUE(VerifyGraph(own.graph).ok()) << VerifyGraph(own.graph);
  const std::vector<Tensor> input = {Tensor::FromFloats({1, 4}, {1, 2, -3, 5})};
  EXPECT_EQ(*RunReference(own.graph, input), *RunReference(graph, input));
  EXPECT_EQ(own.graph.type(own.value[6]), graph.type(ValueId(6)));
}

// One matrix as it is, transposed, and as an operand of a sum.
constexpr absl::string_view kTied = R"(graph "m" {
  %0 = Placeholder() : f32[2,2] @"x"
  %1 = Const() {value = f32[2,2] "0000803f000000400000404000008040"} : f32[2,2] @"w"
  %2 = MatMul(%0, %1) : f32[2,2] @"a"
  %3 = MatMul(%2, %1) {transpose_b = true} : f32[2,2] @"b"
  %4 = Add(%3, %1) : f32[2,2] @"c"
  %5 = MatMul(%4, %1) : f32[2,2] @"d"
  return %5 @"y"
})";

TEST(OwnConstants, ScalesRunAlongTheDimensionThatTheLayerHasThemOn) {
  const OwnConstants own = GiveOwnConstants(*ParseGraph(kTied));
  EXPECT_TRUE(VerifyGraph(own.graph).ok()) << VerifyGraph(own.graph);
  const std::vector<Tensor> input = {Tensor::FromFloats({2, 2}, {1, 2, -3, 5})};
  EXPECT_EQ(*RunReference(own.graph, input), *RunReference(*ParseGraph(kTied), input));
  const std::string samples = MakeSamples(own.graph, 24, 2);
  QuantizeInput quantize = InputOf(own.graph, samples);
  quantize.options.weight_method = QuantMethod::kPerChannelSymmetricRestricted;
  Diagnostics diagnostics;
  const absl::StatusOr<QuantizeResult> result = Quantize(quantize, diagnostics);
  ASSERT_TRUE(result.ok()) << result.status();
  std::vector<int> axes;
  std::set<ValueId> weights;
  for (const Layer& layer : result->plan.layers) {
    if (!layer.weight.valid()) continue;
    axes.push_back(result->plan.values.at(layer.weight).axis);
    weights.insert(layer.weight);
  }
  EXPECT_EQ(axes, (std::vector<int>{1, 0, -1, 1}));
  EXPECT_EQ(weights.size(), 3u);  // the first and the last layer share theirs
}

TEST(OwnConstants, EachLayersIntegersAreInItsOwnUnits) {
  const OwnConstants own = GiveOwnConstants(*ParseGraph(kShared));
  const std::string samples = MakeSamples(own.graph, 24, 2);
  Diagnostics diagnostics;
  const absl::StatusOr<QuantizeResult> result = Quantize(InputOf(own.graph, samples), diagnostics);
  ASSERT_TRUE(result.ok()) << result.status();
  int layers = 0;
  for (const Layer& layer : result->plan.layers) {
    if (!layer.bias.valid()) continue;
    ++layers;
    const QuantParams& bias = result->plan.values.at(layer.bias);
    const double unit = result->plan.values.at(layer.inputs[0]).scale[0] *
                        result->plan.values.at(layer.weight).scale[0];
    EXPECT_DOUBLE_EQ(bias.scale[0], unit);
    EXPECT_NEAR(static_cast<double>(result->plan.constants.at(layer.bias).int_at(0)) * unit, 3,
                unit);
  }
  EXPECT_EQ(layers, 2);
}

}  // namespace
}  // namespace npuc
