#include "compiler_core/frontends/common/plugins.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler_core/frontends/onnx/import.h"
#include "compiler_core/frontends/onnx/test_util.h"
#include "compiler_core/ops/op.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::onnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

int CountOf(const Graph& graph, Op op) {
  int count = 0;
  for (const Node& node : graph.nodes()) count += node.op == op ? 1 : 0;
  return count;
}

// The file's first result for x, which has two elements.
std::vector<float> ValuesOf(const ModelBuilder& model, absl::string_view plugins,
                            Graph* graph = nullptr) {
  const ImportResult result = RunImport(model.Bytes(), {}, plugins);
  EXPECT_TRUE(result.graph.ok()) << result.Text();
  if (!result.graph.ok()) return {};
  const auto outputs = RunReference(*result.graph, {Tensor::FromFloats({2}, {-3, 2})});
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  if (graph != nullptr) *graph = *result.graph;
  return outputs.ok() ? (*outputs)[0].ToFloats() : std::vector<float>();
}

constexpr char kScaled[] =
    "operators:\n"
    "  - op: acme.Scaled\n"
    "    operands: [x]\n"
    "    attributes: {by: {type: float}, shifts: {type: ints, default: [1]}}\n"
    "    formula: |\n"
    "      y = Abs(x) * by\n"
    "      n = -x\n"
    "    results: [y, n]\n";

TEST(OnnxPluginsTest, AnOperatorOfAnotherDomainIsItsFormula) {
  ModelBuilder b;
  b.Input("x", {2}).Output("y");
  b.Node("Scaled", {"x"}, {"a", "b"}).Domain("acme").Float("by", 0.5);
  b.Node("Add", {"a", "b"}, {"y"});
  EXPECT_THAT(ValuesOf(b, kScaled), ElementsAre(4.5, -1));
  EXPECT_THAT(RunImport(b.Bytes()).Text(), HasSubstr("NPUC1110"));
}

TEST(OnnxPluginsTest, WhatTheNodeLacksIsSaid) {
  ModelBuilder without;
  without.Input("x", {2}).Output("y").Node("Scaled", {"x"}, {"y"}).Domain("acme");
  EXPECT_THAT(RunImport(without.Bytes(), {}, kScaled).Text(),
              HasSubstr("attribute 'by' is missing; the declaration at line 2 of ops.yaml"));
  ModelBuilder wrong = without;
  wrong.Int("by", 2);
  EXPECT_THAT(RunImport(wrong.Bytes(), {}, kScaled).Text(),
              HasSubstr("attribute 'by' is an integer; it must be a float"));
  ModelBuilder two;
  two.Input("x", {2}).Output("y").Node("Scaled", {"x", "x"}, {"y"}).Domain("acme").Float("by", 1);
  EXPECT_EQ(RunImport(two.Bytes(), {}, kScaled).CountOf(DiagnosticKind::kOperandCount), 1);
}

TEST(OnnxPluginsTest, ABuiltInOperatorIsOverridden) {
  ModelBuilder b;
  b.Input("x", {2}).Output("y").Node("Relu", {"x"}, {"y"});
  constexpr char kRelu[] =
      "operators:\n  - {op: Relu, operands: [x], formula: y = x * 2, results: [y]";
  EXPECT_THAT(ValuesOf(b, absl::StrCat(kRelu, ", overrides: true}\n")), ElementsAre(-6, 4));
  EXPECT_THAT(RunImport(b.Bytes(), {}, absl::StrCat(kRelu, "}\n")).Text(),
              HasSubstr("npuc has an operator 'Relu' of ONNX of its own"));
}

// relu(x) + relu(-x), twice, one behind the other.
ModelBuilder TwoSums() {
  ModelBuilder b;
  b.Input("x", {2});
  std::string x = "x";
  for (const char* i : {"1", "2"}) {
    const std::string y = absl::StrCat("y", i);
    b.Node("Relu", {x}, {absl::StrCat("a", i)});
    b.Node("Neg", {x}, {absl::StrCat("n", i)});
    b.Node("Relu", {absl::StrCat("n", i)}, {absl::StrCat("b", i)});
    b.Node("Add", {absl::StrCat("a", i), absl::StrCat("b", i)}, {y});
    x = y;
  }
  return b;
}

constexpr char kPattern[] =
    "operators:\n"
    "  - op: Doubled\n"
    "    pattern_nodes: [[a, Relu], [n, Neg], [b, Relu], [s, Add]]\n"
    "    pattern_edges:\n"
    "      - [n, b]\n"
    "      - [a, s]\n"
    "      - [b, s, {src_out_port: 0, dst_in_port: 1}]\n"
    "    operands: {x: [a:0, n:0]}\n"
    "    formula: y = Abs(x) * 2\n"
    "    results: [y]\n";

TEST(OnnxPluginsTest, APatternIsReplacedWhereverItStands) {
  ModelBuilder b = TwoSums();
  b.Output("y2");
  Graph graph;
  EXPECT_THAT(ValuesOf(b, kPattern, &graph), ElementsAre(12, 8));
  EXPECT_EQ(CountOf(graph, Op::kRelu), 0);
  EXPECT_EQ(CountOf(graph, Op::kAbs), 2);
}

TEST(OnnxPluginsTest, APatternThatIsReadInsideStaysAsItIs) {
  ModelBuilder b = TwoSums();
  b.Output("y2").Output("b1");
  Graph graph;
  EXPECT_THAT(ValuesOf(b, kPattern, &graph), ElementsAre(6, 4));  // the second one alone
  EXPECT_EQ(CountOf(graph, Op::kRelu), 2);
}

TEST(OnnxPluginsTest, APatternOfAnotherOrderOfOperandsStaysAsItIs) {
  ModelBuilder b;
  b.Input("x", {2}).Output("y");
  b.Node("Relu", {"x"}, {"a"}).Node("Neg", {"x"}, {"n"}).Node("Relu", {"n"}, {"b"});
  b.Node("Add", {"b", "a"}, {"y"});
  EXPECT_THAT(ValuesOf(b, kPattern), ElementsAre(3, 2));
}

TEST(OnnxPluginsTest, APatternEndsAtACut) {
  ModelBuilder b = TwoSums();
  b.Output("y2");
  CompileOptions options;
  options.inputs = {{"y1", {2}}, {"b2", {2}}};
  const ImportResult result = RunImport(b.Bytes(), options, kPattern);
  ASSERT_TRUE(result.graph.ok()) << result.Text();
  EXPECT_EQ(CountOf(*result.graph, Op::kRelu), 1);
  EXPECT_EQ(CountOf(*result.graph, Op::kAbs), 0);
}

TEST(OnnxPluginsTest, UnknownOperatorsInsideOfASubgraphAreNotAsked) {
  ModelBuilder b;
  b.Input("x", {2}).Floats("w", {2}, {5, 6}).Output("y");
  b.Node("Mystery", {"x", "w"}, {"m"}).Float("slope", 4).Node("Other", {"m"}, {"y"});
  EXPECT_THAT(ValuesOf(b,
                       "operators:\n"
                       "  - op: Both\n"
                       "    start_nodes: [m]\n"
                       "    end_nodes: [y]\n"
                       "    operands: {x: m:0}\n"
                       "    attributes: {slope: {type: float, node: m}}\n"
                       "    formula: y = x * slope\n"
                       "    results: [y]\n"),
              ElementsAre(-12, 8));
  EXPECT_THAT(ValuesOf(b,
                       "operators:\n"
                       "  - op: Both\n"
                       "    pattern_nodes: [[m, Mystery], [o, Other]]\n"
                       "    pattern_edges: [[m, o]]\n"
                       "    operands: {x: m:0, w: m:1}\n"
                       "    formula: y = x * w\n"
                       "    results: [y]\n"),
              ElementsAre(-15, 12));
}

// A long chain of one operator, of which every node could begin a match.
TEST(OnnxPluginsTest, ALongChainIsMatchedInLinearTime) {
  ModelBuilder b;
  b.Input("x", {2});
  std::string x = "x";
  for (int i = 0; i < 20000; ++i) {
    const std::string y = absl::StrCat("y", i);
    b.Node("Neg", {x}, {y});
    x = y;
  }
  b.Output(x);
  std::string pattern = "operators:\n  - op: Long\n    pattern_nodes: [";
  std::string edges = "    pattern_edges: [";
  for (int i = 0; i < 32; ++i) {
    absl::StrAppend(&pattern, i == 0 ? "" : ", ", "[n", i, ", Neg]");
    if (i > 0) absl::StrAppend(&edges, i == 1 ? "" : ", ", "[n", i - 1, ", n", i, "]");
  }
  Graph graph;
  EXPECT_THAT(
      ValuesOf(b,
               absl::StrCat(pattern, "]\n", edges,
                            "]\n    operands: {x: n0:0}\n    formula: y = x\n    results: [y]\n"),
               &graph),
      ElementsAre(-3, 2));
  EXPECT_EQ(CountOf(graph, Op::kNeg), 0);
}

}  // namespace
}  // namespace npuc::onnx
