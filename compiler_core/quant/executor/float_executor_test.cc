#include "compiler_core/quant/executor/float_executor.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "absl/strings/ascii.h"
#include "compiler_core/ir/graph/text.h"
#include "compiler_core/ops/graph_builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

Tensor RandomTensor(std::mt19937& rng, const Shape& shape) {
  std::normal_distribution<float> normal;
  std::vector<float> values(ElementCount(shape));
  for (float& value : values) value = normal(rng);
  return Tensor::FromFloats(shape, values);
}

// Each output of the executor against the Reference kernels', which sum in double.
void ExpectAsReference(const Graph& graph, absl::Span<const Tensor> inputs) {
  const absl::StatusOr<std::vector<Tensor>> want = RunReference(graph, inputs);
  ASSERT_TRUE(want.ok()) << want.status();
  const absl::StatusOr<FloatExecutor> executor = FloatExecutor::Create(graph);
  ASSERT_TRUE(executor.ok()) << executor.status();
  FloatExecutor::Arena arena = executor->MakeArena();
  for (float& value : arena.values) value = std::nanf("");  // what is read must have been written
  for (size_t k = 0; k < inputs.size(); ++k) executor->SetInput(arena, k, inputs[k].as<float>());
  ASSERT_TRUE(executor->RunAll(arena, nullptr).ok());
  for (size_t k = 0; k < want->size(); ++k) {
    const absl::Span<const float> got = executor->ValueOf(arena, graph.outputs()[k].value);
    ASSERT_EQ(static_cast<int64_t>(got.size()), (*want)[k].element_count());
    for (size_t i = 0; i < got.size(); ++i) {
      const double expected = (*want)[k].at(static_cast<int64_t>(i));
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(got[i])) << i;
      } else if (std::isinf(expected)) {
        EXPECT_EQ(got[i], expected) << i;
      } else {
        // Sums of some thousand terms of size 1 in float32.
        EXPECT_NEAR(got[i], expected, 1e-4 + 1e-5 * std::fabs(expected)) << i;
      }
    }
  }
}

// The golden cases hold their operands as constants; the executor needs them as inputs too.
Graph WithInputs(const Graph& graph, std::vector<Tensor>& inputs, bool every_operand) {
  Graph out;
  std::vector<ValueId> ids(graph.value_count());
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::kConst) {
      const Tensor* value = graph.ConstantOf(node.outputs[0]);
      const bool turned = value->dtype() == DType::kFloat32 && (every_operand || inputs.empty());
      if (turned) inputs.push_back(*value);
      ids[node.outputs[0].value()] = turned ? out.AddInput(node.source.name, value->type())
                                            : out.AddConst(*value, node.source);
      continue;
    }
    std::vector<ValueId> operands;
    std::vector<TensorType> types;
    for (const ValueId id : node.inputs) operands.push_back(ids[id.value()]);
    for (const ValueId id : node.outputs) types.push_back(graph.type(id));
    const NodeId made = out.AddNode(node.op, operands, node.attrs, types, node.source);
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      ids[node.outputs[k].value()] = out.node(made).outputs[k];
    }
  }
  for (const GraphOutput& output : graph.outputs()) {
    out.AddOutput({output.name, ids[output.value.value()], output.fp16});
  }
  return out;
}

TEST(FloatExecutorTest, EveryOperatorAsItsReference) {
  const char* root = std::getenv("NPUC_SOURCE_DIR");
  int run = 0;
  for (const OpDef* def : AllOps()) {
    const std::filesystem::path folder = std::filesystem::path(root == nullptr ? "." : root) /
                                         "compiler_core/ops" /
                                         absl::AsciiStrToLower(NameOf(def->op)) / "golden";
    if (!std::filesystem::exists(folder)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      SCOPED_TRACE(entry.path().string());
      std::ifstream stream(entry.path());
      const std::string text((std::istreambuf_iterator<char>(stream)),
                             std::istreambuf_iterator<char>());
      const absl::StatusOr<Graph> graph = ParseGraph(text);
      ASSERT_TRUE(graph.ok()) << graph.status();
      for (const bool every_operand : {false, true}) {
        std::vector<Tensor> inputs;
        const Graph turned = WithInputs(*graph, inputs, every_operand);
        // Cases of other types, or that a run-time operand makes illegal, are not this test's.
        if (inputs.empty() || !VerifyGraph(turned).ok()) continue;
        if (!FloatExecutor::Create(turned).ok()) continue;
        ExpectAsReference(turned, inputs);
        ++run;
      }
    }
  }
  EXPECT_GT(run, 60);
}

struct ConvCase {
  bool depthwise;
  Shape input;
  Shape weight;
  std::vector<int64_t> strides, pads, dilations;
  bool bias;
};

TEST(FloatExecutorTest, Convolutions) {
  const std::vector<ConvCase> cases = {
      {false, {1, 49, 10, 1}, {10, 4, 1, 64}, {2, 2}, {4, 5, 1, 1}, {1, 1}, true},
      {true, {1, 25, 5, 64}, {3, 3, 64, 1}, {1, 1}, {1, 1, 1, 1}, {1, 1}, true},
      {true, {2, 9, 7, 13}, {3, 2, 13, 1}, {2, 1}, {0, 1, 1, 0}, {2, 3}, false},
      {true, {1, 6, 6, 3}, {3, 3, 3, 4}, {1, 1}, {1, 1, 1, 1}, {1, 1}, true},
      {false, {1, 25, 5, 64}, {1, 1, 64, 64}, {1, 1}, {0, 0, 0, 0}, {1, 1}, false},
      {false, {3, 8, 9, 12}, {3, 3, 4, 9}, {1, 2}, {1, 0, 2, 1}, {1, 1}, true},
      {false, {1, 17, 11, 5}, {3, 2, 5, 7}, {1, 1}, {0, 0, 0, 0}, {3, 2}, true},
      {false, {1, 5, 5, 2}, {5, 5, 2, 3}, {1, 1}, {0, 0, 0, 0}, {1, 1}, true},
  };
  std::mt19937 rng(7);
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    const ConvCase& c = cases[i];
    Graph graph;
    GraphBuilder builder(&graph);
    const ValueId x = graph.AddInput("x", {DType::kFloat32, c.input});
    std::vector<ValueId> operands = {x, graph.AddConst(RandomTensor(rng, c.weight), {"w", ""})};
    const int64_t out = c.depthwise ? c.weight[2] * c.weight[3] : c.weight[3];
    if (c.bias) operands.push_back(graph.AddConst(RandomTensor(rng, {out}), {"b", ""}));
    const absl::StatusOr<ValueId> y = builder.AddOne(
        c.depthwise ? Op::kDepthwiseConv2D : Op::kConv2D, operands,
        {{"strides", c.strides}, {"pads", c.pads}, {"dilations", c.dilations}}, {"conv", ""});
    ASSERT_TRUE(y.ok()) << y.status();
    graph.AddOutput({"y", *y});
    ExpectAsReference(graph, {RandomTensor(rng, c.input)});
  }
}

// x -> MatMul -> Add -> Relu -> Sub(x): x stays live over buffers that come and go.
Graph Chain() {
  std::mt19937 rng(3);
  Graph graph;
  GraphBuilder builder(&graph);
  const ValueId x = graph.AddInput("x", {DType::kFloat32, {5, 20}});
  ValueId y = x;
  for (int i = 0; i < 4; ++i) {
    const ValueId w = graph.AddConst(RandomTensor(rng, {20, 20}), {"w", ""});
    const ValueId b = graph.AddConst(RandomTensor(rng, {20}), {"b", ""});
    y = builder.AddOne(Op::kMatMul, {y, w}, {{"transpose_b", i % 2 == 1}}, {"m", ""}).value();
    y = builder.AddOne(Op::kAdd, {y, b}, {}, {"a", ""}).value();
    y = builder.AddOne(Op::kRelu, {y}, {}, {"r", ""}).value();
    y = builder.AddOne(Op::kSub, {y, x}, {}, {"s", ""}).value();
  }
  graph.AddOutput({"y", y});
  return graph;
}

TEST(FloatExecutorTest, BuffersAreSharedAndLive) {
  const Graph graph = Chain();
  std::mt19937 rng(4);
  ExpectAsReference(graph, {RandomTensor(rng, {5, 20})});
  const FloatExecutor executor = FloatExecutor::Create(graph).value();
  EXPECT_LE(executor.MakeArena().values.size(), 4u * 112);  // 16 values of 100 elements
}

TEST(FloatExecutorTest, StopsAndGoesOnFromACopy) {
  const Graph graph = Chain();
  std::mt19937 rng(5);
  const Tensor x = RandomTensor(rng, {5, 20});
  const FloatExecutor executor = FloatExecutor::Create(graph).value();
  FloatExecutor::Arena whole = executor.MakeArena();
  executor.SetInput(whole, 0, x.as<float>());
  ASSERT_TRUE(executor.RunAll(whole, nullptr).ok());
  const ValueId y = graph.outputs()[0].value;
  const std::vector<float> want(executor.ValueOf(whole, y).begin(),
                                executor.ValueOf(whole, y).end());
  for (int at = 0; at <= graph.node_count(); ++at) {
    FloatExecutor::Arena arena = executor.MakeArena();
    executor.SetInput(arena, 0, x.as<float>());
    ASSERT_TRUE(executor.Run(arena, 0, at, nullptr).ok());
    FloatExecutor::Arena copy = arena;
    ASSERT_TRUE(executor.Run(copy, at, graph.node_count(), nullptr).ok());
    EXPECT_THAT(executor.ValueOf(copy, y), ::testing::ElementsAreArray(want)) << at;
  }
}

TEST(FloatExecutorTest, AHookChangesValuesAndAConstantCanBeReplaced) {
  const Graph graph = Chain();
  FloatExecutor executor = FloatExecutor::Create(graph).value();
  FloatExecutor::Arena arena = executor.MakeArena();
  const std::vector<float> zeros(100, 0.0f);
  executor.SetInput(arena, 0, zeros);
  int seen = 0;
  ASSERT_TRUE(executor
                  .RunAll(arena,
                          [&](ValueId, absl::Span<float> value) {
                            ++seen;
                            std::fill(value.begin(), value.end(), 0.0f);
                          })
                  .ok());
  EXPECT_EQ(seen, 17);
  EXPECT_THAT(executor.ValueOf(arena, graph.outputs()[0].value), ::testing::Each(0.0f));
  const Node& first = graph.def(graph.nodes()[3].outputs[0]);  // x, w, b, MatMul
  ASSERT_EQ(first.op, Op::kMatMul);
  ASSERT_TRUE(
      executor.SetConstant(first.inputs[1], Tensor::Zeros(graph.type(first.inputs[1]))).ok());
  ASSERT_TRUE(executor
                  .RunAll(arena,
                          [&](ValueId id, absl::Span<float> value) {
                            if (id != first.outputs[0]) return;
                            EXPECT_THAT(value, ::testing::Each(0.0f));
                          })
                  .ok());
}

// A loop unrolled: each step multiplies by the same weight. What differs in an attribute or in a
// constant has a kernel of its own.
TEST(FloatExecutorTest, StepsOfALoopShareAKernel) {
  std::mt19937 rng(6);
  Graph graph;
  GraphBuilder builder(&graph);
  const ValueId x = graph.AddInput("x", {DType::kFloat32, {5, 20}});
  const ValueId w = graph.AddConst(RandomTensor(rng, {20, 20}), {"w", ""});
  const ValueId v = graph.AddConst(RandomTensor(rng, {20, 20}), {"v", ""});
  ValueId y = x;
  for (int step = 0; step < 2; ++step) {
    y = builder.AddOne(Op::kMatMul, {y, w}, {}, {"m", ""}).value();
    y = builder.AddOne(Op::kTanh, {y}, {}, {"t", ""}).value();
  }
  y = builder.AddOne(Op::kMatMul, {y, w}, {{"transpose_b", true}}, {"transposed", ""}).value();
  y = builder.AddOne(Op::kMatMul, {y, v}, {}, {"other", ""}).value();
  graph.AddOutput({"y", y});
  const std::vector<Tensor> input = {RandomTensor(rng, {5, 20})};
  ExpectAsReference(graph, input);
  FloatExecutor executor = FloatExecutor::Create(graph).value();
  EXPECT_EQ(executor.kernel_count(), 4);
  FloatExecutor copy = executor;
  ASSERT_TRUE(copy.SetConstant(w, Tensor::Zeros(graph.type(w))).ok());
  for (const bool is_zero : {true, false}) {
    const FloatExecutor& run = is_zero ? copy : executor;
    FloatExecutor::Arena arena = run.MakeArena();
    run.SetInput(arena, 0, input[0].as<float>());
    int products = 0;
    ASSERT_TRUE(run.RunAll(arena,
                           [&](ValueId id, absl::Span<float> value) {
                             if (graph.def(id).op != Op::kMatMul) return;
                             ++products;
                             EXPECT_EQ(std::count(value.begin(), value.end(), 0.0f) == 100,
                                       is_zero);
                           })
                    .ok());
    EXPECT_EQ(products, 4);
  }
}

TEST(FloatExecutorTest, OtherTypesAtRunTimeAreRefused) {
  Graph graph;
  const ValueId x = graph.AddInput("x", {DType::kInt32, {4}});
  graph.AddOutput({"x", x});
  EXPECT_EQ(FloatExecutor::Create(graph).status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace npuc
