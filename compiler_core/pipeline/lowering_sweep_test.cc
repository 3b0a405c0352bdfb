// Every operator that lowers, on random shapes: lowered, planned, encoded and simulated, against
// the operator's reference function. And: what passes a core's checks lowers.
#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "compiler_core/lowering/lower.h"
#include "compiler_core/lowering/support.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/passes/passes.h"
#include "compiler_core/pipeline/random_nodes_test_util.h"
#include "compiler_core/target/core_spec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

constexpr double kHalfUlp = 0x1p-11;  // relative error of one rounding to fp16

// Roundings that may add up in one result, each relative to the sum of its terms' sizes.
double RoundingsOf(const std::string& op) {
  if (op == "Selu") return 8;  // its constants are fp16 in the command
  if (op == "MatMul" || op == "Conv2D" || op == "DepthwiseConv2D") return 4;
  if (op == "ReduceSum" || op == "ReduceMean" || op == "AvgPool") return 5;
  if (op == "SquaredDifference" || op == "BatchNorm") return 4;
  if (op == "Softmax" || op == "LogSoftmax") return 12;
  return 1.01;
}

// Whether errors are relative to the sums of the terms' sizes, which may cancel.
bool SumsTerms(const std::string& op) {
  return op == "MatMul" || op == "Conv2D" || op == "DepthwiseConv2D" || op == "ReduceSum" ||
         op == "ReduceMean" || op == "AvgPool";
}

// Errors of a result near zero, where roundings before it are not.
double FloorOf(const std::string& op) {
  if (op == "Selu" || op == "LogSoftmax" || op == "BatchNorm") return 8 * kHalfUlp;
  if (op == "SquaredDifference") return 0x1p-16;
  return 0x1p-24;
}

void ExpectNear(const std::vector<float>& got, const Tensor& want, const Tensor& size,
                const std::string& op) {
  ASSERT_EQ(static_cast<int64_t>(got.size()), want.element_count());
  const double roundings = RoundingsOf(op);
  int64_t wrong = 0;
  for (int64_t i = 0; i < want.element_count() && wrong < 3; ++i) {
    const double allowed = roundings * kHalfUlp * std::fabs(size.at(i)) + FloorOf(op);
    if (std::fabs(got[i] - want.at(i)) <= allowed) continue;
    ADD_FAILURE() << "element " << i << " is " << got[i] << ", expected " << want.at(i) << " +- "
                  << allowed;
    ++wrong;
  }
}

void CompareWithReference(const NodeSpec& spec, const Graph& graph,
                          const std::vector<Tensor>& inputs, bool in_place) {
  Diagnostics diagnostics;
  const auto got = Simulate(graph, inputs, in_place, diagnostics);
  ASSERT_TRUE(got.ok()) << got.status();
  const absl::StatusOr<NodeGraph> plain = BuildNodeGraph(spec);
  ASSERT_TRUE(plain.ok()) << plain.status();
  const auto want = RunReference(plain->graph, plain->inputs);
  ASSERT_TRUE(want.ok()) << want.status();
  const absl::StatusOr<NodeGraph> absolute = BuildNodeGraph(spec, SumsTerms(spec.op));
  ASSERT_TRUE(absolute.ok()) << absolute.status();
  const auto sizes = RunReference(absolute->graph, absolute->inputs);
  ASSERT_TRUE(sizes.ok()) << sizes.status();
  ASSERT_EQ(got->size(), want->size());
  for (size_t i = 0; i < want->size(); ++i) {
    ExpectNear((*got)[i], (*want)[i], (*sizes)[i], spec.op);
  }
}

// The sums of these do not fit fp16; the means do. 5000 is over the unit's middle extent, and axes
// 0 and 2 are reduced one after the other.
TEST(LowerReduce, MeansOfLargeValuesDoNotOverflow) {
  const std::vector<std::pair<Shape, std::vector<int64_t>>> cases = {
      {{2, 5000, 3}, {1}}, {{2, 3, 3000}, {0, 2}}, {{1, 9000}, {1}}, {{5000, 1}, {0}}};
  for (const auto& [shape, axes] : cases) {
    NodeSpec spec;
    spec.op = "ReduceMean";
    spec.framework_op = "Mean";
    spec.attrs["axes"] = axes;
    std::vector<float> values(static_cast<size_t>(ElementCount(shape)));
    for (size_t i = 0; i < values.size(); ++i) values[i] = 40.0f + static_cast<float>(i % 17);
    spec.operands = {Tensor::FromFloats(shape, values)};
    spec.is_constant = {false};
    SCOPED_TRACE(spec.ToString());
    const absl::StatusOr<NodeGraph> built = BuildNodeGraph(spec);
    ASSERT_TRUE(built.ok()) << built.status();
    CompareWithReference(spec, built->graph, built->inputs, false);
  }
}

uint32_t SeedOf(const OpDef& def, uint32_t round) {
  uint32_t seed = 2166136261u + round;
  for (const char letter : def.name) seed = (seed ^ static_cast<uint8_t>(letter)) * 16777619u;
  return seed;
}

int64_t ElementsOf(uint32_t round) {
  return round % 16 == 7 ? 300000 : (round % 2 == 0 ? 500 : 20000);
}

bool HasOperands(const OpDef& def) { return def.name != "Placeholder" && def.name != "Const"; }

class LoweringSweep : public ::testing::TestWithParam<const OpDef*> {};

TEST_P(LoweringSweep, SimulatesAsTheReference) {
  const OpDef& def = *GetParam();
  if (def.lower == nullptr || !HasOperands(def)) GTEST_SKIP() << "rewritten before lowering";
  constexpr uint32_t kRounds = 32;
  int ran = 0;
  for (uint32_t round = 0; round < kRounds && !HasFailure(); ++round) {
    std::mt19937 rng(SeedOf(def, round));
    const NodeSpec spec = RandomNode(def.name, rng, ElementsOf(round));
    SCOPED_TRACE(spec.ToString());
    const absl::StatusOr<NodeGraph> built = BuildNodeGraph(spec);
    if (!built.ok()) continue;  // shapes that the operator refuses
    // Refusals are the support test's; this one is about values.
    Diagnostics diagnostics;
    if (!Lower(built->graph, *FindCore("GRUS"), {}, diagnostics).ok()) continue;
    CompareWithReference(spec, built->graph, built->inputs, round % 3 == 0);
    ++ran;
  }
  EXPECT_GE(ran, 16);
}

TEST_P(LoweringSweep, WhatPassesTheChecksLowersAndWhatDoesNotNamesItsRule) {
  const OpDef& def = *GetParam();
  if (!HasOperands(def)) GTEST_SKIP() << "has no operands";
  const CoreSpec& core = *FindCore("GRUS");
  constexpr uint32_t kRounds = 40;
  for (uint32_t round = 0; round < kRounds && !HasFailure(); ++round) {
    std::mt19937 rng(SeedOf(def, 1000 + round));
    const NodeSpec spec = RandomNode(def.name, rng, ElementsOf(round));
    SCOPED_TRACE(spec.ToString());
    const absl::StatusOr<NodeGraph> built = BuildNodeGraph(spec);
    if (!built.ok()) continue;
    const absl::StatusOr<Graph> graph = RunPasses(built->graph);
    ASSERT_TRUE(graph.ok()) << graph.status();
    Diagnostics diagnostics;
    CheckSupport(*graph, core, Framework::kTensorFlow, "test.pb", diagnostics);
    for (const Diagnostic& diagnostic : diagnostics.list()) {
      if (diagnostic.kind == DiagnosticKind::kOperatorNotAccepted) continue;
      EXPECT_THAT(diagnostic.limit_source, testing::HasSubstr("GRUS/TF/" + spec.framework_op))
          << diagnostic.ToString();
    }
    if (diagnostics.has_errors()) continue;
    CompareWithReference(spec, *graph, built->inputs, round % 2 == 0);
  }
}

INSTANTIATE_TEST_SUITE_P(AllOps, LoweringSweep,
                         ::testing::ValuesIn(AllOps().begin(), AllOps().end()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace npuc
