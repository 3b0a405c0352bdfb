#include "compiler_core/lowering/integer/channel_facts.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "compiler_core/ops/graph_builder.h"
#include "compiler_core/ops/layers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// x [1,3,3,2] -> convolution to 3 channels, bias, Relu -> convolution to 2 channels, bias. Every
// scale is 1, so that stored integers are the real numbers; the values between have zero point -2.
class Net {
 public:
  // kernel: of the second convolution, with pads for the same size.
  explicit Net(int64_t kernel) : builder_(&graph_) {
    const ValueId x = graph_.AddInput("x", {DType::kFloat32, {1, 3, 3, 2}});
    // Result channels 0 and 1 have no weights.
    first = Conv(x, {1, 1, 2, 3}, {0, 0, 1, 0, 0, 2}, {5, -3, 7});
    relu = *builder_.AddOne(Op::kRelu, {first}, {}, {"relu", "Relu"});
    std::vector<float> weights;
    for (int64_t i = 0; i < kernel * kernel * 3 * 2; ++i) {
      weights.push_back(static_cast<float>(i % 6 + 1));
    }
    second = Conv(relu, {kernel, kernel, 3, 2}, weights, {10, 20});
    graph_.AddOutput({"y", second});
    for (const ValueId value : {x, relu, second}) {
      plan.values[value] = {DType::kInt8, -128, 127, -1, {1.0}, {value == relu ? -2 : 0}};
    }
    plan.layers = GroupLayers(graph_);
    plan.settings.resize(plan.layers.size());
  }

  const Graph& graph() const { return graph_; }
  NodeId NodeOf(ValueId value) const { return graph_.value(value).def; }
  // The convolution before a bias.
  NodeId ProductOf(ValueId sum) const { return NodeOf(graph_.def(sum).inputs[0]); }
  ValueId BiasOf(ValueId sum) const { return graph_.def(sum).inputs[1]; }
  ValueId WeightOf(ValueId sum) const { return graph_.node(ProductOf(sum)).inputs[1]; }

  ValueId first, relu, second;
  QuantPlan plan;

 private:
  ValueId Conv(ValueId x, Shape shape, const std::vector<float>& weights,
               const std::vector<float>& bias) {
    const int64_t pad = shape[0] / 2;
    const int64_t out = shape[3];
    const ValueId w = builder_.Const(Tensor::FromFloats(std::move(shape), weights), {"w", "Const"});
    plan.values[w] = {DType::kInt8, -127, 127, -1, {1.0}, {0}};
    const ValueId sums = *builder_.AddOne(
        Op::kConv2D, {x, w}, {{"strides", Shape{1, 1}}, {"pads", Shape{pad, pad, pad, pad}}},
        {"conv", "Conv2D"});
    const ValueId b = builder_.Const(Tensor::FromFloats({out}, bias), {"b", "Const"});
    return *builder_.AddOne(Op::kAdd, {sums, b}, {}, {"bias", "BiasAdd"});
  }

  Graph graph_;
  GraphBuilder builder_;
};

const std::vector<std::optional<double>>& Numbers(const ChannelFacts& facts, ValueId value) {
  return facts.constants[static_cast<size_t>(value.value())];
}

TEST(ChannelFacts, ABiasWithoutWeightsIsTheChannelsNumberBehindItsClamps) {
  const Net net(1);
  const ChannelFacts facts = IntegerChannelFacts(net.graph(), net.plan);
  EXPECT_THAT(Numbers(facts, net.relu), ElementsAre(5.0, 0.0, std::nullopt));
  EXPECT_THAT(Numbers(facts, net.second), IsEmpty());
}

TEST(ChannelFacts, ANumberOtherThanZeroFoldsOnlyWhereNoWindowPads) {
  for (const int64_t kernel : {1, 3}) {
    const Net net(kernel);
    const ChannelFacts facts = IntegerChannelFacts(net.graph(), net.plan);
    EXPECT_EQ(facts.folds[static_cast<size_t>(net.ProductOf(net.second).value())], kernel == 1);
  }
}

TEST(ChannelFacts, ALayerThatCutsItsBiasesStaysAsItIs) {
  Net net(1);
  for (LayerQuant& settings : net.plan.settings) settings.bias_effective_bits = 16;
  const ChannelFacts facts = IntegerChannelFacts(net.graph(), net.plan);
  EXPECT_THAT(Numbers(facts, net.relu), IsEmpty());
  EXPECT_TRUE(facts.is_fixed[static_cast<size_t>(net.ProductOf(net.first).value())]);
}

TEST(ChannelFacts, WhatGoesMovesIntoTheBiases) {
  const Net net(1);
  const ChannelFacts facts = IntegerChannelFacts(net.graph(), net.plan);
  KeptChannels kept;
  kept.channels.resize(static_cast<size_t>(net.graph().value_count()));
  kept.channels[static_cast<size_t>(net.relu.value())] = {2};
  kept.cuts = {{net.WeightOf(net.second), {{}, {}, {2}, {}}}};
  const absl::StatusOr<KeptIntegers> left = KeepIntegers(net.graph(), net.plan, facts, kept);
  ASSERT_TRUE(left.ok()) << left.status();
  // Channel 0 is always 5 and has weights 1 and 2; channel 1 is always 0.
  const Tensor& integers = left->plan.constants.at(net.BiasOf(net.second));
  EXPECT_EQ(integers.int_at(0), 10 + 5 * 1);
  EXPECT_EQ(integers.int_at(1), 20 + 5 * 2);
  EXPECT_THAT(left->biases.at(net.BiasOf(net.second)).ToFloats(), ElementsAre(15, 30));
}

TEST(ChannelFacts, ScalesAndFactorsOfResultChannelsGoWithThem) {
  Net net(1);
  const ValueId weight = net.WeightOf(net.first);
  net.plan.values[weight] = {DType::kInt8, -127, 127, 3, {1.0, 2.0, 4.0}, {0, 0, 0}};
  for (size_t i = 0; i < net.plan.layers.size(); ++i) {
    if (net.plan.layers[i].weight == weight) {
      net.plan.settings[i].factors = {{1, 0}, {2, 0}, {3, 0}};
    }
  }
  const ChannelFacts facts = IntegerChannelFacts(net.graph(), net.plan);
  KeptChannels kept;
  kept.channels.resize(static_cast<size_t>(net.graph().value_count()));
  for (const ValueId value : {net.first, net.relu}) {
    kept.channels[static_cast<size_t>(value.value())] = {0, 2};
  }
  kept.cuts = {{weight, {{}, {}, {}, {0, 2}}}};
  const absl::StatusOr<KeptIntegers> left = KeepIntegers(net.graph(), net.plan, facts, kept);
  ASSERT_TRUE(left.ok()) << left.status();
  EXPECT_THAT(left->plan.values.at(weight).scale, ElementsAre(1.0, 4.0));
  for (size_t i = 0; i < net.plan.layers.size(); ++i) {
    if (net.plan.layers[i].weight != weight) continue;
    EXPECT_THAT(left->plan.settings[i].factors, ElementsAre(Factor{1, 0}, Factor{3, 0}));
  }
}

}  // namespace
}  // namespace npuc
