#include "compiler_core/tools/graph_runner.h"

#include <string>
#include <vector>

#include "compiler_core/ops/graph_builder.h"
#include "compiler_core/ops/quantize.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using testing::ElementsAre;

// y = relu(x) as a column, from 8-bit integers to 8-bit integers as an integer-only model has them.
Graph StoredRelu() {
  const QuantParams from{
      .dtype = DType::kUint8, .qmin = 0, .qmax = 255, .scale = {0.5}, .zero_point = {128}};
  QuantParams to = from;
  to.scale = {0.25};
  to.zero_point = {0};
  Graph graph;
  GraphBuilder builder(&graph);
  const ValueId x = graph.AddInput("x", TensorType{DType::kUint8, {1, 3}});
  const ValueId real = *builder.AddOne(Op::kDequantize, {x}, DequantizeAttrs(from), {"d", "D"});
  const ValueId relu = *builder.AddOne(Op::kRelu, {real}, {}, {"r", "Relu"});
  const ValueId q = *builder.AddOne(Op::kQuantize, {relu}, QuantizeAttrs(to), {"q", "Q"});
  const ValueId y =
      *builder.AddOne(Op::kReshape, {q}, {{"shape", std::vector<int64_t>{3, 1}}}, {"y", "Reshape"});
  graph.AddOutput({"y", y});
  return graph;
}

std::vector<float> Results(GraphRunner::Edges edges, const NpyArray& x) {
  GraphRunner runner(StoredRelu(), {}, edges);
  Diagnostics diagnostics;
  const auto result = RunItems(runner, {{"x", x}}, 0, diagnostics);
  EXPECT_TRUE(result.ok()) << diagnostics.ToStatus();
  return result.ok() ? FloatsOf(result->outputs[0].array) : std::vector<float>();
}

NpyArray Floats(const std::vector<float>& values) {
  return {.dtype = DType::kFloat32,
          .shape = {1, static_cast<int64_t>(values.size())},
          .bytes = std::string(reinterpret_cast<const char*>(values.data()),
                               values.size() * sizeof(float))};
}

TEST(GraphRunner, GivesWholeNumbersAsTheModelDoes) {
  EXPECT_THAT(Results(GraphRunner::Edges::kWholeNumbers, Floats({128, 130, 0})),
              ElementsAre(0, 4, 0));
}

// npuc evaluate compares them with the real values of an artifact.
TEST(GraphRunner, GivesRealValuesAsAnArtifactDoes) {
  EXPECT_THAT(Results(GraphRunner::Edges::kRealValues, Floats({0, 1, -64})), ElementsAre(0, 1, 0));
  const NpyArray stored{.dtype = DType::kUint8, .shape = {1, 3}, .bytes = "\x80\x82\x01"};
  EXPECT_THAT(Results(GraphRunner::Edges::kRealValues, stored), ElementsAre(0, 1, 0));
}

}  // namespace
}  // namespace npuc
