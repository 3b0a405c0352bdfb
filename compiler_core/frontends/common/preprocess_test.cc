#include "compiler_core/frontends/common/preprocess.h"

#include <numeric>

#include "compiler_core/ops/op.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::frontend {
namespace {

using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Matcher;
using ::testing::Pointwise;

Matcher<std::vector<float>> IsNear(const std::vector<float>& wanted, float tolerance) {
  return Pointwise(FloatNear(tolerance), wanted);
}

// A model that gives its input.
Graph Same(const Shape& shape, DType dtype = DType::kFloat32) {
  Graph graph;
  const ValueId x = graph.AddInput("x", {dtype, shape});
  graph.AddOutput({"y", graph.AddValue(Op::kIdentity, {x}, {}, {dtype, shape}, {"y", "Identity"})});
  return graph;
}

CompileOptions With(absl::string_view steps) {
  CompileOptions options;
  options.model_name = "m.pb";
  options.preprocess = *PreprocessFromText(steps);
  return options;
}

std::vector<float> Steps(absl::string_view steps, const Shape& image, std::vector<float> values,
                         const Shape& model) {
  Diagnostics diagnostics;
  const absl::StatusOr<Graph> graph = Preprocessed(Same(model), With(steps), diagnostics);
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  EXPECT_EQ(graph->type(graph->inputs()[0]).shape, image);
  const auto results = RunReference(*graph, {Tensor::FromFloats(image, values)});
  EXPECT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(results->front().shape(), model);
  return results->front().ToFloats();
}

std::string Problem(absl::string_view steps, const Graph& model) {
  Diagnostics diagnostics;
  EXPECT_FALSE(Preprocessed(model, With(steps), diagnostics).ok());
  return diagnostics.list().empty() ? "" : diagnostics.list()[0].ToString();
}

TEST(PreprocessTest, TurnsChannelsWhereverTheyLie) {
  EXPECT_THAT(Steps("RGB2BGR", {1, 1, 2, 3}, {1, 2, 3, 4, 5, 6}, {1, 1, 2, 3}),
              IsNear({3, 2, 1, 6, 5, 4}, 0));
  EXPECT_THAT(Steps("BGR2RGB", {1, 3, 1, 2}, {1, 2, 3, 4, 5, 6}, {1, 3, 1, 2}),
              IsNear({5, 6, 3, 4, 1, 2}, 0));
}

TEST(PreprocessTest, GrayHasTheModelsChannels) {
  EXPECT_THAT(Steps("RGB2GRAY", {1, 1, 2, 3}, {10, 0, 0, 0, 10, 0}, {1, 1, 2, 1}),
              IsNear({3, 5.9}, 1e-5));
  EXPECT_THAT(Steps("BGR2GRAY {}", {1, 1, 1, 3}, {10, 0, 0}, {1, 1, 1, 3}),
              IsNear({1.1, 1.1, 1.1}, 1e-5));
}

// By onnxruntime's Resize, opset 13, of half_pixel: rows and columns of 0..15 by means of four.
TEST(PreprocessTest, ResizesToTheModelsShape) {
  std::vector<float> image(16);
  std::iota(image.begin(), image.end(), 0.0F);
  EXPECT_THAT(Steps("RESIZE {bilinear,[1,4,4,1]}", {1, 4, 4, 1}, image, {1, 2, 2, 1}),
              IsNear({2.5, 4.5, 10.5, 12.5}, 1e-5));
  EXPECT_THAT(Steps("RESIZE {nearest,[1,4,4,1]}", {1, 4, 4, 1}, image, {1, 2, 2, 1}),
              IsNear({0, 2, 8, 10}, 0));
}

// (x - mean) / deviation of 1, 2, 3, 4 by numpy.
TEST(PreprocessTest, StandardizesOverAxes) {
  EXPECT_THAT(Steps("STANDARDIZATION {}", {2, 2}, {1, 2, 3, 4}, {2, 2}),
              IsNear({-1.341641, -0.4472136, 0.4472136, 1.341641}, 1e-4));
  EXPECT_THAT(Steps("STANDARDIZATION {[1]}", {2, 2}, {1, 3, 5, 5}, {2, 2}),
              IsNear({-1, 1, 0, 0}, 1e-4));
}

TEST(PreprocessTest, StepsFollowEachOther) {
  EXPECT_THAT(Steps("RESIZE {nearest,[1,1,2,3]}, RGB2BGR, STANDARDIZATION {[3]}", {1, 1, 2, 3},
                    {1, 2, 3, 7, 8, 9}, {1, 1, 1, 3}),
              IsNear({1.224745, 0, -1.224745}, 1e-3));
}

TEST(PreprocessTest, RefusesWhatDoesNotFit) {
  EXPECT_THAT(Problem("RGB2BGR", Same({1, 4, 4, 1})), HasSubstr("it needs 3 channels"));
  EXPECT_THAT(Problem("RESIZE {bilinear,[1,8,8,3]}", Same({1, 4, 4, 1})),
              HasSubstr("its image has the same batch and channels"));
  EXPECT_THAT(Problem("STANDARDIZATION {[4]}", Same({1, 4, 4, 1})),
              HasSubstr("there are fewer axes"));
  EXPECT_THAT(Problem("RGB2BGR", Same({1, 4, 4, 3}, DType::kInt8)), HasSubstr("one of float32"));
  Graph two = Same({1, 4, 4, 3});
  two.AddInput("z", {DType::kFloat32, {1}});
  EXPECT_THAT(Problem("RGB2BGR", two), HasSubstr("the model has 2 inputs"));
}

TEST(PreprocessTest, ReadsAndWritesText) {
  const absl::string_view text =
      "RESIZE {bilinear,[1,448,448,3]}, RGB2BGR, STANDARDIZATION {[1,2]}, BGR2GRAY";
  EXPECT_EQ(TextOf(*PreprocessFromText(text)), text);
  EXPECT_EQ(TextOf(*PreprocessFromText(" resize { Nearest , [2, 3,4] } ,standardization{[]}")),
            "RESIZE {nearest,[2,3,4]}, STANDARDIZATION");
  const auto problem = [](absl::string_view wrong) {
    return std::string(PreprocessFromText(wrong).status().message());
  };
  EXPECT_THAT(problem("RGB2YUV"), HasSubstr("'RGB2YUV' is none of RESIZE, RGB2BGR"));
  EXPECT_THAT(problem(""), HasSubstr("'' is none of"));
  EXPECT_THAT(problem("RESIZE"), HasSubstr("allowed: {bilinear,[1,448,448,3]}"));
  EXPECT_THAT(problem("RESIZE {cubic,[1,2,3]}"), HasSubstr("'{cubic,[1,2,3]}'"));
  EXPECT_THAT(problem("RESIZE {bilinear,[1,0,3]}"), HasSubstr("allowed"));
  EXPECT_THAT(problem("RGB2BGR {1}"), HasSubstr("allowed: {}"));
  EXPECT_THAT(problem("STANDARDIZATION {[9]}"), HasSubstr("axes such as"));
  EXPECT_THAT(problem("STANDARDIZATION {[1]"), HasSubstr("has no '}'"));
  EXPECT_THAT(problem("RGB2BGR {} RGB2BGR"), HasSubstr("a comma is missing"));
}

}  // namespace
}  // namespace npuc::frontend
