// Every operator that lowers, on random shapes: lowered, planned, encoded and simulated, against
// the operator's reference function. And: what passes a core's checks lowers.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "compiler_core/lowering/lower.h"
#include "compiler_core/lowering/support.h"
#include "compiler_core/ops/graph_builder.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/passes/passes.h"
#include "compiler_core/pipeline/random_nodes_test_util.h"
#include "compiler_core/target/core_spec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

constexpr double kHalfUlp = 0x1p-11;  // relative error of one rounding to fp16

void ExpectNear(const std::vector<float>& got, const Tensor& want, const Tensor& size, Op op) {
  ASSERT_EQ(static_cast<int64_t>(got.size()), want.element_count());
  const Fp16Error& error = TraitsOf(op).fp16_error;
  int64_t wrong = 0;
  for (int64_t i = 0; i < want.element_count() && wrong < 3; ++i) {
    const double allowed = error.roundings * kHalfUlp * std::fabs(size.at(i)) + error.floor;
    if (std::fabs(got[i] - want.at(i)) <= allowed) continue;
    if (std::isnan(got[i]) && std::isnan(want.at(i))) continue;  // a power of a negative number
    ADD_FAILURE() << "element " << i << " is " << got[i] << ", expected " << want.at(i) << " +- "
                  << allowed;
    ++wrong;
  }
}

void CompareWithReference(const NodeSpec& spec, const Graph& graph,
                          const std::vector<Tensor>& inputs, bool in_place,
                          absl::string_view core = "GRUS") {
  Diagnostics diagnostics;
  const auto got = Simulate(graph, inputs, OptionsOf(in_place), diagnostics, core);
  ASSERT_TRUE(got.ok()) << got.status();
  const absl::StatusOr<NodeGraph> plain = BuildNodeGraph(spec);
  ASSERT_TRUE(plain.ok()) << plain.status();
  const auto want = RunReference(plain->graph, plain->inputs);
  ASSERT_TRUE(want.ok()) << want.status();
  const absl::StatusOr<NodeGraph> absolute =
      BuildNodeGraph(spec, TraitsOf(spec.op).fp16_error.of_terms);
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
    spec.op = Op::kReduceMean;
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
  for (const char letter : NameOf(def.op)) seed = (seed ^ static_cast<uint8_t>(letter)) * 16777619u;
  return seed;
}

// The result of one node of constants and an input, as the simulator computes it.
std::vector<float> Computed(Op op, std::vector<Tensor> operands, std::vector<bool> is_constant,
                            AttrMap attrs = {}) {
  NodeSpec spec;
  spec.op = op;
  spec.attrs = std::move(attrs);
  spec.operands = std::move(operands);
  spec.is_constant = std::move(is_constant);
  const absl::StatusOr<NodeGraph> built = BuildNodeGraph(spec);
  EXPECT_TRUE(built.ok()) << built.status();
  Diagnostics diagnostics;
  const auto got = Simulate(built->graph, built->inputs, OptionsOf(false), diagnostics);
  EXPECT_TRUE(got.ok()) << got.status();
  return got.ok() ? (*got)[0] : std::vector<float>();
}

// A mask times the lowest float, and a number that keeps a divisor from 0.
TEST(LowerScalars, NumbersThatFp16LacksStayFinite) {
  const auto scalar = [](float value) { return Tensor::FromFloats({}, {value}); };
  const Tensor mask = Tensor::FromFloats({2}, {0, 1});
  EXPECT_EQ(Computed(Op::kMul, {mask, scalar(-3.4e38f)}, {false, true}),
            (std::vector<float>{0, -65504}));
  EXPECT_EQ(Computed(Op::kSub, {scalar(1e9f), mask}, {true, false}),
            (std::vector<float>{65504, 65504}));
  EXPECT_EQ(Computed(Op::kAdd, {mask, scalar(1e-12f)}, {false, true}),
            (std::vector<float>{0x1p-24f, 1}));
  EXPECT_EQ(Computed(Op::kMaximum, {mask, scalar(1e-12f)}, {false, true}),
            (std::vector<float>{0x1p-24f, 1}));
}

TEST(LowerReduce, MeansOfLargeRowsThatTheUnitDoesNotStrideOverDoNotOverflow) {
  const std::vector<float> values(3 * 70000, 60000.0f);
  const std::vector<float> means =
      Computed(Op::kReduceMean, {Tensor::FromFloats({1, 3, 70000}, values)}, {false},
               {{"axes", std::vector<int64_t>{1}}});
  ASSERT_EQ(means.size(), 70000u);
  EXPECT_NEAR(*std::min_element(means.begin(), means.end()), 60000, 64);
  EXPECT_NEAR(*std::max_element(means.begin(), means.end()), 60000, 64);
}

AttrMap PoolAttrs(int64_t kernel, int64_t stride, int64_t before, int64_t after) {
  return {{"kernel", std::vector<int64_t>{kernel, kernel}},
          {"strides", std::vector<int64_t>{stride, stride}},
          {"pads", std::vector<int64_t>{before, after, before, after}}};
}

TEST(LowerPool, PaddedMeansOfLargeValuesDoNotOverflow) {
  const std::vector<float> values(6 * 6 * 4, 60000.0f);
  for (const float mean : Computed(Op::kAvgPool, {Tensor::FromFloats({1, 6, 6, 4}, values)},
                                   {false}, PoolAttrs(3, 1, 1, 1))) {
    EXPECT_NEAR(mean, 60000, 64);
  }
}

// A window of 9 million taps of which one lies on the image, and one of 90,000 that lie on it.
TEST(LowerPool, CommandsFollowTheTapsThatReadTheImage) {
  for (const auto& [side, kernel, before, after] :
       {std::tuple<int64_t, int64_t, int64_t, int64_t>{4, 3000, 2999, 0}, {300, 300, 1, 1}}) {
    const std::vector<float> values(static_cast<size_t>(side * side), 1.0f);
    NodeSpec spec;
    spec.op = Op::kAvgPool;
    spec.attrs = PoolAttrs(kernel, kernel == 300 ? 1 : kernel, before, after);
    spec.operands = {Tensor::FromFloats({1, side, side, 1}, values)};
    spec.is_constant = {false};
    const absl::StatusOr<NodeGraph> built = BuildNodeGraph(spec);
    ASSERT_TRUE(built.ok()) << built.status();
    Diagnostics diagnostics;
    const auto lowered = Lower(built->graph, *FindCore("GRUS"), {}, diagnostics);
    EXPECT_EQ(lowered.ok(), kernel == 3000);
    if (lowered.ok()) {
      EXPECT_LT(lowered->program.commands.size(), 10u);
    } else {
      EXPECT_EQ(diagnostics.list()[0].kind, DiagnosticKind::kTooManyCommands);
    }
  }
}

int64_t ElementsOf(uint32_t round) {
  return round % 16 == 7 ? 300000 : (round % 2 == 0 ? 500 : 20000);
}

bool HasOperands(const OpDef& def) { return def.op != Op::kPlaceholder && def.op != Op::kConst; }

class LoweringSweep : public ::testing::TestWithParam<const OpDef*> {};

TEST_P(LoweringSweep, SimulatesAsTheReference) {
  const OpDef& def = *GetParam();
  if (def.lower == nullptr || !HasOperands(def)) GTEST_SKIP() << "rewritten before lowering";
  constexpr uint32_t kRounds = 32;
  int ran = 0;
  for (uint32_t round = 0; round < kRounds && !HasFailure(); ++round) {
    std::mt19937 rng(SeedOf(def, round));
    const NodeSpec spec = RandomNode(def.op, rng, ElementsOf(round));
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

// What passes the checks lowers and computes what the reference does; what is refused, by the
// checks or by lowering, says by which limit.
void CheckThenCompare(const NodeSpec& spec, const NodeGraph& built, bool in_place,
                      const std::string& core = "GRUS") {
  const absl::StatusOr<Graph> graph = RunPasses(built.graph);
  ASSERT_TRUE(graph.ok()) << graph.status();
  Diagnostics diagnostics;
  CompileOptions options;
  options.model_name = "test.pb";
  CheckSupport(*graph, *FindCore(core), options, diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.list()) {
    if (diagnostic.kind == DiagnosticKind::kOperatorNotAccepted ||
        diagnostic.kind == DiagnosticKind::kOperatorRewritten) {
      continue;
    }
    EXPECT_THAT(diagnostic.limit_source, testing::HasSubstr(core + "/TF/" + spec.framework_op))
        << diagnostic.ToString();
  }
  if (diagnostics.has_errors()) return;
  CompareWithReference(spec, *graph, built.inputs, in_place, core);
}

// LEO's other limits (target/cores/leo.yaml), on half as many nodes.
TEST_P(LoweringSweep, SoOnLeo) {
  const OpDef& def = *GetParam();
  if (!HasOperands(def)) GTEST_SKIP() << "has no operands";
  constexpr uint32_t kRounds = 20;
  for (uint32_t round = 0; round < kRounds && !HasFailure(); ++round) {
    std::mt19937 rng(SeedOf(def, 3000 + round));
    NodeSpec spec = RandomNode(def.op, rng, ElementsOf(round));
    spec.framework_op = std::string(ListedAs(def.op));
    SCOPED_TRACE(spec.ToString());
    const absl::StatusOr<NodeGraph> built = BuildNodeGraph(spec);
    if (built.ok()) CheckThenCompare(spec, *built, round % 2 == 0, "LEO");
  }
}

TEST_P(LoweringSweep, WhatPassesTheChecksLowersAndWhatDoesNotNamesItsRule) {
  const OpDef& def = *GetParam();
  if (!HasOperands(def)) GTEST_SKIP() << "has no operands";
  constexpr uint32_t kRounds = 40;
  for (uint32_t round = 0; round < kRounds && !HasFailure(); ++round) {
    std::mt19937 rng(SeedOf(def, 1000 + round));
    const NodeSpec spec = RandomNode(def.op, rng, ElementsOf(round));
    SCOPED_TRACE(spec.ToString());
    const absl::StatusOr<NodeGraph> built = BuildNodeGraph(spec);
    if (built.ok()) CheckThenCompare(spec, *built, round % 2 == 0);
  }
}

// A width is a field of 16 bits, into whose neighbour a larger one would run.
TEST(LowerConvolution, AnImageWiderThanItsFieldIsRefused) {
  for (const int64_t channels : {1, 2}) {
    for (const int64_t width : {65535, 65536}) {
      NodeSpec spec;
      spec.op = Op::kConv2D;
      spec.framework_op = "Conv2D";
      spec.attrs = {{"strides", std::vector<int64_t>{1, 1}},
                    {"pads", std::vector<int64_t>{0, 0, 0, 0}}};
      const Shape image = {1, 1, width, channels};
      const Shape kernel = {1, 3, channels, 1};
      spec.operands = {Tensor::FromFloats(image, std::vector<float>(ElementCount(image), 1.0f)),
                       Tensor::FromFloats(kernel, std::vector<float>(ElementCount(kernel), 1.0f))};
      spec.is_constant = {false, true};
      const absl::StatusOr<NodeGraph> built = BuildNodeGraph(spec);
      ASSERT_TRUE(built.ok()) << built.status();
      Diagnostics diagnostics;
      const auto lowered = Lower(built->graph, *FindCore("GRUS"), {}, diagnostics);
      EXPECT_EQ(lowered.ok(), width == 65535) << lowered.status();
      if (!lowered.ok()) {
        EXPECT_THAT(diagnostics.list()[0].message, testing::HasSubstr("at most 65535"));
      }
    }
  }
}

absl::StatusOr<LoweredModel> LoweredConvolution(const Shape& image, const Shape& weight,
                                                Diagnostics& diagnostics) {
  Graph graph;
  GraphBuilder builder(&graph);
  const ValueId x = graph.AddInput("x", {DType::kFloat32, image});
  const std::vector<float> ones(static_cast<size_t>(ElementCount(weight)), 1.0f);
  const ValueId w = builder.Const(Tensor::FromFloats(weight, ones), {"w", "Const"});
  const AttrMap attrs = {{"strides", std::vector<int64_t>{1, 1}},
                         {"pads", std::vector<int64_t>{0, 0, 0, 0}}};
  const ValueId y = *builder.AddOne(Op::kConv2D, {x, w}, attrs, {"conv", "Conv2D"});
  graph.AddOutput({"y", y});
  return Lower(graph, *FindCore("GRUS"), {}, diagnostics);
}

// The unit's operands have at most 2^27 elements.
TEST(LowerConvolution, ALargerOperandThanTheUnitTakesIsRefused) {
  for (const Shape& image : {Shape{1, 9000, 9000, 2}, Shape{1, 12000, 12000, 1}}) {
    Diagnostics diagnostics;
    EXPECT_FALSE(LoweredConvolution(image, {3, 3, image[3], 1}, diagnostics).ok());
    ASSERT_EQ(diagnostics.list().size(), 1u);
    EXPECT_EQ(diagnostics.list()[0].kind, DiagnosticKind::kNotLowerable);
    EXPECT_THAT(diagnostics.list()[0].message, testing::HasSubstr("134217728"));
  }
}

// A byte counts the depthwise unit's tiles: wider images take the convolution unit.
TEST(LowerConvolution, TheTilesOfADepthwiseCommandFitTheirCount) {
  for (const int64_t width : {32 + 254 * 28, 33 + 254 * 28}) {
    Diagnostics diagnostics;
    const auto lowered = LoweredConvolution({1, 1, width, 1}, {1, 5, 1, 4}, diagnostics);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const auto& commands = lowered->program.commands;
    const bool is_depthwise = std::any_of(commands.begin(), commands.end(), [](const Command& c) {
      const auto* raw = std::get_if<RawCommand>(&c.body);
      return raw != nullptr && raw->opcode == 0x42;
    });
    EXPECT_EQ(is_depthwise, width == 32 + 254 * 28) << width;
  }
}

// 16 bits count the planes of a depthwise command.
TEST(LowerConvolution, MoreResultChannelsThanACommandCountsTakeSeveral) {
  constexpr int64_t kChannels = 70000;
  std::vector<float> weights(4 * kChannels);
  for (int64_t i = 0; i < 4 * kChannels; ++i) weights[i] = static_cast<float>(i % 7);
  const std::vector<float> got = Computed(
      Op::kConv2D,
      {Tensor::FromFloats({1, 3, 3, 1}, std::vector<float>(9, 1.0f)),
       Tensor::FromFloats({2, 2, 1, kChannels}, weights)},
      {false, true},
      {{"strides", std::vector<int64_t>{1, 1}}, {"pads", std::vector<int64_t>{0, 0, 0, 0}}});
  ASSERT_EQ(got.size(), static_cast<size_t>(4 * kChannels));
  for (int64_t i = 0; i < 4 * kChannels; ++i) {
    float want = 0;
    for (int64_t tap = 0; tap < 4; ++tap) want += weights[tap * kChannels + i % kChannels];
    ASSERT_EQ(got[i], want) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(AllOps, LoweringSweep,
                         ::testing::ValuesIn(AllOps().begin(), AllOps().end()),
                         [](const auto& info) { return std::string(NameOf(info.param->op)); });

// TensorFlow's operators by the IR's operator that the front end makes of them.
const std::multimap<Op, std::string>& FrameworkOps() {
  static const std::multimap<Op, std::string> kOps = {
      {Op::kAdd, "Add"},
      {Op::kAdd, "AddV2"},
      {Op::kAdd, "AddN"},
      {Op::kAdd, "BiasAdd"},
      {Op::kBatchNorm, "FusedBatchNorm"},
      {Op::kBatchNorm, "FusedBatchNormV2"},
      {Op::kBatchNorm, "FusedBatchNormV3"},
      {Op::kConcat, "Concat"},
      {Op::kConcat, "ConcatV2"},
      {Op::kConcat, "Pack"},
      {Op::kDepthwiseConv2D, "DepthwiseConv2dNative"},
      {Op::kDiv, "Div"},
      {Op::kDiv, "RealDiv"},
      {Op::kMatMul, "MatMul"},
      {Op::kMatMul, "BatchMatMulV2"},
      {Op::kReduceMax, "Max"},
      {Op::kReduceMean, "Mean"},
      {Op::kReduceSum, "Sum"},
      {Op::kReshape, "Reshape"},
      {Op::kReshape, "ExpandDims"},
      {Op::kReshape, "Squeeze"},
      {Op::kSlice, "Slice"},
      {Op::kSlice, "StridedSlice"},
  };
  return kOps;
}

// Operators of the list that no node of the IR comes from: the front end folds them or looks
// through them, which its own tests and tests/e2e's tf_graphs check.
const std::set<std::string>& ImportOnlyOps() {
  static const std::set<std::string> kOps = {"BatchToSpaceND", "Const", "Identity",
                                             "Placeholder",    "Shape", "SpaceToBatchND",
                                             "StopGradient"};
  return kOps;
}

const OpList& GrusTensorFlowOps() {
  for (const OpList& list : FindCore("GRUS")->op_lists) {
    if (list.framework == Framework::kTensorFlow) return list;
  }
  ADD_FAILURE() << "GRUS has no list for TensorFlow";
  return FindCore("GRUS")->op_lists[0];
}

TEST(RestrictionEdges, EveryOperatorOfTheListPassesOrNamesItsRule) {
  for (const OpSupport& support : GrusTensorFlowOps().ops) {
    const std::string name(support.op);
    if (ImportOnlyOps().count(name) > 0) continue;
    std::optional<Op> op = OpNamed(name);
    for (const auto& [ir, framework_op] : FrameworkOps()) {
      if (framework_op == name) op = ir;
    }
    ASSERT_TRUE(op.has_value()) << name << " has no operator of the IR";
    int ran = 0;
    for (uint32_t round = 0; round < 12 && !HasFailure(); ++round) {
      std::mt19937 rng(SeedOf(DefOf(*op), 2000 + round));
      NodeSpec spec = RandomNode(*op, rng, 2000);
      spec.framework_op = name;
      SCOPED_TRACE(spec.ToString());
      const absl::StatusOr<NodeGraph> built = BuildNodeGraph(spec);
      if (!built.ok()) continue;
      CheckThenCompare(spec, *built, round % 2 == 0);
      ++ran;
    }
    EXPECT_GE(ran, 6) << name;
  }
}

// An operator without a name of the list would be refused, whatever its commands compute.
TEST(RestrictionEdges, EveryOperatorThatLowersIsJudgedByARow) {
  for (const char* core : {"GRUS", "LEO"}) {
    for (const OpDef* def : AllOps()) {
      if (def->lower == nullptr || !HasOperands(*def)) continue;
      EXPECT_NE(FindOp(*FindCore(core), Framework::kTensorFlow, ListedAs(def->op)), nullptr)
          << core << ", " << def->op
          << ": its traits need listed_as, or the core's data file a row";
    }
  }
}

// Nodes at the edges of the restrictions and one step beyond, by hand.
class EdgeNodes {
 public:
  std::vector<NodeSpec> Make() {
    Convolutions(Op::kConv2D, "Conv2D", 1);
    Convolutions(Op::kConv2D, "Conv2D", 2);
    Convolutions(Op::kDepthwiseConv2D, "DepthwiseConv2dNative", 3);
    Pools(Op::kAvgPool);
    Pools(Op::kMaxPool);
    for (const char* name : {"MatMul", "BatchMatMulV2"}) {
      // Blocks of 32: 32 x 63 blocks are the most, 32 x 64 too many; 2017 rounds up to 2048.
      for (const auto& [k, n] : {std::pair<int64_t, int64_t>{1024, 63},
                                 {1024, 64},
                                 {1024, 65},
                                 {2016, 32},
                                 {2017, 32},
                                 {1, 1}}) {
        Add(Op::kMatMul, name, {{1, k}, {k, n}}, {false, true}, {});
      }
    }
    Add(Op::kPow, "Pow", {{4}, {4}}, {false, true}, {}, 0.5f);
    Add(Op::kPow, "Pow", {{4}, {4}}, {false, false}, {}, 0.5f);
    Add(Op::kPow, "Pow", {{4}, {4}}, {true, true}, {}, 0.5f);
    Add(Op::kPow, "Pow", {{4}, {4}}, {true, true}, {}, -2.0f);
    Add(Op::kSquaredDifference, "SquaredDifference", {{2, 3}, {2, 3}}, {false, false}, {});
    Add(Op::kSquaredDifference, "SquaredDifference", {{2, 3}, {3}}, {false, false}, {});
    const auto permuted = [&](std::vector<int64_t> perm) {
      Add(Op::kTranspose, "Transpose", {{2, 3, 4, 5}}, {false}, {{"perm", std::move(perm)}});
    };
    permuted({2, 3, 0, 1});
    permuted({0, 1, 2, 3});
    permuted({3, 2, 1, 0});
    permuted({0, 2, 1, 3});
    return std::move(specs_);
  }

 private:
  void Add(Op op, const std::string& framework_op, const std::vector<Shape>& shapes,
           std::vector<bool> is_constant, AttrMap attrs, float first = 0.25f) {
    NodeSpec spec;
    spec.op = op;
    spec.framework_op = framework_op;
    spec.attrs = std::move(attrs);
    for (const Shape& shape : shapes) {
      std::vector<float> values(static_cast<size_t>(ElementCount(shape)));
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = first + 0.0625f * static_cast<float>(i % 7);
      }
      spec.operands.push_back(Tensor::FromFloats(shape, values));
    }
    spec.is_constant = std::move(is_constant);
    specs_.push_back(std::move(spec));
  }

  void Convolutions(Op op, const std::string& framework_op, int64_t channels) {
    const auto add = [&](int64_t kh, int64_t kw, int64_t sh, int64_t sw, bool same, bool constant) {
      const std::vector<int64_t> pads =
          same ? std::vector<int64_t>{(kh - 1) / 2, kh / 2, (kw - 1) / 2, kw / 2}
               : std::vector<int64_t>{0, 0, 0, 0};
      Add(op, framework_op, {{1, kh + sh, kw + sw, channels}, {kh, kw, channels, 1}},
          {false, constant}, {{"strides", std::vector<int64_t>{sh, sw}}, {"pads", pads}});
    };
    for (const int64_t side : {1, 11, 12, 15, 16}) {
      add(side, 1, 1, 1, false, true);
      add(1, side, 1, 1, false, true);
    }
    for (const int64_t stride : {4, 5, 15, 16}) {
      add(2, 2, stride, 1, false, true);
      add(2, 2, 1, stride, false, true);
    }
    add(7, 7, 1, 1, false, true);   // 49 taps
    add(5, 10, 1, 1, false, true);  // 50
    add(3, 3, 1, 1, true, true);
    add(3, 3, 1, 1, false, false);
  }

  void Pools(Op op) {
    const auto add = [&](int64_t h, int64_t w, int64_t sh, int64_t sw) {
      Add(op, std::string(NameOf(op)), {{1, 2 * h, 2 * w, 3}}, {false},
          {{"kernel", std::vector<int64_t>{h, w}},
           {"strides", std::vector<int64_t>{sh, sw}},
           {"pads", std::vector<int64_t>{0, 0, 0, 0}}});
    };
    for (const int64_t side : {1, 2, 15, 16}) {
      add(side, 2, side, 2);
      add(2, side, 2, side);
    }
    add(1, 1, 1, 1);
    add(1, 1, 2, 2);
    add(3, 3, 2, 3);
    add(3, 3, 3, 2);
  }

  std::vector<NodeSpec> specs_;
};

// Rules that every node of the IR keeps, since the front end refuses what would break them (cases
// model_nchw, model_input_shape, model_operand_not_constant of tests/golden, and its own tests).
bool KeptByTheFrontEnd(const SupportRule& rule) {
  if (rule.kind == RuleKind::kStaticShape || rule.kind == RuleKind::kOnlyInPattern ||
      rule.kind == RuleKind::kLayout) {
    return true;
  }
  // Operands that are attributes in the IR.
  const std::string id(rule.id);
  return rule.kind == RuleKind::kConstInput &&
         (id.find("/ExpandDims/") != std::string::npos ||
          id.find("/Reshape/") != std::string::npos || id.find("/Transpose/") != std::string::npos);
}

bool Applies(const SupportRule& rule, const FactMap& facts) {
  return std::all_of(rule.when.begin(), rule.when.end(), [&](const FactCondition& condition) {
    const auto it = facts.find(std::string(condition.fact));
    const int64_t* value = it == facts.end() ? nullptr : std::get_if<int64_t>(&it->second);
    return value != nullptr && (*value == condition.value) == condition.equal;
  });
}

// Every rule of the list is met and broken by some node, a range just at its end and just beyond;
// and each of these nodes passes and computes the right values or is refused by that rule.
TEST(RestrictionEdges, EveryRuleIsMetAndBroken) {
  struct Seen {
    bool met = false;
    bool broken = false;
    std::set<int64_t> values;
  };
  std::map<std::string, Seen> seen;
  for (const NodeSpec& spec : EdgeNodes().Make()) {
    SCOPED_TRACE(spec.ToString());
    const absl::StatusOr<NodeGraph> built = BuildNodeGraph(spec);
    ASSERT_TRUE(built.ok()) << built.status();
    const Node& node = built->graph.def(built->graph.outputs()[0].value);
    const FactMap facts = FactsOf(built->graph, node);
    const OpSupport* support = FindOp(*FindCore("GRUS"), Framework::kTensorFlow, spec.framework_op);
    ASSERT_NE(support, nullptr);
    for (const SupportRule& rule : support->rules) {
      if (!Applies(rule, facts)) continue;
      Seen& entry = seen[std::string(rule.id)];
      std::string found;
      const bool holds = RuleHolds(rule, facts, &found);
      (holds ? entry.met : entry.broken) = true;
      EXPECT_EQ(found.empty(), holds) << rule.id;
      const auto it = facts.find(std::string(rule.facts[0]));
      if (it == facts.end()) continue;
      if (const auto* value = std::get_if<int64_t>(&it->second)) entry.values.insert(*value);
    }
    CheckThenCompare(spec, *built, false);
    if (FindOp(*FindCore("LEO"), Framework::kTensorFlow, spec.framework_op) != nullptr) {
      CheckThenCompare(spec, *built, false, "LEO");
    }
  }
  int rules = 0;
  for (const OpSupport& support : GrusTensorFlowOps().ops) {
    for (const SupportRule& rule : support.rules) {
      if (KeptByTheFrontEnd(rule)) continue;
      ++rules;
      const Seen& entry = seen[std::string(rule.id)];
      EXPECT_TRUE(entry.met) << rule.id;
      EXPECT_TRUE(entry.broken) << rule.id;
      if (rule.kind != RuleKind::kRange) continue;
      EXPECT_EQ(entry.values.count(rule.lo), 1u) << rule.id;
      EXPECT_EQ(entry.values.count(rule.hi), 1u) << rule.id;
      EXPECT_EQ(entry.values.count(rule.hi + 1), 1u) << rule.id;
    }
  }
  EXPECT_GE(rules, 30);
}

}  // namespace
}  // namespace npuc
