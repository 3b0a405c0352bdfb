// Published models import; the time that takes is printed.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "compiler_core/base/files_test_util.h"
#include "compiler_core/frontends/tensorflow/import.h"
#include "compiler_core/frontends/tensorflow/test_util.h"
#include "gtest/gtest.h"

namespace npuc::tf {
namespace {

struct Model {
  std::string path;
  std::vector<InputDecl> inputs;
  std::vector<std::string> outputs;
  Shape output_shape;
};

std::vector<Model> Models() {
  const std::string kws = "models/tf/arm_kws/";
  return {
      {kws + "DNN_S.pb", {{"Reshape", {1, 250}}}, {"labels_softmax"}, {1, 12}},
      {kws + "DNN_M.pb", {{"Reshape", {1, 250}}}, {"labels_softmax"}, {1, 12}},
      {kws + "CNN_S.pb", {{"Reshape", {1, 490}}}, {"labels_softmax"}, {1, 12}},
      {kws + "CNN_M.pb", {{"Reshape", {1, 490}}}, {"labels_softmax"}, {1, 12}},
      {kws + "DS_CNN_S.pb", {{"Reshape", {1, 490}}}, {"labels_softmax"}, {1, 12}},
      {kws + "DS_CNN_M.pb", {{"Reshape", {1, 490}}}, {"labels_softmax"}, {1, 12}},
      {kws + "GRU_S.pb", {{"Reshape", {1, 250}}}, {"labels_softmax"}, {1, 12}},
      {kws + "GRU_M.pb", {{"Reshape", {1, 490}}}, {"labels_softmax"}, {1, 12}},
      {kws + "LSTM_S.pb", {{"Reshape", {1, 250}}}, {"labels_softmax"}, {1, 12}},
      {"models/tf/tf2onnx/gru.pb",
       {{"X", {1, 784}}, {"keep_prob", {1}}, {"model/dropout/Floor", {1, 128}}},
       {"output"},
       {1, 10}},
      {"models/tf/tf2onnx/lstm.pb",
       {{"X", {1, 784}}, {"keep_prob", {1}}, {"model/dropout/Floor", {1, 128}}},
       {"output"},
       {1, 10}},
      {"models/tf/tf2onnx/ae0.pb", {{"X", {1, 784}}}, {"output"}, {1, 784}},
      {"models/tf/tf2onnx/fc-layers.pb", {{"X", {1, 784}}}, {"output"}, {1, 10}},
      {"models/tf/simple_mnist_tf.pb", {{"Placeholder", {1, 784}}}, {"Softmax"}, {1, 10}},
      {"fixtures/gxdnn-mnist/mnist_with_ckpt.pb", {{"input_x", {1, 784}}}, {"result"}, {1, 10}},
  };
}

TEST(ModelsTest, PublishedModelsImport) {
  if (!std::filesystem::exists(SharedFolder())) GTEST_SKIP() << "no shared models";
  for (const Model& model : Models()) {
    SCOPED_TRACE(model.path);
    const std::string bytes = ReadTestFile(SharedFolder() / model.path);
    ASSERT_FALSE(bytes.empty());
    const CompileOptions options = Options(model.inputs, model.outputs);
    const ImportResult result = RunImport(bytes, options);
    ASSERT_TRUE(result.graph.ok()) << result.Text();
    ASSERT_EQ(result.graph->outputs().size(), 1u);
    EXPECT_EQ(result.graph->type(result.graph->outputs()[0].value).shape, model.output_shape);
    double best_ms = 1e9;
    for (int i = 0; i < 5; ++i) {
      Diagnostics diagnostics;
      const auto start = std::chrono::steady_clock::now();
      ASSERT_TRUE(ImportTensorFlow(bytes, options, diagnostics).ok());
      const std::chrono::duration<double, std::milli> took =
          std::chrono::steady_clock::now() - start;
      best_ms = std::min(best_ms, took.count());
    }
    std::fprintf(stderr, "%-45s %7zu bytes  %3d nodes  %.3f ms\n", model.path.c_str(), bytes.size(),
                 result.graph->node_count(), best_ms);
  }
}

TEST(ModelsTest, WholeAudioModelIsRefusedNodeByNode) {
  if (!std::filesystem::exists(SharedFolder())) GTEST_SKIP() << "no shared models";
  const std::string bytes = ReadTestFile(SharedFolder() / "models/tf/arm_kws/DNN_S.pb");
  const ImportResult result = RunImport(bytes, Options({}, {"labels_softmax"}));
  EXPECT_FALSE(result.graph.ok());
  // The three operators of the audio front end and the Placeholder in front of them.
  EXPECT_EQ(result.CountOf(DiagnosticKind::kUnsupportedOperator), 3) << result.Text();
  EXPECT_EQ(result.CountOf(DiagnosticKind::kUndeclaredPlaceholder), 1);
}

}  // namespace
}  // namespace npuc::tf
