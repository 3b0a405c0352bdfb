#include "compiler_core/passes/dead_channels.h"

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "compiler_core/ir/graph/text.h"
#include "compiler_core/ops/graph_builder.h"
#include "compiler_core/passes/passes.h"
#include "compiler_core/passes/rewriter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Builds nets of convolutions over [1,4,4,c]. Weights are numbers other than 0, except where a
// test asks for zeros.
class Net {
 public:
  Net() : builder_(&graph_) {}

  Graph& graph() { return graph_; }
  ValueId Input(int64_t channels) {
    return graph_.AddInput("x", {DType::kFloat32, {1, 4, 4, channels}});
  }
  ValueId Const(Shape shape, std::vector<float> values) {
    return builder_.Const(Tensor::FromFloats(std::move(shape), values), {"c", "Const"});
  }
  // zeros: (input, output) channels without weights; -1 for all.
  ValueId Conv(ValueId x, int64_t out, std::vector<std::pair<int64_t, int64_t>> zeros,
               int64_t side = 1) {
    const int64_t in = graph_.type(x).shape[3];
    std::vector<float> weights;
    for (int64_t k = 0; k < side * side * in * out; ++k) {
      const int64_t i = k / out % in;
      const int64_t o = k % out;
      bool is_zero = false;
      for (const auto& [from, to] : zeros) {
        is_zero = is_zero || ((from == i || from < 0) && (to == o || to < 0));
      }
      weights.push_back(is_zero ? 0.0f : 0.25f + 0.125f * static_cast<float>(k % 7));
    }
    const int64_t pad = side / 2;
    return One(Op::kConv2D, {x, Const({side, side, in, out}, weights)},
               {{"strides", Shape{1, 1}}, {"pads", Shape{pad, pad, pad, pad}}});
  }
  ValueId Depthwise(ValueId x) {
    const int64_t c = graph_.type(x).shape[3];
    return One(Op::kDepthwiseConv2D,
               {x, Const({3, 3, c, 1}, std::vector<float>(static_cast<size_t>(9 * c), 0.5f))},
               {{"strides", Shape{1, 1}}, {"pads", Shape{1, 1, 1, 1}}});
  }
  ValueId Bias(ValueId x, std::vector<float> values) {
    const int64_t count = static_cast<int64_t>(values.size());
    return One(Op::kAdd, {x, Const({count}, std::move(values))});
  }
  ValueId One(Op op, std::vector<ValueId> inputs, AttrMap attrs = {}) {
    return *builder_.AddOne(op, std::move(inputs), std::move(attrs), {"n", ""});
  }

 private:
  Graph graph_;
  GraphBuilder builder_;
};

std::vector<float> Run(const Graph& graph) {
  const int64_t count = graph.type(graph.inputs()[0]).element_count();
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i % 11) - 4.0f);
  const auto outputs =
      RunReference(graph, {Tensor::FromFloats(graph.type(graph.inputs()[0]).shape, values)});
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  std::vector<float> all;
  for (const Tensor& output : *outputs) {
    for (const float value : output.ToFloats()) all.push_back(value);
  }
  return all;
}

// The graph without dead channels, which must compute the same.
Graph Live(const Graph& graph) {
  const absl::StatusOr<Graph> live = RemoveDeadChannels(graph);
  EXPECT_TRUE(live.ok()) << live.status();
  EXPECT_TRUE(VerifyGraph(*live).ok()) << VerifyGraph(*live) << PrintGraph(*live);
  EXPECT_EQ(Run(*live), Run(graph)) << PrintGraph(graph) << PrintGraph(*live);
  const absl::StatusOr<Graph> again = RemoveDeadChannels(*live);
  EXPECT_TRUE(again.ok() && SameGraph(*live, *again)) << PrintGraph(*live);
  return *live;
}

int64_t ChannelsOf(const Graph& graph, ValueId value) { return graph.type(value).shape.back(); }

TEST(DeadChannels, ZeroWeightsWithABiasThatReluCutsOffGo) {
  Net net;
  const ValueId sums = net.Conv(net.Input(2), 4, {{-1, 1}, {-1, 3}});
  const ValueId relu = net.One(Op::kRelu, {net.Bias(sums, {1, -2, 3, 0})});
  net.graph().AddOutput({"y", net.Conv(relu, 3, {}, 3)});  // also where windows reach over borders
  const Graph live = Live(net.graph());
  EXPECT_EQ(ChannelsOf(live, relu), 2);
  EXPECT_EQ(ChannelsOf(live, live.outputs()[0].value), 3);
  EXPECT_EQ(live.node_count(), net.graph().node_count());
}

TEST(DeadChannels, ANumberOtherThanZeroStays) {
  Net net;
  const ValueId relu = net.One(Op::kRelu, {net.Bias(net.Conv(net.Input(2), 2, {{-1, 1}}), {1, 2})});
  net.graph().AddOutput({"y", net.Conv(relu, 3, {})});
  EXPECT_EQ(ChannelsOf(Live(net.graph()), relu), 2);
}

TEST(DeadChannels, WhatIsNotReadGoesWithWhatItReads) {
  Net net;
  const ValueId first = net.Conv(net.Input(2), 3, {});
  const ValueId second = net.Depthwise(first);
  net.graph().AddOutput({"y", net.Conv(second, 2, {{1, -1}})});
  const Graph live = Live(net.graph());
  EXPECT_EQ(ChannelsOf(live, first), 2);
  EXPECT_EQ(ChannelsOf(live, second), 2);
}

TEST(DeadChannels, DeathSpreadsBackwardsThroughSeveralLayers) {
  Net net;
  const ValueId a = net.Conv(net.Input(2), 3, {});
  const ValueId b = net.Conv(a, 3, {{2, 0}, {2, 1}});  // channel 2 of a serves channel 2 of b alone
  net.graph().AddOutput({"y", net.Conv(b, 2, {{2, -1}})});
  const Graph live = Live(net.graph());
  EXPECT_EQ(ChannelsOf(live, b), 2);
  EXPECT_EQ(ChannelsOf(live, a), 2);
}

TEST(DeadChannels, SumsLoseAChannelOnlyWhereBothOperandsDo) {
  for (const bool both : {false, true}) {
    Net net;
    const ValueId x = net.Input(2);
    const ValueId a = net.Conv(x, 3, {{-1, 1}});
    const ValueId b = both ? net.Conv(x, 3, {{-1, 1}, {-1, 2}}) : net.Conv(x, 3, {{-1, 2}});
    const ValueId sum = net.One(Op::kAdd, {a, b});
    net.graph().AddOutput({"y", net.Conv(sum, 2, {})});
    EXPECT_EQ(ChannelsOf(Live(net.graph()), sum), both ? 2 : 3);
  }
}

TEST(DeadChannels, ConcatAndFlatteningAreFollowed) {
  Net net;
  const ValueId x = net.Input(2);
  const ValueId a = net.Conv(x, 3, {{-1, 0}});
  const ValueId joined = net.One(Op::kConcat, {a, net.Conv(x, 2, {})}, {{"axis", int64_t{3}}});
  const ValueId flat = net.One(Op::kReshape, {joined}, {{"shape", Shape{1, 80}}});
  std::vector<float> weights(80 * 2, 0.5f);
  const ValueId w = net.Const({80, 2}, weights);
  net.graph().AddOutput({"y", net.One(Op::kMatMul, {flat, w})});
  const Graph live = Live(net.graph());
  EXPECT_EQ(ChannelsOf(live, joined), 4);
  EXPECT_EQ(ChannelsOf(live, flat), 64);
}

TEST(DeadChannels, OutputsInputsAndSharedConstantsStay) {
  Net net;
  const ValueId x = net.Input(2);
  const ValueId out = net.Conv(x, 3, {{-1, 1}});
  net.graph().AddOutput({"y", out});
  EXPECT_EQ(ChannelsOf(Live(net.graph()), out), 3);

  Net shared;
  const ValueId a = shared.Conv(shared.Input(2), 2, {{-1, 1}});
  const ValueId w = shared.graph().def(a).inputs[1];
  const AttrMap attrs = shared.graph().def(a).attrs;
  const ValueId b = shared.One(Op::kConv2D, {a, w}, attrs);
  shared.graph().AddOutput({"y", shared.Conv(b, 2, {})});
  EXPECT_EQ(ChannelsOf(Live(shared.graph()), a), 2);
}

TEST(DeadChannels, OneChannelIsLeftWhereAllAreDead) {
  Net net;
  const ValueId dead = net.Conv(net.Input(2), 3, {{-1, -1}});
  const ValueId sums = net.Conv(dead, 2, {});
  net.graph().AddOutput({"y", net.Bias(sums, {1, 2})});
  EXPECT_EQ(ChannelsOf(Live(net.graph()), dead), 1);
}

TEST(DeadChannels, WeightsThatFp16RoundsToZeroCountAsZero) {
  for (const float weight : {0x1p-25f, 0x1.8p-25f}) {
    Net net;
    const ValueId x = net.Input(1);
    const ValueId a = net.One(Op::kConv2D, {x, net.Const({1, 1, 1, 2}, {weight, 1})},
                              {{"strides", Shape{1, 1}}, {"pads", Shape{0, 0, 0, 0}}});
    net.graph().AddOutput({"y", net.Conv(a, 2, {})});
    const KeptChannels kept = FindDeadChannels(net.graph(), HalfChannelFacts(net.graph()));
    EXPECT_EQ(kept.removed, weight == 0x1p-25f ? 1 : 0) << weight;
  }
}

TEST(DeadChannels, AConstantFoldsWhereTheFactsSaySo) {
  Net net;
  const ValueId a = net.Conv(net.Input(2), 3, {});
  const ValueId y = net.Conv(a, 2, {});
  net.graph().AddOutput({"y", y});
  ChannelFacts facts;
  facts.constants.resize(static_cast<size_t>(net.graph().value_count()));
  facts.constants[static_cast<size_t>(a.value())] = {std::nullopt, 7.0, std::nullopt};
  facts.folds.resize(static_cast<size_t>(net.graph().node_count()));
  EXPECT_EQ(FindDeadChannels(net.graph(), facts).removed, 0);
  facts.folds[net.graph().value(y).def.value()] = true;
  const KeptChannels kept = FindDeadChannels(net.graph(), facts);
  EXPECT_THAT(kept.channels[static_cast<size_t>(a.value())], ElementsAre(0, 2));
  facts.is_fixed.resize(static_cast<size_t>(net.graph().node_count()));
  facts.is_fixed[net.graph().value(y).def.value()] = true;
  EXPECT_THAT(FindDeadChannels(net.graph(), facts).cuts, IsEmpty());
}

// Nets of convolutions, sums, pools and joins with many zero weights.
Graph RandomNet(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](uint32_t n) { return static_cast<int64_t>(random() % n); };
  Net net;
  std::vector<ValueId> values = {net.Input(1 + below(3))};
  for (int step = 0; step < 8; ++step) {
    const ValueId x = values[static_cast<size_t>(below(static_cast<uint32_t>(values.size())))];
    const int64_t in = net.graph().type(x).shape[3];
    const int64_t out = 2 + below(4);
    ValueId y;
    switch (below(5)) {
      case 0:
        y = net.Depthwise(x);
        break;
      case 1:
        y = net.One(
            Op::kMaxPool, {x},
            {{"kernel", Shape{3, 3}}, {"strides", Shape{1, 1}}, {"pads", Shape{1, 1, 1, 1}}});
        break;
      case 2: {
        const ValueId z = values[static_cast<size_t>(below(static_cast<uint32_t>(values.size())))];
        const bool alike = net.graph().type(z).shape[3] == in;
        y = alike ? net.One(Op::kAdd, {x, z})
                  : net.One(Op::kConcat, {x, z}, {{"axis", int64_t{3}}});
        break;
      }
      default: {
        std::vector<std::pair<int64_t, int64_t>> zeros;
        for (int k = 0; k < 3; ++k) zeros.push_back({below(3) == 0 ? -1 : below(4), below(4)});
        zeros.push_back({below(6), -1});
        y = net.Conv(x, out, zeros, below(2) == 0 ? 1 : 3);
        std::vector<float> bias;
        for (int64_t o = 0; o < out; ++o) bias.push_back(static_cast<float>(below(5)) - 3.0f);
        y = net.One(Op::kRelu, {net.Bias(y, bias)});
      }
    }
    values.push_back(y);
  }
  net.graph().AddOutput({"y", net.Conv(values.back(), 2, {{0, -1}})});
  return net.graph();
}

TEST(DeadChannels, RandomNetsComputeTheSame) {
  int64_t removed = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const absl::StatusOr<Graph> graph = DeadCode(RandomNet(seed));
    ASSERT_TRUE(graph.ok()) << graph.status();
    Live(*graph);
    removed += FindDeadChannels(*graph, HalfChannelFacts(*graph)).removed;
  }
  EXPECT_GT(removed, 300);  // the nets do have such channels
}

}  // namespace
}  // namespace npuc
