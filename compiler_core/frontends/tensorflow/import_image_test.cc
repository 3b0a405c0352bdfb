// Activation functions and image operators that become other operators. TensorFlow's own graphs
// (suite tf_graphs) check the common cases; here are the modes and errors that they lack.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "compiler_core/frontends/tensorflow/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::tf {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;

int Count(const GraphDefBuilder& b, const Shape& shape, Op op) {
  const ImportResult result = RunImport(b.Bytes(), Options({{"x", shape}}, {"y"}));
  EXPECT_TRUE(result.graph.ok()) << result.Text();
  int count = 0;
  if (!result.graph.ok()) return count;
  for (const Node& node : result.graph->nodes()) count += node.op == op ? 1 : 0;
  return count;
}

TEST(ImportActivationTest, FormulasHaveTheirMeaning) {
  const std::vector<std::pair<std::string, float>> cases = {
      {"Elu", std::expm1(-0.5f)},
      {"LeakyRelu", -0.05f},
      {"Softplus", std::log1p(std::exp(-0.5f))},
      {"Softsign", -0.5f / 1.5f},
      {"Expm1", std::expm1(-0.5f)},
      {"Log1p", std::log1p(-0.5f)}};
  for (const auto& [op, expected] : cases) {
    GraphDefBuilder b;
    b.Placeholder("x", {1}).Node("y", op, {"x"});
    if (op == "LeakyRelu") b.Float("alpha", 0.1f);
    EXPECT_THAT(Compute(b, {1}, {-0.5f}).values, ElementsAre(FloatNear(expected, 1e-6f))) << op;
  }
}

TEST(ImportActivationTest, LeakyReluHasTensorFlowsDefaultSlope) {
  GraphDefBuilder b;
  b.Placeholder("x", {2}).Node("y", "LeakyRelu", {"x"});
  EXPECT_THAT(Compute(b, {2}, {-5, 3}).values, ElementsAre(FloatNear(-1, 1e-6f), 3));
}

TEST(ImportActivationTest, ClipsBecomeTheFunctionsThatTheCoreHas) {
  const auto clip = [](float low, float high) {
    GraphDefBuilder b;
    b.Placeholder("x", {3}).Floats("low", {}, {low}).Floats("high", {}, {high});
    b.Node("y", "ClipByValue", {"x", "low", "high"});
    return b;
  };
  EXPECT_THAT(Compute(clip(-1, 2), {3}, {-3, 1, 5}).values, ElementsAre(-1, 1, 2));
  EXPECT_EQ(Count(clip(0, 6), {3}, Op::kRelu6), 1);
  EXPECT_EQ(Count(clip(0, 6), {3}, Op::kMaximum), 0);
  EXPECT_EQ(Count(clip(0, 1), {3}, Op::kRelu), 1);
  GraphDefBuilder wide;
  wide.Placeholder("x", {1}).Floats("low", {2}, {0, 0}).Floats("high", {}, {1});
  wide.Node("y", "ClipByValue", {"x", "low", "high"});
  EXPECT_THAT(ErrorOf(wide, {1}), HasSubstr("bound 1 is f32[2]"));
}

TEST(ImportActivationTest, DivNoNanTakesDivisorsThatAreKnownNotToBeZero) {
  const auto quotient = [](std::vector<float> divisor) {
    GraphDefBuilder b;
    b.Placeholder("x", {2}).Floats("d", {2}, divisor).Node("y", "DivNoNan", {"x", "d"});
    return b;
  };
  EXPECT_THAT(Compute(quotient({2, 4}), {2}, {1, 1}).values, ElementsAre(0.5f, 0.25f));
  EXPECT_THAT(ErrorOf(quotient({2, 0}), {2}), HasSubstr("a divisor of 0"));
}

TEST(ImportImageTest, BlocksInBothLayouts) {
  GraphDefBuilder nhwc;
  nhwc.Placeholder("x", {1, 1, 1, 4}).Node("y", "DepthToSpace", {"x"}).Int("block_size", 2);
  const Computed spread = Compute(nhwc, {1, 1, 1, 4}, {1, 2, 3, 4});
  EXPECT_EQ(spread.shape, (Shape{1, 2, 2, 1}));
  EXPECT_THAT(spread.values, ElementsAre(1, 2, 3, 4));
  GraphDefBuilder nchw;
  nchw.Placeholder("x", {1, 1, 2, 2}).Node("y", "SpaceToDepth", {"x"}).Int("block_size", 2);
  nchw.String("data_format", "NCHW");
  const Computed gathered = Compute(nchw, {1, 1, 2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(gathered.shape, (Shape{1, 4, 1, 1}));
  EXPECT_THAT(gathered.values, ElementsAre(1, 2, 3, 4));
  GraphDefBuilder bad;
  bad.Placeholder("x", {1, 3, 3, 1}).Node("y", "SpaceToDepth", {"x"}).Int("block_size", 2);
  EXPECT_THAT(ErrorOf(bad, {1, 3, 3, 1}), HasSubstr("blocks of 2 do not divide f32[1,3,3,1]"));
}

// Values by hand, from the definition of each mode.
TEST(ImportImageTest, ResizesByEachMode) {
  struct Case {
    const char* op;
    bool align_corners;
    bool half_pixel_centers;
    std::vector<float> expected;
  };
  const std::vector<Case> cases = {{"ResizeBilinear", false, false, {0, 2, 4, 4}},
                                   {"ResizeBilinear", true, false, {0, 4.f / 3, 8.f / 3, 4}},
                                   {"ResizeBilinear", false, true, {0, 1, 3, 4}},
                                   {"ResizeNearestNeighbor", false, false, {0, 0, 4, 4}}};
  for (const Case& c : cases) {
    GraphDefBuilder b;
    b.Placeholder("x", {1, 1, 2, 1}).Int32s("size", {2}, {1, 4});
    b.Node("y", c.op, {"x", "size"}).Bool("align_corners", c.align_corners);
    b.Bool("half_pixel_centers", c.half_pixel_centers);
    const Computed result = Compute(b, {1, 1, 2, 1}, {0, 4});
    EXPECT_EQ(result.shape, (Shape{1, 1, 4, 1}));
    EXPECT_THAT(result.values, ::testing::Pointwise(FloatNear(1e-5f), c.expected)) << c.op;
  }
}

TEST(ImportImageTest, TransposedConvolutionOfNchwAndDilations) {
  // A forward convolution of [1,1,3,1] by kernel {10, 1} with stride 2 gives 1 value; its gradient
  // spreads each value over the kernel.
  GraphDefBuilder b;
  b.Placeholder("x", {1, 1, 1, 2}).Int32s("size", {4}, {1, 1, 1, 4});
  b.Floats("k", {1, 2, 1, 1}, {10, 1});
  b.Node("y", "Conv2DBackpropInput", {"size", "k", "x"}).Ints("strides", {1, 1, 1, 2});
  b.String("padding", "VALID").String("data_format", "NCHW");
  const Computed nchw = Compute(b, {1, 1, 1, 2}, {1, 2});
  EXPECT_EQ(nchw.shape, (Shape{1, 1, 1, 4}));
  EXPECT_THAT(nchw.values, ElementsAre(10, 1, 20, 2));
  GraphDefBuilder dilated;
  dilated.Placeholder("x", {1, 1, 2, 1}).Int32s("size", {4}, {1, 1, 4, 1});
  dilated.Floats("k", {1, 2, 1, 1}, {10, 1});
  dilated.Node("y", "Conv2DBackpropInput", {"size", "k", "x"}).Ints("strides", {1, 1, 1, 1});
  dilated.Ints("dilations", {1, 1, 2, 1}).String("padding", "VALID");
  EXPECT_THAT(Compute(dilated, {1, 1, 2, 1}, {1, 2}).values, ElementsAre(10, 20, 1, 2));
}

TEST(ImportImageTest, MirroredPaddings) {
  for (const bool repeats : {false, true}) {
    GraphDefBuilder b;
    b.Placeholder("x", {3}).Int32s("p", {1, 2}, {2, 1}).Node("y", "MirrorPad", {"x", "p"});
    b.String("mode", repeats ? "SYMMETRIC" : "REFLECT");
    const std::vector<float> values = Compute(b, {3}, {1, 2, 3}).values;
    const std::vector<float> expected =
        repeats ? std::vector<float>{2, 1, 1, 2, 3, 3} : std::vector<float>{3, 2, 1, 2, 3, 2};
    EXPECT_EQ(values, expected);
  }
  GraphDefBuilder far;
  far.Placeholder("x", {3}).Int32s("p", {1, 2}, {3, 0}).Node("y", "MirrorPad", {"x", "p"});
  far.String("mode", "REFLECT");
  EXPECT_THAT(ErrorOf(far, {3}), HasSubstr("a mirror image has at most 2"));
}

}  // namespace
}  // namespace npuc::tf
