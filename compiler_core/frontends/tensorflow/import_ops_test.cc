// The rules, operator by operator, by what the imported graph computes. The shared suite checks the
// common cases against TensorFlow; here are the modes and errors that it lacks.
#include <string>
#include <utility>
#include <vector>

#include "compiler_core/frontends/tensorflow/test_util.h"
#include "compiler_core/ops/op.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::tf {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

TEST(ImportOpsTest, ElementwiseOperatorsHaveTheirMeaning) {
  const std::vector<std::pair<std::string, float>> unary = {
      {"Abs", 0.5f},           {"Exp", 0.60653066f},     {"Neg", 0.5f},
      {"Relu", 0.f},           {"Relu6", 0.f},           {"Sigmoid", 0.37754067f},
      {"Tanh", -0.46211716f},  {"Square", 0.25f},        {"Reciprocal", -2.f},
      {"Inv", -2.f},           {"Identity", -0.5f},      {"Selu", -0.69175819f},
      {"StopGradient", -0.5f}, {"CheckNumerics", -0.5f}, {"Snapshot", -0.5f},
      {"Erf", -0.52049988f},   {"Erfc", 1.52049988f}};
  for (const auto& [op, expected] : unary) {
    GraphDefBuilder b;
    b.Placeholder("x", {1}).Node("y", op, {"x"});
    EXPECT_THAT(Compute(b, {1}, {-0.5f}).values, ElementsAre(FloatNear(expected, 1e-6f))) << op;
  }
  const std::vector<std::pair<std::string, float>> binary = {
      {"Add", 7.f},     {"AddV2", 7.f},
      {"Sub", 1.f},     {"Mul", 12.f},
      {"Div", 4.f / 3}, {"RealDiv", 4.f / 3},
      {"Maximum", 4.f}, {"Minimum", 3.f},
      {"Pow", 64.f},    {"SquaredDifference", 1.f},
      {"AddN", 7.f}};
  for (const auto& [op, expected] : binary) {
    GraphDefBuilder b;
    b.Placeholder("x", {1}).Floats("c", {1}, {3}).Node("y", op, {"x", "c"});
    EXPECT_THAT(Compute(b, {1}, {4}).values, ElementsAre(FloatNear(expected, 1e-5f))) << op;
  }
}

// Values of TensorFlow's own tests of these operators (fake_quant_ops_test.cc).
TEST(ImportOpsTest, FakeQuantizationMovesTheRangeUntilItHoldsZero) {
  const std::vector<float> x = {-10.1f, -10.0f, -9.9f, -9.75f, 53.75f, 53.8f};
  GraphDefBuilder args;
  args.Placeholder("x", {6}).Node("y", "FakeQuantWithMinMaxArgs", {"x"});
  args.Float("min", -10.0f).Float("max", 53.75f);
  EXPECT_THAT(Compute(args, {6}, x).values,
              Pointwise(FloatNear(1e-5f), {-10.0f, -10.0f, -10.0f, -9.75f, 53.75f, 53.75f}));
  GraphDefBuilder nudged;
  nudged.Placeholder("x", {6}).Floats("min", {}, {-0.1f}).Floats("max", {}, {63.4f});
  nudged.Node("y", "FakeQuantWithMinMaxVars", {"x", "min", "max"}).Bool("narrow_range", true);
  EXPECT_THAT(Compute(nudged, {6}, {-0.1f, 0.0f, 0.1f, 0.25f, 63.5f, 63.6f}).values,
              Pointwise(FloatNear(1e-5f), {0.0f, 0.0f, 0.0f, 0.25f, 63.5f, 63.5f}));
  GraphDefBuilder channels;
  channels.Placeholder("x", {1, 2}).Floats("min", {2}, {-1, -2}).Floats("max", {2}, {2, 1});
  channels.Node("y", "FakeQuantWithMinMaxVarsPerChannel", {"x", "min", "max"}).Int("num_bits", 2);
  EXPECT_THAT(Compute(channels, {1, 2}, {1.4f, -1.6f}).values, ElementsAre(1, -2));
}

TEST(ImportOpsTest, FakeQuantizationRefusesRangesWithoutZero) {
  GraphDefBuilder b;
  b.Placeholder("x", {1}).Node("y", "FakeQuantWithMinMaxArgs", {"x"});
  b.Float("min", 1.0f).Float("max", 6.0f);
  EXPECT_THAT(ErrorOf(b, {1}), HasSubstr("a range from 1 to 6"));
  GraphDefBuilder wide;
  wide.Placeholder("x", {1}).Node("y", "FakeQuantWithMinMaxArgs", {"x"}).Int("num_bits", 17);
  EXPECT_THAT(ErrorOf(wide, {1}), HasSubstr("17 bits"));
  GraphDefBuilder scalar;
  scalar.Placeholder("x", {}).Floats("min", {0}, {}).Floats("max", {0}, {});
  scalar.Node("y", "FakeQuantWithMinMaxVarsPerChannel", {"x", "min", "max"});
  EXPECT_THAT(ErrorOf(scalar, {}), HasSubstr("as long as the last dimension"));
}

TEST(ImportOpsTest, MatMulTransposes) {
  GraphDefBuilder b;
  b.Placeholder("x", {2, 1}).Floats("w", {3, 2}, {1, 2, 3, 4, 5, 6});
  b.Node("y", "MatMul", {"x", "w"}).Bool("transpose_a", true).Bool("transpose_b", true);
  EXPECT_THAT(Compute(b, {2, 1}, {1, 10}).values, ElementsAre(21, 43, 65));
  GraphDefBuilder batch;
  batch.Placeholder("x", {2, 1, 2}).Floats("w", {2, 1}, {1, 2});
  batch.Node("y", "BatchMatMulV2", {"x", "w"});
  EXPECT_THAT(Compute(batch, {2, 1, 2}, {1, 2, 3, 4}).values, ElementsAre(5, 11));
}

TEST(ImportOpsTest, BiasAddInBothLayouts) {
  GraphDefBuilder b;
  b.Placeholder("x", {1, 2, 1, 2}).Floats("b", {2}, {10, 20});
  b.Node("y", "BiasAdd", {"x", "b"}).String("data_format", "NCHW");
  EXPECT_THAT(Compute(b, {1, 2, 1, 2}, {1, 2, 3, 4}).values, ElementsAre(11, 12, 23, 24));
  GraphDefBuilder bad;
  bad.Placeholder("x", {1, 3}).Floats("b", {2}, {10, 20}).Node("y", "BiasAdd", {"x", "b"});
  EXPECT_THAT(ErrorOf(bad, {1, 3}), HasSubstr("f32[1,3] and the bias f32[2]"));
}

TEST(ImportOpsTest, NchwConvolutionEqualsNhwc) {
  const std::vector<float> kernel = {1, 2, 3, 4, 5, 6, 7, 8};  // [2,2,2,1]
  GraphDefBuilder nhwc;
  nhwc.Placeholder("x", {1, 3, 3, 2}).Floats("k", {2, 2, 2, 1}, kernel);
  nhwc.Node("y", "Conv2D", {"x", "k"}).Ints("strides", {1, 2, 1, 1}).String("padding", "SAME");
  GraphDefBuilder nchw;
  nchw.Placeholder("x", {1, 2, 3, 3}).Floats("k", {2, 2, 2, 1}, kernel);
  nchw.Node("y", "Conv2D", {"x", "k"}).Ints("strides", {1, 1, 2, 1}).String("padding", "SAME");
  nchw.String("data_format", "NCHW");
  std::vector<float> in_nhwc(18);
  std::vector<float> in_nchw(18);
  for (int i = 0; i < 9; ++i) {
    for (int c = 0; c < 2; ++c) in_nhwc[i * 2 + c] = in_nchw[c * 9 + i] = static_cast<float>(i - c);
  }
  const Computed a = Compute(nhwc, {1, 3, 3, 2}, in_nhwc);
  const Computed b = Compute(nchw, {1, 2, 3, 3}, in_nchw);
  EXPECT_EQ(a.shape, (Shape{1, 2, 3, 1}));
  EXPECT_EQ(b.shape, (Shape{1, 1, 2, 3}));
  EXPECT_EQ(a.values, b.values);
  const ImportResult result = RunImport(nchw.Bytes(), Options({{"x", {1, 2, 3, 3}}}, {"y"}));
  EXPECT_EQ(result.CountOf(DiagnosticKind::kLayoutTransposed), 1);
}

TEST(ImportOpsTest, ExplicitPaddings) {
  GraphDefBuilder b;
  b.Placeholder("x", {1, 1, 2, 1}).Floats("k", {1, 1, 1, 1}, {2});
  b.Node("y", "Conv2D", {"x", "k"}).Ints("strides", {1, 1, 1, 1}).String("padding", "EXPLICIT");
  b.Ints("explicit_paddings", {0, 0, 0, 0, 1, 2, 0, 0});
  EXPECT_THAT(Compute(b, {1, 1, 2, 1}, {3, 4}).values, ElementsAre(0, 6, 8, 0, 0));
}

TEST(ImportOpsTest, PoolsInBothLayouts) {
  for (const bool is_nhwc : {true, false}) {
    for (const char* op : {"MaxPool", "AvgPool"}) {
      const Shape shape = is_nhwc ? Shape{1, 2, 2, 1} : Shape{1, 1, 2, 2};
      const std::vector<int64_t> window =
          is_nhwc ? std::vector<int64_t>{1, 2, 1, 1} : std::vector<int64_t>{1, 1, 2, 1};
      GraphDefBuilder b;
      b.Placeholder("x", shape).Node("y", op, {"x"}).Ints("ksize", window);
      b.Ints("strides", window).String("padding", "VALID");
      b.String("data_format", is_nhwc ? "NHWC" : "NCHW");
      const bool is_max = std::string(op) == "MaxPool";
      EXPECT_THAT(Compute(b, shape, {1, 2, 5, 4}).values,
                  ElementsAre(is_max ? 5 : 3, is_max ? 4 : 3))
          << op << is_nhwc;
    }
  }
}

TEST(ImportOpsTest, BatchNormInInferenceOnly) {
  for (const char* op : {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"}) {
    GraphDefBuilder b;
    b.Placeholder("x", {1, 2, 1, 1}).Floats("scale", {2}, {2, 3}).Floats("offset", {2}, {1, 0});
    b.Floats("mean", {2}, {1, 1}).Floats("variance", {2}, {3, 8});
    b.Node("y", op, {"x", "scale", "offset", "mean", "variance"}).Float("epsilon", 1);
    b.Bool("is_training", false).String("data_format", "NCHW");
    EXPECT_THAT(Compute(b, {1, 2, 1, 1}, {5, 7}).values, ElementsAre(5, 6)) << op;
  }
  GraphDefBuilder b;
  b.Placeholder("x", {1, 1, 1, 2}).Floats("v", {2}, {2, 3});
  b.Node("y", "FusedBatchNorm", {"x", "v", "v", "v", "v"});
  EXPECT_THAT(ErrorOf(b, {1, 1, 1, 2}), HasSubstr("is_training is true"));
}

// SpaceToBatchND, convolution, BatchToSpaceND: one node with dilations.
TEST(ImportOpsTest, DilatedConvolutionIsOneNode) {
  GraphDefBuilder b;
  b.Placeholder("x", {1, 5, 5, 1}).Floats("k", {2, 2, 1, 1}, {1, 10, 100, 1000});
  b.Int32s("block", {2}, {2, 2}).Int32s("pad", {2, 2}, {0, 1, 0, 1});
  b.Int32s("crop", {2, 2}, {0, 1, 0, 1});
  b.Node("s2b", "SpaceToBatchND", {"x", "block", "pad"});
  b.Node("conv", "Conv2D", {"s2b", "k"}).Ints("strides", {1, 1, 1, 1}).String("padding", "VALID");
  b.Node("y", "BatchToSpaceND", {"conv", "block", "crop"});
  std::vector<float> x(25);
  for (int i = 0; i < 25; ++i) x[static_cast<size_t>(i)] = static_cast<float>(i);
  const CompileOptions options = Options({{"x", {1, 5, 5, 1}}}, {"y"});
  const ImportResult result = RunImport(b.Bytes(), options);
  ASSERT_TRUE(result.graph.ok()) << result.Text();
  EXPECT_EQ(result.graph->node_count(), 3);  // input, weight, convolution
  EXPECT_EQ(result.graph->def(result.graph->outputs()[0].value).source.name, "conv");
  const Computed r = Compute(b, {1, 5, 5, 1}, x);
  EXPECT_EQ(r.shape, (Shape{1, 3, 3, 1}));
  EXPECT_EQ(r.values[0], 0 + 10 * 2 + 100 * 10 + 1000 * 12);
  // Asked for from outside, the convolution in the middle is computed as written.
  const Computed middle = Compute(b, {1, 5, 5, 1}, x, "conv");
  EXPECT_EQ(middle.shape, (Shape{4, 2, 2, 1}));
  EXPECT_EQ(middle.values[0], r.values[0]);
}

TEST(ImportOpsTest, SpaceToBatchAloneAndBack) {
  GraphDefBuilder b;
  b.Placeholder("x", {1, 3, 2, 1}).Int32s("block", {2}, {2, 2});
  b.Int32s("pad", {2, 2}, {1, 0, 0, 0}).Node("s2b", "SpaceToBatchND", {"x", "block", "pad"});
  b.Node("y", "BatchToSpaceND", {"s2b", "block", "pad"});
  EXPECT_THAT(Compute(b, {1, 3, 2, 1}, {1, 2, 3, 4, 5, 6}, "s2b").values,
              ElementsAre(0, 3, 0, 4, 1, 5, 2, 6));
  EXPECT_THAT(Compute(b, {1, 3, 2, 1}, {1, 2, 3, 4, 5, 6}).values, ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(ImportOpsTest, ReshapesSqueezesAndExpands) {
  GraphDefBuilder b;
  b.Placeholder("x", {2, 3}).Int32s("shape", {3}, {3, -1, 1}).Node("y", "Reshape", {"x", "shape"});
  EXPECT_EQ(Compute(b, {2, 3}, {1, 2, 3, 4, 5, 6}).shape, (Shape{3, 2, 1}));
  b.Node("s", "Squeeze", {"y"}).Ints("squeeze_dims", {-1});
  EXPECT_EQ(Compute(b, {2, 3}, {1, 2, 3, 4, 5, 6}, "s").shape, (Shape{3, 2}));
  b.Int32s("axis", {}, {-1}).Node("e", "ExpandDims", {"s", "axis"});
  EXPECT_EQ(Compute(b, {2, 3}, {1, 2, 3, 4, 5, 6}, "e").shape, (Shape{3, 2, 1}));
  GraphDefBuilder bad;
  bad.Placeholder("x", {2, 3}).Int32s("shape", {2}, {4, -1}).Node("y", "Reshape", {"x", "shape"});
  EXPECT_THAT(ErrorOf(bad, {2, 3}), HasSubstr("f32[2,3] does not reshape to [4,-1]"));
  GraphDefBuilder dynamic;
  dynamic.Placeholder("x", {2}).Node("y", "Reshape", {"x", "x"});
  EXPECT_THAT(ErrorOf(dynamic, {2}), HasSubstr("the shape (operand 1, from 'x') depends on"));
}

// x.reshape([shape(x)[0] * 2, -1]) as Keras writes it.
TEST(ImportOpsTest, ShapeArithmeticIsDoneAtImport) {
  GraphDefBuilder b;
  b.Placeholder("x", {-1, 4}).Node("shape", "Shape", {"x"});
  b.Int32s("zero", {1}, {0}).Int32s("one", {1}, {1}).Int32s("two", {}, {2});
  b.Int32s("minus", {}, {-1});
  b.Node("batch", "StridedSlice", {"shape", "zero", "one", "one"}).Int("shrink_axis_mask", 1);
  b.Node("rows", "Mul", {"batch", "two"}).Node("new", "Pack", {"rows", "minus"}).Int("axis", 0);
  b.Node("y", "Reshape", {"x", "new"});
  const ImportResult result = RunImport(b.Bytes(), Options({{"x", {3, 4}}}, {"y"}));
  ASSERT_TRUE(result.graph.ok()) << result.Text();
  EXPECT_EQ(result.graph->node_count(), 2);
  EXPECT_EQ(result.graph->type(result.graph->outputs()[0].value).shape, (Shape{6, 2}));
}

TEST(ImportOpsTest, CompileTimeOperators) {
  GraphDefBuilder b;
  b.Placeholder("x", {4}).Int32s("a", {}, {-7}).Int32s("b", {}, {2}).Int32s("n", {}, {0});
  b.Node("div", "FloorDiv", {"a", "b"}).Node("mod", "FloorMod", {"a", "b"});
  b.Node("less", "Less", {"a", "b"}).Node("pick", "Select", {"less", "div", "mod"});
  b.Node("range", "Range", {"pick", "n", "mod"}).Node("f", "Cast", {"range"}).Type("DstT", 1);
  b.Node("y", "Add", {"x", "f"});
  EXPECT_THAT(Compute(b, {4}, {0, 0, 0, 0}).values, ElementsAre(-4, -3, -2, -1));
  GraphDefBuilder zero;
  zero.Int32s("a", {}, {1}).Int32s("n", {}, {0}).Node("y", "FloorDiv", {"a", "n"});
  EXPECT_THAT(RunImport(zero.Bytes(), Options({}, {"y"})).Text(), HasSubstr("by zero"));
  GraphDefBuilder endless;
  endless.Int32s("a", {}, {1}).Int32s("n", {}, {0}).Node("y", "Range", {"a", "n", "n"});
  EXPECT_THAT(RunImport(endless.Bytes(), Options({}, {"y"})).Text(), HasSubstr("has no end"));
  GraphDefBuilder runtime;
  runtime.Placeholder("x", {1}).Node("y", "Greater", {"x", "x"});
  EXPECT_TRUE(RunImport(runtime.Bytes(), Options({{"x", {1}}}, {"y"})).graph.ok());
}

// Dropout as TensorFlow 1 builds it, with a keep probability.
GraphDefBuilder Dropout(float keep, const Shape& shape = {1, 4}) {
  GraphDefBuilder b;
  b.Placeholder("x", shape)
      .Floats("keep", {}, {keep})
      .Floats("min", {}, {0})
      .Floats("max", {}, {1});
  b.Node("shape", "Shape", {"x"}).Node("range", "Sub", {"max", "min"});
  b.Node("random", "RandomUniform", {"shape"}).Node("scaled", "Mul", {"random", "range"});
  b.Node("uniform", "Add", {"scaled", "min"}).Node("sum", "AddV2", {"keep", "uniform"});
  b.Node("mask", "Floor", {"sum"}).Node("kept", "RealDiv", {"x", "keep"});
  b.Node("y", "Mul", {"kept", "mask"});
  return b;
}

TEST(ImportOpsTest, DropoutThatKeepsAllIsAnIdentity) {
  EXPECT_THAT(Compute(Dropout(1), {1, 4}, {1, -2, 3, 4}).values, ElementsAre(1, -2, 3, 4));
  const std::string text = RunImport(Dropout(0.5f).Bytes(), Options({{"x", {1, 4}}}, {"y"})).Text();
  EXPECT_THAT(text, HasSubstr("node 'random' (RandomUniform): no core computes random numbers; "
                              "where it is dropout, give with CONST_INPUTS its keep probability "
                              "as 1, or its rate as 0 and the factor of what it keeps as 1"));
  const std::string raw = RunImport(Dropout(1).Bytes(), Options({{"x", {1, 4}}}, {"sum"})).Text();
  EXPECT_THAT(raw, HasSubstr("no core computes random numbers"));
}

// Dropout as TensorFlow 2 builds it: nn_ops.py compares random numbers with the rate, and picks or
// multiplies what it keeps.
GraphDefBuilder DropoutByRate(float rate, bool picks, const Shape& shape) {
  GraphDefBuilder b;
  b.Placeholder("x", shape).Floats("rate", {}, {rate}).Floats("factor", {}, {1 / (1 - rate)});
  b.Floats("none", {}, {0}).Node("shape", "Shape", {"x"}).Node("scaled", "Mul", {"x", "factor"});
  b.Node("random", "RandomUniform", {"shape"}).Node("keep", "GreaterEqual", {"random", "rate"});
  if (picks) {
    b.Node("y", "SelectV2", {"keep", "scaled", "none"});
  } else {
    b.Node("mask", "Cast", {"keep"}).Type("DstT", 1).Node("y", "Mul", {"scaled", "mask"});
  }
  return b;
}

TEST(ImportOpsTest, DropoutOfRateZeroIsAnIdentity) {
  for (const bool picks : {false, true}) {
    EXPECT_THAT(Compute(DropoutByRate(0, picks, {1, 4}), {1, 4}, {1, -2, 3, 4}).values,
                ElementsAre(1, -2, 3, 4));
    // Following the advice.
    const std::string trained = DropoutByRate(0.5f, picks, {1, 4}).Bytes();
    CompileOptions options = Options({{"x", {1, 4}}}, {"y"});
    EXPECT_THAT(RunImport(trained, options).Text(), HasSubstr("its rate as 0 and the factor"));
    options.const_inputs = {{"rate", {0}, false, true}, {"factor", {1}, false, true}};
    const ImportResult kept = RunImport(trained, options);
    ASSERT_TRUE(kept.graph.ok()) << kept.Text();
  }
}

TEST(ImportOpsTest, DropoutThatKeepsAllMayBeOfAnySize) {
  const Shape large = {1, 1 << 21};
  for (const bool picks : {false, true}) {
    const ImportResult result =
        RunImport(DropoutByRate(0, picks, large).Bytes(), Options({{"x", large}}, {"y"}));
    EXPECT_TRUE(result.graph.ok()) << result.Text();
  }
  const ImportResult by_keep = RunImport(Dropout(1, large).Bytes(), Options({{"x", large}}, {"y"}));
  EXPECT_TRUE(by_keep.graph.ok()) << by_keep.Text();
}

TEST(ImportOpsTest, AMaskOfOnesIsThereWhereItIsRead) {
  GraphDefBuilder b = DropoutByRate(0, /*picks=*/false, {1, 4});
  b.Node("z", "Add", {"mask", "x"});
  const ImportResult result = RunImport(b.Bytes(), Options({{"x", {1, 4}}}, {"z"}));
  ASSERT_TRUE(result.graph.ok()) << result.Text();
  const auto z = RunReference(*result.graph, {Tensor::FromFloats({1, 4}, {1, -2, 3, 4})});
  ASSERT_TRUE(z.ok()) << z.status();
  EXPECT_THAT((*z)[0].ToFloats(), ElementsAre(2, -1, 4, 5));
}

TEST(ImportOpsTest, AnOperatorThatBeginsOtherwiseIsNotSuggested) {
  GraphDefBuilder b;
  b.Placeholder("x", {1}).Node("y", "Assign", {"x"});
  EXPECT_THAT(RunImport(b.Bytes(), Options({{"x", {1}}}, {"y"})).Text(),
              Not(HasSubstr("the nearest supported one")));
}

TEST(ImportOpsTest, StridedSliceMasks) {
  // x[..., newaxis, ::-1][:, 1:] and friends over x [2,3].
  const auto slice = [](std::vector<int32_t> begin, std::vector<int32_t> end,
                        std::vector<int32_t> strides,
                        const std::vector<std::pair<std::string, int64_t>>& masks) {
    const Shape count = {static_cast<int64_t>(begin.size())};
    GraphDefBuilder b;
    b.Placeholder("x", {2, 3}).Int32s("b", count, begin).Int32s("e", count, end);
    b.Int32s("s", count, strides).Node("y", "StridedSlice", {"x", "b", "e", "s"});
    for (const auto& [name, mask] : masks) b.Int(name, mask);
    return Compute(b, {2, 3}, {1, 2, 3, 4, 5, 6});
  };
  Computed r = slice({0, 1}, {2, 3}, {1, 1}, {});
  EXPECT_EQ(r.shape, (Shape{2, 2}));
  EXPECT_THAT(r.values, ElementsAre(2, 3, 5, 6));
  r = slice({1, 0}, {2, 0}, {1, -1}, {{"begin_mask", 2}, {"end_mask", 2}, {"shrink_axis_mask", 1}});
  EXPECT_EQ(r.shape, (Shape{3}));
  EXPECT_THAT(r.values, ElementsAre(6, 5, 4));
  r = slice({0, 0, -2}, {0, 0, 99}, {1, 1, 1}, {{"ellipsis_mask", 1}, {"new_axis_mask", 2}});
  EXPECT_EQ(r.shape, (Shape{2, 1, 2}));
  EXPECT_THAT(r.values, ElementsAre(2, 3, 5, 6));
  r = slice({-1}, {0}, {1}, {{"shrink_axis_mask", 1}});
  EXPECT_THAT(r.values, ElementsAre(4, 5, 6));
}

TEST(ImportOpsTest, SplitsPacksAndConcats) {
  GraphDefBuilder b;
  b.Placeholder("x", {2, 3}).Int32s("sizes", {2}, {-1, 2}).Int32s("axis", {}, {1});
  b.Node("s", "SplitV", {"x", "sizes", "axis"});
  EXPECT_THAT(Compute(b, {2, 3}, {1, 2, 3, 4, 5, 6}, "s").values, ElementsAre(1, 4));
  EXPECT_THAT(Compute(b, {2, 3}, {1, 2, 3, 4, 5, 6}, "s:1").values, ElementsAre(2, 3, 5, 6));
  b.Node("u", "Unpack", {"x"}).Int("num", 2).Node("p", "Pack", {"u:1", "u"}).Int("axis", -1);
  EXPECT_THAT(Compute(b, {2, 3}, {1, 2, 3, 4, 5, 6}, "p").values, ElementsAre(4, 1, 5, 2, 6, 3));
  b.Node("c", "ConcatV2", {"s:1", "x", "axis"});
  EXPECT_THAT(Compute(b, {2, 3}, {1, 2, 3, 4, 5, 6}, "c").values,
              ElementsAre(2, 3, 1, 2, 3, 5, 6, 4, 5, 6));
}

TEST(ImportOpsTest, PadsTransposesAndReverses) {
  GraphDefBuilder b;
  b.Placeholder("x", {1, 2}).Int32s("pad", {2, 2}, {1, 0, 0, 1}).Floats("v", {}, {9});
  b.Node("p", "PadV2", {"x", "pad", "v"});
  EXPECT_THAT(Compute(b, {1, 2}, {1, 2}, "p").values, ElementsAre(9, 9, 9, 1, 2, 9));
  b.Int32s("perm", {2}, {1, 0}).Node("t", "Transpose", {"p", "perm"});
  EXPECT_THAT(Compute(b, {1, 2}, {1, 2}, "t").values, ElementsAre(9, 1, 9, 2, 9, 9));
  b.Int32s("axes", {1}, {-1}).Node("r", "ReverseV2", {"x", "axes"});
  EXPECT_THAT(Compute(b, {1, 2}, {1, 2}, "r").values, ElementsAre(2, 1));
  b.Node("y", "MirrorPad", {"x", "pad"}).String("mode", "WRAP");
  EXPECT_THAT(ErrorOf(b, {1, 2}), HasSubstr("attribute 'mode' is 'WRAP'"));
}

TEST(ImportOpsTest, Reductions) {
  const std::vector<std::pair<std::string, std::vector<float>>> cases = {
      {"Sum", {6, 15}}, {"Mean", {2, 5}}, {"Max", {3, 6}}, {"Min", {1, 4}}};
  for (const auto& [op, expected] : cases) {
    GraphDefBuilder b;
    b.Placeholder("x", {2, 3}).Int32s("axes", {1}, {-1}).Node("y", op, {"x", "axes"});
    b.Bool("keep_dims", true);
    const Computed r = Compute(b, {2, 3}, {1, 2, 3, 4, 5, 6});
    EXPECT_EQ(r.shape, (Shape{2, 1})) << op;
    EXPECT_EQ(r.values, expected) << op;
  }
  GraphDefBuilder bad;
  bad.Placeholder("x", {2, 3}).Int32s("axes", {1}, {2}).Node("y", "Sum", {"x", "axes"});
  EXPECT_THAT(ErrorOf(bad, {2, 3}), HasSubstr("axis 2 is outside a tensor of rank 2"));
}

TEST(ImportOpsTest, SoftmaxAndLogSoftmax) {
  GraphDefBuilder b;
  b.Placeholder("x", {1, 2}).Node("y", "Softmax", {"x"}).Node("l", "LogSoftmax", {"x"});
  EXPECT_THAT(Compute(b, {1, 2}, {0, 0}).values, ElementsAre(0.5f, 0.5f));
  EXPECT_THAT(Compute(b, {1, 2}, {0, 0}, "l").values,
              ElementsAre(FloatNear(-0.693147f, 1e-6f), FloatNear(-0.693147f, 1e-6f)));
}

TEST(ImportOpsTest, DefaultsShapesAndFills) {
  GraphDefBuilder b;
  b.Placeholder("x", {2}).Floats("d", {2}, {1, 2});
  b.Node("with", "PlaceholderWithDefault", {"d"}).Type("dtype", kDtFloat).Dims("shape", {2});
  b.Node("zeros", "ZerosLike", {"x"}).Node("ones", "OnesLike", {"x"});
  b.Node("y", "AddN", {"x", "with", "zeros", "ones"});
  EXPECT_THAT(Compute(b, {2}, {10, 20}).values, ElementsAre(12, 23));
  GraphDefBuilder fill;
  fill.Placeholder("x", {2}).Node("shape", "Shape", {"x"}).Floats("v", {}, {3});
  fill.Node("f", "Fill", {"shape", "v"}).Int32s("wide", {2}, {2, 2});
  fill.Node("m", "Mul", {"x", "f"}).Node("y", "BroadcastTo", {"m", "wide"});
  EXPECT_THAT(Compute(fill, {2}, {1, 2}).values, ElementsAre(3, 6, 3, 6));
}

TEST(ImportOpsTest, ListDiffOfKnownNumbers) {
  GraphDefBuilder b;
  b.Placeholder("x", {2, 3}).Int32s("all", {3}, {0, 1, 2}).Int32s("some", {2}, {0, 2});
  b.Node("axes", "ListDiff", {"all", "some"});
  b.Node("y", "Sum", {"x", "axes"}).Bool("keep_dims", false);
  EXPECT_THAT(Compute(b, {2, 3}, {1, 2, 3, 4, 5, 6}).values, ElementsAre(6, 15));
  GraphDefBuilder open;
  open.Placeholder("x", {2}).Placeholder("n", {2}, kDtInt32).Int32s("some", {1}, {0});
  open.Node("y", "ListDiff", {"n", "some"});
  EXPECT_FALSE(RunImport(open.Bytes(), Options({{"n", {2}}}, {"y"})).graph.ok());
}

TEST(ImportOpsTest, PositionsHaveAnIntegerType) {
  for (const int type : {kDtString, kDtFloat, 12345}) {
    GraphDefBuilder b;
    b.Placeholder("x", {2, 3}).Int32s("all", {3}, {0, 1, 2}).Int32s("some", {1}, {0});
    b.Node("l", "ListDiff", {"all", "some"}).Type("out_idx", type);
    b.Node("y", "Sum", {"x", "l"}).Bool("keep_dims", false);
    EXPECT_THAT(ErrorOf(b, {2, 3}), HasSubstr("attribute 'out_idx' is"));
    GraphDefBuilder c;
    c.Placeholder("x", {2, 3}).Int32s("axis", {}, {1});
    c.Node("y", "ArgMax", {"x", "axis"}).Type("output_type", type);
    EXPECT_THAT(ErrorOf(c, {2, 3}), HasSubstr("attribute 'output_type' is"));
  }
}

TEST(ImportOpsTest, LogicalXor) {
  GraphDefBuilder b;
  b.Placeholder("x", {4}).Floats("a", {4}, {0, 1, 0, 1}).Floats("half", {}, {0.5f});
  b.Node("p", "Greater", {"x", "half"}).Node("q", "Greater", {"a", "half"});
  b.Node("r", "LogicalXor", {"p", "q"}).Node("y", "Cast", {"r"});
  b.Type("SrcT", kDtBool).Type("DstT", kDtFloat);
  EXPECT_THAT(Compute(b, {4}, {0, 0, 1, 1}).values, ElementsAre(0, 1, 1, 0));
}

TEST(ImportOpsTest, WrongOperandCountsAndAttributes) {
  GraphDefBuilder b;
  b.Placeholder("x", {2}).Node("y", "Relu", {"x", "x"});
  EXPECT_THAT(ErrorOf(b, {2}), HasSubstr("the node has 2 operands; Relu takes 1"));
  GraphDefBuilder c;
  c.Placeholder("x", {1, 2}).Node("y", "MatMul", {"x", "x"}).Int("transpose_b", 1);
  EXPECT_THAT(ErrorOf(c, {1, 2}), HasSubstr("attribute 'transpose_b' is an integer"));
  GraphDefBuilder d;
  d.Placeholder("x", {1, 2, 2, 1}).Node("y", "MaxPool", {"x"}).Ints("ksize", {1, 2, 2, 2});
  d.Ints("strides", {1, 1, 1, 1}).String("padding", "SAME");
  EXPECT_THAT(ErrorOf(d, {1, 2, 2, 1}), HasSubstr("batch and channel entries must be 1"));
  GraphDefBuilder e;
  e.Placeholder("x", {1, 2, 2, 1}).Floats("k", {1, 1, 1, 1}, {1});
  e.Node("y", "Conv2D", {"x", "k"}).Ints("strides", {1, 0, 1, 1}).String("padding", "SAME");
  EXPECT_THAT(ErrorOf(e, {1, 2, 2, 1}), HasSubstr("attribute 'strides' holds 0"));
}

}  // namespace
}  // namespace npuc::tf
