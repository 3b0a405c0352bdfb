// Integer layers at the ends of their ranges, against the float reference: simulated integers.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "compiler_core/base/diagnostic.h"
#include "compiler_core/lowering/integer/lower_integer.h"
#include "compiler_core/ops/graph_builder.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/pipeline/integer_runs_test_util.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

Tensor Filled(const Shape& shape, float value) {
  return Tensor::FromFloats(shape,
                            std::vector<float>(static_cast<size_t>(ElementCount(shape)), value));
}

std::vector<double> Simulated(const Graph& graph, const QuantPlan& plan,
                              const std::vector<Tensor>& inputs) {
  const absl::StatusOr<CompiledModel> model = CompileIntegers(graph, plan);
  EXPECT_TRUE(model.ok()) << model.status();
  if (!model.ok()) return {};
  const auto results = SimulateIntegers(*model, inputs);
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? results->front() : std::vector<double>();
}

std::vector<double> Simulated(const Graph& graph, const std::vector<Tensor>& inputs, int bits) {
  return Simulated(graph, PlanByExtrema(graph, {inputs}, bits, /*symmetric=*/true), inputs);
}

// x [1,k] by a constant matrix, and a bias.
Graph Product(int64_t k, float weight, float bias) {
  Graph graph;
  GraphBuilder builder(&graph);
  const ValueId x = graph.AddInput("x", {DType::kFloat32, {1, k}});
  const ValueId w = builder.Const(Filled({k, 1}, weight), {"w", "Const"});
  const ValueId b = builder.Const(Filled({1}, bias), {"b", "Const"});
  const ValueId sums = *builder.AddOne(Op::kMatMul, {x, w}, {}, {"sums", "MatMul"});
  graph.AddOutput({"y", *builder.AddOne(Op::kAdd, {sums, b}, {}, {"y", "Add"})});
  return graph;
}

// A bias of more than 32 bits beside weights of 1e-8, and factors below 2^-31.
TEST(IntegerExtremes, ABiasBesideTinyWeightsStays) {
  const std::pair<int, float> cases[] = {{8, 1e-6F}, {8, 1e-8F}, {16, 1e-4F}};
  for (const auto& [bits, weight] : cases) {
    const Graph graph = Product(4, weight, -3);
    const std::vector<double> found = Simulated(graph, {Filled({1, 4}, 1)}, bits);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_NEAR(found[0], -3, 3.0 / 127) << bits << " bits, weights of " << weight;
  }
}

// A bias that sums of 48 bits have no room for is cut, and named.
TEST(IntegerExtremes, ABiasOfTooManyBitsIsNamed) {
  for (const auto& [bits, warnings] : {std::pair(8, 0U), std::pair(16, 1U)}) {
    const Graph graph = Product(4, 1e-8F, -3);
    const QuantPlan plan = PlanByExtrema(graph, {{Filled({1, 4}, 1)}}, bits, /*symmetric=*/true);
    Diagnostics diagnostics;
    ASSERT_TRUE(LowerInteger(graph, plan, "m", diagnostics).ok());
    ASSERT_EQ(diagnostics.list().size(), warnings);
    if (warnings == 0) continue;
    EXPECT_EQ(diagnostics.list()[0].kind, DiagnosticKind::kBiasTooWide);
  }
}

// Sums of 8-bit numbers beyond 32 bits.
TEST(IntegerExtremes, LongSumsDoNotWrap) {
  constexpr int64_t kLength = 140000;
  const Graph graph = Product(kLength, 1, 0);
  const std::vector<double> found = Simulated(graph, {Filled({1, kLength}, 1)}, 8);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NEAR(found[0], kLength, kLength / 127.0);
}

TEST(IntegerExtremes, LogSoftmaxOfManyClassesIsExact) {
  for (const int64_t classes : {200, 8000, 60000}) {
    Graph graph;
    GraphBuilder builder(&graph);
    const ValueId x = graph.AddInput("x", {DType::kFloat32, {2, classes}});
    graph.AddOutput(
        {"y", *builder.AddOne(Op::kLogSoftmax, {x}, {{"axis", int64_t{1}}}, {"y", "Y"})});
    // One row of like classes, and one of which a class has half.
    std::vector<float> values(static_cast<size_t>(2 * classes));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) / 14;
    values.back() = std::log(static_cast<float>(classes));
    const std::vector<Tensor> inputs = {Tensor::FromFloats({2, classes}, values)};
    const std::vector<float> wanted = RunReference(graph, inputs)->front().ToFloats();
    const std::vector<double> found = Simulated(graph, inputs, 16);
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(found[i], wanted[i], 0.006) << classes;
  }
}

// Any difference is 1 or 0, where the operands' steps differ; equal numbers give 0.
TEST(IntegerExtremes, GreaterIsZeroOrOne) {
  constexpr int64_t kCount = 255 * 4;
  Graph graph;
  GraphBuilder builder(&graph);
  const ValueId a = graph.AddInput("a", {DType::kFloat32, {kCount}});
  const ValueId b = graph.AddInput("b", {DType::kFloat32, {kCount}});
  graph.AddOutput({"y", *builder.AddOne(Op::kGreater, {a, b}, {}, {"y", "Greater"})});
  // Steps of 1/127 and of 0.6/127: each third number of one is a fifth of the other.
  std::vector<float> left;
  std::vector<float> right;
  for (int i = -127; i <= 127; ++i) {
    for (int j = -1; j <= 2; ++j) {
      const int k = static_cast<int>(std::lround(i / 0.6)) + j;
      left.push_back(static_cast<float>(i / 127.0));
      right.push_back(static_cast<float>(std::clamp(k, -127, 127) * 0.6 / 127));
    }
  }
  const std::vector<Tensor> inputs = {Tensor::FromFloats({kCount}, left),
                                      Tensor::FromFloats({kCount}, right)};
  QuantPlan plan = PlanByExtrema(graph, {inputs}, 8, /*symmetric=*/true);
  plan.values[graph.outputs()[0].value].scale = {1.0 / 127};  // 1 is not one step
  const std::vector<double> found = Simulated(graph, plan, inputs);
  ASSERT_EQ(found.size(), left.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const double difference = double{left[i]} - double{right[i]};
    const double wanted = difference > 1e-4 ? 1 : 0;
    ASSERT_EQ(found[i], wanted) << left[i] << " > " << right[i];
  }
}

// Rows of windows that lie in padding alone read nothing, whatever else has their place.
TEST(IntegerExtremes, RowsOfPaddingAlone) {
  Graph graph;
  GraphBuilder builder(&graph);
  const ValueId x = graph.AddInput("x", {DType::kFloat32, {1, 8, 8, 3}});
  const ValueId w = builder.Const(Filled({1, 1, 3, 8}, 0.5F), {"w", "Const"});
  const AttrMap window = {{"strides", Shape{1, 1}}, {"pads", Shape{1, 1, 1, 1}}};
  graph.AddOutput({"y", *builder.AddOne(Op::kConv2D, {x, w}, window, {"y", "Conv2D"})});
  const std::vector<Tensor> inputs = {Filled({1, 8, 8, 3}, 1)};
  const std::vector<float> wanted = RunReference(graph, inputs)->front().ToFloats();
  const std::vector<double> found = Simulated(graph, inputs, 8);
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 0.02) << i;
}

}  // namespace
}  // namespace npuc
