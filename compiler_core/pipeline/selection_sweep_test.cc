// Choices, positions and lookups of run-time data, as floats on the simulator.
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "compiler_core/ir/graph/text.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/passes/float_selection.h"
#include "compiler_core/passes/passes.h"
#include "compiler_core/pipeline/random_nodes_test_util.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

constexpr int kRounds = 20;

const char* const kGraphs[] = {
    // the index of the largest, and of the least
    R"(graph "arg" {
  %x = Placeholder() : f32[2,20] @"x"
  %n = Neg(%x) : f32[2,20] @"n"
  %a = ArgMax(%x) {axis = 1} : i64[2] @"a"
  %b = ArgMax(%n) {axis = 1} : i64[2] @"b"
  return %a @"a", %b @"b"
})",
    // rows of a table by the place of the largest
    R"(graph "rows" {
  %x = Placeholder() : f32[3,8] @"x"
  %t = Placeholder() : f32[8,5] @"t"
  %a = ArgMax(%x) {axis = -1} : i64[3] @"a"
  %g = Gather(%t, %a) : f32[3,5] @"g"
  return %g @"g"
})",
    // choices by two conditions
    R"(graph "choices" {
  %x = Placeholder() : f32[4,6] @"x"
  %y = Placeholder() : f32[6] @"y"
  %zero = Const() {value = f32[] "00000000"} : f32[]
  %no = Const() {value = bool[] "00"} : bool[]
  %above = Greater(%x, %y) : bool[4,6] @"above"
  %positive = GreaterEqual(%x, %zero) : bool[4,6] @"positive"
  %both = Select(%above, %positive, %no) : bool[4,6] @"both"
  %s = Select(%both, %x, %y) : f32[4,6] @"s"
  return %s @"s"
})"};

// Values that differ, each exact in fp16.
Tensor Spread(const TensorType& type, std::mt19937& rng) {
  std::vector<float> values(static_cast<size_t>(type.element_count()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = (static_cast<float>(i) - static_cast<float>(values.size()) / 2 + 0.25f) / 8;
  }
  for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[rng() % i]);
  return Tensor::FromFloats(type.shape, values);
}

std::vector<Tensor> Inputs(const Graph& graph, std::mt19937& rng) {
  std::vector<Tensor> inputs;
  for (const ValueId input : graph.inputs()) inputs.push_back(Spread(graph.type(input), rng));
  return inputs;
}

Graph InFloats(const Graph& graph) {
  const auto selection = SelectInFloats(graph, {});
  EXPECT_TRUE(selection.ok() && selection->refusals.empty()) << selection.status();
  const auto passed = RunPasses(selection->graph);
  EXPECT_TRUE(passed.ok()) << passed.status();
  return *passed;
}

TEST(SelectionSweepTest, IsExactInFp16) {
  for (const char* text : kGraphs) {
    SCOPED_TRACE(text);
    const Graph graph = *ParseGraph(text);
    const Graph floats = InFloats(graph);
    std::mt19937 rng(1);
    for (int round = 0; round < kRounds && !HasFailure(); ++round) {
      const std::vector<Tensor> inputs = Inputs(graph, rng);
      Diagnostics diagnostics;
      const auto got = Simulate(floats, inputs, OptionsOf(round % 2 == 0), diagnostics);
      ASSERT_TRUE(got.ok()) << got.status();
      const auto want = RunReference(graph, inputs);
      ASSERT_TRUE(want.ok()) << want.status();
      for (size_t i = 0; i < want->size(); ++i) {
        EXPECT_EQ((*got)[i], CastTensor((*want)[i], DType::kFloat32).ToFloats());
      }
    }
  }
}

}  // namespace
}  // namespace npuc
