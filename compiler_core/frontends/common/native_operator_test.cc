#include "compiler_core/frontends/common/native_operator.h"

#include <cmath>
#include <functional>
#include <limits>

#include "absl/strings/str_cat.h"
#include "compiler_core/ops/op.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::frontend {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Compute = std::function<absl::StatusOr<std::vector<NativeTensor>>(const NativeCall&)>;

// A library that a test computes.
class FakeLibrary : public NativeLibrary {
 public:
  explicit FakeLibrary(Compute compute) : compute_(std::move(compute)) {}
  absl::StatusOr<std::vector<std::vector<NativeTensor>>> Run(
      absl::Span<const NativeCall> calls) const override {
    std::vector<std::vector<NativeTensor>> results;
    for (const NativeCall& call : calls) {
      absl::StatusOr<std::vector<NativeTensor>> one = compute_(call);
      if (!one.ok()) return one.status();
      results.push_back(*std::move(one));
    }
    return results;
  }

 private:
  const Compute compute_;
};

class FakeOperators : public NativeOperators {
 public:
  explicit FakeOperators(Compute compute) : compute_(std::move(compute)) {}
  absl::StatusOr<std::shared_ptr<const NativeLibrary>> Open(absl::string_view plugin_file,
                                                            absl::string_view path) override {
    if (path == "none.so") return absl::NotFoundError("cannot open 'none.so'");
    opened = absl::StrCat(plugin_file, " ", path);
    return std::make_shared<FakeLibrary>(compute_);
  }
  std::string opened;

 private:
  const Compute compute_;
};

// f of each element of the first operand, times the attribute `scale` where there is one.
Compute Each(const std::function<float(float)>& f) {
  return [f](const NativeCall& call) -> absl::StatusOr<std::vector<NativeTensor>> {
    NativeTensor result = call.operands[0];
    const double scale = call.attributes.empty() ? 1 : call.attributes[0].numbers[0];
    for (float& value : result.values) value = static_cast<float>(f(value) * scale);
    return std::vector<NativeTensor>{result};
  };
}

// This answer, whatever the call is.
Compute Always(const absl::StatusOr<std::vector<NativeTensor>>& answer) {
  return [answer](const NativeCall& /*call*/) { return answer; };
}

// One node of an operator that is declared with these lines, of the operand x.
class NativeOperatorTest : public ::testing::Test {
 protected:
  bool Declare(const std::string& lines, Compute compute) {
    natives_ = std::make_unique<FakeOperators>(std::move(compute));
    const std::string text = absl::StrCat("operators:\n  - op: acme.F\n    operands: [x]\n", lines,
                                          "    results: [y]\n");
    return ReadPluginFile(text, "ops.yaml", ops_, diagnostics_, natives_.get());
  }
  absl::StatusOr<std::vector<ValueRef>> Run(const ValueRef& x) {
    Emitter node(&state_, {"node", "acme.F"});
    return RunNative(node, *ops_[0], {x}, attributes_);
  }
  ValueRef Input(Shape shape) { return state_.AddInput("x", {DType::kFloat32, std::move(shape)}); }
  ValueRef Known(std::vector<float> values) {
    const Shape shape = {static_cast<int64_t>(values.size())};
    return ConstantValue(Tensor::FromFloats(shape, values), {});
  }
  std::string Text() const {
    std::string text;
    for (const Diagnostic& d : diagnostics_.list()) absl::StrAppend(&text, d.ToString(), "\n");
    return text;
  }
  // The library and the node's operand give an error with this text.
  void ExpectRefused(const std::string& lines, Compute compute, const ValueRef& x,
                     const std::string& text) {
    ASSERT_TRUE(Declare(lines, std::move(compute))) << Text();
    EXPECT_FALSE(Run(x).ok());
    EXPECT_THAT(Text(), HasSubstr(text));
  }

  Graph graph_;
  Diagnostics diagnostics_;
  ImportState state_{&graph_, &diagnostics_, {}, ""};
  std::vector<std::shared_ptr<const PluginOp>> ops_;
  std::vector<FormulaNumbers> attributes_;
  std::unique_ptr<FakeOperators> natives_;
};

constexpr char kLibrary[] = "    library: lib/f.so\n";
constexpr char kElementwise[] = "    library: lib/f.so\n    elementwise: true\n";
constexpr char kChecked[] = "    library: lib/f.so\n    formula: y = Abs(x)\n";

TEST_F(NativeOperatorTest, KnownOperandsAreFolded) {
  ASSERT_TRUE(Declare(kLibrary, Each([](float x) { return x * x; }))) << Text();
  EXPECT_EQ(natives_->opened, "ops.yaml lib/f.so");
  const auto results = Run(Known({-3, 2}));
  ASSERT_TRUE(results.ok()) << Text();
  EXPECT_THAT((*results)[0]->constant->ToFloats(), ElementsAre(9, 4));
  EXPECT_EQ(graph_.node_count(), 0);
}

TEST_F(NativeOperatorTest, AFoldedResultMustBeFinite) {
  ExpectRefused(kLibrary, Each([](float x) { return std::log(x); }), Known({1, -1}),
                "it gave nan at [1]");
}

TEST_F(NativeOperatorTest, AttributesReachTheLibrary) {
  attributes_ = {{{0.5}, false}};
  ASSERT_TRUE(Declare("    attributes: {scale: {type: float}}\n    library: f.so\n",
                      Each([](float x) { return x; })))
      << Text();
  const auto results = Run(Known({-3, 2}));
  ASSERT_TRUE(results.ok()) << Text();
  EXPECT_THAT((*results)[0]->constant->ToFloats(), ElementsAre(-1.5, 1));
}

TEST_F(NativeOperatorTest, AFunctionOfEachElementIsATable) {
  ASSERT_TRUE(Declare(kElementwise, Each([](float x) { return std::atan(x); }))) << Text();
  const auto results = Run(Input({2, 3}));
  ASSERT_TRUE(results.ok()) << Text();
  state_.AddOutput("y", (*results)[0], false);
  const std::vector<float> x = {-3.3f, -0.1f, 0, 1e-7f, 0.7f, 3e6f};
  const auto got = RunReference(graph_, {Tensor::FromFloats({2, 3}, x)});
  ASSERT_TRUE(got.ok()) << got.status();
  // The straight line between two of 4096 points an octave; beyond 2^20 the last value.
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR((*got)[0].at(static_cast<int64_t>(i)), std::atan(x[i]), 1e-6) << x[i];
  }
}

TEST_F(NativeOperatorTest, ATableSaturatesInPlaceOfInfinity) {
  ASSERT_TRUE(Declare(kElementwise, Each([](float x) { return std::exp(x); }))) << Text();
  const auto results = Run(Input({1}));
  ASSERT_TRUE(results.ok()) << Text();
  state_.AddOutput("y", (*results)[0], false);
  const auto got = RunReference(graph_, {Tensor::FromFloats({1}, {1000})});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ((*got)[0].at(0), std::numeric_limits<float>::max());
}

TEST_F(NativeOperatorTest, AFunctionOfEachElementHasAValueForEach) {
  ExpectRefused(kElementwise, Each([](float x) { return std::sqrt(x); }), Input({2}),
                "it gave NaN for -9.53674e-07");
}

TEST_F(NativeOperatorTest, AFunctionOfThePlaceIsNoFunctionOfTheElement) {
  ExpectRefused(
      kElementwise,
      [](const NativeCall& call) -> absl::StatusOr<std::vector<NativeTensor>> {
        NativeTensor result = call.operands[0];
        result.values[0] += 1;
        return std::vector<NativeTensor>{result};
      },
      Input({2}), "it is declared elementwise, and gave");
}

TEST_F(NativeOperatorTest, AFunctionOfEachElementKeepsTheShape) {
  ExpectRefused(kElementwise, Always(std::vector<NativeTensor>{{{1}, {0}}}), Input({2}),
                "makes [1]");
}

TEST_F(NativeOperatorTest, OperandsOfRunTimeNeedMoreThanALibrary) {
  ExpectRefused(kLibrary, Each([](float x) { return x; }), Input({2}), "NPUC1127");
}

TEST_F(NativeOperatorTest, AFormulaIsCompiledAndChecked) {
  ASSERT_TRUE(Declare(kChecked, Each([](float x) { return std::fabs(x) * 1.0005f; }))) << Text();
  const auto results = Run(Input({2, 5}));
  ASSERT_TRUE(results.ok()) << Text();
  state_.AddOutput("y", (*results)[0], false);
  const auto got = RunReference(graph_, {Tensor::FromFloats({2, 5}, std::vector<float>(10, -2))});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ((*got)[0].at(0), 2);  // the formula's value
}

TEST_F(NativeOperatorTest, ADifferenceIsSaidWithItsPlaceAndItsOperands) {
  // Wrong for numbers below -7 alone, which the range of -8 to 8 has.
  ExpectRefused(kChecked, Each([](float x) { return x < -7 ? 0 : std::fabs(x); }), Input({4, 100}),
                "by the formula and 0 by the library 'lib/f.so', named at line 2 of ops.yaml, for "
                "x = -7.");
  EXPECT_THAT(Text(), HasSubstr("NPUC1129"));
}

TEST_F(NativeOperatorTest, NanIsADifference) {
  ExpectRefused(kChecked, Each([](float x) { return x < 0 ? std::nanf("") : x; }), Input({100}),
                "by the formula and nan by the library");
}

TEST_F(NativeOperatorTest, ToleranceIsTheDeclarations) {
  const auto near = Each([](float x) { return std::fabs(x) + 0.01f; });
  ASSERT_TRUE(Declare(std::string(kChecked) + "    tolerance: 0.02\n", near)) << Text();
  EXPECT_TRUE(Run(Input({50})).ok()) << Text();
  ops_.clear();
  ExpectRefused(kChecked, near, Input({50}), "NPUC1129");
}

TEST_F(NativeOperatorTest, AnotherShapeIsADifference) {
  ExpectRefused(kChecked, Always(std::vector<NativeTensor>{{{1}, {0}}}), Input({2}),
                "is [2] by the formula and [1] by the library");
}

TEST_F(NativeOperatorTest, WhatTheLibraryDidIsSaid) {
  ExpectRefused(kChecked, Always(absl::InvalidArgumentError("it ended by signal 11 (SIGSEGV)")),
                Input({2}), "it ended by signal 11 (SIGSEGV)");
  EXPECT_THAT(Text(), HasSubstr("NPUC1128"));
}

TEST_F(NativeOperatorTest, AHostWithoutASandboxIsSaid) {
  ExpectRefused(kChecked, Always(absl::FailedPreconditionError("this host has no seccomp")),
                Input({2}), "NPUC1127");
}

TEST_F(NativeOperatorTest, AnOperandWithoutElementsIsRefused) {
  ExpectRefused(kChecked, Each([](float x) { return x; }), Input({0, 2}), "1 to 16777216 elements");
}

TEST_F(NativeOperatorTest, DeclarationsThatContradictThemselvesAreRefused) {
  const auto same = Each([](float x) { return x; });
  for (const auto& [lines, text] : std::vector<std::pair<std::string, std::string>>{
           {"    library: none.so\n", "cannot open 'none.so'"},
           {"    library: f.so\n    tolerance: 0.1\n", "tolerance is between"},
           {"    formula: y = x\n    tolerance: 0.1\n", "tolerance is between"},
           {"    formula: y = x\n    elementwise: true\n", "elementwise speaks of"},
           {std::string(kChecked) + "    elementwise: true\n", "elementwise speaks of"},
           {std::string(kChecked) + "    tolerance: 0\n", "tolerance"},
           {"    library: [f.so]\n", "library"},
           {"    elementwise: true\n", "formula"}}) {
    EXPECT_FALSE(Declare(lines, same)) << lines;
    EXPECT_THAT(Text(), HasSubstr(text));
    diagnostics_ = {};
    ops_.clear();
  }
}

TEST(NativeDeclarationTest, AServiceRefusesTheLibrary) {
  std::vector<std::shared_ptr<const PluginOp>> ops;
  Diagnostics diagnostics;
  EXPECT_FALSE(
      ReadPluginFile("operators:\n  - op: acme.F\n    operands: [x]\n    library: f.so\n"
                     "    results: [y]\n",
                     "ops.yaml", ops, diagnostics));
  ASSERT_EQ(diagnostics.list().size(), 1u);
  EXPECT_EQ(diagnostics.list()[0].kind, DiagnosticKind::kNativeUnusable);
  EXPECT_EQ(diagnostics.list()[0].line, 4);
}

}  // namespace
}  // namespace npuc::frontend
