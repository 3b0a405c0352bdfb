// Every operator through the lowering of the integer cores: random nodes against the reference.
#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "compiler_core/ir/graph/text.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/pipeline/integer_runs_test_util.h"
#include "compiler_core/pipeline/random_nodes_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

// 16 bits, so that what remains is the tables' error: a few thousandths of the largest value. A
// wrong kernel, factor or layout is off by the size of the values.
constexpr int kBits = 16;
constexpr double kAllowed = 0.01;
constexpr int kRounds = 48;

// A node with an operand that is no constant. Shapes that do not fit the operator are drawn again;
// none is returned where nothing fits.
std::optional<NodeGraph> RandomNet(Op op, uint32_t round) {
  std::mt19937 rng(round * 64 + static_cast<uint32_t>(op));
  for (int attempt = 0; attempt < 50; ++attempt) {
    const NodeSpec spec = RandomNode(op, rng, 400);
    absl::StatusOr<NodeGraph> built = BuildNodeGraph(spec);
    if (built.ok() && !built->inputs.empty()) return *std::move(built);
  }
  return std::nullopt;
}

void ExpectAgrees(const NodeGraph& net, const CompiledModel& model) {
  std::vector<Tensor> stored;
  for (size_t i = 0; i < net.inputs.size(); ++i) {
    stored.push_back(AsStored(model.inputs[i], net.inputs[i]));
  }
  const auto got = SimulateIntegers(model, net.inputs);
  ASSERT_TRUE(got.ok()) << got.status();
  const auto want = RunReference(net.graph, stored);
  ASSERT_TRUE(want.ok()) << want.status();
  for (size_t k = 0; k < want->size(); ++k) {
    double largest = 0;
    for (const float value : (*want)[k].ToFloats()) {
      largest = std::max(largest, std::fabs(double{value}));
    }
    for (int64_t i = 0; i < (*want)[k].element_count(); ++i) {
      ASSERT_NEAR((*got)[k][static_cast<size_t>(i)], (*want)[k].at(i), kAllowed * largest)
          << "element " << i << " of result " << k;
    }
  }
}

class IntegerSweep : public ::testing::TestWithParam<const OpDef*> {};

TEST_P(IntegerSweep, ComputesAsTheReferenceOrIsRefused) {
  const OpDef& def = *GetParam();
  const bool is_border = def.op == Op::kPlaceholder || def.op == Op::kConst ||
                         def.op == Op::kQuantize || def.op == Op::kDequantize;
  if (is_border) GTEST_SKIP() << "not a layer that computes";
  int ran = 0;
  for (uint32_t round = 0; round < kRounds && !HasFailure(); ++round) {
    const std::optional<NodeGraph> net = RandomNet(def.op, round);
    if (!net.has_value()) continue;
    SCOPED_TRACE(PrintGraph(net->graph));
    const QuantPlan plan = PlanByExtrema(net->graph, {net->inputs}, kBits, round % 2 == 0);
    const absl::StatusOr<CompiledModel> model = CompileIntegers(net->graph, plan);
    if (!model.ok()) {
      EXPECT_THAT(std::string(model.status().message()), testing::HasSubstr("NPUC"));
      continue;
    }
    ExpectAgrees(*net, *model);
    ++ran;
  }
  if (def.traits.integer == IntegerRule::kNone) {
    EXPECT_EQ(ran, 0) << "it has commands: its traits need an IntegerRule";
  } else {
    EXPECT_GE(ran, 3);  // a power needs a constant, which few nodes have
  }
}

INSTANTIATE_TEST_SUITE_P(AllOps, IntegerSweep,
                         ::testing::ValuesIn(AllOps().begin(), AllOps().end()),
                         [](const auto& info) { return std::string(NameOf(info.param->op)); });

}  // namespace
}  // namespace npuc
