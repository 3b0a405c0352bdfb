#include "compiler_core/frontends/common/formula.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/frontends/common/formula_functions.h"
#include "compiler_core/ops/op.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::frontend {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Parsed {
  Formula formula;
  bool ok = false;
  std::string text;  // "1: message; fix" a line
};

Parsed Parse(absl::string_view text, Formula::Names names) {
  Parsed parsed;
  parsed.ok =
      parsed.formula.Parse(text, names, [&](int line, std::string message, std::string fix) {
        absl::StrAppend(&parsed.text, line, ": ", message, "; ", fix, "\n");
      });
  return parsed;
}

// Parses a formula of one operand x and one result y.
Parsed ParseOne(absl::string_view text) {
  return Parse(text, {.operands = {"x"}, .results = {"y"}});
}

// Runs a formula on run-time values and gives its results by the operators' reference functions.
CompileOptions NamedOptions() {
  CompileOptions options;
  options.model_name = "model";
  return options;
}

std::vector<Tensor> Evaluate(const Formula& formula, const std::vector<Tensor>& operands,
                             const std::vector<FormulaNumbers>& attributes = {}) {
  Graph graph;
  Diagnostics diagnostics;
  ImportState state(&graph, &diagnostics, NamedOptions(), "");
  std::vector<ValueRef> values;
  for (size_t i = 0; i < operands.size(); ++i) {
    values.push_back(state.AddInput(absl::StrCat("in", i), operands[i].type()));
  }
  Emitter node(&state, {"node", "Acme"});
  const auto results = formula.Run(node, values, attributes);
  if (!results.ok()) {
    ADD_FAILURE() << results.status();
    for (const Diagnostic& d : diagnostics.list()) ADD_FAILURE() << d.ToString();
    return {};
  }
  for (size_t i = 0; i < results->size(); ++i) {
    state.AddOutput(absl::StrCat("out", i), (*results)[i], false);
  }
  const auto tensors = RunReference(graph, operands);
  EXPECT_TRUE(tensors.ok()) << tensors.status();
  return tensors.ok() ? *tensors : std::vector<Tensor>();
}

Tensor Floats(Shape shape, std::vector<float> values) {
  return Tensor::FromFloats(std::move(shape), std::move(values));
}

TEST(FormulaTest, ComputesByTheRulesOfArithmetic) {
  const Parsed parsed = Parse(
      "# a comment\n"
      "half = 1 / 2\n"
      "size = Maximum(x, -x)\n"
      "y = (size - half * alpha) * 2 + -2 ^ 2\n",
      {.operands = {"x"}, .attributes = {{"alpha"}}, .results = {"y"}});
  ASSERT_TRUE(parsed.ok) << parsed.text;
  const std::vector<Tensor> y = Evaluate(parsed.formula, {Floats({3}, {-3, 1, 2})}, {{{4}, false}});
  ASSERT_EQ(y.size(), 1u);
  EXPECT_THAT(y[0].ToFloats(), ElementsAre(-2, -6, -4));
}

TEST(FormulaTest, AStatementMayHaveSeveralResultsAndLines) {
  const Parsed parsed = Parse("a, b = Split(x, axis=-1,\n  parts=2)\ny = Concat(b, a, axis=1)",
                              {.operands = {"x"}, .results = {"y", "a"}});
  ASSERT_TRUE(parsed.ok) << parsed.text;
  const std::vector<Tensor> y = Evaluate(parsed.formula, {Floats({1, 4}, {1, 2, 3, 4})});
  ASSERT_EQ(y.size(), 2u);
  EXPECT_THAT(y[0].ToFloats(), ElementsAre(3, 4, 1, 2));
  EXPECT_THAT(y[1].ToFloats(), ElementsAre(1, 2));
}

// Every function, on an image [1, 2, 2, 2]: the arguments are checked by the operator itself.
TEST(FormulaTest, EveryFunctionRuns) {
  const std::vector<std::string> special = {"AvgPool", "Concat",  "Conv2D",       "DepthwiseConv2D",
                                            "Equal",   "Greater", "GreaterEqual", "MatMul",
                                            "MaxPool", "Pad",     "Reshape",      "Select",
                                            "Size",    "Slice",   "Split",        "Transpose"};
  std::string text =
      "p = AvgPool(x, kernel=[2, 2], strides=[1, 1], pads=[0, 0, 0, 0])\n"
      "q = MaxPool(x, kernel=[2, 2], strides=[1, 1], pads=[0, 1, 0, 1])\n"
      "c = Conv2D(x, w, strides=[1, 1], pads=[0, 0, 0, 0])\n"
      "d = DepthwiseConv2D(x, w, strides=[1, 1], pads=[0, 0, 0, 0], dilations=[1, 1])\n"
      "m = MatMul(Reshape(x, shape=[4, -1]), Reshape(x, shape=[2, 4]), transpose_a=false)\n"
      "s = Select(Greater(x, 0), x, 0) + Select(Equal(x, 1), x, 0) + Select(GreaterEqual(x, x), x, "
      "0)\n"
      "r = Pad(Slice(x, axis=1, begin=0, size=1), paddings=[0, 0, 0, 1, 0, 0, 0, 0], value=2)\n"
      "e, f = Split(Transpose(x, perm=[0, 3, 1, 2]), axis=1, parts=2)\n"
      "n = Concat(e, f, axis=-1) * Size(x, axis=-1)\n";
  std::vector<std::string> results = {"p", "q", "c", "d", "m", "s", "r", "n"};
  for (const FormulaFunction& function : FormulaFunctions()) {
    if (std::find(special.begin(), special.end(), function.name) != special.end()) continue;
    const std::string result = absl::StrCat("r_", function.name);
    std::string call = absl::StrCat(result, " = ", function.name, "(x * x + 1");
    if (function.least_operands == 2) call += ", x + 3";
    if (function.FindParameter("axes") >= 0) call += ", axes=[1, -2], keep_dims=true";
    text += call + ")\n";
    results.push_back(result);
  }
  const Parsed parsed = Parse(text, {.operands = {"x", "w"}, .results = results});
  ASSERT_TRUE(parsed.ok) << parsed.text;
  const std::vector<Tensor> y =
      Evaluate(parsed.formula,
               {Floats({1, 2, 2, 2}, {-3, -2, -1, 0, 1, 2, 3, 4}), Floats({1, 1, 2, 1}, {1, 2})});
  ASSERT_EQ(y.size(), results.size());
  const auto of = [&](absl::string_view name) {
    return y[static_cast<size_t>(std::find(results.begin(), results.end(), name) -
                                 results.begin())];
  };
  EXPECT_THAT(of("p").ToFloats(), ElementsAre(0, 1));
  EXPECT_THAT(of("c").ToFloats(), ElementsAre(-7, -1, 5, 11));
  EXPECT_THAT(of("s").ToFloats(), ElementsAre(-3, -2, -1, 0, 3, 4, 6, 8));
  EXPECT_THAT(of("r").ToFloats(), ElementsAre(-3, -2, -1, 0, 2, 2, 2, 2));
  EXPECT_THAT(of("n").ToFloats(), ElementsAre(-6, -2, -4, 0, 2, 6, 4, 8));
  EXPECT_THAT(of("r_Add").ToFloats(), ElementsAre(10, 6, 4, 4, 6, 10, 16, 24));
  EXPECT_THAT(of("r_ReduceMax").ToFloats(), ElementsAre(10, 17));
}

TEST(FormulaTest, AnOperatorCallsAnotherOne) {
  const Parsed inner =
      Parse("y = x * scale + shift",
            {.operands = {"x"}, .attributes = {{"scale"}, {"shift"}}, .results = {"y"}});
  const FormulaNumbers one{{1}, false};
  const Formula::Names names{.operands = {"x"},
                             .results = {"y"},
                             .callees = {{"acme.Line", &inner.formula, {nullptr, &one}}}};
  const Parsed outer =
      Parse("a = acme.Line(x, scale=2)\ny = acme.Line(a, scale=3, shift=-1)", names);
  ASSERT_TRUE(outer.ok) << outer.text;
  EXPECT_THAT(Evaluate(outer.formula, {Floats({2}, {0, 1})})[0].ToFloats(), ElementsAre(2, 8));
  EXPECT_THAT(Parse("y = acme.Line(x)", names).text, HasSubstr("lacks the attribute scale"));
  EXPECT_THAT(Parse("y = acme.Line(x, slope=2)", names).text,
              HasSubstr("has no attribute slope of that kind"));
}

TEST(FormulaTest, WhatIsWrongIsSaidWithItsLine) {
  const struct {
    const char* text;
    const char* found;
  } cases[] = {
      {"", "sets no tensor 'y'"},
      {"y = 1", "sets no tensor 'y'"},
      {"y = x $ 1", "1: the formula holds a character"},
      {"y = 1e999 * x", "that has no meaning"},
      {"z = x\ny = zz", "2: 'zz' is no operand, attribute or earlier name; did you mean 'z'?"},
      {"y = Sigmoit(x)", "did you mean 'Sigmoid'?"},
      {"y = Y(x)", "declared before this one"},
      {"y = x\ny = x", "2: 'y' has a meaning already"},
      {"x = -x\ny = x", "1: 'x' has a meaning already"},
      {"Relu = x\ny = x", "1: 'Relu' has a meaning already"},
      {"a.b = x\ny = x", "is no name for a value"},
      {"y = (x", "needs ) here; the line ends"},
      {"y = x x", "needs the end of the line here; found 'x'"},
      {"y = Softmax(x, axes=[1])", "Softmax takes no argument axes"},
      {"y = Softmax(x, axis=x)", "Softmax takes no argument axis of that kind"},
      {"y = Softmax(axis=1, x)", "an operand stands behind an argument"},
      {"y = ReduceMean(x)", "ReduceMean lacks the argument axes"},
      {"y = Add(x)", "Add takes 2 to 2 operands, found 1"},
      {"y = Sqrt(2) * x", "Sqrt needs a tensor among its operands"},
      {"y = x + [1]", "arithmetic takes tensors and numbers"},
      {"y, y = Split(x, axis=0, parts=2)", "'y' stands twice on the left"},
      {"a, y = x", "the right side has 1 results, and 2 names"},
      {"y = [x]", "a list holds numbers"},
  };
  for (const auto& one : cases) {
    const Parsed parsed = ParseOne(one.text);
    EXPECT_FALSE(parsed.ok) << one.text;
    EXPECT_THAT(parsed.text, HasSubstr(one.found)) << one.text;
  }
}

TEST(FormulaTest, AllStatementsAreCheckedAtOnce) {
  EXPECT_THAT(ParseOne("a = b\nc = d\ny = x").text,
              ::testing::AllOf(HasSubstr("1: 'b' is no"), HasSubstr("2: 'd' is no")));
}

TEST(FormulaTest, ArgumentsThatDoNotFitTheTensorAreErrors) {
  const struct {
    const char* text;
    const char* found;
  } cases[] = {
      {"y = Softmax(x, axis=2)", "argument axis is 2; the tensor has 2 dimensions"},
      {"y = Softmax(x, axis=0.5)", "no whole number"},
      {"y = ReduceSum(x, axes=[0, -2])", "names a dimension twice"},
      {"y = Slice(x, axis=1, begin=1, size=2)", "a Slice of 2 elements from 1"},
      {"y = Split(x, axis=1, parts=2)", "names 1 results of an operator that has 2"},
      {"a, y = Split(x, axis=1, parts=3)", "into 3"},
      {"a, b, y = Split(x, axis=1, parts=2)", "names 3 results of an operator that has 2"},
      {"y = Pad(x, paddings=[1])", "it takes 4"},
      {"y = Reshape(x, shape=[-1, -1])", "a dimension is -1"},
      {"y = x * (1 / 0)", "which is no number"},
      {"y = Reshape(x, shape=[4294967296])", "no whole number"},
  };
  for (const auto& one : cases) {
    const Parsed parsed = ParseOne(one.text);
    if (!parsed.ok) continue;  // said before it runs
    Graph graph;
    Diagnostics diagnostics;
    ImportState state(&graph, &diagnostics, NamedOptions(), "");
    const ValueRef x = state.AddInput("x", {DType::kFloat32, {2, 2}});
    Emitter node(&state, {"node", "Acme"});
    const auto results = parsed.formula.Run(node, {x}, {});
    ASSERT_FALSE(results.ok()) << one.text;
    EXPECT_THAT(std::string(results.status().message()), HasSubstr(one.found));
  }
}

// Sizes are bounded before they are reached: by nesting, by length, and by what calls become.
TEST(FormulaTest, BombsAreRefused) {
  EXPECT_THAT(ParseOne(absl::StrCat("y = ", std::string(5000, '('), "x")).text,
              HasSubstr("nested more than 32 deep"));
  EXPECT_THAT(ParseOne(absl::StrCat("y = ", std::string(5000, '-'), "x")).text,
              HasSubstr("nested more than 32 deep"));
  EXPECT_THAT(ParseOne(std::string(20000, ' ')).text, HasSubstr("20000 bytes; at most 16384"));
  EXPECT_THAT(
      ParseOne(absl::StrCat("y = x", absl::StrJoin(std::vector<std::string>(2000, ""), " + x")))
          .text,
      HasSubstr("more than 1024 steps"));
  std::vector<Parsed> doubled;
  doubled.reserve(40);
  doubled.push_back(ParseOne("y = x + x"));
  for (int i = 1; i < 40; ++i) {
    const Formula::Names names{
        .operands = {"x"}, .results = {"y"}, .callees = {{"f", &doubled.back().formula, {}}}};
    doubled.push_back(Parse("y = f(f(x))", names));
    if (!doubled.back().ok) break;
  }
  EXPECT_FALSE(doubled.back().ok);
  EXPECT_THAT(doubled.back().text, HasSubstr("those of the operators that it calls included"));
  EXPECT_LE(doubled.back().formula.step_count(), kMaxFormulaSteps);
}

}  // namespace
}  // namespace npuc::frontend
