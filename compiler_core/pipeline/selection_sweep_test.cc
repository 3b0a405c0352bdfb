// Choices, positions and lookups of run-time data, as floats on the simulator.
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "compiler_core/ir/graph/text.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/passes/float_selection.h"
#include "compiler_core/passes/passes.h"
#include "compiler_core/pipeline/integer_runs_test_util.h"
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

// Positions, choices and whole numbers of what integers stand for: results are whole, so that the
// rounding of a stored result changes none.
const char* const kWholeGraphs[] = {
    R"(graph "arg" {
  %x = Placeholder() : f32[3,7,2] @"x"
  %a = ArgMax(%x) {axis = 1} : i64[3,2] @"a"
  return %a @"a"
})",
    R"(graph "whole" {
  %x = Placeholder() : f32[40] @"x"
  %f = Floor(%x) : f32[40] @"f"
  %r = Round(%x) : f32[40] @"r"
  return %f @"f", %r @"r"
})",
    R"(graph "above" {
  %x = Placeholder() : f32[40] @"x"
  %y = Placeholder() : f32[40] @"y"
  %g = Greater(%x, %y) : bool[40] @"g"
  %e = GreaterEqual(%x, %y) : bool[40] @"e"
  return %g @"g", %e @"e"
})"};

enum class Scales { kOfBytes, kOfWords, kPowersOfTwo };

void ExpectWhole(const Graph& graph, Scales scales, std::mt19937& rng) {
  const auto selection = SelectInFloats(graph, {.narrows_differences = true});
  ASSERT_TRUE(selection.ok() && selection->refusals.empty()) << selection.status();
  const auto floats = RunPasses(selection->graph);
  ASSERT_TRUE(floats.ok()) << floats.status();
  std::vector<Tensor> inputs = Inputs(graph, rng);
  QuantPlan plan = PlanByExtrema(*floats, {inputs}, scales == Scales::kOfBytes ? 8 : 16,
                                 scales == Scales::kPowersOfTwo);
  if (scales == Scales::kPowersOfTwo) {
    for (auto& [value, params] : plan.values) {
      if (params.dtype != DType::kInt16) continue;
      params.scale[0] = std::exp2(std::ceil(std::log2(params.scale[0])));
    }
  }
  for (const Layer& layer : plan.layers) {  // as the quantizer does
    if (!TraitsOf(floats->node(layer.root).op).keeps_parameters) continue;
    plan.values[layer.outputs[0]] = plan.values.at(layer.inputs[0]);
  }
  const auto model = CompileIntegers(*floats, plan);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto got = SimulateIntegers(*model, inputs);
  ASSERT_TRUE(got.ok()) << got.status();
  for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = AsStored(model->inputs[i], inputs[i]);
  const auto want = RunReference(graph, inputs);
  ASSERT_TRUE(want.ok()) << want.status();
  for (size_t k = 0; k < want->size(); ++k) {
    for (int64_t i = 0; i < (*want)[k].element_count(); ++i) {
      ASSERT_NEAR((*got)[k][static_cast<size_t>(i)], (*want)[k].at(i), 0.26)
          << "element " << i << " of result " << k;
    }
  }
}

TEST(SelectionSweepTest, IsExactOnStoredIntegers) {
  for (const char* text : kWholeGraphs) {
    SCOPED_TRACE(text);
    for (const Scales scales : {Scales::kOfBytes, Scales::kOfWords, Scales::kPowersOfTwo}) {
      SCOPED_TRACE(static_cast<int>(scales));
      std::mt19937 rng(2);
      for (int round = 0; round < kRounds && !HasFailure(); ++round) {
        ExpectWhole(*ParseGraph(text), scales, rng);
      }
    }
  }
}

}  // namespace
}  // namespace npuc
