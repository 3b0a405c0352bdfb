// Moving transposes never makes a graph that the lowering refuses where it took the one before, and
// the commands still compute the same.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "compiler_core/lowering/copies.h"
#include "compiler_core/lowering/lower.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/passes/passes.h"
#include "compiler_core/passes/random_graphs_test_util.h"
#include "compiler_core/pipeline/random_nodes_test_util.h"
#include "compiler_core/target/core_spec.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

std::vector<Tensor> RandomInputs(const Graph& graph, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Tensor> inputs;
  for (const ValueId input : graph.inputs()) {
    std::vector<float> values(static_cast<size_t>(graph.type(input).element_count()));
    for (float& value : values)
      value = 0.125f * static_cast<float>(static_cast<int>(random() % 17) - 8);
    inputs.push_back(Tensor::FromFloats(graph.type(input).shape, values));
  }
  return inputs;
}

// The largest difference of any output, relative to that output's largest value where over 1.
double LargestError(const std::vector<std::vector<float>>& got, const std::vector<Tensor>& want) {
  double largest = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    double scale = 1;
    double error = 0;
    for (int64_t k = 0; k < want[i].element_count(); ++k) {
      scale = std::max(scale, std::fabs(want[i].at(k)));
      error = std::max(error, std::fabs(got[i][static_cast<size_t>(k)] - want[i].at(k)));
    }
    largest = std::max(largest, error / scale);
  }
  return largest;
}

TEST(LayoutSweep, MovedTransposesLowerAndSimulateAlike) {
  const CoreSpec& core = *FindCore("GRUS");
  int compared = 0;
  int changed = 0;
  for (uint32_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = *RewriteSoftmax(*Canonicalize(RandomTransposeGraph(seed)));
    Diagnostics diagnostics;
    if (!Lower(graph, core, {}, diagnostics).ok()) continue;
    const Graph moved = *DeadCode(*PropagateTransposes(graph));
    const Graph all = *RunPasses(graph);
    const std::vector<Tensor> inputs = RandomInputs(graph, seed);
    const std::vector<Tensor> want = *RunReference(graph, inputs);
    bool in_range = true;
    for (const Tensor& tensor : want) {
      for (int64_t k = 0; k < tensor.element_count(); ++k) {
        in_range &= std::fabs(tensor.at(k)) < 1000;
      }
    }
    const auto before = Simulate(graph, inputs, {}, diagnostics);
    ASSERT_TRUE(before.ok()) << before.status();
    for (const Graph* after : {&moved, &all}) {
      const auto got = Simulate(*after, inputs, OptionsOf(seed % 2 == 0), diagnostics);
      ASSERT_TRUE(got.ok()) << got.status();
      if (!in_range) continue;
      EXPECT_LE(LargestError(*got, want), 4 * LargestError(*before, want) + 0.01);
      ++compared;
    }
    if (moved.node_count() != graph.node_count()) ++changed;
  }
  EXPECT_GE(compared, 300);
  EXPECT_GE(changed, 100);
}

// LowerOptions::plain_commands changes no bit of any output. Each value is a small multiple of a
// power of two, or far from where a batch_norm could round otherwise than its two commands.
TEST(LayoutSweep, PlainCommandsGiveTheSameBits) {
  const CoreSpec& core = *FindCore("GRUS");
  int fewer = 0;
  for (uint32_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = *RunPasses(RandomTransposeGraph(seed));
    const std::vector<Tensor> inputs = RandomInputs(graph, seed);
    LowerOptions options = OptionsOf(seed % 2 == 0);
    Diagnostics diagnostics;
    absl::StatusOr<LoweredModel> lowered = Lower(graph, core, options, diagnostics);
    if (!lowered.ok()) continue;
    DropCopies(lowered->program);
    const auto got = Simulate(graph, inputs, options, diagnostics);
    options.plain_commands = true;
    const auto want = Simulate(graph, inputs, options, diagnostics);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_TRUE(want.ok()) << want.status();
    for (size_t i = 0; i < want->size(); ++i) {
      ASSERT_EQ((*got)[i].size(), (*want)[i].size());
      EXPECT_EQ(std::memcmp((*got)[i].data(), (*want)[i].data(), 4 * (*want)[i].size()), 0);
    }
    const size_t plain_commands = Lower(graph, core, options, diagnostics)->program.commands.size();
    EXPECT_LE(lowered->program.commands.size(), plain_commands);
    fewer += lowered->program.commands.size() < plain_commands ? 1 : 0;
  }
  EXPECT_GE(fewer, 100);
}

}  // namespace
}  // namespace npuc
