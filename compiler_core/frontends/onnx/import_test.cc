#include "compiler_core/frontends/onnx/import.h"

#include <algorithm>
#include <cmath>

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
using ::testing::Pointwise;

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

// 0.1 in the nearest float, half and bfloat16, as torch.tensor(0.1).to(type) has them.
TEST(OnnxImportTest, KnownValuesAreRoundedToTheTypeOfTheirCast) {
  const std::vector<std::pair<int, float>> types = {
      {1, 0.1f}, {10, 0.0999755859375f}, {16, 0.10009765625f}};
  for (const auto& [type, rounded] : types) {
    ModelBuilder cast;
    cast.Input("x", {1}).Floats("c", {1}, {0.1f}).Output("y");
    cast.Node("Cast", {"c"}, {"r"}).Int("to", type).Node("Add", {"x", "r"}, {"y"});
    EXPECT_THAT(Evaluate(cast.Bytes(), {{0}})[0].ToFloats(), ElementsAre(rounded));
    ModelBuilder input;
    input.Input("x", {1}, type).Floats("c", {1}, {0.1f}).Output("y");
    input.Node("CastLike", {"c", "x"}, {"r"}).Node("Add", {"x", "r"}, {"y"});
    EXPECT_THAT(Evaluate(input.Bytes(), {{0}})[0].ToFloats(), ElementsAre(rounded));
    ModelBuilder like;
    like.Input("x", {1}).Floats("c", {1}, {0.1f}).Output("y");
    like.Node("Cast", {"x"}, {"t"}).Int("to", type).Node("CastLike", {"c", "t"}, {"r"});
    like.Node("Add", {"t", "r"}, {"y"});
    EXPECT_THAT(Evaluate(like.Bytes(), {{0}})[0].ToFloats(), ElementsAre(rounded));
  }
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

// "output_dtype: The output data type. If not supplied, the output data type is inferred from
// y_zero_point data type."
TEST(OnnxImportTest, QuantizeLinearReadsItsOutputType) {
  ModelBuilder b(21);
  b.Input("x", {3}).Floats("s", {}, {0.5f}).Output("y");
  b.Node("QuantizeLinear", {"x", "s"}, {"q"}).Int("output_dtype", 3);  // INT8
  b.Node("Cast", {"q"}, {"y"}).Int("to", 1);
  const std::vector<Tensor> y = Evaluate(b.Bytes(), {{-1, 0.5f, 200}});
  ASSERT_EQ(y.size(), 1u);
  EXPECT_THAT(y[0].ToFloats(), ElementsAre(-2, 1, 127));
  const auto refusal = [](int64_t type) {
    ModelBuilder model(21);
    model.Input("x", {3}).Floats("s", {}, {0.5f}).Output("q");
    model.Node("QuantizeLinear", {"x", "s"}, {"z"})
        .Node("QuantizeLinear", {"x", "s", "zero"}, {"q"});
    model.Int("output_dtype", type);
    auto* zero = model.proto().mutable_graph()->add_initializer();
    zero->set_name("zero");
    zero->set_data_type(fe::onnx::TensorProto::UINT8);
    zero->add_int32_data(0);
    return RunImport(model.Bytes()).Text();
  };
  EXPECT_EQ(refusal(2), "");
  EXPECT_THAT(refusal(3), HasSubstr("output_dtype is INT8, and the zero point is u8"));
  EXPECT_THAT(refusal(22), HasSubstr("output_dtype is INT4; quantize to INT8"));
}

// onnxconverter-common casts inputs to FLOAT16 beside weights of FLOAT16, and results back.
TEST(OnnxImportTest, FloatsOfEveryTypeAreOneType) {
  for (const int input_type : {1, 10, 11, 16}) {
    ModelBuilder b;
    b.Input("x", {1, 2}, input_type).Output("y").Floats("w", {2, 1}, {1.0001f, 2});
    b.Node("Cast", {"w"}, {"half"}).Int("to", 10).Node("Cast", {"x"}, {"x_half"}).Int("to", 10);
    b.Node("MatMul", {"x_half", "half"}, {"sum"}).Node("Cast", {"sum"}, {"y"}).Int("to", 1);
    const ImportResult result = RunImport(b.Bytes());
    ASSERT_TRUE(result.graph.ok()) << result.Text();
    EXPECT_EQ(result.graph->type(result.graph->inputs()[0]).dtype, DType::kFloat32);
    const auto values = Evaluate(b.Bytes(), {{3, 4}});
    ASSERT_EQ(values.size(), 1u);
    EXPECT_THAT(values[0].ToFloats(), testing::ElementsAre(11));  // 1.0001 is rounded to 1
  }
}

// Sets 7 to 13: "Output case #1: Y, mean, var, saved_mean, saved_var (training mode). Output case
// #2: Y (test mode)"; set 6: is_test, "default is 0".
TEST(OnnxImportTest, BatchNormalizationOfABatchIsRefused) {
  const auto text = [](int64_t opset, const std::vector<std::string>& outputs, int64_t is_test) {
    ModelBuilder b(opset);
    b.Input("x", {4, 1}).Floats("one", {1}, {1}).Floats("zero", {1}, {0}).Output("y");
    b.Node("BatchNormalization", {"x", "one", "zero", "zero", "one"}, outputs);
    if (is_test >= 0) b.Int("is_test", is_test);
    return RunImport(b.Bytes()).Text();
  };
  EXPECT_EQ(text(9, {"y"}, -1), "");
  EXPECT_EQ(text(9, {"y", "", ""}, -1), "");
  EXPECT_THAT(text(9, {"y", "m", "v", "sm", "sv"}, -1), HasSubstr("output 1, 'm', is there"));
  EXPECT_THAT(text(13, {"y", "", "v"}, -1), HasSubstr("output 2, 'v', is there"));
  EXPECT_EQ(text(6, {"y"}, 1), "");
  EXPECT_THAT(text(6, {"y"}, 0), HasSubstr("is_test is 0: mean and variance"));
  EXPECT_THAT(text(6, {"y"}, -1), HasSubstr("is_test is 0: mean and variance"));
}

TEST(OnnxImportTest, FractionsBesideIntegersAreRefused) {
  ModelBuilder gemm;
  gemm.Input("x", {1, 1}, 6).Input("w", {1, 1}, 6).Output("y");
  gemm.Node("Gemm", {"x", "w"}, {"y"}).Float("alpha", 0.5f);
  EXPECT_THAT(RunImport(gemm.Bytes()).Text(), HasSubstr("alpha 0.5 and beta 1 beside integers"));
  const auto resize = [](const std::string& mode) {
    ModelBuilder b;
    b.Input("x", {1, 1, 1, 4}, 2).Floats("s", {4}, {1, 1, 1, 2}).Output("y");
    b.Node("Resize", {"x", "", "s"}, {"y"}).String("mode", mode);
    return RunImport(b.Bytes()).Text();
  };
  EXPECT_EQ(resize("nearest"), "");
  EXPECT_THAT(resize("linear"), HasSubstr("a linear resize of values of type u8"));
  EXPECT_THAT(resize("cubic"), HasSubstr("a cubic resize of values of type u8"));
}

TEST(OnnxImportTest, PaddingValuesOfIntegersAreExact) {
  ModelBuilder b;
  b.Input("x", {1}, 7).Int64s("pads", {0, 1}).Int64s("fill", {16777217}).Output("y");
  b.Node("Pad", {"x", "pads", "fill"}, {"y"});
  const std::vector<Tensor> y = Evaluate(b.Bytes(), {{5}});
  ASSERT_EQ(y.size(), 1u);
  EXPECT_EQ(y[0].int_at(1), 16777217);
  ModelBuilder large;
  large.Input("x", {1}, 7).Int64s("pads", {0, 1}).Int64s("fill", {(int64_t{1} << 53) + 1});
  large.Output("y").Node("Pad", {"x", "pads", "fill"}, {"y"});
  EXPECT_THAT(RunImport(large.Bytes()).Text(), HasSubstr("a padding value of 9007199254740993"));
}

// "The values are consumed in the order of activation functions": LeakyRelu takes no beta.
TEST(OnnxImportTest, RecurrentFunctionsTakeTheirOwnAlphaAndBeta) {
  ModelBuilder b;
  b.Input("x", {1, 1, 1}).Floats("w", {2, 1, 1}, {1, 1}).Floats("r", {2, 1, 1}, {0, 0});
  b.Output("h").Node("RNN", {"x", "w", "r"}, {"", "h"}).Int("hidden_size", 1);
  b.String("direction", "bidirectional");
  auto* node = b.proto().mutable_graph()->mutable_node(0);
  auto* functions = node->add_attribute();
  functions->set_name("activations");
  functions->set_type(8);  // STRINGS
  for (const char* name : {"LeakyRelu", "HardSigmoid"}) functions->add_strings(name);
  const auto add = [&](const char* name, const std::vector<float>& values) {
    auto* list = node->add_attribute();
    list->set_name(name);
    list->set_type(6);  // FLOATS
    for (const float value : values) list->add_floats(value);
  };
  add("activation_alpha", {0.1f, 0.3f});
  add("activation_beta", {0.4f});
  const std::vector<Tensor> y = Evaluate(b.Bytes(), {{1}});
  ASSERT_EQ(y.size(), 1u);
  EXPECT_THAT(y[0].ToFloats(), ElementsAre(1, FloatNear(0.7f, 1e-6f)));
}

TEST(OnnxImportTest, ListsItsOperators) {
  const std::vector<std::string> ops = ImportedOnnxOps();
  EXPECT_GE(ops.size(), 120u);
  EXPECT_TRUE(std::is_sorted(ops.begin(), ops.end()));
}

// GatherElements of x [2,3] by indices that are computed, [2,2].
std::vector<float> ElementsOf(const std::vector<float>& x, const std::vector<float>& indices,
                              int64_t axis) {
  constexpr int kInt64 = 7;
  ModelBuilder b;
  b.Input("x", {2, 3}).Input("i", {2, 2}, kInt64).Output("y");
  b.Node("GatherElements", {"x", "i"}, {"y"}).Int("axis", axis);
  const std::vector<Tensor> y = Evaluate(b.Bytes(), {x, indices});
  return y.empty() ? std::vector<float>() : y[0].ToFloats();
}

// "out[i][j] = input[index[i][j]][j] if axis = 0", "input[i][index[i][j]] if axis = 1"
TEST(OnnxImportTest, GathersElementsAtComputedIndices) {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  EXPECT_THAT(ElementsOf(x, {2, 0, -1, 1}, 1), ElementsAre(3, 1, 6, 5));
  EXPECT_THAT(ElementsOf(x, {1, 0, -2, 1}, 0), ElementsAre(4, 2, 1, 5));
}

TEST(OnnxImportTest, ErfcIsWhatErfLeaves) {
  ModelBuilder b;
  b.Input("x", {5}).Output("y").Node("Erfc", {"x"}, {"y"});
  const std::vector<Tensor> y = Evaluate(b.Bytes(), {{-3, -0.5f, 0, 0.5f, 3}});
  ASSERT_EQ(y.size(), 1u);
  // By Python's math.erfc.
  EXPECT_THAT(y[0].ToFloats(),
              Pointwise(FloatNear(1e-6f), {1.9999779f, 1.5204999f, 1.0f, 0.4795001f, 2.209e-5f}));
}

// "Mean of squares over the axes from `axis` on; Y = X / Sqrt(mean + epsilon) * scale"
TEST(OnnxImportTest, RmsNormalizationOfOperatorSet23) {
  ModelBuilder b(23);
  b.Input("x", {2, 2}).Output("y").Floats("scale", {2}, {2, 0.5f});
  b.Node("RMSNormalization", {"x", "scale"}, {"y"}).Float("epsilon", 1);
  const std::vector<Tensor> y = Evaluate(b.Bytes(), {{3, 4, 0, 1}});
  ASSERT_EQ(y.size(), 1u);
  const float first = 1 / std::sqrt(13.5f);
  const float second = 1 / std::sqrt(1.5f);
  EXPECT_THAT(y[0].ToFloats(),
              Pointwise(FloatNear(1e-6f), {6 * first, 2 * first, 0.0f, 0.5f * second}));
}

TEST(OnnxImportTest, SwishOfOperatorSet24) {
  ModelBuilder b(24);
  b.Input("x", {3}).Output("y").Node("Swish", {"x"}, {"y"}).Float("alpha", 2);
  const std::vector<Tensor> y = Evaluate(b.Bytes(), {{-1, 0, 2}});
  ASSERT_EQ(y.size(), 1u);
  const auto swish = [](float x) { return x / (1 + std::exp(-2 * x)); };
  EXPECT_THAT(y[0].ToFloats(), Pointwise(FloatNear(1e-6f), {swish(-1), 0.0f, swish(2)}));
}

}  // namespace
}  // namespace npuc::onnx
