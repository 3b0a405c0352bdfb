#include "compiler_core/frontends/common/plugins.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::frontend {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Ops = std::vector<std::shared_ptr<const PluginOp>>;

// The errors of a file, one a line; its operators go to `ops`.
std::string Problems(absl::string_view text, Ops* ops = nullptr) {
  Ops own;
  Diagnostics diagnostics;
  const bool ok = ReadPluginFile(text, "ops.yaml", ops == nullptr ? own : *ops, diagnostics);
  EXPECT_EQ(ok, !diagnostics.has_errors());
  std::string out;
  for (const Diagnostic& diagnostic : diagnostics.list()) {
    absl::StrAppend(&out, diagnostic.ToString(), "\n");
  }
  return out;
}

std::string OneOp(absl::string_view lines) {
  return absl::StrCat("operators:\n  - op: acme.Abs\n    operands: [x]\n    results: [y]\n", lines);
}

TEST(PluginFileTest, ReadsAnOperator) {
  Ops ops;
  EXPECT_THAT(
      Problems("operators:\n"
               "  - op: acme.Gate\n"
               "    frameworks: [ONNX, TF]\n"
               "    overrides: true\n"
               "    operands: [x, gate]\n"
               "    attributes:\n"
               "      alpha: {type: float, default: 0.5, name: slope}\n"
               "      axes: {type: ints, default: [1, 2]}\n"
               "      on: {type: bool}\n"
               "    formula: |\n"
               "      y = x * Sigmoid(gate) * alpha + ReduceMean(x, axes=axes, keep_dims=on)\n"
               "    results: [y]\n",
               &ops),
      IsEmpty());
  ASSERT_EQ(ops.size(), 1u);
  EXPECT_TRUE(ops[0]->IsFor("TF"));
  EXPECT_FALSE(ops[0]->IsFor("CAFFE"));
  EXPECT_TRUE(ops[0]->overrides);
  ASSERT_EQ(ops[0]->attributes.size(), 3u);
  EXPECT_EQ(ops[0]->attributes[0].source, "slope");
  EXPECT_EQ(ops[0]->attributes[1].fallback->numbers, (std::vector<double>{1, 2}));
  EXPECT_FALSE(ops[0]->attributes[2].fallback.has_value());
}

TEST(PluginFileTest, ReadsAPattern) {
  Ops ops;
  EXPECT_THAT(Problems("operators:\n"
                       "  - op: Abs2\n"
                       "    pattern_nodes: [[n, Neg], [a, Relu], [b, Relu], [s, Add]]\n"
                       "    pattern_edges:\n"
                       "      - [n, b]\n"
                       "      - [a, s]\n"
                       "      - [b, s, {src_out_port: 0, dst_in_port: 1}]\n"
                       "    operands: {x: [n:0, a:0]}\n"
                       "    formula: y = Abs(x)\n"
                       "    results: [y]\n",
                       &ops),
              IsEmpty());
  const PluginSubgraph& graph = *ops[0]->subgraph;
  EXPECT_EQ(graph.end, 3);
  ASSERT_EQ(graph.edges[3].size(), 2u);
  EXPECT_EQ(graph.edges[3][1].from, 2);
  EXPECT_EQ(graph.edges[3][1].operand, 1);
  EXPECT_EQ(graph.places[0].size(), 2u);
}

TEST(PluginFileTest, RefusesWhatDoesNotFit) {
  const struct {
    std::string text;
    const char* found;
  } cases[] = {
      {"", "no mapping"},
      {"[1]", "no mapping"},
      {"operators: 3", "operators takes a list of 1 to 64 mappings"},
      {"operators: [x]", "operators takes mappings"},
      {"operator: [x]\noperators: [{op: a}]", "unknown key 'operator'"},
      {OneOp("    formula: y = Abs(x)\n    formulas: y\n"), "did you mean 'formula'?"},
      {OneOp(""), "lack formula"},
      {OneOp("    formula: [1]\n"), "formula takes lines of text"},
      {OneOp("    formula: |\n      y = Abs(x)\n      z = q\n"), "ops.yaml:7: "},
      {OneOp("    formula: y = x\n    frameworks: [KERAS]\n"), "frameworks is 'KERAS'"},
      {OneOp("    formula: y = x\n    attributes: {x: {type: int}}\n"), "'x' has a meaning"},
      {OneOp("    formula: y = x\n    attributes: {Relu: {type: int}}\n"), "'Relu' has a meaning"},
      {OneOp("    formula: y = x\n    attributes: {a-b: {type: int}}\n"), "letters, digits and _"},
      {OneOp("    formula: y = x\n    attributes: {a: {type: text}}\n"), "one of bool, int, float"},
      {OneOp("    formula: y = x\n    attributes: {a: {type: int, default: 0.5}}\n"),
       "default takes int"},
      {OneOp("    formula: y = x\n    attributes: {a: {type: int, default: 1e300}}\n"),
       "default takes int"},
      {OneOp("    formula: y = x\n    attributes: {a: {type: ints, default: 1}}\n"),
       "default takes ints"},
      {OneOp("    formula: y = x\n    attributes: {a: {type: int, value: 1}}\n"),
       "unknown key 'value' of an attribute"},
      {OneOp("    formula: y = x\n    attributes: {a: {type: int, node: n}}\n"),
       "attributes without a line node"},
      {OneOp("    formula: y = x\n    start_nodes: [a]\n"), "lack end_nodes"},
      {OneOp("    formula: y = x\n    start_nodes: [a]\n    end_nodes: [b, c]\n"),
       "a list of one node"},
      {OneOp("    formula: y = x\n    pattern_nodes: [[a, B]]\n    end_nodes: [b]\n"), "has both"},
      {OneOp("    formula: y = x\n    overrides: true\n    pattern_nodes: [[a, B]]\n"),
       "overrides says nothing"},
      {"operators:\n  - {op: A, pattern_nodes: [[a, B]], operands: {x: b:0}, formula: y = x, "
       "results: [y]}",
       "places of nodes of the pattern"},
      {"operators:\n  - {op: A, pattern_nodes: [[a, B]], operands: {x: a}, formula: y = x, "
       "results: [y]}",
       "places NODE:K"},
  };
  for (const auto& one : cases) {
    EXPECT_THAT(Problems(one.text), HasSubstr(one.found)) << one.text;
  }
}

TEST(PluginFileTest, RefusesPatternsWithoutOneEnd) {
  const auto pattern = [](absl::string_view edges) {
    return absl::StrCat(
        "operators:\n  - op: A\n    pattern_nodes: [[a, A], [b, B], [c, C]]\n"
        "    pattern_edges: ",
        edges, "\n    operands: {x: a:0}\n    formula: y = x\n    results: [y]\n");
  };
  EXPECT_THAT(Problems(pattern("[[a, b], [b, c]]")), IsEmpty());
  EXPECT_THAT(Problems(pattern("[[a, b]]")), HasSubstr("one node that no edge leaves"));
  EXPECT_THAT(Problems(pattern("[[a, b], [b, a]]")), HasSubstr("make a circle"));
  EXPECT_THAT(Problems(pattern("[[a, b], [b, c], [c, a]]")), HasSubstr("circle"));
  EXPECT_THAT(Problems(pattern("[[a, d]]")), HasSubstr("of two pattern nodes"));
  EXPECT_THAT(Problems(pattern("[[a, b, {port: 1}]]")), HasSubstr("src_out_port"));
  EXPECT_THAT(Problems(pattern("[[a, b, {dst_in_port: -1}]]")), HasSubstr("src_out_port"));
}

// The five hostile files of the project's list: none may cost more than reading it.
TEST(PluginFileTest, HostileFilesAreRefused) {
  const auto calling = [](absl::string_view op, absl::string_view formula) {
    return absl::StrCat("  - {op: ", op, ", operands: [x], results: [y], formula: \"y = ", formula,
                        "\"}\n");
  };
  // A cycle: an operator calls only those before it.
  EXPECT_THAT(Problems(absl::StrCat("operators:\n", calling("A", "B(x)"), calling("B", "A(x)"))),
              HasSubstr("'B' is no function of formulas, and no operator that is declared before"));
  EXPECT_THAT(Problems(absl::StrCat("operators:\n", calling("A", "A(x)"))),
              HasSubstr("'A' is no function"));
  // A bomb: each operator calls the one before it twice.
  std::string bomb = absl::StrCat("operators:\n", calling("f0", "x + x"));
  for (int i = 1; i < 40; ++i) {
    bomb += calling(absl::StrCat("f", i), absl::StrCat("f", i - 1, "(f", i - 1, "(x))"));
  }
  EXPECT_THAT(Problems(bomb), HasSubstr("more than 1024 steps"));
  // YAML's own bomb.
  EXPECT_THAT(Problems("a: &a [x, x]\nb: &b [*a, *a]\noperators: *b\n"), HasSubstr("an alias"));
  // Shadowing: one operator twice, here and over two files.
  EXPECT_THAT(Problems(absl::StrCat("operators:\n", calling("A", "x"), calling("A", "-x"))),
              HasSubstr("operator 'A' is declared at line 2 of ops.yaml already"));
  Ops ops;
  EXPECT_THAT(Problems(absl::StrCat("operators:\n", calling("A", "x")), &ops), IsEmpty());
  EXPECT_THAT(Problems(absl::StrCat("operators:\n", calling("A", "-x")), &ops),
              HasSubstr("declared at line 2"));
  // Sizes.
  EXPECT_THAT(Problems(std::string(kMaxPluginFileBytes + 1, '#')), HasSubstr("at most 65536"));
  std::string many = "operators:\n";
  for (int i = 0; i < 65; ++i) many += calling(absl::StrCat("op", i), "x");
  EXPECT_THAT(Problems(many), HasSubstr("a list of 1 to 64 mappings"));
}

TEST(PluginsTest, ABuiltInOperatorIsOverriddenWhereThatIsSaid) {
  const std::vector<std::string> built_in = {"Abs", "Relu"};
  for (const bool overrides : {false, true}) {
    Ops ops;
    EXPECT_THAT(
        Problems(absl::StrCat("operators:\n  - {op: Relu, operands: [x], results: [y], formula: y "
                              "= Abs(x), overrides: ",
                              overrides ? "true" : "false", "}\n"),
                 &ops),
        IsEmpty());
    Diagnostics diagnostics;
    const Plugins plugins = Plugins::For("ONNX", ops, built_in, diagnostics);
    EXPECT_EQ(diagnostics.has_errors(), !overrides);
    EXPECT_NE(plugins.Find("Relu"), nullptr);
    EXPECT_EQ(plugins.Find("Abs"), nullptr);
  }
}

}  // namespace
}  // namespace npuc::frontend
