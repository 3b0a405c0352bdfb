#include "compiler_core/frontends/onnx/import.h"

#include <algorithm>

#include "compiler_core/frontends/onnx/test_util.h"
#include "compiler_core/ops/op.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "npuc/fe/onnx/model.pb.h"

namespace npuc::onnx {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;

TEST(OnnxImportTest, TakesInputsAndOutputsFromTheFile) {
  ModelBuilder b;
  b.Input("x", {1, 2}).Floats("w", {2, 2}, {1, 2, 3, 4}).Floats("c", {2}, {10, 20}).Output("y");
  b.Node("Gemm", {"x", "w", "c"}, {"y"}).Int("transB", 1);
  const std::vector<Tensor> y = Evaluate(b.Bytes(), {{1, 1}});
  ASSERT_EQ(y.size(), 1u);
  EXPECT_THAT(y[0].ToFloats(), ElementsAre(13, 27));
}

TEST(OnnxImportTest, AnInitializerIsAnInputWhereInputOpsSaysSo) {
  ModelBuilder b;
  b.Input("x", {2}).Input("w", {2}).Floats("w", {2}, {3, 4}).Output("y");
  b.Node("Mul", {"x", "w"}, {"y"});
  EXPECT_EQ(RunImport(b.Bytes()).graph->inputs().size(), 1u);
  CompileOptions options;
  options.inputs = {{"w", {2}}};
  const ImportResult result = RunImport(b.Bytes(), options);
  ASSERT_TRUE(result.graph.ok()) << result.Text();
  EXPECT_EQ(result.graph->inputs().size(), 2u);
}

TEST(OnnxImportTest, CutsAtAnyTensor) {
  ModelBuilder b;
  b.Input("x", {2}).Output("y");
  b.Node("NoSuchOperator", {"x"}, {"a"}).Node("Relu", {"a"}, {"b"}).Node("Neg", {"b"}, {"y"});
  EXPECT_THAT(RunImport(b.Bytes()).Text(), HasSubstr("NPUC1110"));
  CompileOptions options;
  options.inputs = {{"a", {2}}};
  options.outputs = {"b"};
  const ImportResult result = RunImport(b.Bytes(), options);
  ASSERT_TRUE(result.graph.ok()) << result.Text();
  EXPECT_EQ(result.graph->outputs()[0].name, "b");
}

TEST(OnnxImportTest, UnknownDimensionsNeedInputOps) {
  ModelBuilder b;
  b.Input("x", {2, -1}).Output("y").Node("Relu", {"x"}, {"y"});
  EXPECT_EQ(RunImport(b.Bytes()).CountOf(DiagnosticKind::kOpenInput), 1);
  CompileOptions options;
  options.inputs = {{"x", {2, 3}}};
  EXPECT_TRUE(RunImport(b.Bytes(), options).graph.ok());
  options.inputs = {{"x", {4, 3}}};
  EXPECT_EQ(RunImport(b.Bytes(), options).CountOf(DiagnosticKind::kInputShapeConflict), 1);
}

TEST(OnnxImportTest, AnOpenFirstDimensionAloneIsOneItem) {
  ModelBuilder one;
  one.Input("x", {-1, 2, 3}).Output("y").Node("Relu", {"x"}, {"y"});
  const ImportResult result = RunImport(one.Bytes());
  ASSERT_TRUE(result.graph.ok()) << result.Text();
  EXPECT_EQ(result.CountOf(DiagnosticKind::kInputOfOneItem), 1);
  EXPECT_EQ(result.graph->type(result.graph->inputs()[0]).shape, Shape({1, 2, 3}));
  ModelBuilder two;
  two.Input("x", {-1, 2, -1}).Output("y").Node("Relu", {"x"}, {"y"});
  EXPECT_THAT(RunImport(two.Bytes()).Text(), HasSubstr("add 'x: [?, 2, ?]' to INPUT_OPS"));
}

TEST(OnnxImportTest, DimsGiveNamedDimensions) {
  ModelBuilder b;  // its open dimensions are called n
  b.Input("x", {2, -1}).Output("y").Node("Relu", {"x"}, {"y"});
  CompileOptions options;
  options.dims = {{"n", 5}};
  const ImportResult result = RunImport(b.Bytes(), options);
  ASSERT_TRUE(result.graph.ok()) << result.Text();
  EXPECT_EQ(result.graph->type(result.graph->inputs()[0]).shape, Shape({2, 5}));
  options.inputs = {{"x", {2, 6}}};
  EXPECT_EQ(RunImport(b.Bytes(), options).CountOf(DiagnosticKind::kInputShapeConflict), 1);
  options = {};
  options.dims = {{"n", 5}, {"m", 2}};
  EXPECT_THAT(RunImport(b.Bytes(), options).Text(), HasSubstr("DIMS names 'm'"));
}

TEST(OnnxImportTest, ConstInputsAreNoInputs) {
  ModelBuilder one, two, b;
  one.Output("a").Node("Neg", {"x"}, {"a"});
  two.Output("b").Node("Relu", {"x"}, {"b"});
  b.Input("x", {2}).Input("rate", {}, 7).Int64s("wanted", {16000}).Output("y");
  b.Node("Equal", {"rate", "wanted"}, {"is_wide"}).Node("If", {"is_wide"}, {"y"});
  b.Body("then_branch", one).Body("else_branch", two);
  for (const double rate : {16000.0, 8000.0}) {
    CompileOptions options;
    options.const_inputs = {{"rate", {rate}, false, true}};
    const ImportResult result = RunImport(b.Bytes(), options);
    ASSERT_TRUE(result.graph.ok()) << result.Text();
    EXPECT_EQ(result.graph->inputs().size(), 1u);
    const auto y = RunReference(*result.graph, {Tensor::FromFloats({2}, {1, -2})});
    ASSERT_TRUE(y.ok());
    EXPECT_THAT((*y)[0].ToFloats(), rate == 16000 ? ElementsAre(-1, 2) : ElementsAre(1, 0));
  }
}

TEST(OnnxImportTest, ConstInputsAreChecked) {
  ModelBuilder b;
  b.Input("x", {2}).Input("s", {}, 7).Output("y").Node("Relu", {"x"}, {"y"});
  const auto text = [&](const ConstInput& input) {
    CompileOptions options;
    options.inputs = {{"x", {2}}};
    options.const_inputs = {input};
    return RunImport(b.Bytes(), options).Text();
  };
  EXPECT_THAT(text({"t", {1}, false, true}), HasSubstr("CONST_INPUTS names 't'"));
  EXPECT_THAT(text({"x", {1}, false, true}), HasSubstr("CONST_INPUTS names 'x', which INPUT_OPS"));
  EXPECT_THAT(text({"s", {0.5}, false, false}), HasSubstr("the input is of type int64"));
  EXPECT_EQ(text({"s", {1}, false, true}), "");
}

TEST(OnnxImportTest, ReportsAllProblemsAtOnce) {
  ModelBuilder b;
  b.Input("x", {2}).Output("y").Output("z").Output("nowhere");
  b.Node("Mystery", {"x"}, {"y"}).Node("Enigma", {"x"}, {"z"});
  const ImportResult result = RunImport(b.Bytes());
  EXPECT_EQ(result.CountOf(DiagnosticKind::kUnsupportedOperator), 2);
  EXPECT_EQ(result.CountOf(DiagnosticKind::kOutputNotInModel), 1);
}

TEST(OnnxImportTest, ShapeComputationsLeaveNoNodes) {
  ModelBuilder b;
  b.Input("x", {2, 6}).Int64s("zero", {0}).Int64s("rest", {-1}).Output("y");
  b.Node("Shape", {"x"}, {"s"}).Node("Gather", {"s", "zero"}, {"n"}).Int("axis", 0);
  b.Node("Concat", {"n", "rest"}, {"t"}).Int("axis", 0).Node("Reshape", {"x", "t"}, {"y"});
  const ImportResult result = RunImport(b.Bytes());
  ASSERT_TRUE(result.graph.ok()) << result.Text();
  EXPECT_EQ(result.graph->node_count(), 1);  // the Placeholder
}

TEST(OnnxImportTest, ConvolutionRunsChannelsLast) {
  ModelBuilder b;
  b.Input("x", {1, 2, 3, 3}).Floats("w", {1, 2, 2, 2}, {1, 0, 0, 0, 0, 0, 0, 1}).Output("y");
  b.Node("Conv", {"x", "w"}, {"y"}).Ints("kernel_shape", {2, 2});
  std::vector<float> x(18);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const std::vector<Tensor> y = Evaluate(b.Bytes(), {x});
  ASSERT_EQ(y.size(), 1u);
  EXPECT_EQ(y[0].shape(), (Shape{1, 1, 2, 2}));
  EXPECT_THAT(y[0].ToFloats(), ElementsAre(13, 15, 19, 21));
}

TEST(OnnxImportTest, GeluByItsTailIsCloseToTheErrorFunction) {
  ModelBuilder b(20);
  b.Input("x", {5}).Output("y").Node("Gelu", {"x"}, {"y"});
  const std::vector<Tensor> y = Evaluate(b.Bytes(), {{-3, -1, 0, 0.5, 2}});
  ASSERT_EQ(y.size(), 1u);
  EXPECT_THAT(
      y[0].ToFloats(),
      ElementsAre(FloatNear(-0.00404969f, 1e-6f), FloatNear(-0.1586553f, 1e-6f),
                  FloatNear(0, 1e-6f), FloatNear(0.3457312f, 1e-6f), FloatNear(1.9544997f, 1e-6f)));
}

TEST(OnnxImportTest, ListsItsOperators) {
  const std::vector<std::string> ops = ImportedOnnxOps();
  EXPECT_GE(ops.size(), 120u);
  EXPECT_TRUE(std::is_sorted(ops.begin(), ops.end()));
}

}  // namespace
}  // namespace npuc::onnx
