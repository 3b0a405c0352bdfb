#include "compiler_core/frontends/darknet/import.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler_core/base/files_test_util.h"
#include "compiler_core/ops/op.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

// The .weights of a net: version 0.2 has 64 bits of counter, 0.1 has 32.
std::string WeightsOf(const std::vector<float>& values, int32_t major = 0, int32_t minor = 2) {
  const int32_t head[5] = {major, minor, 0, 7, 0};
  const bool is_wide = major * 10 + minor >= 2 && major < 1000 && minor < 1000;
  std::string bytes(reinterpret_cast<const char*>(head), is_wide ? 20 : 16);
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return bytes;
}

std::vector<float> Ramp(size_t count, float step = 0.1F) {
  std::vector<float> values;
  for (size_t i = 0; i < count; ++i) values.push_back(step * static_cast<float>(i % 11) - 0.3F);
  return values;
}

struct Imported {
  absl::StatusOr<Graph> graph;
  std::string text;  // a diagnostic a line
};

Imported Import(const std::string& cfg, const std::optional<std::string>& weights,
                CompileOptions options = {}) {
  options.model_name = "net.cfg";
  Diagnostics diagnostics;
  const ViewSource bytes(weights.has_value() ? absl::string_view(*weights) : "");
  Imported result{ImportDarknet(cfg, weights.has_value() ? &bytes : nullptr, options, diagnostics),
                  ""};
  EXPECT_EQ(result.graph.ok(), !diagnostics.has_errors());
  for (const Diagnostic& d : diagnostics.list()) absl::StrAppend(&result.text, d.ToString(), "\n");
  return result;
}

// The results of a net on its inputs, in the graph's order.
std::vector<std::vector<float>> Answer(const std::string& cfg, const std::vector<float>& weights,
                                       const std::vector<std::vector<float>>& inputs,
                                       const CompileOptions& options = {}) {
  const Imported net = Import(cfg, WeightsOf(weights), options);
  EXPECT_TRUE(net.graph.ok()) << net.text;
  if (!net.graph.ok()) return {};
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueId id = net.graph->inputs()[i];
    tensors.push_back(Tensor::FromFloats(net.graph->type(id).shape, inputs[i]));
  }
  const auto results = RunReference(*net.graph, tensors);
  EXPECT_TRUE(results.ok()) << results.status();
  std::vector<std::vector<float>> values;
  for (const Tensor& result : *results) values.push_back(result.ToFloats());
  return values;
}

constexpr char kImage[] = "[net]\nheight=4\nwidth=4\nchannels=4\n";

TEST(DarknetImportTest, ReorgFollowsItsIndexFormula) {
  const std::vector<float> x = Ramp(64, 0.01F);
  const auto y = Answer(absl::StrCat(kImage, "[reorg]\nstride=2\n"), {}, {x});
  ASSERT_EQ(y.size(), 1U);
  // Channel k of the result, as [c,h,w]: channel k % (c / 4) of the operand taken as
  // [c / 4, 2 h, 2 w], at places 2 j + k / (c / 4) / 2 and 2 i + k / (c / 4) % 2.
  std::vector<float> want(64);
  for (int k = 0; k < 4; ++k) {
    for (int j = 0; j < 4; ++j) {
      for (int i = 0; i < 4; ++i) {
        want[static_cast<size_t>(k * 16 + j * 4 + i)] =
            x[static_cast<size_t>((2 * j + k / 2) * 8 + 2 * i + k % 2)];
      }
    }
  }
  EXPECT_EQ(y[0], want);
  const auto back =
      Answer(absl::StrCat(kImage, "[reorg]\nstride=2\n[reorg]\nstride=2\nreverse=1\n"), {}, {x});
  // The sizes differ between the two, so the second is no inverse; it moves all values once.
  std::vector<float> sorted = back[0];
  std::vector<float> all = x;
  std::sort(sorted.begin(), sorted.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(sorted, all);
}

TEST(DarknetImportTest, MaxPoolPadsBehind) {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  constexpr char kNet[] = "[net]\nheight=3\nwidth=3\nchannels=1\n";
  EXPECT_THAT(Answer(absl::StrCat(kNet, "[maxpool]\nsize=2\nstride=1\n"), {}, {x}),
              ElementsAre(ElementsAre(5, 6, 6, 8, 9, 9, 8, 9, 9)));
  EXPECT_THAT(Answer(absl::StrCat(kNet, "[maxpool]\nsize=2\nstride=2\n"), {}, {x}),
              ElementsAre(ElementsAre(5, 6, 8, 9)));
  EXPECT_THAT(Answer(absl::StrCat(kNet, "[local_avgpool]\nsize=2\nstride=2\n"), {}, {x}),
              ElementsAre(ElementsAre(3, 4.5, 7.5, 9)));
}

TEST(DarknetImportTest, ConvolutionsStoreBiasesFirst) {
  constexpr char kNet[] =
      "[net]\nheight=1\nwidth=1\nchannels=1\n"
      "[convolutional]\nbatch_normalize=1\nfilters=1\nactivation=linear\n";
  // bias 5, scale 3, mean 1, variance 4, weight 2: (2 x - 1) / 2 * 3 + 5.
  const auto y = Answer(kNet, {5, 3, 1, 4, 2}, {{2}});
  EXPECT_THAT(y[0], Pointwise(FloatNear(1e-4F), {9.5F}));
}

TEST(DarknetImportTest, DeviationsHaveAMillionthAdded) {
  constexpr char kNet[] =
      "[net]\nheight=1\nwidth=1\nchannels=1\n"
      "[convolutional]\nbatch_normalize=1\nfilters=1\nactivation=linear\n";
  EXPECT_NEAR(Answer(kNet, {0, 1, 0, 1e-8F, 1}, {{1}})[0][0], 1 / (1e-4 + 1e-6), 1);
}

// AlexeyAB's blas.c, normalize_cpu: "(x[index] - mean[f])/(sqrt(variance[f] + .00001f))".
TEST(DarknetImportTest, TheForksVariancesHaveEpsilonAdded) {
  constexpr char kNet[] =
      "[net]\nheight=1\nwidth=1\nchannels=1\n"
      "[convolutional]\nbatch_normalize=1\nfilters=1\nactivation=linear\n"
      "[convolutional]\nfilters=1\nactivation=mish\n";
  CompileOptions options;
  options.outputs = {"convolutional_0"};
  EXPECT_NEAR(Answer(kNet, {0, 1, 0, 3e-5F, 1, 0, 1}, {{1}}, options)[0][0],
              1 / std::sqrt(3e-5 + 1e-5), 0.01);
}

TEST(DarknetImportTest, ConnectedLayersStoreWeightsBeforeTheNormalisation) {
  constexpr char kNet[] =
      "[net]\ninputs=2\n[connected]\noutput=1\nbatch_normalize=1\nactivation=linear\n";
  // bias 5, weights 2 and 3, scale 3, mean 1, variance 4: (2 a + 3 b - 1) / 2 * 3 + 5.
  EXPECT_THAT(Answer(kNet, {5, 2, 3, 3, 1, 4}, {{1, 1}})[0], Pointwise(FloatNear(1e-4F), {11.0F}));
}

TEST(DarknetImportTest, OldVersionsHaveAShortCounterAndTurnedRows) {
  constexpr char kNet[] = "[net]\ninputs=2\n[connected]\noutput=2\nactivation=linear\n";
  const auto run = [&](int32_t major, int32_t minor) {
    const Imported net = Import(kNet, WeightsOf({0, 0, 1, 2, 3, 4}, major, minor));
    EXPECT_TRUE(net.graph.ok()) << net.text;
    const Tensor x = Tensor::FromFloats({1, 2}, {1, 10});
    return (*RunReference(*net.graph, {x}))[0].ToFloats();
  };
  EXPECT_THAT(run(0, 1), ElementsAre(21, 43));
  EXPECT_THAT(run(0, 2), ElementsAre(21, 43));
  EXPECT_THAT(run(1001, 0), ElementsAre(31, 42));
}

TEST(DarknetImportTest, ShortcutsOfOtherSizes) {
  // Layer 0 is the input, layer 1 every other place of it; then the sums of both ways.
  constexpr char kNet[] =
      "[net]\nheight=2\nwidth=2\nchannels=1\n[dropout]\n[maxpool]\nsize=1\nstride=2\n"
      "[shortcut]\nfrom=-2\nbeta=10\n[route]\nlayers=0\n[shortcut]\nfrom=1\nactivation=relu\n";
  CompileOptions options;
  options.outputs = {"shortcut_2", "shortcut_4"};
  EXPECT_THAT(Answer(kNet, {}, {{1, 2, 3, -4}}, options),
              ElementsAre(ElementsAre(11), ElementsAre(2, 2, 3, 0)));
}

TEST(DarknetImportTest, RoutesTakeGroups) {
  constexpr char kNet[] =
      "[net]\nheight=1\nwidth=1\nchannels=4\n[dropout]\n[route]\nlayers=-1,0\ngroups=2\n"
      "group_id=1\n";
  EXPECT_THAT(Answer(kNet, {}, {{1, 2, 3, 4}}), ElementsAre(ElementsAre(3, 4, 3, 4)));
}

TEST(DarknetImportTest, ProductsTakeFactorsPerChannel) {
  constexpr char kNet[] =
      "[net]\nheight=1\nwidth=2\nchannels=2\n[dropout]\n[avgpool]\n[scale_channels]\nfrom=0\n";
  EXPECT_THAT(Answer(kNet, {}, {{1, 3, 10, 20}}), ElementsAre(ElementsAre(2, 6, 150, 300)));
}

TEST(DarknetImportTest, CropTakesTheMiddleAndMapsIt) {
  constexpr char kNet[] =
      "[net]\nheight=1\nwidth=3\nchannels=1\n[crop]\ncrop_height=1\ncrop_width=1\n";
  EXPECT_THAT(Answer(kNet, {}, {{0, 0.75, 1}}), ElementsAre(ElementsAre(0.5)));
  EXPECT_THAT(Answer(absl::StrCat(kNet, "noadjust=1\n"), {}, {{0, 0.75, 1}}),
              ElementsAre(ElementsAre(0.75)));
}

TEST(DarknetImportTest, NegativeStridesSumBlocks) {
  constexpr char kNet[] = "[net]\nheight=2\nwidth=2\nchannels=1\n[upsample]\n";
  EXPECT_THAT(Answer(absl::StrCat(kNet, "stride=-2\nscale=0.5\n"), {}, {{1, 2, 3, 4}}),
              ElementsAre(ElementsAre(5)));
  EXPECT_THAT(Answer(absl::StrCat(kNet, "stride=2\n"), {}, {{1, 2, 3, 4}}),
              ElementsAre(ElementsAre(1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4)));
}

TEST(DarknetImportTest, LocalLayersHaveWeightsForEachPlace) {
  // A row of 3 places, windows of 3 with a zero at both ends; only the middle row of each counts.
  constexpr char kNet[] =
      "[net]\nheight=1\nwidth=2\nchannels=1\n[local]\nfilters=1\nsize=3\npad=1\n"
      "activation=linear\n";
  std::vector<float> weights = {100, 200};  // biases of the two places
  for (int i = 0; i < 18; ++i) weights.push_back(static_cast<float>(i));
  // Place 0 sees x at taps 4 and 5 of its nine, place 1 at taps 3 and 4 of its own.
  EXPECT_THAT(Answer(kNet, weights, {{1, 10}}),
              ElementsAre(ElementsAre(100 + 4 + 50, 200 + 12 + 130)));
}

TEST(DarknetImportTest, Activations) {
  const std::vector<std::pair<std::string, std::function<double(double)>>> formulas = {
      {"loggy", [](double x) { return 2 / (1 + std::exp(-x)) - 1; }},
      {"relie", [](double x) { return x > 0 ? x : .01 * x; }},
      {"ramp", [](double x) { return std::max(x, 0.0) + .1 * x; }},
      {"elu", [](double x) { return x >= 0 ? x : std::exp(x) - 1; }},
      {"selu", [](double x) { return 1.0507 * (x >= 0 ? x : 1.6732 * (std::exp(x) - 1)); }},
      {"plse",
       [](double x) {
         if (x < -4) return .01 * (x + 4);
         return x > 4 ? .01 * (x - 4) + 1 : .125 * x + .5;
       }},
      {"hardtan", [](double x) { return std::min(std::max(x, -1.0), 1.0); }},
      {"lhtan",
       [](double x) {
         if (x < 0) return .001 * x;
         return x > 1 ? .001 * (x - 1) + 1 : x;
       }},
      {"swish", [](double x) { return x / (1 + std::exp(-x)); }},
      {"mish", [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }},
      {"hard_mish", [](double x) { return x > 0    ? x
                                          : x > -2 ? x * x / 2 + x
                                                   : 0; }},
      {"relu6", [](double x) { return std::min(std::max(x, 0.0), 6.0); }},
  };
  const std::vector<float> x = {-6, -3, -1.5, -0.5, 0, 0.25, 0.75, 2, 5, 7};
  for (const auto& [name, formula] : formulas) {
    std::vector<float> want;
    for (const float value : x) want.push_back(static_cast<float>(formula(value)));
    const auto y =
        Answer(absl::StrCat("[net]\ninputs=10\n[activation]\nactivation=", name, "\n"), {}, {x});
    EXPECT_THAT(y[0], Pointwise(FloatNear(1e-5F), want)) << name;
  }
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST(DarknetImportTest, RnnStepsFromItsState) {
  constexpr char kNet[] = "[net]\ninputs=1\n[rnn]\noutput=1\nactivation=linear\nshortcut=1\n";
  // Each part has a bias and a weight: input, self, output.
  const auto y = Answer(kNet, {1, 2, 3, 4, 5, 6}, {{10}, {100}});
  const float state = 100 + (1 + 20) + (3 + 400);
  EXPECT_THAT(y, ElementsAre(ElementsAre(state), ElementsAre(5 + 6 * state)));
}

TEST(DarknetImportTest, GruKeepsStateByItsUpdateGate) {
  constexpr char kNet[] = "[net]\ninputs=1\n[gru]\noutput=1\ntanh=1\n";
  // Biases 0; weights of wz, wr, wh on the state, then of uz, ur, uh on the operand.
  const auto y = Answer(kNet, {0, .1F, 0, .2F, 0, .3F, 0, .4F, 0, .5F, 0, .6F}, {{1}, {2}});
  const double z = Sigmoid(.4 + .1 * 2);
  const double r = Sigmoid(.5 + .2 * 2);
  const double h = std::tanh(.6 + .3 * 2 * r);
  EXPECT_NEAR(y[1][0], z * 2 + (1 - z) * h, 1e-6);
  EXPECT_EQ(y[0], y[1]);
}

TEST(DarknetImportTest, LstmStoresGatesInTheOrderOfItsProgram) {
  const std::string net = "[net]\ninputs=1\n[lstm]\noutput=1\n";
  const std::vector<float> weights = {0, .1F, 0, .2F, 0, .3F, 0, .4F,
                                      0, .5F, 0, .6F, 0, .7F, 0, .8F};
  const auto step = [](double i, double f, double o, double g, double cell) {
    const double next = Sigmoid(f) * cell + Sigmoid(i) * std::tanh(g);
    return std::pair(Sigmoid(o) * std::tanh(next), next);
  };
  // Operand 1, hidden 2, cell 3. The original: wi wf wo wg ui uf uo ug.
  const auto y = Answer(net, weights, {{1}, {2}, {3}});
  const auto [hidden, cell] = step(.5 + .1 * 2, .6 + .2 * 2, .7 + .3 * 2, .8 + .4 * 2, 3);
  EXPECT_NEAR(y[0][0], hidden, 1e-6);
  EXPECT_NEAR(y[1][0], cell, 1e-6);
  // The fork: wf wi wg wo uf ui ug uo.
  const auto z =
      Answer(absl::StrReplaceAll(net, {{"[lstm]", "mosaic=1\n[lstm]"}}), weights, {{1}, {2}, {3}});
  EXPECT_NEAR(z[0][0], step(.6 + .2 * 2, .5 + .1 * 2, .8 + .4 * 2, .7 + .3 * 2, 3).first, 1e-6);
  EXPECT_THAT(Import(net, WeightsOf(weights)).text, HasSubstr("NPUC1175"));
}

constexpr char kYolo[] =
    "[net]\nheight=4\nwidth=4\nchannels=1\n"
    "[convolutional]\nfilters=6\nsize=1\nstride=2\nactivation=linear\n"
    "[yolo]\nmask=0\nanchors=10,14, 23,27\nclasses=1\nnum=2\nscale_x_y=1.05\n"
    "[route]\nlayers=-2\n[maxpool]\nstride=2\n[convolutional]\nfilters=6\nactivation=linear\n"
    "[yolo]\nmask=1\nanchors=10,14,23,27\nclasses=1\nnum=2\n";

TEST(DarknetImportTest, HeadsBecomeSettingsOfBoxes) {
  const auto boxes_of = [](const std::string& cfg, const std::vector<std::string>& outputs) {
    CompileOptions options;
    options.outputs = outputs;
    Diagnostics diagnostics;
    std::optional<BoxSettings> boxes;
    const std::string bytes = WeightsOf(Ramp(12 + 42));
    const ViewSource weights(bytes);
    EXPECT_TRUE(ImportDarknet(cfg, &weights, options, diagnostics, &boxes).ok());
    return boxes;
  };
  const std::optional<BoxSettings> boxes = boxes_of(kYolo, {});
  ASSERT_TRUE(boxes.has_value());
  EXPECT_EQ(boxes->kind, BoxKind::kYolo3);
  EXPECT_EQ(boxes->classes, 1);
  EXPECT_THAT(boxes->image_size, ElementsAre(4, 4));
  ASSERT_EQ(boxes->heads.size(), 2);
  EXPECT_EQ(boxes->heads[0].output, "convolutional_0");
  EXPECT_THAT(boxes->heads[0].anchors, ElementsAre(10, 14));
  EXPECT_THAT(boxes->heads[1].anchors, ElementsAre(23, 27));
  EXPECT_EQ(boxes->heads[0].xy_scale, 1.05);
  EXPECT_EQ(boxes->heads[1].xy_scale, 1);
  // As `npuc init` writes the outputs; without one of them there are no boxes.
  EXPECT_TRUE(boxes_of(kYolo, {"convolutional_0", "convolutional_4"}).has_value());
  EXPECT_FALSE(boxes_of(kYolo, {"convolutional_4"}).has_value());
  EXPECT_FALSE(boxes_of(absl::StrReplaceAll(kYolo, {{"classes=1", "classes=1\nnew_coords=1"}}), {})
                   .has_value());
}

TEST(DarknetImportTest, HeadsAreLeftOut) {
  const Imported net = Import(kYolo, WeightsOf(Ramp(12 + 42)));
  ASSERT_TRUE(net.graph.ok()) << net.text;
  ASSERT_EQ(net.graph->outputs().size(), 2U);
  EXPECT_EQ(net.graph->outputs()[0].name, "convolutional_0");
  EXPECT_EQ(net.graph->outputs()[1].name, "convolutional_4");
  EXPECT_THAT(net.text, HasSubstr("at each place 1 box of x, y, w, h, objectness and 1 classes"));
  EXPECT_THAT(net.text, HasSubstr("anchors 10,14,23,27 in pixels of the input, of which mask 0"));
  Diagnostics diagnostics;
  const auto outline = OutlineDarknet(kYolo, "net.cfg", diagnostics);
  ASSERT_TRUE(outline.ok()) << outline.status();
  EXPECT_EQ(outline->inputs[0].dims, (std::vector<int64_t>{1, 1, 4, 4}));
  EXPECT_EQ(outline->outputs[0].dims, (std::vector<int64_t>{1, 6, 2, 2}));
  EXPECT_EQ(outline->weights, 54);
  EXPECT_EQ(outline->operators.at("yolo"), 2);
}

TEST(DarknetImportTest, InputsAndOutputsAreNamed) {
  CompileOptions options;
  options.inputs = {{"input", {1, 1, 8, 8}}};
  options.outputs = {"convolutional_0"};
  const Imported net = Import(kYolo, WeightsOf(Ramp(54)), options);
  ASSERT_TRUE(net.graph.ok()) << net.text;
  EXPECT_EQ(net.graph->type(net.graph->outputs()[0].value).shape, (Shape{1, 6, 4, 4}));
  options.inputs = {{"convolutional_0", {1, 6, 2, 2}}};
  options.outputs = {"convolutional_4"};
  EXPECT_TRUE(Import(kYolo, WeightsOf(Ramp(54)), options).graph.ok());
  options.inputs = {{"convolutional_0", {1, 6, 3, 3}}};
  EXPECT_THAT(Import(kYolo, WeightsOf(Ramp(54)), options).text, HasSubstr("NPUC1118"));
  options.inputs = {};
  options.outputs = {"yolo_1"};
  EXPECT_THAT(Import(kYolo, WeightsOf(Ramp(54)), options).text, HasSubstr("NPUC1117"));
}

TEST(DarknetImportTest, OutputsCutOffWhatIsNotSupported) {
  CompileOptions options;
  constexpr char kNet[] = "[net]\ninputs=2\n[connected]\noutput=2\n[crnn]\n[softmax]\ntree=t\n";
  options.outputs = {"connected_0"};
  const Imported net = Import(kNet, WeightsOf(Ramp(6 + 100)), options);
  EXPECT_TRUE(net.graph.ok()) << net.text;
  EXPECT_EQ(net.text, "");
}

TEST(DarknetImportTest, SkipsWhatDarknetSkips) {
  constexpr char kNet[] =
      "# a comment\n; another\n[ net ]\r\n in puts = 2 \n[conn]\noutput = 1 # of one\n"
      "output = 7\nactivation=linear\nlearning_rate=.1\n[cost]\ntype=sse\n";
  EXPECT_THAT(Answer(kNet, {1, 2, 3}, {{1, 1}}), ElementsAre(ElementsAre(6)));
}

TEST(DarknetHostileTest, EveryTruncationIsRefusedOrRead) {
  const std::string weights = WeightsOf(Ramp(54));
  for (size_t size = 0; size <= std::strlen(kYolo); ++size) {
    const Imported net = Import(std::string(kYolo, size), weights);
    EXPECT_FALSE(absl::IsInternal(net.graph.status())) << size << net.text;
  }
  for (size_t size = 0; size < weights.size(); ++size) {
    const Imported net = Import(kYolo, weights.substr(0, size));
    EXPECT_THAT(net.text, HasSubstr("NPUC1172")) << size;
  }
}

TEST(DarknetHostileTest, EveryFlippedByteIsRefusedOrRead) {
  const std::string weights = WeightsOf(Ramp(54));
  const std::string cfg = kYolo;
  for (size_t at = 0; at < cfg.size(); ++at) {
    for (const unsigned char flip : {0x01, 0x04, 0x80}) {
      std::string mutant = cfg;
      mutant[at] = static_cast<char>(static_cast<unsigned char>(mutant[at]) ^ flip);
      const Imported net = Import(mutant, weights);
      EXPECT_FALSE(absl::IsInternal(net.graph.status())) << at << net.text;
    }
  }
}

TEST(DarknetHostileTest, NumbersOfAnySizeAreBounded) {
  const auto text = [](const std::string& layers) {
    return Import(absl::StrCat(kImage, layers), WeightsOf({})).text;
  };
  EXPECT_THAT(text("[convolutional]\nfilters=1048576\nsize=1048575\npad=1\n"),
              HasSubstr("NPUC1172"));
  EXPECT_THAT(text("[convolutional]\nfilters=99999999999999999999\n"), HasSubstr("NPUC1112"));
  EXPECT_THAT(text("[connected]\noutput=1048576\n[connected]\noutput=1048576\n"),
              HasSubstr("NPUC1172"));
  EXPECT_THAT(text("[upsample]\nstride=64\n[upsample]\nstride=64\n[upsample]\nstride=64\n"),
              HasSubstr("values are allowed"));
  EXPECT_THAT(text("[softmax]\ntemperature=nan\n"), HasSubstr("must be a number"));
  EXPECT_THAT(
      Import("[net]\nheight=1048576\nwidth=1048576\nchannels=1048576\n[avgpool]\n", WeightsOf({}))
          .text,
      HasSubstr("NPUC1112"));
}

TEST(DarknetHostileTest, LayersAreReadFromInFront) {
  const auto text = [](const std::string& layers) {
    return Import(absl::StrCat(kImage, layers), WeightsOf({})).text;
  };
  EXPECT_THAT(text("[route]\nlayers=0\n"), HasSubstr("NPUC1106"));
  EXPECT_THAT(text("[dropout]\n[route]\nlayers=1\n"), HasSubstr("NPUC1106"));
  EXPECT_THAT(text("[dropout]\n[route]\nlayers=-2\n"), HasSubstr("NPUC1106"));
  EXPECT_THAT(text("[dropout]\n[route]\nlayers=\n"), HasSubstr("NPUC1112"));
  EXPECT_THAT(text("[dropout]\n[route]\n"), HasSubstr("names no layer"));
}

TEST(DarknetHostileTest, NothingReadsDecodedBoxes) {
  constexpr char kHead[] = "[net]\nheight=1\nwidth=1\nchannels=6\n[dropout]\n[yolo]\nclasses=1\n";
  for (const char* layer : {"[maxpool]\n", "[route]\nlayers=1\n", "[shortcut]\nfrom=0\n"}) {
    EXPECT_THAT(Import(absl::StrCat(kHead, layer), WeightsOf({})).text,
                HasSubstr("reads layer 1, [yolo], which is no part of the program"));
  }
}

TEST(DarknetHostileTest, AllProblemsComeAtOnce) {
  const std::string text = Import(absl::StrCat(kImage,
                                               "[crnn]\n[convolutional]\nactivation=leeky\nxnor=1\n"
                                               "[conv_lstm]\n[maxpool]\nsize=two\n"),
                                  WeightsOf({}))
                               .text;
  for (const char* part : {"[crnn]", "leeky", "is leaky", "xnor=1", "[conv_lstm]", "'two'"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(DarknetHostileTest, SaysWhatAFileIs) {
  EXPECT_THAT(Import("", WeightsOf({})).text, HasSubstr("NPUC1100"));
  EXPECT_THAT(Import("[Common]\nmode = build\n", WeightsOf({})).text,
              HasSubstr("a config of aipubuild"));
  EXPECT_THAT(Import("CORENAME: GRUS\n", WeightsOf({})).text, HasSubstr("NPUC1170"));
  EXPECT_THAT(Import(kYolo, std::nullopt).text, HasSubstr("no file of them is given"));
  EXPECT_THAT(Import(kYolo, std::string("PK\x03\x04 zip zip zip zip", 20)).text,
              HasSubstr("which no Darknet writes"));
  EXPECT_THAT(Import(kYolo, WeightsOf(Ramp(55))).text, HasSubstr("NPUC1173"));
  EXPECT_THAT(
      Import(absl::StrReplaceAll(kYolo, {{"stride=2\nact", "strde=2\nact"}}), WeightsOf(Ramp(54)))
          .text,
      HasSubstr("no key 'strde'"));
}

TEST(DarknetHostileTest, NegativeVariancesAreNoneOfThisNet) {
  constexpr char kNet[] = "[net]\ninputs=1\n[connected]\noutput=1\nbatch_normalize=1\n";
  EXPECT_THAT(Import(kNet, WeightsOf({0, 1, 1, 0, -1})).text, HasSubstr("NPUC1108"));
}

// The fuzz corpus' seeds: a .cfg, a zero byte, the .weights.
TEST(DarknetCorpusTest, SeedsAreCommitted) {
  const auto seed = [](const std::string& cfg, size_t weights) {
    return cfg + std::string(1, '\0') + WeightsOf(Ramp(weights));
  };
  const std::string recurrent =
      "[net]\ninputs=2\n[rnn]\noutput=1\n[gru]\noutput=1\nbatch_normalize=1\n[lstm]\noutput=1\n"
      "[softmax]\n[cost]\n";
  const std::string moves = absl::StrCat(
      kImage,
      "[reorg]\nstride=2\n[reorg]\nstride=2\nreverse=1\n[reorg3d]\nstride=2\n[crop]\n"
      "crop_height=2\ncrop_width=1\n[upsample]\nstride=-1\n[lrn]\n[l2norm]\n[batchnorm]\n"
      "[shortcut]\nfrom=-2\n[scale_channels]\nfrom=-1\n[sam]\nfrom=-1\n[local]\nsize=1\n");
  ExpectSeeds("darknet_fuzz", {{"seed_yolo.cfg", seed(kYolo, 54)},
                               {"seed_recurrent.cfg", seed(recurrent, 64)},
                               {"seed_moves.cfg", seed(moves, 2048)}});
}

}  // namespace
}  // namespace npuc
