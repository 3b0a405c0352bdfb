// Operators of domain ai.onnx.ml; expected values are computed by hand from their definitions.
#include <string>
#include <vector>

#include "compiler_core/frontends/onnx/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "npuc/fe/onnx/model.pb.h"

namespace npuc::onnx {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

// Attribute `name` of the last node, a list of floats.
void AddFloats(ModelBuilder& b, const std::string& name, const std::vector<float>& values) {
  auto& nodes = *b.proto().mutable_graph()->mutable_node();
  auto* attribute = nodes.Mutable(nodes.size() - 1)->add_attribute();
  attribute->set_name(name);
  for (const float value : values) attribute->add_floats(value);
}

std::vector<float> ValuesOf(const ModelBuilder& b, const std::vector<float>& x, size_t output = 0) {
  const std::vector<Tensor> outputs = Evaluate(b.Bytes(), {x});
  return output < outputs.size() ? outputs[output].ToFloats() : std::vector<float>();
}

ModelBuilder Net() {
  ModelBuilder b;
  b.Input("x", {2, 3}).Output("y");
  return b;
}

TEST(ImportMl, ScalerAndNormalizer) {
  ModelBuilder scaler = Net();
  scaler.Node("Scaler", {"x"}, {"y"}).Domain("ai.onnx.ml");
  AddFloats(scaler, "offset", {1, 2, 3});
  AddFloats(scaler, "scale", {2});
  EXPECT_THAT(ValuesOf(scaler, {1, 2, 3, 0, 0, 0}), ElementsAre(0, 0, 0, -2, -4, -6));
  const auto norm = [](const std::string& name) {
    ModelBuilder b = Net();
    b.Node("Normalizer", {"x"}, {"y"}).Domain("ai.onnx.ml").String("norm", name);
    return ValuesOf(b, {3, -4, 0, 0, 2, 0});
  };
  EXPECT_THAT(norm("L2"), Pointwise(FloatNear(1e-6f), {0.6f, -0.8f, 0.0f, 0.0f, 1.0f, 0.0f}));
  EXPECT_THAT(norm("L1"),
              Pointwise(FloatNear(1e-6f), {3.0f / 7, -4.0f / 7, 0.0f, 0.0f, 1.0f, 0.0f}));
  EXPECT_THAT(norm("MAX"), Pointwise(FloatNear(1e-6f), {1.0f, -4.0f / 3, 0.0f, 0.0f, 1.0f, 0.0f}));
}

TEST(ImportMl, LinearModels) {
  ModelBuilder regressor = Net();
  regressor.Node("LinearRegressor", {"x"}, {"y"}).Domain("ai.onnx.ml").Int("targets", 1);
  AddFloats(regressor, "coefficients", {1, 2, 3});
  AddFloats(regressor, "intercepts", {0.5f});
  EXPECT_THAT(ValuesOf(regressor, {1, 1, 1, 0, 1, 0}), ElementsAre(6.5f, 2.5f));

  ModelBuilder classifier;
  classifier.Input("x", {2, 3}).Output("label").Output("map");
  classifier.Node("LinearClassifier", {"x"}, {"label", "scores"}).Domain("ai.onnx.ml");
  classifier.Ints("classlabels_ints", {4, 2}).String("post_transform", "LOGISTIC");
  AddFloats(classifier, "coefficients", {1, 0, 0, 0, 1, 0});
  classifier.Node("ZipMap", {"scores"}, {"map"}).Domain("ai.onnx.ml");
  EXPECT_THAT(ValuesOf(classifier, {2, 0, 0, 0, 2, 0}), ElementsAre(4, 2));
  EXPECT_THAT(ValuesOf(classifier, {2, 0, 0, 0, 2, 0}, 1),
              Pointwise(FloatNear(1e-6f), {0.8807970f, 0.5f, 0.5f, 0.8807970f}));
}

TEST(ImportMl, RefusesByName) {
  ModelBuilder wrong = Net();
  wrong.Node("LinearRegressor", {"x"}, {"y"}).Domain("ai.onnx.ml");
  AddFloats(wrong, "coefficients", {1, 2});
  EXPECT_THAT(RunImport(wrong.Bytes()).Text(), HasSubstr("2 coefficients and 0 intercepts"));
  ModelBuilder trees = Net();
  trees.Node("TreeEnsembleRegressor", {"x"}, {"y"}).Domain("ai.onnx.ml");
  EXPECT_THAT(RunImport(trees.Bytes()).Text(), HasSubstr("TreeEnsembleRegressor"));
}

}  // namespace
}  // namespace npuc::onnx
