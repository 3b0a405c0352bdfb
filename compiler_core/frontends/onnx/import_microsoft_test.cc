// Operators of domain com.microsoft, each beside the same model in ONNX's own operators.
#include <string>
#include <vector>

#include "compiler_core/frontends/onnx/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "npuc/fe/onnx/model.pb.h"

namespace npuc::onnx {
namespace {

using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

// The model with its last node in com.microsoft's domain.
std::string InMicrosoft(ModelBuilder& b) {
  auto& nodes = *b.proto().mutable_graph()->mutable_node();
  nodes.Mutable(nodes.size() - 1)->set_domain("com.microsoft");
  return b.Bytes();
}

std::vector<float> ValuesOf(const std::string& bytes, const std::vector<std::vector<float>>& x) {
  const std::vector<Tensor> outputs = Evaluate(bytes, x);
  return outputs.empty() ? std::vector<float>() : outputs[0].ToFloats();
}

TEST(ImportMicrosoft, FusedConvAddsAndActivates) {
  const auto begin = [](ModelBuilder& b) {
    b.Input("x", {1, 1, 2, 2}).Input("z", {1, 1, 2, 2}).Output("y");
    b.Floats("w", {1, 1, 1, 1}, {-2}).Floats("b", {1}, {1});
  };
  ModelBuilder fused;
  begin(fused);
  fused.Node("FusedConv", {"x", "w", "b", "z"}, {"y"}).String("activation", "Relu");
  ModelBuilder plain;
  begin(plain);
  plain.Node("Conv", {"x", "w", "b"}, {"c"}).Node("Add", {"c", "z"}, {"s"});
  plain.Node("Relu", {"s"}, {"y"});
  const std::vector<std::vector<float>> x = {{1, -1, 2, 0.5f}, {3, 1, -1, -1}};
  const std::vector<float> expected = ValuesOf(plain.Bytes(), x);
  ASSERT_EQ(expected.size(), 4u);
  EXPECT_EQ(ValuesOf(InMicrosoft(fused), x), expected);
}

TEST(ImportMicrosoft, ActivationsHaveTheirParameters) {
  const auto with = [](const std::string& activation) {
    ModelBuilder b;
    b.Input("x", {1, 1, 1, 3}).Output("y").Floats("w", {1, 1, 1, 1}, {1});
    b.Node("FusedConv", {"x", "w"}, {"y"}).String("activation", activation);
    auto* params = b.proto().mutable_graph()->mutable_node(0)->add_attribute();
    params->set_name("activation_params");
    params->add_floats(activation == "Clip" ? -1.0f : 0.25f);
    params->add_floats(activation == "Clip" ? 2.0f : 0.5f);
    return ValuesOf(InMicrosoft(b), {{-4, 1, 4}});
  };
  EXPECT_THAT(with("LeakyRelu"), Pointwise(FloatNear(1e-6f), {-1.0f, 1.0f, 4.0f}));
  EXPECT_THAT(with("Clip"), Pointwise(FloatNear(1e-6f), {-1.0f, 1.0f, 2.0f}));
  EXPECT_THAT(with("HardSigmoid"), Pointwise(FloatNear(1e-6f), {0.0f, 0.75f, 1.0f}));
}

TEST(ImportMicrosoft, SkipLayerNormalizationIsAnAddAndANormalisation) {
  const auto begin = [](ModelBuilder& b) {
    b.Input("x", {1, 2, 3}).Input("skip", {1, 2, 3}).Output("y");
    b.Floats("gamma", {3}, {1, 2, 3}).Floats("beta", {3}, {0.5f, 0, -1});
  };
  ModelBuilder fused;
  begin(fused);
  fused.Node("SkipLayerNormalization", {"x", "skip", "gamma", "beta"}, {"y"});
  fused.Float("epsilon", 1e-5f);
  ModelBuilder plain;
  begin(plain);
  plain.Node("Add", {"x", "skip"}, {"s"});
  plain.Node("LayerNormalization", {"s", "gamma", "beta"}, {"y"}).Float("epsilon", 1e-5f);
  const std::vector<std::vector<float>> x = {{1, 2, 4, -1, 0, 3}, {0, 1, 0, 2, 2, 2}};
  const std::vector<float> expected = ValuesOf(plain.Bytes(), x);
  ASSERT_EQ(expected.size(), 6u);
  EXPECT_THAT(ValuesOf(InMicrosoft(fused), x), Pointwise(FloatNear(1e-5f), expected));
}

TEST(ImportMicrosoft, QLinearAddRoundsToTheResultsScale) {
  ModelBuilder b;
  b.Input("x", {3}).Output("y").Floats("s", {}, {0.5f}).Floats("t", {}, {2});
  b.Node("QuantizeLinear", {"x", "s"}, {"q"})
      .Node("QLinearAdd", {"q", "s", "", "q", "s", "", "t"}, {"sum"});
  ASSERT_FALSE(InMicrosoft(b).empty());
  b.Node("DequantizeLinear", {"sum", "t"}, {"y"});
  // 0.5 * {2, 6, 255} twice, in steps of 2: 1, 3 and 127.5, which rounds to even.
  EXPECT_THAT(ValuesOf(b.Bytes(), {{1, 3, 1000}}),
              Pointwise(FloatNear(1e-6f), {2.0f, 6.0f, 256.0f}));
}

TEST(ImportMicrosoft, QLinearSoftmaxIsASoftmaxOfItsOwnOperatorSet) {
  ModelBuilder b;
  b.Input("x", {1, 2, 2}).Output("y").Floats("s", {}, {1}).Floats("t", {}, {0.25f});
  b.Node("QuantizeLinear", {"x", "s"}, {"q"});
  b.Node("QLinearSoftmax", {"q", "s", "", "t", ""}, {"p"}).Int("axis", 1).Int("opset", 12);
  ASSERT_FALSE(InMicrosoft(b).empty());
  b.Node("DequantizeLinear", {"p", "t"}, {"y"});
  // Before operator set 13 the axes from 1 on are one: four equal numbers.
  EXPECT_THAT(ValuesOf(b.Bytes(), {{3, 3, 3, 3}}),
              Pointwise(FloatNear(1e-6f), {0.25f, 0.25f, 0.25f, 0.25f}));
}

// x by a weight of 1, 2, 3, 4 in steps of 0.5, as onnxruntime's dynamic quantization writes it.
TEST(ImportMicrosoft, AProductOfIntegersThatBecomesFloatsIsAProductOfFloats) {
  ModelBuilder b;
  b.Input("x", {1, 2}).Output("y").Floats("w", {2, 2}, {0.5f, 1, 1.5f, 2}).Floats("sw", {}, {0.5f});
  b.Node("QuantizeLinear", {"w", "sw"}, {"wq"});
  b.Node("DynamicQuantizeLinear", {"x"}, {"q", "sx", "zx"});
  b.Node("MatMulInteger", {"q", "wq", "zx"}, {"sums"});
  b.Node("Cast", {"sums"}, {"numbers"}).Int("to", 1);
  b.Node("Mul", {"sx", "sw"}, {"scale"}).Node("Mul", {"numbers", "scale"}, {"y"});
  // The sums of what x is rounded to would be off by some thousandths.
  EXPECT_THAT(ValuesOf(b.Bytes(), {{0.123f, 0.777f}}),
              Pointwise(FloatNear(1e-6f), {0.0615f + 1.1655f, 0.123f + 1.554f}));
}

// As onnxruntime's first quantizer writes a bias: in integers of the sums' scale.
TEST(ImportMicrosoft, AProductOfIntegersTakesABias) {
  const auto model = [](const std::string& bias_scale) {
    ModelBuilder b;
    b.Input("x", {1, 1, 1, 2}).Output("y").Floats("w", {2, 1, 1, 1}, {0.5f, 1.5f});
    b.Floats("sw", {}, {0.5f}).Floats("other", {}, {0.25f}).Floats("b", {2}, {10, -20});
    b.Int64s("shape", {1, 2, 1, 1}).Node("QuantizeLinear", {"w", "sw"}, {"wq"});
    b.Node("DynamicQuantizeLinear", {"x"}, {"q", "sx", "zx"});
    b.Node("Mul", {"sx", bias_scale}, {"sb"}).Node("Div", {"b", "sb"}, {"steps"});
    b.Node("Floor", {"steps"}, {"whole"}).Node("Cast", {"whole"}, {"bq"}).Int("to", 6);
    b.Node("ConvInteger", {"q", "wq", "zx"}, {"sums"}).Node("Reshape", {"bq", "shape"}, {"br"});
    b.Node("Add", {"sums", "br"}, {"all"}).Node("Cast", {"all"}, {"numbers"}).Int("to", 1);
    b.Node("Mul", {"sx", "sw"}, {"scale"}).Node("Mul", {"numbers", "scale"}, {"y"});
    return b.Bytes();
  };
  EXPECT_THAT(ValuesOf(model("sw"), {{0.123f, 0.777f}}),
              Pointwise(FloatNear(1e-5f), {10.0615f, 10.3885f, -19.8155f, -18.8345f}));
  const auto last_op = [](const std::string& bytes) {
    const ImportResult result = RunImport(bytes);
    EXPECT_TRUE(result.graph.ok()) << result.Text();
    return result.graph->def(result.graph->outputs()[0].value).op;
  };
  EXPECT_EQ(last_op(model("sw")), Op::kAdd);     // of the product of floats and b
  EXPECT_EQ(last_op(model("other")), Op::kMul);  // of integers: not b of the sums' scale
}

TEST(ImportMicrosoft, AProductOfMatricesOfIntegersTakesABiasOfItsShape) {
  ModelBuilder b;
  b.Input("x", {1, 2}).Output("y").Floats("w", {2, 2}, {0.5f, 1, 1.5f, 2}).Floats("sw", {}, {0.5f});
  b.Floats("b", {2}, {10, -20}).Node("QuantizeLinear", {"w", "sw"}, {"wq"});
  b.Node("DynamicQuantizeLinear", {"x"}, {"q", "sx", "zx"}).Node("Mul", {"sw", "sx"}, {"scale"});
  b.Node("Div", {"b", "scale"}, {"steps"}).Node("Floor", {"steps"}, {"whole"});
  b.Node("Cast", {"whole"}, {"bq"}).Int("to", 6);
  b.Node("MatMulInteger", {"q", "wq", "zx"}, {"sums"}).Node("Add", {"bq", "sums"}, {"all"});
  b.Node("Cast", {"all"}, {"numbers"}).Int("to", 1).Node("Mul", {"numbers", "scale"}, {"y"});
  EXPECT_THAT(ValuesOf(b.Bytes(), {{0.123f, 0.777f}}),
              Pointwise(FloatNear(1e-5f), {10 + 1.227f, -20 + 1.677f}));
}

// The scale of the sums is 0.5 of x times 0.25 of the weight.
TEST(ImportMicrosoft, AProductOfIntegersOfKnownScalesTakesAConstantBias) {
  ModelBuilder b;
  b.Input("x", {1, 1, 1, 2}).Output("y").Floats("w", {2, 1, 1, 1}, {3, -4});
  b.Floats("one", {}, {1}).Floats("sx", {}, {0.5f}).Floats("scale", {}, {0.125f});
  b.Floats("b", {1, 2, 1, 1}, {80, -8}).Node("Cast", {"b"}, {"bq"}).Int("to", 6);
  b.Node("QuantizeLinear", {"w", "one"}, {"wq"});
  b.Node("QuantizeLinear", {"x", "sx"}, {"q"}).Node("ConvInteger", {"q", "wq"}, {"sums"});
  b.Node("Add", {"sums", "bq"}, {"all"}).Node("Cast", {"all"}, {"numbers"}).Int("to", 1);
  b.Node("Mul", {"scale", "numbers"}, {"y"});
  // 1.1 is stored as 1, which is 2 steps, and -4 as 0.
  EXPECT_THAT(ValuesOf(b.Bytes(), {{1.1f, 4}}),
              Pointwise(FloatNear(1e-6f), {10.75f, 13.0f, -1.0f, -1.0f}));
  const ImportResult result = RunImport(b.Bytes());
  ASSERT_TRUE(result.graph.ok()) << result.Text();
  EXPECT_EQ(result.graph->def(result.graph->outputs()[0].value).op, Op::kAdd);
}

// Each channel has a scale, and the bias of rows is divided by those of columns.
TEST(ImportMicrosoft, ABiasMovedFromItsScalesIsAddedInIntegers) {
  ModelBuilder b;
  b.Input("x", {2, 2}).Output("y").Floats("w", {2, 2}, {0.5f, 5, 1.5f, 10});
  b.Floats("sw", {2}, {0.5f, 5}).Floats("b", {2}, {10, -20}).Int64s("shape", {2, 1});
  b.Node("QuantizeLinear", {"w", "sw"}, {"wq"});
  b.Node("DynamicQuantizeLinear", {"x"}, {"q", "sx", "zx"}).Node("Mul", {"sx", "sw"}, {"scale"});
  b.Node("Div", {"b", "scale"}, {"steps"}).Node("Floor", {"steps"}, {"whole"});
  b.Node("Cast", {"whole"}, {"bq"}).Int("to", 6).Node("Reshape", {"bq", "shape"}, {"br"});
  b.Node("MatMulInteger", {"q", "wq", "zx"}, {"sums"}).Node("Add", {"sums", "br"}, {"all"});
  b.Node("Cast", {"all"}, {"numbers"}).Int("to", 1).Node("Mul", {"numbers", "scale"}, {"y"});
  const ImportResult result = RunImport(b.Bytes());
  ASSERT_TRUE(result.graph.ok()) << result.Text();
  EXPECT_EQ(result.graph->def(result.graph->outputs()[0].value).op, Op::kMul);
}

// A boolean is no number of the sums.
TEST(ImportMicrosoft, AProductOfIntegersEndsAtACastThatNarrows) {
  ModelBuilder b;
  b.Input("x", {1, 2}).Output("y").Floats("w", {2, 1}, {3, 4}).Floats("one", {}, {1});
  b.Floats("sx", {}, {0.5f}).Floats("scale", {}, {0.5f});
  b.Node("QuantizeLinear", {"w", "one"}, {"wq"}).Node("QuantizeLinear", {"x", "sx"}, {"q"});
  b.Node("MatMulInteger", {"q", "wq"}, {"sums"}).Node("Cast", {"sums"}, {"is_any"}).Int("to", 9);
  b.Node("Cast", {"is_any"}, {"numbers"}).Int("to", 1).Node("Mul", {"numbers", "scale"}, {"y"});
  EXPECT_THAT(ValuesOf(b.Bytes(), {{1, 2}}), Pointwise(FloatNear(1e-6f), {0.5f}));
}

// A scale of one number may have more dimensions than the sums, and gives them to the result.
TEST(ImportMicrosoft, AProductOfIntegersTakesTheDimensionsOfItsScale) {
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{1, 1, 1, 1}}) {
    ModelBuilder b;
    b.Input("x", {1, 2}).Output("y").Floats("w", {2, 1}, {3, 4}).Floats("one", {}, {1});
    b.Floats("sx", {}, {0.5f}).Floats("scale", shape, {0.5f});
    b.Node("QuantizeLinear", {"w", "one"}, {"wq"}).Node("QuantizeLinear", {"x", "sx"}, {"q"});
    b.Node("MatMulInteger", {"q", "wq"}, {"sums"}).Node("Cast", {"sums"}, {"numbers"}).Int("to", 1);
    b.Node("Mul", {"numbers", "scale"}, {"y"});
    const std::vector<Tensor> y = Evaluate(b.Bytes(), {{1, 2}});
    ASSERT_EQ(y.size(), 1u);
    EXPECT_EQ(y[0].shape(), shape.size() > 2 ? shape : Shape({1, 1}));
    EXPECT_THAT(y[0].ToFloats(), Pointwise(FloatNear(1e-6f), {11.0f}));
  }
}

// A scale may itself be stored as integers.
TEST(ImportMicrosoft, AProductOfIntegersTakesNoStoredScale) {
  ModelBuilder b;
  b.Input("x", {1, 2}).Output("y").Floats("w", {2, 1}, {3, 4}).Floats("one", {}, {1});
  b.Floats("two", {}, {2}).Floats("scale", {}, {2}).Node("QuantizeLinear", {"w", "one"}, {"wq"});
  b.Node("QuantizeLinear", {"two", "one"}, {"sq"}).Node("DequantizeLinear", {"sq", "one"}, {"sx"});
  b.Node("QuantizeLinear", {"x", "sx"}, {"q"}).Node("MatMulInteger", {"q", "wq"}, {"sums"});
  b.Node("Cast", {"sums"}, {"numbers"}).Int("to", 1).Node("Mul", {"numbers", "scale"}, {"y"});
  EXPECT_THAT(ValuesOf(b.Bytes(), {{2, 4}}), Pointwise(FloatNear(1e-6f), {22.0f}));
}

TEST(ImportMicrosoft, AProductOfIntegersKeepsTheScaleThatItsOperandStates) {
  ModelBuilder b;
  b.Input("x", {1, 1, 1, 2}).Output("y");
  b.Floats("w", {1, 1, 1, 1}, {3}).Floats("one", {}, {1}).Floats("sx", {}, {0.5f});
  b.Floats("scale", {}, {0.125f});  // 0.5 of x, 0.25 of the weight
  b.Node("QuantizeLinear", {"w", "one"}, {"wq"}).Node("QuantizeLinear", {"x", "sx"}, {"q"});
  b.Node("ConvInteger", {"q", "wq"}, {"sums"}).Node("Cast", {"sums"}, {"numbers"}).Int("to", 1);
  b.Node("Mul", {"scale", "numbers"}, {"y"});
  // 1.1 is stored as 1; 0.75 of that.
  EXPECT_THAT(ValuesOf(b.Bytes(), {{1.1f, 4}}), Pointwise(FloatNear(1e-6f), {0.75f, 3.0f}));
}

TEST(ImportMicrosoft, DynamicProductsAreProductsOfFloats) {
  ModelBuilder b;
  b.Input("x", {1, 2}).Output("y").Floats("w", {2, 1}, {0.5f, 1}).Floats("sw", {}, {0.5f});
  b.Floats("bias", {1}, {10}).Node("QuantizeLinear", {"w", "sw"}, {"wq"});
  b.Node("DynamicQuantizeMatMul", {"x", "wq", "sw", "", "bias"}, {"y"});
  EXPECT_THAT(ValuesOf(InMicrosoft(b), {{0.123f, 0.777f}}),
              Pointwise(FloatNear(1e-6f), {10.8385f}));
}

// C has the scale "alpha / beta * a_scale * b_scale" (ContribOperators.md); beta is 1.
TEST(ImportMicrosoft, QGemmScalesItsBiasByAlpha) {
  const auto model = [](float alpha) {
    ModelBuilder b;
    b.Input("x", {1, 1}).Output("y").Floats("s", {}, {0.5f}).Floats("w", {1, 1}, {1.5f});
    b.Floats("bias", {1}, {10}).Floats("one", {}, {1});
    b.Node("QuantizeLinear", {"x", "s"}, {"q"}).Node("QuantizeLinear", {"w", "s"}, {"p"});
    b.Node("Cast", {"bias"}, {"c"}).Int("to", 6).Node("Cast", {"one"}, {"z"}).Int("to", 2);
    b.Node("QGemm", {"q", "s", "", "p", "s", "", "c"}, {"y"}).Float("alpha", alpha);
    return InMicrosoft(b);
  };
  // 2 * (1 * 1.5) + 10 * (2 * 0.5 * 0.5)
  EXPECT_EQ(ValuesOf(model(2), {{1}}), (std::vector<float>{8}));
  EXPECT_THAT(RunImport(model(0)).Text(), HasSubstr("alpha is 0, a factor of the scale of C"));
}

TEST(ImportMicrosoft, RotaryAttentionIsRefused) {
  ModelBuilder b;
  b.Input("x", {1, 1, 2}).Output("y").Floats("w", {2, 6}, std::vector<float>(12, 1));
  b.Node("Attention", {"x", "w"}, {"y"}).Int("num_heads", 1).Int("do_rotary", 1);
  EXPECT_THAT(RunImport(InMicrosoft(b)).Text(), HasSubstr("do_rotary is 1"));
}

// x rounded to 4 bits in steps of 0.5, by the operator of QONNX.
ModelBuilder QonnxQuant(float bits, bool is_constant) {
  ModelBuilder b;
  b.Output("y").Floats("step", {}, {0.5f}).Floats("zero", {}, {0}).Floats("bits", {}, {bits});
  if (is_constant) {
    b.Input("unused", {5}).Floats("x", {5}, {0.25f, 0.75f, -9, 9, 1.3f});
    b.Node("Quant", {"x", "step", "zero", "bits"}, {"q"}).Int("signed", 1).Int("narrow", 1);
  } else {
    b.Input("x", {5});
    b.Node("Quant", {"x", "step", "zero", "bits"}, {"q"}).Int("signed", 1).Int("narrow", 1);
  }
  auto& nodes = *b.proto().mutable_graph()->mutable_node();
  nodes.Mutable(0)->set_domain("qonnx.custom_op.general");
  if (is_constant) {
    b.Node("Add", {"q", "unused"}, {"y"});
  } else {
    b.Node("Identity", {"q"}, {"y"});
  }
  return b;
}

TEST(ImportQonnx, QuantRoundsToSteps) {
  // Ties go to even; narrow leaves -7 to 7.
  const std::vector<float> expected = {0, 1, -3.5f, 3.5f, 1.5f};
  EXPECT_EQ(ValuesOf(QonnxQuant(4, false).Bytes(), {{0.25f, 0.75f, -9, 9, 1.3f}}), expected);
  EXPECT_EQ(ValuesOf(QonnxQuant(4, true).Bytes(), {{0, 0, 0, 0, 0}}), expected);
}

TEST(ImportQonnx, WidthsAreBounded) {
  EXPECT_THAT(RunImport(QonnxQuant(17, false).Bytes()).Text(), HasSubstr("a width of 17 bits"));
  EXPECT_THAT(RunImport(QonnxQuant(2.5f, false).Bytes()).Text(), HasSubstr("a width of 2.5 bits"));
}

TEST(ImportQonnx, WidthsMayBeIntegers) {
  ModelBuilder b;
  b.Input("x", {2}).Output("y").Floats("step", {}, {0.5f}).Floats("zero", {}, {0});
  b.Int64s("bits", {4}).Node("Quant", {"x", "step", "zero", "bits"}, {"y"});
  EXPECT_EQ(ValuesOf(b.Domain("qonnx.custom_op.general").Bytes(), {{0.3f, 9}}),
            (std::vector<float>{0.5f, 3.5f}));
}

TEST(ImportQonnx, BipolarQuantGivesTheScaleAndItsNegative) {
  ModelBuilder b;
  b.Input("x", {1, 4}).Output("y").Floats("step", {}, {0.5f});
  b.Node("BipolarQuant", {"x", "step"}, {"y"}).Domain("qonnx.custom_op.general");
  EXPECT_EQ(ValuesOf(b.Bytes(), {{-3, -0.01f, 0, 2}}),
            (std::vector<float>{-0.5f, -0.5f, 0.5f, 0.5f}));
}

TEST(ImportQonnx, ChannelsLastTurnsDataAndWeights) {
  // A filter of one row and two columns: channel 0 at the left, channel 1 ten times at the right.
  ModelBuilder b;
  b.Input("x", {1, 1, 3, 2}).Output("y").Floats("w", {1, 1, 2, 2}, {1, 0, 0, 10});
  b.Node("Conv", {"x", "w"}, {"c"}).Domain("qonnx.custom_op.channels_last");
  b.Node("MaxPool", {"c"}, {"y"}).Ints("kernel_shape", {1, 2});
  b.Domain("qonnx.custom_op.channels_last");
  EXPECT_EQ(ValuesOf(b.Bytes(), {{1, 2, 3, 4, 5, 6}}), (std::vector<float>{63}));
}

TEST(ImportMicrosoft, WhatIsNotPlainIsRefusedByName) {
  ModelBuilder masked;
  masked.Input("x", {1, 2, 4})
      .Input("m", {1, 2})
      .Output("y")
      .Floats("w", {4, 12}, std::vector<float>(48, 1));
  masked.Node("Attention", {"x", "w", "", "m"}, {"y"}).Int("num_heads", 2);
  EXPECT_THAT(RunImport(InMicrosoft(masked)).Text(), HasSubstr("an attention mask"));
  ModelBuilder unknown;
  unknown.Input("x", {1}).Output("y").Node("Inverse", {"x"}, {"y"});
  EXPECT_THAT(RunImport(InMicrosoft(unknown)).Text(),
              HasSubstr("the operator of domain 'com.microsoft' is not supported"));
}

TEST(ImportMicrosoft, AttentionOfEqualRowsGivesTheirValue) {
  // Every row of x is the same, so each attends to equal values: the result is the value's row.
  ModelBuilder b;
  b.Input("x", {1, 2, 2}).Output("y");
  b.Floats("w", {2, 6}, {1, 0, 0, 1, 3, 0, 0, 1, 1, 0, 0, 5});
  b.Node("Attention", {"x", "w"}, {"y"}).Int("num_heads", 2);
  EXPECT_THAT(ValuesOf(InMicrosoft(b), {{1, 2, 1, 2}}),
              Pointwise(FloatNear(1e-5f), {3.0f, 10.0f, 3.0f, 10.0f}));
}

}  // namespace
}  // namespace npuc::onnx
