#include "compiler_core/frontends/caffe/import.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/frontends/caffe/test_util.h"
#include "compiler_core/frontends/common/recurrent_cases_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::caffe {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pointwise;

const char kInput[] = "input: 'x' input_shape { dim: 1 dim: 1 dim: 2 dim: 2 }\n";
const std::string kNoBlobs = BytesField(1, "net");

std::string Layer(const std::string& type, const std::string& bottom, const std::string& top,
                  const std::string& params = "") {
  return absl::StrCat("layer { name: '", top, "_", type, "' type: '", type, "' bottom: '", bottom,
                      "' top: '", top, "' ", params, " }\n");
}

TEST(CaffeImportTest, TakesBlobsByTheLayersName) {
  const std::string text =
      kInput + Layer("InnerProduct", "x", "y", "inner_product_param { num_output: 2 }");
  const std::string model =
      BlobLayer("unused", {BlobBytes({1}, {9})}) +
      BlobLayer("y_InnerProduct",
                {BlobBytes({1, 1, 2, 4}, {1, 0, 0, 0, 0, 0, 0, 1}), BlobBytes({2}, {10, 20})});
  EXPECT_THAT(Evaluate(model, text, {{1, 2, 3, 4}}), ElementsAre(ElementsAre(11, 24)));
}

TEST(CaffeImportTest, ThePlaceOfTheGreatest) {
  const std::string input = "input: 'x' input_shape { dim: 1 dim: 2 dim: 2 }\n";
  EXPECT_THAT(Evaluate(kNoBlobs, input + Layer("ArgMax", "x", "y"), {{1, 9, 2, 7}}),
              ElementsAre(ElementsAre(1)));
  EXPECT_THAT(Evaluate(kNoBlobs, input + Layer("ArgMax", "x", "y", "argmax_param { axis: 1 }"),
                       {{1, 9, 2, 7}}),
              ElementsAre(ElementsAre(1, 0)));
  const std::string value = "argmax_param { axis: -1 out_max_val: true }";
  EXPECT_THAT(Evaluate(kNoBlobs, input + Layer("ArgMax", "x", "y", value), {{1, 9, 2, 7}}),
              ElementsAre(ElementsAre(9, 7)));
  EXPECT_THAT(Evaluate(kNoBlobs, input + Layer("ArgMax", "x", "y", "argmax_param { top_k: 3 }"),
                       {{1, 9, 2, 7}}),
              ElementsAre(ElementsAre(1, 3, 2)));
  EXPECT_EQ(RunImport(kNoBlobs, input + Layer("ArgMax", "x", "y", "argmax_param { top_k: 5 }"))
                .CountOf(DiagnosticKind::kUnsupportedOperatorMode),
            1);
}

// argmax_layer.cpp: partial_sort of make_pair(element, place) by std::greater<std::pair<Dtype,
// int>>.
TEST(CaffeImportTest, TheLastOfEqualElementsIsTheGreatest) {
  const std::string input = "input: 'x' input_shape { dim: 1 dim: 2 dim: 2 }\n";
  EXPECT_THAT(Evaluate(kNoBlobs, input + Layer("ArgMax", "x", "y"), {{9, 9, 2, 7}}),
              ElementsAre(ElementsAre(1)));
  EXPECT_THAT(Evaluate(kNoBlobs, input + Layer("ArgMax", "x", "y", "argmax_param { axis: 1 }"),
                       {{3, 9, 3, 7}}),
              ElementsAre(ElementsAre(1, 0)));
  EXPECT_THAT(Evaluate(kNoBlobs, input + Layer("ArgMax", "x", "y", "argmax_param { top_k: 3 }"),
                       {{7, 9, 7, 7}}),
              ElementsAre(ElementsAre(1, 3, 2)));
}

TEST(CaffeImportTest, LayersInPlaceKeepEachValueOfAName) {
  const std::string text = kInput + Layer("Power", "x", "a", "power_param { shift: -2 }") +
                           Layer("AbsVal", "a", "b") + Layer("ReLU", "a", "a");
  EXPECT_THAT(Evaluate(kNoBlobs, text, {{1, 2, 3, 4}}),
              ElementsAre(ElementsAre(1, 0, 1, 2), ElementsAre(0, 0, 1, 2)));
  CompileOptions options;
  options.outputs = {"a_Power"};
  EXPECT_THAT(Evaluate(kNoBlobs, text, {{1, 2, 3, 4}}, options),
              ElementsAre(ElementsAre(-1, 0, 1, 2)));
}

TEST(CaffeImportTest, AnInputThatALayerWritesOverIsStillTheInput) {
  const std::string text = kInput + Layer("Power", "x", "x", "power_param { scale: 2 }");
  CompileOptions options;
  options.inputs = {{"x", {1, 1, 1, 2}}};
  options.outputs = {"x"};
  EXPECT_THAT(Evaluate(kNoBlobs, text, {{3, 4}}, options), ElementsAre(ElementsAre(6, 8)));
}

TEST(CaffeImportTest, InputOpsMayCutAndChangeSizes) {
  const std::string text = kInput + Layer("NoSuchLayer", "x", "a") + Layer("ReLU", "a", "b");
  EXPECT_EQ(RunImport(kNoBlobs, text).CountOf(DiagnosticKind::kUnsupportedOperator), 1);
  CompileOptions options;
  options.inputs = {{"a", {1, 3}}};
  EXPECT_THAT(Evaluate(kNoBlobs, text, {{-1, 0, 1}}, options), ElementsAre(ElementsAre(0, 0, 1)));
}

TEST(CaffeImportTest, EveryProblemIsReportedAtOnce) {
  const std::string text =
      kInput + Layer("Foo", "x", "a") + Layer("Bar", "x", "b") + Layer("ReLU", "nowhere", "c");
  const ImportResult result = RunImport(kNoBlobs, text);
  EXPECT_EQ(result.CountOf(DiagnosticKind::kUnsupportedOperator), 2) << result.Text();
  EXPECT_EQ(result.CountOf(DiagnosticKind::kMissingProducer), 1) << result.Text();
}

TEST(CaffeImportTest, UnknownParametersAreRefusedOnesOfTrainingAreNot) {
  const std::string known =
      kInput + Layer("Pooling", "x", "y", "pooling_param { kernel_size: 2 engine: CAFFE }");
  EXPECT_TRUE(RunImport(kNoBlobs, known).graph.ok()) << RunImport(kNoBlobs, known).Text();
  const ImportResult result = RunImport(
      kNoBlobs, kInput + Layer("Pooling", "x", "y", "pooling_param { kernel_size: 2 odd: 1 }"));
  EXPECT_EQ(result.CountOf(DiagnosticKind::kBadAttribute), 1);
  EXPECT_THAT(result.Text(), HasSubstr("parameter 'odd' of pooling_param"));
}

TEST(CaffeImportTest, DropoutPassesItsBottomOn) {
  const auto dropout = [](const std::string& params) {
    return kInput + Layer("Dropout", "x", "d", params) + Layer("AbsVal", "d", "y");
  };
  EXPECT_THAT(Evaluate(kNoBlobs, dropout("dropout_param { dropout_ratio: 0.5 }"), {{1, 2, -3, 4}}),
              ElementsAre(ElementsAre(1, 2, 3, 4)));
  EXPECT_THAT(Evaluate(kNoBlobs, dropout("dropout_param { dropout_ratio: 0.75 scale_train: true }"),
                       {{1, 2, -3, 4}}),
              ElementsAre(ElementsAre(1, 2, 3, 4)));
  EXPECT_THAT(
      Evaluate(kNoBlobs, dropout("dropout_param { dropout_ratio: 0.75 scale_train: false }"),
               {{4, 8, -12, 16}}),
      ElementsAre(ElementsAre(1, 2, 3, 4)));
  const ImportResult bad =
      RunImport(kNoBlobs, dropout("dropout_param { dropout_ratio: 2 scale_train: false }"));
  EXPECT_EQ(bad.CountOf(DiagnosticKind::kBadAttribute), 1) << bad.Text();
}

TEST(CaffeImportTest, BlobsMustFitTheLayer) {
  const std::string text =
      kInput + Layer("Convolution", "x", "y", "convolution_param { num_output: 1 kernel_size: 2 }");
  EXPECT_THAT(RunImport(kNoBlobs, text).Text(), HasSubstr("has 0 blobs for the layer"));
  const std::string model =
      BlobLayer("y_Convolution", {BlobBytes({1, 1, 4, 1}, {1, 2, 3, 4}), BlobBytes({1}, {0})});
  EXPECT_THAT(RunImport(model, text).Text(), HasSubstr("the weight is [1,1,4,1]"));
  const std::string raw = BlobLayer(
      "y_Convolution",
      {BytesField(7, BytesField(1, "\1\1\2\2")) + BytesField(12, "12345678"), BlobBytes({1}, {0})});
  EXPECT_THAT(RunImport(raw, text).Text(), HasSubstr("only a fork of Caffe has"));
}

TEST(CaffeImportTest, BatchStatisticsAreRefused) {
  const std::string text =
      kInput + Layer("BatchNorm", "x", "y", "batch_norm_param { use_global_stats: false }");
  EXPECT_EQ(RunImport(kNoBlobs, text).CountOf(DiagnosticKind::kUnsupportedOperatorMode), 1);
}

TEST(CaffeImportTest, ParametersUnderForeignNumbersNeedTheText) {
  const std::string shuffle =
      BytesField(100, BytesField(1, "s") + BytesField(2, "ShuffleChannel") + BytesField(3, "x") +
                          BytesField(4, "y") + BytesField(164, IntField(1, 2)));
  const std::string model = BytesField(3, "x") + IntField(4, 1) + IntField(4, 4) + IntField(4, 1) +
                            IntField(4, 1) + shuffle;
  EXPECT_EQ(RunImport(model, std::nullopt).CountOf(DiagnosticKind::kCaffeForeignParameters), 1)
      << RunImport(model, std::nullopt).Text();
  const std::string text = "input: 'x' input_dim: 1 input_dim: 4 input_dim: 1 input_dim: 1\n" +
                           Layer("ShuffleChannel", "x", "y", "shuffle_channel_param { group: 2 }");
  EXPECT_THAT(Evaluate(model, text, {{0, 1, 2, 3}}), ElementsAre(ElementsAre(0, 2, 1, 3)));
}

TEST(CaffeImportTest, DecodingIsLeftOutWithANote) {
  const std::string text =
      kInput + Layer("AbsVal", "x", "loc") + Layer("ReLU", "x", "conf") +
      "layer { name: 'out' type: 'DetectionOutput' bottom: 'loc' bottom: 'conf' top: 'boxes' }\n";
  for (const std::vector<std::string>& outputs :
       {std::vector<std::string>{}, std::vector<std::string>{"boxes"}}) {
    CompileOptions options;
    options.outputs = outputs;
    const ImportResult result = RunImport(kNoBlobs, text, options);
    ASSERT_TRUE(result.graph.ok()) << result.Text();
    EXPECT_EQ(result.CountOf(DiagnosticKind::kDecodingLeftOut), 1);
    ASSERT_EQ(result.graph->outputs().size(), 2u);
    EXPECT_EQ(result.graph->outputs()[1].name, "conf");
  }
}

TEST(CaffeImportTest, AnOpenInputNeedsInputOps) {
  const std::string text =
      "layer { name: 'd' type: 'Data' top: 'x' top: 'label' transform_param { crop_size: 2 } }\n" +
      Layer("ReLU", "x", "y") +
      "layer { name: 'l' type: 'EuclideanLoss' bottom: 'y' bottom: 'label' top: 'loss' }";
  const ImportResult result = RunImport(kNoBlobs, text);
  EXPECT_EQ(result.CountOf(DiagnosticKind::kOpenInput), 1) << result.Text();
  EXPECT_THAT(result.Text(), HasSubstr("'x' is [?,?,2,2]"));
  EXPECT_THAT(result.Text(), Not(HasSubstr("label")));
}

TEST(CaffeImportTest, TheOutlineIsTheNetAtInference) {
  const std::string text = kInput + Layer("ReLU", "x", "y") +
                           "layer { name: 't' type: 'ReLU' bottom: 'y' top: 'z' include { phase: "
                           "TRAIN } }";
  Diagnostics diagnostics;
  const auto outline = OutlineCaffe(
      {.model = kNoBlobs, .model_name = "m", .text = text, .text_name = "t"}, diagnostics);
  ASSERT_TRUE(outline.ok()) << outline.status();
  ASSERT_EQ(outline->inputs.size(), 1u);
  EXPECT_THAT(*outline->inputs[0].dims, ElementsAre(1, 1, 2, 2));
  ASSERT_EQ(outline->outputs.size(), 1u);
  EXPECT_EQ(outline->outputs[0].name, "y");
}

// PyTorch's LSTM with its gates in the order i, f, o, g, and both biases in one.
class CaffeLstmTest : public testing::Test {
 protected:
  CaffeLstmTest() {
    const auto& direction = numbers_.directions[0];
    std::vector<float> bias = direction.w_bias;
    for (size_t i = 0; i < bias.size(); ++i) bias[i] += direction.r_bias[i];
    model_ = BlobLayer("l", {BlobBytes({8, 3}, Turned(direction.w)), BlobBytes({8}, Turned(bias)),
                             BlobBytes({8, 2}, Turned(direction.r))});
  }
  static std::vector<float> Turned(const std::vector<float>& blocks) {
    const size_t size = blocks.size() / 4;
    std::vector<float> out(blocks.begin(), blocks.begin() + static_cast<ptrdiff_t>(2 * size));
    out.insert(out.end(), blocks.begin() + static_cast<ptrdiff_t>(3 * size), blocks.end());
    out.insert(out.end(), blocks.begin() + static_cast<ptrdiff_t>(2 * size),
               blocks.begin() + static_cast<ptrdiff_t>(3 * size));
    return out;
  }
  static std::string Text(const std::string& more_bottoms, const std::string& more = "") {
    return "input: 'x' input_shape { dim: 3 dim: 2 dim: 3 }\n"
           "input: 'cont' input_shape { dim: 3 dim: 2 }\n"
           "input: 'h' input_shape { dim: 1 dim: 2 dim: 2 }\n"
           "input: 'c' input_shape { dim: 1 dim: 2 dim: 2 }\n"
           "layer { name: 'l' type: 'LSTM' bottom: 'x' " +
           more_bottoms + " top: 'y' " + more + " }\n";
  }

  const frontend::RecurrentCase& case_ = frontend::RecurrentCases()[0];
  const frontend::RecurrentNumbers numbers_{case_, 4};
  std::string model_;
};

TEST_F(CaffeLstmTest, GoesOnFromFrameToFrame) {
  const std::string params = "recurrent_param { num_output: 2 }";
  const auto near = [](const std::vector<float>& wanted) {
    return Pointwise(FloatNear(1e-5f), wanted);
  };
  // x, cont, the layer's h and c -> the states behind, y.
  const std::vector<float> ones(6, 1);
  EXPECT_THAT(
      Evaluate(model_, Text("bottom: 'cont'", params), {numbers_.x, ones, numbers_.h, numbers_.c}),
      ElementsAre(near(case_.h), near(case_.c), near(case_.y)));
  // Exposed, the states are bottoms and tops.
  EXPECT_THAT(
      Evaluate(model_,
               Text("bottom: 'cont' bottom: 'h' bottom: 'c'",
                    "top: 'h1' top: 'c1' recurrent_param { num_output: 2 expose_hidden: true }"),
               {numbers_.x, ones, numbers_.h, numbers_.c}),
      ElementsAre(near(case_.y), near(case_.h), near(case_.c)));
  // 0 in cont forgets: the last step is that of a sequence of its own.
  std::vector<float> last = ones;
  last[4] = last[5] = 0;
  const auto results =
      Evaluate(model_, Text("bottom: 'cont'", params), {numbers_.x, last, numbers_.h, numbers_.c});
  ASSERT_EQ(results.size(), 3u);
  std::vector<float> shifted = numbers_.x;
  std::copy(shifted.end() - 6, shifted.end(), shifted.begin());
  const auto alone = Evaluate(model_, Text("", params), {shifted});
  ASSERT_EQ(alone.size(), 1u);
  EXPECT_THAT(std::vector<float>(results[2].end() - 4, results[2].end()),
              near(std::vector<float>(alone[0].begin(), alone[0].begin() + 4)));
}

TEST(CaffeImportTest, DataOfTrainingAloneIsAnInput) {
  const std::string text =
      "layer { name: 'd' type: 'Data' top: 'data' top: 'label' include { phase: TRAIN } }\n" +
      Layer("AbsVal", "data", "y") +
      "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'y' bottom: 'label' top: 'loss' }\n";
  CompileOptions options;
  options.inputs = {{"data", {1, 2}}};
  options.outputs = {"y"};
  EXPECT_THAT(Evaluate(kNoBlobs, text, {{-1, 2}}, options), ElementsAre(ElementsAre(1, 2)));
  // Where the phase TEST has data of its own, that counts.
  const std::string both =
      "layer { name: 'd' type: 'Data' top: 'data' include { phase: TRAIN } }\n"
      "layer { name: 't' type: 'Input' top: 'data' include { phase: TEST } "
      "input_param { shape { dim: 1 dim: 3 } } }\n" +
      Layer("AbsVal", "data", "y");
  EXPECT_THAT(Evaluate(kNoBlobs, both, {{-1, 2, -3}}), ElementsAre(ElementsAre(1, 2, 3)));
}

TEST(CaffeImportTest, OutlineLeavesLabelsOut) {
  const std::string text =
      "layer { name: 'd' type: 'Data' top: 'data' top: 'label' include { phase: TRAIN } }\n" +
      Layer("AbsVal", "data", "y") +
      "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'y' bottom: 'label' top: 'loss' }\n";
  Diagnostics diagnostics;
  const auto outline = OutlineCaffe(
      {.model = kNoBlobs, .model_name = "m", .text = text, .text_name = "t"}, diagnostics);
  ASSERT_TRUE(outline.ok()) << outline.status();
  ASSERT_EQ(outline->inputs.size(), 1u);
  EXPECT_EQ(outline->inputs[0].name, "data");
}

TEST(CaffeImportTest, LooksUpRows) {
  const std::string text =
      "input: 'x' input_shape { dim: 2 }\n" +
      Layer("Embed", "x", "y", "embed_param { input_dim: 3 num_output: 2 bias_term: false }");
  EXPECT_THAT(
      Evaluate(BlobLayer("y_Embed", {BlobBytes({3, 2}, {1, 2, 3, 4, 5, 6})}), text, {{2, 0}}),
      ElementsAre(ElementsAre(5, 6, 1, 2)));
}

}  // namespace
}  // namespace npuc::caffe
