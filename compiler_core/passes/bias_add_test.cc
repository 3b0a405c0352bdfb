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

struct NetOptions {
  Op op = Op::kConv2D;
  Shape bias = {2};
  bool sums_are_an_output = false;
  bool two_biases = false;
};

// x [1,2,2,1] -> convolution [1,2,2,2] -> Add of a constant, once or twice.
Graph MakeNet(const NetOptions& options = {}) {
  Graph graph;
  GraphBuilder builder(&graph);
  const ValueId x = graph.AddInput("x", {DType::kFloat32, {1, 2, 2, 1}});
  const ValueId w = builder.Const(Tensor::FromFloats({1, 1, 1, 2}, {2, 3}), {"w", "Const"});
  ValueId y =
      *builder.AddOne(options.op, {x, w}, {{"strides", Shape{1, 1}}, {"pads", Shape{0, 0, 0, 0}}},
                      {"conv", std::string(NameOf(options.op))});
  if (options.sums_are_an_output) graph.AddOutput({"sums", y});
  std::vector<float> values(static_cast<size_t>(ElementCount(options.bias)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = 5.0f + 2.0f * static_cast<float>(i);
  const ValueId b = builder.Const(Tensor::FromFloats(options.bias, values), {"b", "Const"});
  for (int i = 0; i < (options.two_biases ? 2 : 1); ++i) {
    y = *builder.AddOne(Op::kAdd, {y, b}, {}, {"bias", "BiasAdd"});
  }
  graph.AddOutput({"y", y});
  return graph;
}

int CountOf(const Graph& graph, Op op) {
  int count = 0;
  for (const Node& node : graph.nodes()) count += node.op == op ? 1 : 0;
  return count;
}

TEST(FuseBias, AddOfOneNumberAChannelBecomesTheConvolutionsThirdOperand) {
  for (const Op op : {Op::kConv2D, Op::kDepthwiseConv2D}) {
    const Graph graph = MakeNet({.op = op});
    const absl::StatusOr<Graph> fused = FuseBias(graph);
    ASSERT_TRUE(fused.ok()) << fused.status();
    EXPECT_EQ(PrintGraph(*fused).find("Add"), std::string::npos) << PrintGraph(*fused);
    const Node& node = fused->def(fused->outputs()[0].value);
    EXPECT_EQ(node.op, op);
    EXPECT_EQ(node.source.name, "conv");
    ASSERT_EQ(node.inputs.size(), 3u);
    EXPECT_EQ(fused->def(node.inputs[2]).source.name, "b");

    const std::vector<Tensor> input = {Tensor::FromFloats({1, 2, 2, 1}, {1, 2, 3, 4})};
    const auto want = RunReference(graph, input);
    const auto got = RunReference(*fused, input);
    ASSERT_TRUE(want.ok() && got.ok());
    EXPECT_EQ((*got)[0].ToFloats(), (*want)[0].ToFloats());
    EXPECT_EQ((*got)[0].ToFloats()[1], 10);  // 1 * 3 + 7

    const absl::StatusOr<Graph> again = FuseBias(*fused);
    ASSERT_TRUE(again.ok());
    EXPECT_TRUE(SameGraph(*fused, *again));
  }
}

TEST(FuseBias, LeavesWhatIsNoBias) {
  const NetOptions cases[] = {
      {.sums_are_an_output = true},
      {.bias = {}},            // one number for all channels
      {.bias = {2, 1}},        // a number a column
      {.bias = {1, 2, 2, 2}},  // a number an element
  };
  for (const NetOptions& options : cases) {
    const absl::StatusOr<Graph> after = FuseBias(MakeNet(options));
    ASSERT_TRUE(after.ok()) << after.status();
    EXPECT_EQ(CountOf(*after, Op::kAdd), 1) << PrintGraph(*after);
  }
}

TEST(FuseBias, ASecondBiasStaysAnAdd) {
  const absl::StatusOr<Graph> fused = FuseBias(MakeNet({.two_biases = true}));
  ASSERT_TRUE(fused.ok()) << fused.status();
  EXPECT_EQ(CountOf(*fused, Op::kAdd), 1);
  const Node& add = fused->def(fused->outputs()[0].value);
  EXPECT_EQ(fused->def(add.inputs[0]).inputs.size(), 3u);
}

TEST(FuseBias, RunPassesDoesItOnlyWhereAsked) {
  for (const bool fuse : {false, true}) {
    const absl::StatusOr<Graph> after = RunPasses(MakeNet(), {.fuse_bias = fuse});
    ASSERT_TRUE(after.ok()) << after.status();
    EXPECT_EQ(CountOf(*after, Op::kAdd), fuse ? 0 : 1);
    const absl::StatusOr<Graph> again = RunPasses(*after, {.fuse_bias = fuse});
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE(SameGraph(*after, *again));
  }
}

}  // namespace
}  // namespace npuc
