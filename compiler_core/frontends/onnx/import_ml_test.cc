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

// Attribute `name` of the last node, a list of strings.
void AddStrings(ModelBuilder& b, const std::string& name, const std::vector<std::string>& values) {
  auto& nodes = *b.proto().mutable_graph()->mutable_node();
  auto* attribute = nodes.Mutable(nodes.size() - 1)->add_attribute();
  attribute->set_name(name);
  for (const std::string& value : values) attribute->add_strings(value);
}

// Two trees on rows of three: x0 <= 1 ? (x1 > 2 ? A : B) : C, and x2 < 0 ? D : E, where a letter
// is node 3, 4, 2 of tree 0, and 1, 2 of tree 1.
void AddTrees(ModelBuilder& b) {
  b.Ints("nodes_treeids", {0, 0, 0, 0, 0, 1, 1, 1}).Ints("nodes_nodeids", {0, 1, 2, 3, 4, 0, 1, 2});
  b.Ints("nodes_featureids", {0, 1, 0, 0, 0, 2, 0, 0});
  b.Ints("nodes_truenodeids", {1, 3, 0, 0, 0, 1, 0, 0});
  b.Ints("nodes_falsenodeids", {2, 4, 0, 0, 0, 2, 0, 0});
  AddFloats(b, "nodes_values", {1, 2, 0, 0, 0, 0, 0, 0});
  AddStrings(b, "nodes_modes",
             {"BRANCH_LEQ", "BRANCH_GT", "LEAF", "LEAF", "LEAF", "BRANCH_LT", "LEAF", "LEAF"});
}

TEST(ImportMl, TreesSumTheScoresOfTheirLeaves) {
  ModelBuilder b;
  b.Input("x", {4, 3}).Output("y");
  b.Node("TreeEnsembleRegressor", {"x"}, {"y"}).Domain("ai.onnx.ml").Int("n_targets", 2);
  AddTrees(b);
  b.Ints("target_treeids", {0, 0, 0, 1, 1, 1}).Ints("target_nodeids", {3, 4, 2, 1, 2, 2});
  b.Ints("target_ids", {0, 0, 0, 0, 0, 1});
  AddFloats(b, "target_weights", {1, 2, 3, 10, 20, 5});
  AddFloats(b, "base_values", {0.5f, 0});
  // At a threshold, below and above it.
  const std::vector<float> x = {1, 3, -1, 1, 2, 0, 2, 3, 1, 0, 2.5f, 0};
  EXPECT_THAT(ValuesOf(b, x), ElementsAre(11.5f, 0, 22.5f, 5, 23.5f, 5, 21.5f, 5));
  b.String("aggregate_function", "AVERAGE");
  EXPECT_THAT(ValuesOf(b, x), ElementsAre(6, 0, 11.5f, 2.5f, 12, 2.5f, 11, 2.5f));
}

TEST(ImportMl, TreesCompareLargeFeatures) {
  ModelBuilder b;
  b.Input("x", {2, 3}).Output("y").Node("TreeEnsembleRegressor", {"x"}, {"y"});
  b.Domain("ai.onnx.ml").Int("n_targets", 1);
  AddTrees(b);
  b.Ints("target_treeids", {0, 0, 0})
      .Ints("target_nodeids", {3, 4, 2})
      .Ints("target_ids", {0, 0, 0});
  AddFloats(b, "target_weights", {1, 2, 3});
  AddFloats(b, "base_values", {5, 6});  // not as many as targets
  auto& node = *b.proto().mutable_graph()->mutable_node(0);
  for (auto& attribute : *node.mutable_attribute()) {
    if (attribute.name() == "nodes_values") attribute.set_floats(0, 6465982.5f);
  }
  EXPECT_THAT(ValuesOf(b, {6465982.5f, 3, 0, 6465983, 3, 0}), ElementsAre(1, 3));
}

TEST(ImportMl, TreesChooseAClass) {
  const auto classifier = [](const std::vector<float>& weights, const std::string& transform,
                             int64_t only = 0) {
    ModelBuilder b;
    b.Input("x", {3, 3}).Output("label").Output("scores");
    b.Node("TreeEnsembleClassifier", {"x"}, {"label", "scores"}).Domain("ai.onnx.ml");
    AddTrees(b);
    b.Ints("classlabels_int64s", {7, 8}).String("post_transform", transform);
    b.Ints("class_treeids", {0, 0, 0, 1, 1}).Ints("class_nodeids", {3, 4, 2, 1, 2});
    b.Ints("class_ids", {only, only, only, only, only});
    AddFloats(b, "class_weights", weights);
    return b;
  };
  // Leaves A and D, C and E, B and E.
  const std::vector<float> x = {1, 3, -1, 2, 0, 0, 0, 1, 1};
  // One score that is a share of the second class, and one that has a sign.
  const ModelBuilder share = classifier({0.1f, 0.2f, 0.3f, 0.3f, 0.4f}, "NONE");
  EXPECT_THAT(ValuesOf(share, x), ElementsAre(7, 8, 8));
  EXPECT_THAT(ValuesOf(share, x, 1),
              Pointwise(FloatNear(1e-6f), {0.6f, 0.4f, 0.3f, 0.7f, 0.4f, 0.6f}));
  const ModelBuilder sign = classifier({-1, 1, 0, 0, 0}, "LOGISTIC");
  EXPECT_THAT(ValuesOf(sign, x), ElementsAre(7, 7, 8));
  EXPECT_THAT(ValuesOf(sign, x, 1), Pointwise(FloatNear(1e-6f), {0.7310586f, 0.2689414f, 0.5f, 0.5f,
                                                                 0.2689414f, 0.7310586f}));
  // LOGISTIC takes the opposite of a share, not what is left of 1. onnxruntime 1.30 gives the same.
  EXPECT_THAT(
      ValuesOf(classifier({1, 0.5f, 0, 0, 0}, "LOGISTIC"), x, 1),
      Pointwise(FloatNear(1e-6f), {0.2689414f, 0.7310586f, 0.5f, 0.5f, 0.3775407f, 0.6224593f}));
  // Scores of the second class alone: the first has 0. onnxruntime 1.30 gives the same.
  const ModelBuilder second = classifier({-1, 1, 0, 0, 0}, "LOGISTIC", 1);
  EXPECT_THAT(ValuesOf(second, x), ElementsAre(7, 7, 8));
  EXPECT_THAT(ValuesOf(second, x, 1),
              Pointwise(FloatNear(1e-6f), {0.5f, 0.2689414f, 0.5f, 0.5f, 0.5f, 0.7310586f}));
}

TEST(ImportMl, LabelsThatNobodyReadsMayBeTexts) {
  ModelBuilder b;
  b.Input("x", {4, 3}).Output("scores");
  b.Node("TreeEnsembleClassifier", {"x"}, {"label", "scores"}).Domain("ai.onnx.ml");
  AddTrees(b);
  AddStrings(b, "classlabels_strings", {"a", "b"});
  b.Ints("class_treeids", {0, 0}).Ints("class_nodeids", {3, 4}).Ints("class_ids", {0, 1});
  AddFloats(b, "class_weights", {0.25f, 0.5f});
  EXPECT_THAT(ValuesOf(b, {1, 3, -1, 1, 2, 0, 2, 3, 1, 0, 2.5f, 0}),
              ElementsAre(0.25f, 0, 0, 0.5f, 0, 0, 0.25f, 0));
}

// Three classes of the support vectors (0 0), (2 0), (0 2), each its own class.
ModelBuilder SvmClassifier(const std::string& kernel, const std::vector<float>& params) {
  ModelBuilder b;
  b.Input("x", {3, 2}).Output("label").Output("scores");
  b.Node("SVMClassifier", {"x"}, {"label", "scores"}).Domain("ai.onnx.ml");
  b.String("kernel_type", kernel).Ints("classlabels_ints", {5, 6, 7});
  b.Ints("vectors_per_class", {1, 1, 1});
  AddFloats(b, "support_vectors", {0, 0, 2, 0, 0, 2});
  AddFloats(b, "kernel_params", params);
  // Against the first other class, then against the second one.
  AddFloats(b, "coefficients", {1, -1, -2, 1, 3, -3});
  AddFloats(b, "rho", {0.5f, 0, 0.25f});
  return b;
}

TEST(ImportMl, SupportVectorsVote) {
  const std::vector<float> x = {0, 0, 2, 1, -1, 4};
  // x.v is 0, 2 x0, 2 x1. Pairs: 01: 0 - 2 x0 + 0.5; 02: 0 - 4 x1; 12: 6 x0 - 6 x1 + 0.25.
  const ModelBuilder linear = SvmClassifier("LINEAR", {0, 0, 0});
  EXPECT_THAT(ValuesOf(linear, x, 1),
              ElementsAre(0.5f, 0, 0.25f, -3.5f, -4, 6.25f, 2.5f, -16, -29.75f));
  // The first row: 0 wins over 1, 2 over 0 (0 is not above 0), 1 over 2: the first of equal ones.
  EXPECT_THAT(ValuesOf(linear, x), ElementsAre(5, 6, 7));
  // Distances of (2 1) to the vectors: 5, 1, 5.
  const ModelBuilder radial = SvmClassifier("RBF", {0.5f, 0, 0});
  const std::vector<float> scores = ValuesOf(radial, {2, 1, 2, 1, 2, 1}, 1);
  EXPECT_THAT(std::vector<float>(scores.begin(), scores.begin() + 3),
              Pointwise(FloatNear(1e-6f), {0.082085f - 0.6065307f + 0.5f, 0.082085f - 0.16417f,
                                           3 * 0.6065307f - 3 * 0.082085f + 0.25f}));
}

TEST(ImportMl, SupportVectorsGiveTheProbabilitiesOfTwoClasses) {
  ModelBuilder b;
  b.Input("x", {2, 2}).Output("label").Output("scores");
  b.Node("SVMClassifier", {"x"}, {"label", "scores"}).Domain("ai.onnx.ml");
  b.String("kernel_type", "LINEAR").Ints("classlabels_ints", {3, 4});
  b.Ints("vectors_per_class", {1, 1});
  AddFloats(b, "support_vectors", {1, 0, 0, 1});
  AddFloats(b, "coefficients", {1, -1});
  AddFloats(b, "rho", {0.5f});
  AddFloats(b, "prob_a", {-2});
  AddFloats(b, "prob_b", {0.5f});
  // Decisions of -0.5 and 1.5; the second class has 1 / (1 + exp(2 d - 0.5)).
  EXPECT_THAT(ValuesOf(b, {1, 2, 2, 1}), ElementsAre(4, 3));
  EXPECT_THAT(ValuesOf(b, {1, 2, 2, 1}, 1),
              Pointwise(FloatNear(1e-6f), {0.1824255f, 0.8175745f, 0.9241418f, 0.0758582f}));
}

TEST(ImportMl, SupportVectorsSum) {
  const auto regressor = [](const std::string& kernel, const std::vector<float>& params,
                            int64_t one_class) {
    ModelBuilder b;
    b.Input("x", {2, 2}).Output("y").Node("SVMRegressor", {"x"}, {"y"}).Domain("ai.onnx.ml");
    b.String("kernel_type", kernel).Int("n_supports", 2).Int("one_class", one_class);
    AddFloats(b, "support_vectors", {1, 0, 0, 1});
    AddFloats(b, "kernel_params", params);
    AddFloats(b, "coefficients", {2, -1});
    AddFloats(b, "rho", {0.5f});
    return ValuesOf(b, {1, 2, -1, 3});
  };
  EXPECT_THAT(regressor("LINEAR", {}, 0), ElementsAre(0.5f, -4.5f));
  EXPECT_THAT(regressor("LINEAR", {}, 1), ElementsAre(1, -1));
  // (x.v + 1)^2: 4, 9 and 0, 16.
  EXPECT_THAT(regressor("POLY", {1, 1, 2}, 0), ElementsAre(-0.5f, -15.5f));
  EXPECT_THAT(regressor("SIGMOID", {0.5f, 0, 0}, 0),
              Pointwise(FloatNear(1e-6f),
                        {2 * 0.4621172f - 0.7615942f + 0.5f, -2 * 0.4621172f - 0.9051483f + 0.5f}));
}

TEST(ImportMl, RefusesTreesThatAreNone) {
  const auto said = [](auto change) {
    ModelBuilder b = Net();
    b.Node("TreeEnsembleRegressor", {"x"}, {"y"}).Domain("ai.onnx.ml");
    AddTrees(b);
    b.Ints("target_treeids", {0}).Ints("target_nodeids", {3}).Ints("target_ids", {0});
    AddFloats(b, "target_weights", {1});
    auto& node = *b.proto().mutable_graph()->mutable_node(0);
    for (auto& attribute : *node.mutable_attribute()) change(attribute);
    return RunImport(b.Bytes()).Text();
  };
  EXPECT_EQ(said([](auto& a) {}), "");
  EXPECT_THAT(said([](auto& a) {
                if (a.name() == "nodes_falsenodeids") a.set_ints(0, 1);
              }),
              HasSubstr("node 1 of tree 0 is not there, or follows two nodes"));
  EXPECT_THAT(said([](auto& a) {
                if (a.name() == "nodes_featureids") a.set_ints(0, 3);
              }),
              HasSubstr("feature 3 of f32[2,3]"));
  EXPECT_THAT(said([](auto& a) {
                if (a.name() == "nodes_nodeids") a.set_ints(2, 1);
              }),
              HasSubstr("tree 0 has node 1 twice"));
  EXPECT_THAT(said([](auto& a) {
                if (a.name() == "nodes_modes") a.set_strings(0, "BRANCH_EQ");
              }),
              HasSubstr("branches of mode BRANCH_EQ"));
  EXPECT_THAT(said([](auto& a) {
                if (a.name() == "target_ids") a.set_ints(0, 1);
              }),
              HasSubstr("a score for target 1 of 1"));
  EXPECT_THAT(said([](auto& a) {
                if (a.name() == "nodes_values") a.clear_floats();
              }),
              HasSubstr("the lists of nodes differ in length"));
}

TEST(ImportMl, RefusesByName) {
  ModelBuilder wrong = Net();
  wrong.Node("LinearRegressor", {"x"}, {"y"}).Domain("ai.onnx.ml");
  AddFloats(wrong, "coefficients", {1, 2});
  EXPECT_THAT(RunImport(wrong.Bytes()).Text(), HasSubstr("2 coefficients and 0 intercepts"));
  ModelBuilder encoder = Net();
  encoder.Node("LabelEncoder", {"x"}, {"y"}).Domain("ai.onnx.ml");
  EXPECT_THAT(RunImport(encoder.Bytes()).Text(), HasSubstr("LabelEncoder"));
}

}  // namespace
}  // namespace npuc::onnx
