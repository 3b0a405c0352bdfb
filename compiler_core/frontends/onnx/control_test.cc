#include "absl/strings/str_cat.h"
#include "compiler_core/frontends/onnx/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "npuc/fe/onnx/model.pb.h"

namespace npuc::onnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// s' = s + x, stacked as s' too; goes on as long as its condition, an initializer, says.
ModelBuilder AddingBody(bool goes_on = true) {
  ModelBuilder b;
  b.Input("turn", {}, 7).Input("before", {}, 9).Input("s", {2}).Bool("more", goes_on);
  b.Output("after").Output("sum").Output("each");
  b.Node("Identity", {"more"}, {"after"}).Node("Add", {"s", "x"}, {"sum"});
  b.Node("Identity", {"sum"}, {"each"});
  return b;
}

ModelBuilder Adding(int64_t turns, bool goes_on = true) {
  ModelBuilder b;
  b.Input("x", {2}).Int64s("count", {turns}).Floats("zero", {2}, {0, 0}).Output("y").Output("all");
  b.Node("Loop", {"count", "", "zero"}, {"y", "all"}).Body("body", AddingBody(goes_on));
  return b;
}

TEST(OnnxControlTest, ALoopOfAKnownCountIsUnrolled) {
  const std::vector<Tensor> y = Evaluate(Adding(3).Bytes(), {{1, 10}});
  ASSERT_EQ(y.size(), 2u);
  EXPECT_THAT(y[0].ToFloats(), ElementsAre(3, 30));
  EXPECT_EQ(y[1].shape(), Shape({3, 2}));
  EXPECT_THAT(y[1].ToFloats(), ElementsAre(1, 10, 2, 20, 3, 30));
}

TEST(OnnxControlTest, AnInputThatABodyTakesFromAroundItIsUsed) {
  CompileOptions options;
  options.inputs = {{"x", {2}}};
  const ImportResult result = RunImport(Adding(3).Bytes(), options);
  EXPECT_TRUE(result.graph.ok());
  EXPECT_EQ(result.Text(), "");
}

TEST(OnnxControlTest, ALoopEndsWhereItsConditionSays) {
  const std::vector<Tensor> y = Evaluate(Adding(3, false).Bytes(), {{1, 10}});
  ASSERT_EQ(y.size(), 2u);
  EXPECT_THAT(y[0].ToFloats(), ElementsAre(1, 10));
}

TEST(OnnxControlTest, TheTurnsNumberIsKnown) {
  ModelBuilder body;
  body.Input("turn", {}, 7).Input("before", {}, 9).Input("s", {1});
  body.Output("before").Output("sum").Int64s("one", {1});
  body.Node("Reshape", {"turn", "one"}, {"t"}).Node("Cast", {"t"}, {"f"}).Int("to", 1);
  body.Node("Add", {"s", "f"}, {"sum"});
  ModelBuilder b;
  b.Input("x", {1}).Int64s("count", {4}).Bool("yes", true).Output("y");
  b.Node("Loop", {"count", "yes", "x"}, {"y"}).Body("body", body);
  const std::vector<Tensor> y = Evaluate(b.Bytes(), {{100}});
  ASSERT_EQ(y.size(), 1u);
  EXPECT_THAT(y[0].ToFloats(), ElementsAre(106));
}

TEST(OnnxControlTest, ALoopOfNoTurnsGivesItsStatesAndEmptyStacks) {
  ModelBuilder b = Adding(0);
  b.Node("Shape", {"all"}, {"n"}).Node("Cast", {"n"}, {"dims"}).Int("to", 1).Output("dims");
  CompileOptions options;
  options.outputs = {"dims"};
  EXPECT_THAT(RunImport(b.Bytes(), options).Text(), HasSubstr("a loop of no turns"));
  auto* info = b.proto().mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_g();
  auto* type = info->mutable_output(2)->mutable_type()->mutable_tensor_type();
  type->set_elem_type(1);
  type->mutable_shape()->add_dim()->set_dim_value(2);
  EXPECT_TRUE(RunImport(b.Bytes(), options).graph.ok()) << RunImport(b.Bytes(), options).Text();
}

TEST(OnnxControlTest, TurnsAreBounded) {
  EXPECT_TRUE(RunImport(Adding(4096).Bytes()).graph.ok());
  const ImportResult result = RunImport(Adding(4097).Bytes());
  EXPECT_EQ(result.CountOf(DiagnosticKind::kModelLimitExceeded), 1);
  EXPECT_THAT(result.Text(), HasSubstr("more than 4096 turns"));
}

TEST(OnnxControlTest, ACountThatFlowsIsRefusedWithACut) {
  ModelBuilder b;
  b.Input("x", {2}).Input("count", {}, 7).Floats("zero", {2}, {0, 0}).Output("y");
  b.Node("Loop", {"count", "", "zero"}, {"s", "all"}).Body("body", AddingBody());
  b.Node("Relu", {"s"}, {"y"});
  const ImportResult result = RunImport(b.Bytes());
  EXPECT_EQ(result.CountOf(DiagnosticKind::kOperandNotConstant), 1);
  EXPECT_THAT(result.Text(), HasSubstr("its count ('count') depends on a model input"));
}

TEST(OnnxControlTest, AnUnsupportedOperatorInsideIsReportedOnce) {
  ModelBuilder body = AddingBody();
  body.proto().mutable_graph()->mutable_node(1)->set_op_type("Mystery");
  ModelBuilder b;
  b.Input("x", {2}).Int64s("count", {5}).Floats("zero", {2}, {0, 0}).Output("y");
  b.Node("Loop", {"count", "", "zero"}, {"y"}).Body("body", body);
  const ImportResult result = RunImport(b.Bytes());
  EXPECT_EQ(result.CountOf(DiagnosticKind::kUnsupportedOperator), 1);
  EXPECT_THAT(result.Text(), HasSubstr("inside of the operator that gives 'y'"));
}

TEST(OnnxControlTest, OnlyTheChosenBranchIsImported) {
  ModelBuilder live, dead;
  live.Output("a").Node("Neg", {"x"}, {"a"});
  dead.Output("b").Node("Mystery", {"dead"}, {"b"});
  for (const bool choice : {true, false}) {
    ModelBuilder b;
    b.Input("x", {2}).Bool("choice", choice).Output("y");
    // Only the dead branch needs this node.
    b.Node("Enigma", {"x"}, {"dead"}).Node("If", {"choice"}, {"y"});
    b.Body("then_branch", choice ? live : dead).Body("else_branch", choice ? dead : live);
    const std::vector<Tensor> y = Evaluate(b.Bytes(), {{1, -2}});
    ASSERT_EQ(y.size(), 1u);
    EXPECT_THAT(y[0].ToFloats(), ElementsAre(-1, 2));
  }
}

ModelBuilder BranchesByInput(const ModelBuilder& one, const ModelBuilder& two) {
  ModelBuilder b;
  b.Input("x", {2}).Input("choice", {}, 9).Output("y").Node("If", {"choice"}, {"y"});
  b.Body("then_branch", one).Body("else_branch", two);
  return b;
}

TEST(OnnxControlTest, AConditionThatFlowsChoosesBetweenTheResults) {
  ModelBuilder one, two;
  one.Output("a").Node("Neg", {"x"}, {"a"});
  two.Output("b").Node("Relu", {"x"}, {"b"});
  for (const float choice : {0.0f, 1.0f}) {
    const std::vector<Tensor> y = Evaluate(BranchesByInput(one, two).Bytes(), {{3, -2}, {choice}});
    ASSERT_EQ(y.size(), 1u);
    EXPECT_THAT(y[0].ToFloats(), choice == 0 ? ElementsAre(3, 0) : ElementsAre(-3, 2));
  }
}

TEST(OnnxControlTest, ResultsOfUnlikeShapesAreNotChosenFrom) {
  ModelBuilder one, two;
  one.Output("a").Node("Neg", {"x"}, {"a"});
  two.Output("b").Node("Concat", {"x", "x"}, {"b"}).Int("axis", 0);
  const ImportResult result = RunImport(BranchesByInput(one, two).Bytes());
  EXPECT_EQ(result.CountOf(DiagnosticKind::kOperandNotConstant), 1);
  EXPECT_THAT(result.Text(), HasSubstr("both must be of one type"));
}

TEST(OnnxControlTest, ResultsThatAreSequencesAreNotChosenFrom) {
  ModelBuilder one, two;
  one.Output("a").Node("SequenceConstruct", {"x"}, {"a"});
  two.Output("b").Node("SequenceConstruct", {"x", "x"}, {"b"});
  EXPECT_EQ(RunImport(BranchesByInput(one, two).Bytes())
                .CountOf(DiagnosticKind::kUnsupportedOperatorMode),
            1);
}

TEST(OnnxControlTest, ABranchMayNotNeedItsOwnResult) {
  ModelBuilder branch;
  branch.Output("a").Node("Neg", {"late"}, {"a"});
  ModelBuilder b;
  b.Input("x", {2}).Bool("choice", true).Output("z");
  b.Node("If", {"choice"}, {"y"}).Body("then_branch", branch).Body("else_branch", branch);
  b.Node("Relu", {"y"}, {"late"}).Node("Relu", {"late"}, {"z"});
  EXPECT_EQ(RunImport(b.Bytes()).CountOf(DiagnosticKind::kGraphCycle), 1);
}

ModelBuilder ScanOf(const std::vector<int64_t>& dims) {
  ModelBuilder body;
  body.Input("s", {2}).Input("e", {2}).Output("sum").Output("each");
  body.Node("Add", {"s", "e"}, {"sum"}).Node("Mul", {"sum", "two"}, {"each"});
  ModelBuilder b;
  b.Input("x", dims).Floats("zero", {2}, {0, 0}).Floats("two", {1}, {2}).Output("y").Output("all");
  b.Node("Scan", {"zero", "x"}, {"y", "all"}).Body("body", body).Int("num_scan_inputs", 1);
  return b;
}

TEST(OnnxControlTest, AScanRunsOverAnAxis) {
  const std::vector<Tensor> y = Evaluate(ScanOf({3, 2}).Bytes(), {{1, 10, 2, 20, 3, 30}});
  ASSERT_EQ(y.size(), 2u);
  EXPECT_THAT(y[0].ToFloats(), ElementsAre(6, 60));
  EXPECT_THAT(y[1].ToFloats(), ElementsAre(2, 20, 6, 60, 12, 120));
}

TEST(OnnxControlTest, AScanMayRunBackwardsOverAnotherAxis) {
  ModelBuilder b = ScanOf({2, 3});
  b.Ints("scan_input_axes", {-1}).Ints("scan_input_directions", {1});
  b.Ints("scan_output_axes", {-1}).Ints("scan_output_directions", {1});
  const std::vector<Tensor> y = Evaluate(b.Bytes(), {{1, 2, 3, 10, 20, 30}});
  ASSERT_EQ(y.size(), 2u);
  EXPECT_EQ(y[1].shape(), Shape({2, 3}));
  // Sums from the last element on, doubled, put back to front again.
  EXPECT_THAT(y[1].ToFloats(), ElementsAre(12, 10, 6, 120, 100, 60));
}

TEST(OnnxControlTest, AScanRefusesAxesAndCountsThatDoNotFit) {
  ModelBuilder axis = ScanOf({2, 3});
  axis.Ints("scan_input_axes", {2});
  EXPECT_THAT(RunImport(axis.Bytes()).Text(), HasSubstr("axis 2 is outside"));
  ModelBuilder counts = ScanOf({3, 2});
  counts.proto().mutable_graph()->mutable_node(0)->mutable_attribute(1)->set_i(3);
  EXPECT_EQ(RunImport(counts.Bytes()).CountOf(DiagnosticKind::kMalformedNode), 1);
}

TEST(OnnxControlTest, LocalFunctionsRunWithTheAttributesOfTheirCalls) {
  ModelBuilder leaky(18);
  leaky.Input("x", {}).Output("y").Node("LeakyRelu", {"x"}, {"h"}).Ref("alpha", "slope");
  leaky.Node("Neg", {"h"}, {"y"});
  for (const bool is_given : {true, false}) {
    ModelBuilder b;
    b.Input("x", {2}).Output("z").Function("F", leaky);
    b.Node("F", {"x"}, {"y"}).Domain("local");
    if (is_given) b.Float("slope", 0.5F);
    b.Node("Relu", {"y"}, {"z"});
    const std::vector<Tensor> z = Evaluate(b.Bytes(), {{-2, 3}});
    ASSERT_EQ(z.size(), 1u);
    // LeakyRelu's own slope is 0.01.
    EXPECT_FLOAT_EQ(z[0].ToFloats()[0], is_given ? 1 : 0.02F);
    EXPECT_FLOAT_EQ(z[0].ToFloats()[1], 0);
  }
}

TEST(OnnxControlTest, FunctionsThatCallThemselvesAreRefused) {
  ModelBuilder body;
  body.Input("x", {}).Output("y").Node("F", {"x"}, {"h"}).Domain("local");
  body.Node("F", {"h"}, {"y"}).Domain("local");
  ModelBuilder b;
  b.Input("x", {2}).Output("y").Function("F", body).Node("F", {"x"}, {"y"}).Domain("local");
  const ImportResult result = RunImport(b.Bytes());
  EXPECT_EQ(result.CountOf(DiagnosticKind::kModelLimitExceeded), 1);
  EXPECT_THAT(result.Text(), HasSubstr("nested more than 8 deep"));
}

TEST(OnnxControlTest, NestingIsBounded) {
  for (const int depth : {8, 9}) {
    ModelBuilder inner;
    inner.Output("a").Node("Neg", {"x"}, {"a"});
    ModelBuilder graph = inner;
    for (int i = 1; i < depth; ++i) {
      ModelBuilder outer;
      outer.Output("a").Node("If", {"choice"}, {"a"});
      outer.Body("then_branch", graph).Body("else_branch", inner);
      graph = outer;
    }
    ModelBuilder b;
    b.Input("x", {2}).Bool("choice", true).Output("y").Node("If", {"choice"}, {"y"});
    b.Body("then_branch", graph).Body("else_branch", inner);
    EXPECT_EQ(RunImport(b.Bytes()).graph.ok(), depth == 8) << RunImport(b.Bytes()).Text();
  }
}

TEST(OnnxControlTest, FlippedBytesInsideOfGraphsAreRefusedOrRead) {
  for (const std::string& bytes : {Adding(2).Bytes(), ScanOf({2, 2}).Bytes()}) {
    for (size_t at = 0; at < bytes.size(); ++at) {
      std::string mutant = bytes;
      mutant[at] = static_cast<char>(static_cast<unsigned char>(mutant[at]) ^ 0x01U);
      const ImportResult result = RunImport(mutant);
      EXPECT_EQ(result.graph.ok(), !result.diagnostics.has_errors()) << at;
      EXPECT_FALSE(absl::IsInternal(result.graph.status())) << at << ": " << result.Text();
    }
  }
}

}  // namespace
}  // namespace npuc::onnx
