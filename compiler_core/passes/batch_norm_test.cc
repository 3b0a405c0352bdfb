#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "compiler_core/ir/graph/text.h"
#include "compiler_core/ops/graph_builder.h"
#include "compiler_core/passes/passes.h"
#include "compiler_core/passes/rewriter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

Tensor RandomTensor(std::mt19937& random, Shape shape, float lo, float hi) {
  std::vector<float> values(ElementCount(shape));
  for (float& value : values) value = std::uniform_real_distribution<float>(lo, hi)(random);
  return Tensor::FromFloats(std::move(shape), values);
}

// x -> product of constant weight -> [bias] -> BatchNorm.
struct Net {
  Graph graph;
  Tensor input;
};

Net MakeNet(Op op, bool transpose_b, bool bias, bool reuse) {
  std::mt19937 random(7);
  Net net;
  GraphBuilder builder(&net.graph);
  const bool conv = op != Op::kMatMul;
  const int64_t channels = op == Op::kDepthwiseConv2D ? 6 : 4;
  net.input = RandomTensor(random, conv ? Shape{1, 4, 4, 3} : Shape{2, 5}, -1, 1);
  const ValueId x = net.graph.AddInput("x", net.input.type());
  Shape weight_shape = transpose_b ? Shape{4, 5} : Shape{5, 4};
  AttrMap attrs = {{"transpose_b", transpose_b}};
  if (conv) {
    weight_shape = op == Op::kConv2D ? Shape{2, 2, 3, 4} : Shape{2, 2, 3, 2};
    attrs = {{"strides", Shape{1, 1}}, {"pads", Shape{0, 0, 0, 0}}};
  }
  const ValueId w = builder.Const(RandomTensor(random, weight_shape, -1, 1), {"w", "Const"});
  ValueId y = *builder.AddOne(op, {x, w}, attrs, {"product", std::string(NameOf(op))});
  if (reuse) net.graph.AddOutput({"product", y});
  if (bias) {
    const ValueId b = builder.Const(RandomTensor(random, {channels}, -1, 1), {"b", "Const"});
    y = *builder.AddOne(Op::kAdd, {y, b}, {}, {"bias", "BiasAdd"});
  }
  std::vector<ValueId> operands = {y};
  for (const float lo : {0.5f, -1.0f, -1.0f, 0.1f}) {
    operands.push_back(builder.Const(RandomTensor(random, {channels}, lo, 1.5f), {}));
  }
  y = *builder.AddOne(Op::kBatchNorm, operands, {{"epsilon", 1e-3}}, {"bn", "FusedBatchNorm"});
  net.graph.AddOutput({"bn", y});
  return net;
}

int CountOf(const Graph& graph, Op op) {
  int count = 0;
  for (const Node& node : graph.nodes()) count += node.op == op ? 1 : 0;
  return count;
}

void ExpectSameValues(const Net& net, const Graph& result) {
  const std::vector<Tensor> before = *RunReference(net.graph, {net.input});
  const std::vector<Tensor> after = *RunReference(result, {net.input});
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    for (int64_t k = 0; k < before[i].element_count(); ++k) {
      // Weights, product and sum round once each to 24 bits.
      EXPECT_NEAR(after[i].at(k), before[i].at(k), 4e-6 * (1 + std::fabs(before[i].at(k))));
    }
  }
}

TEST(FuseBatchNorm, GoesIntoEveryProduct) {
  for (const bool bias : {false, true}) {
    for (const auto& [op, transpose_b] :
         std::vector<std::pair<Op, bool>>{{Op::kMatMul, false},
                                          {Op::kMatMul, true},
                                          {Op::kConv2D, false},
                                          {Op::kDepthwiseConv2D, false}}) {
      SCOPED_TRACE(NameOf(op));
      const Net net = MakeNet(op, transpose_b, bias, /*reuse=*/false);
      const Graph fused = *DeadCode(*FuseBatchNorm(net.graph));
      EXPECT_EQ(CountOf(fused, Op::kBatchNorm), 0);
      EXPECT_EQ(CountOf(fused, Op::kAdd), 1);
      EXPECT_EQ(CountOf(fused, Op::kMul), 0);
      EXPECT_EQ(CountOf(fused, op), 1);
      const Node& add = fused.nodes().back();
      EXPECT_EQ(add.source.name, "bn");
      EXPECT_EQ(fused.def(add.inputs[0]).source.name, "product");
      EXPECT_EQ(fused.def(add.inputs[1]).source.name, bias ? "b" : "bn/offset");
      EXPECT_EQ(fused.def(fused.def(add.inputs[0]).inputs[1]).source.name, "w");
      ExpectSameValues(net, fused);
      EXPECT_TRUE(SameGraph(fused, *FuseBatchNorm(fused)));
    }
  }
}

TEST(FuseBatchNorm, LeavesAProductThatOthersUse) {
  const Net net = MakeNet(Op::kConv2D, false, /*bias=*/true, /*reuse=*/true);
  EXPECT_EQ(CountOf(*FuseBatchNorm(net.graph), Op::kBatchNorm), 1);
  // The rewrite then makes it a Mul and an Add.
  const Graph result = *RunPasses(net.graph, {.fuse_batch_norm = true});
  EXPECT_EQ(CountOf(result, Op::kBatchNorm), 0);
  EXPECT_EQ(CountOf(result, Op::kMul), 1);
  ExpectSameValues(net, result);
}

TEST(RewriteBatchNorm, BecomesMulAndAddOfNamedConstants) {
  const absl::StatusOr<Graph> graph = ParseGraph(R"(graph "m" {
    %x = Placeholder() : f32[1,2] @"x"
    %scale = Const() {value = f32[2] "0000804000008040"} : f32[2]
    %offset = Const() {value = f32[2] "0000803f0000803f"} : f32[2]
    %mean = Const() {value = f32[2] "0000803f00000040"} : f32[2]
    %var = Const() {value = f32[2] "0000404000004040"} : f32[2]
    %y = BatchNorm(%x, %scale, %offset, %mean, %var) {epsilon = 1.0} : f32[1,2] @"bn" ("FusedBatchNormV3")
    return %y @"bn" })");
  ASSERT_TRUE(graph.ok()) << graph.status();
  // scale / sqrt(var + eps) = 4 / 2; offset - mean * 2.
  const Graph result = *DeadCode(*RewriteBatchNorm(*graph));
  EXPECT_EQ(PrintGraph(result), R"(graph "m" {
  %0 = Placeholder() : f32[1,2] @"x"
  %1 = Const() {value = f32[2] splat "00000040"} : f32[2] @"bn/scale"
  %2 = Mul(%0, %1) : f32[1,2] @"bn/mul"
  %3 = Const() {value = f32[2] "000080bf000040c0"} : f32[2] @"bn/offset"
  %4 = Add(%2, %3) : f32[1,2] @"bn" ("FusedBatchNormV3")
  return %4 @"bn"
}
)");
}

TEST(RewriteBatchNorm, LeavesWhatHasNoFiniteFactor) {
  Graph graph;
  GraphBuilder builder(&graph);
  const ValueId x = graph.AddInput("x", {DType::kFloat32, {1}});
  const ValueId zero = builder.Const(Tensor::FromFloats({1}, {0}), {});
  graph.AddOutput({"y", *builder.AddOne(Op::kBatchNorm, {x, zero, zero, zero, zero},
                                        {{"epsilon", 0.0}}, {"bn", ""})});
  EXPECT_EQ(CountOf(*RewriteBatchNorm(graph), Op::kBatchNorm), 1);
}

}  // namespace
}  // namespace npuc
