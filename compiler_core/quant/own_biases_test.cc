#include "compiler_core/quant/own_biases.h"

#include <algorithm>
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

TEST(OwnBiases, TheGraphComputesTheSame) {
  const Graph graph = *ParseGraph(kShared);
  const OwnBiases own = GiveOwnBiases(graph);
  EXPECT_TRUE(VerifyGraph(own.graph).ok()) << VerifyGraph(own.graph);
  const std::vector<Tensor> input = {Tensor::FromFloats({1, 4}, {1, 2, -3, 5})};
  EXPECT_EQ(*RunReference(own.graph, input), *RunReference(graph, input));
  EXPECT_EQ(own.graph.type(own.value[6]), graph.type(ValueId(6)));
}

TEST(OwnBiases, EachLayersIntegersAreInItsOwnUnits) {
  const OwnBiases own = GiveOwnBiases(*ParseGraph(kShared));
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
