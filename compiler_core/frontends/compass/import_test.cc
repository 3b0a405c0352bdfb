#include "compiler_core/frontends/compass/import.h"

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "compiler_core/frontends/compass/tensors.h"
#include "compiler_core/ops/quantize.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A fully connected layer of 2 x 3 weights, of which the operand's scale is 1 / 2 and the result's
// 1 / 4, and a softmax.
constexpr char kQuantized[] =
    "model_name=m\nlayer_number=3\ninput_tensors=[x]\noutput_tensors=[y]\n\n"
    "layer_id=0\nlayer_name=x\nlayer_type=Input\nlayer_bottom=[]\nlayer_bottom_shape=[]\n"
    "layer_bottom_type=[]\nlayer_top=[x]\nlayer_top_shape=[[1,3]]\nlayer_top_type=[int8]\n"
    "layer_top_scale=[2]\nlayer_top_zp=[3]\nlayer_top_range=[[-128,127]]\n\n"
    "layer_id=1\nlayer_name=f\nlayer_type=FullyConnected\nlayer_bottom=[x]\n"
    "layer_bottom_shape=[[1,3]]\nlayer_bottom_type=[int8]\nlayer_top=[f]\n"
    "layer_top_shape=[[1,2]]\nlayer_top_type=[uint8]\nlayer_top_scale=[4]\nlayer_top_zp=[0]\n"
    "weights_type=int8\nweights_offset=0\nweights_size=6\nweights_shape=[2,3]\n"
    "biases_type=int32\nbiases_offset=8\nbiases_size=8\nbiases_shape=[2]\n"
    "scale_type=uint16\nscale_offset=16\nscale_size=4\nscale_shape=[2]\n"
    "shift_type=int8\nshift_offset=20\nshift_size=2\nshift_shape=[2]\n"
    "weights_scale_type=float32\nweights_scale_offset=24\nweights_scale_size=8\n"
    "weights_scale_shape=[2]\nnum_output=2\nwith_activation=RELU\nlut_items_in_bits=9\n\n"
    "layer_id=2\nlayer_name=s\nlayer_type=Softmax\nlayer_bottom=[f]\n"
    "layer_bottom_shape=[[1,2]]\nlayer_bottom_type=[uint8]\nlayer_top=[y]\n"
    "layer_top_shape=[[1,2]]\nlayer_top_type=[uint8]\nlayer_top_scale=[255]\nlayer_top_zp=[0]\n"
    "axis=-1\n\n";

template <typename T>
void Put(std::string& bin, size_t at, const std::vector<T>& values) {
  std::memcpy(bin.data() + at, values.data(), values.size() * sizeof(T));
}

// Weights of scales 8 and 16: factors 4 / (2 * 8) = 1/4 and 1/8, of which the first is stored as it
// follows, the second one higher.
std::string Bin(uint16_t second_multiplier = 16385) {
  std::string bin(32, '\0');
  Put<int8_t>(bin, 0, {1, -2, 3, 4, 5, -6});
  Put<int32_t>(bin, 8, {100, -100});
  Put<uint16_t>(bin, 16, {16384, second_multiplier});
  Put<int8_t>(bin, 20, {16, 17});
  Put<float>(bin, 24, {8, 16});
  return bin;
}

struct Imported {
  absl::StatusOr<Graph> graph;
  std::string problems;
};

Imported Import(const std::string& text, const std::string& bin, CompileOptions options = {}) {
  options.model_name = "m.txt";
  Diagnostics diagnostics;
  Imported result{ImportCompass(text, ViewSource(bin), options, diagnostics), ""};
  EXPECT_EQ(result.graph.ok(), !diagnostics.has_errors());
  for (const Diagnostic& d : diagnostics.list())
    absl::StrAppend(&result.problems, d.ToString(), "\n");
  return result;
}

std::string Changed(absl::string_view from, absl::string_view to) {
  const std::string text = absl::StrReplaceAll(kQuantized, {{from, to}});
  EXPECT_NE(text, kQuantized) << from;
  return text;
}

// The settings that the Quantize of a value named `name` states.
LayerQuant SettingsOf(const Graph& graph, absl::string_view name) {
  for (const Node& node : graph.nodes()) {
    if (node.op != Op::kQuantize || node.source.name != name) continue;
    const auto settings = LayerQuantOf(node);
    EXPECT_TRUE(settings.ok() && settings->has_value());
    return **settings;
  }
  ADD_FAILURE() << "no Quantize named " << name;
  return {};
}

TEST(CompassImportTest, AQuantizedIrBecomesQdqWithItsOwnNumbers) {
  const Imported imported = Import(kQuantized, Bin());
  ASSERT_TRUE(imported.graph.ok()) << imported.problems;
  const Graph& graph = *imported.graph;
  std::vector<Op> ops;
  for (const Node& node : graph.nodes()) {
    if (node.op != Op::kConst) ops.push_back(node.op);
  }
  EXPECT_THAT(ops, ElementsAre(Op::kPlaceholder, Op::kQuantize, Op::kDequantize, Op::kDequantize,
                               Op::kMatMul, Op::kDequantize, Op::kAdd, Op::kRelu, Op::kQuantize,
                               Op::kDequantize, Op::kSoftmax, Op::kQuantize, Op::kDequantize));
  EXPECT_EQ(graph.outputs()[0].name, "y");
  const Node& input = graph.def(graph.def(graph.def(graph.outputs()[0].value).inputs[0]).inputs[0]);
  EXPECT_EQ(input.op, Op::kSoftmax);
  const LayerQuant settings = SettingsOf(graph, "f");
  EXPECT_EQ(settings.lut_bits, 9);
  EXPECT_THAT(settings.factors, ElementsAre(Factor{16384, 16}, Factor{16385, 17}));
}

TEST(CompassImportTest, FactorsThatFollowFromTheScalesAreNotKept) {
  const Imported imported = Import(kQuantized, Bin(16384));
  ASSERT_TRUE(imported.graph.ok()) << imported.problems;
  EXPECT_TRUE(SettingsOf(*imported.graph, "f").factors.empty());
}

TEST(CompassImportTest, ScalesComeBackToTheBit) {
  double scale = 1e-9;
  for (int i = 0; i < 20000; ++i) {
    const std::string text = absl::StrFormat("%.18g", 1 / static_cast<long double>(scale));
    ASSERT_EQ(compass::ScaleFromText(text), scale) << text;
    const double single = static_cast<float>(scale);
    ASSERT_EQ(compass::ScaleFromReciprocal(1 / single), single);
    scale *= 1.00213;
  }
  for (const char* text : {"0", "-1", "nan", "1e999", "", "1 ", "x"}) {
    EXPECT_EQ(compass::ScaleFromText(text), 0) << text;
  }
  EXPECT_EQ(compass::ScaleFromReciprocal(NAN), 0);
  EXPECT_EQ(compass::ScaleFromReciprocal(INFINITY), 0);
}

TEST(CompassImportTest, CutsAndOutputs) {
  CompileOptions options;
  options.inputs = {{"f", {1, 2}}};
  const Imported cut = Import(kQuantized, Bin(), options);
  ASSERT_TRUE(cut.graph.ok()) << cut.problems;
  EXPECT_EQ(cut.graph->def(cut.graph->inputs()[0]).source.name, "f");
  options = {};
  options.outputs = {"f", "y"};
  EXPECT_EQ(Import(kQuantized, Bin(), options).graph->outputs().size(), 2u);
  options.outputs = {"g"};
  EXPECT_THAT(Import(kQuantized, Bin(), options).problems, HasSubstr("the IR's inputs are 'x'"));
  options.outputs = {"x"};
  options.inputs = {{"f", {1, 2}}};
  EXPECT_THAT(Import(kQuantized, Bin(), options).problems, HasSubstr("no output depends on it"));
  options.inputs = {{"f", {1, 3}}};
  EXPECT_THAT(Import(kQuantized, Bin(), options).problems, HasSubstr("the model states [1,2]"));
}

struct Case {
  const char* from;
  const char* to;
  const char* problem;
};

TEST(CompassImportTest, SaysWhatIsWrongAndWhere) {
  const std::vector<Case> cases = {
      {"layer_type=Softmax", "layer_type=Softmux",
       "m.txt:56: node 's' (Softmux): "
       "layers of type Softmux are not supported; the nearest supported one is Softmax"},
      {"layer_top_scale=[4]", "layer_top_scale=[-4]",
       "m.txt:28: node 'f' (FullyConnected): "
       "layer_top_scale: '-4' is no number above 0"},
      {"layer_top_zp=[3]", "layer_top_zp=[129]", "'129' is no whole number in -127..128"},
      {"layer_top_range=[[-128,127]]", "layer_top_range=[[-129,127]]", "is not within int8's"},
      {"layer_top_scale=[4]\nlayer_top_zp=[0]\n", "", "is uint8 without layer_top_scale"},
      {"uint8]\nlayer_top_scale=[255]", "float16]\nlayer_top_scale=[255]", "values are float32"},
      {"with_activation=RELU", "with_activation=CLIP", "'CLIP' is none of NONE, RELU, RELU6"},
      {"lut_items_in_bits=9", "lut_items_in_bits=17", "'17' is no whole number in 4..16"},
      {"weights_scale_type=float32\nweights_scale_offset=24\nweights_scale_size=8\n"
       "weights_scale_shape=[2]\n",
       "", "integer weights without weights_scale"},
      {"weights_scale_offset=24", "weights_scale_offset=0", "weights_scale_offset: number "},
      {"shift_type=int8\nshift_offset=20\nshift_size=2\nshift_shape=[2]\n", "", "has no shift"},
      {"input_tensors=[x]", "input_tensors=[f]", "input_tensors names 'f', which layer 'f'"},
  };
  for (const Case& c : cases) {
    const std::string text = Changed(c.from, c.to);
    // The one overlap is allowed to the checker's own test.
    EXPECT_THAT(Import(text, Bin()).problems,
                testing::AnyOf(HasSubstr(c.problem), HasSubstr("begins within")))
        << c.from;
  }
}

TEST(CompassImportTest, EveryLayerIsHeard) {
  const std::string problems =
      Import(absl::StrReplaceAll(kQuantized, {{"layer_type=Softmax", "layer_type=Lstm"},
                                              {"with_activation=RELU", "with_activation=ELU"}}),
             Bin())
          .problems;
  EXPECT_THAT(problems, HasSubstr("with_activation: 'ELU'"));
  EXPECT_THAT(problems, HasSubstr("layers of type Lstm"));
  const std::string two =
      Import(absl::StrReplaceAll(kQuantized, {{"layer_top_scale=[4]", "layer_top_scale=[0]"},
                                              {"layer_top_zp=[3]", "layer_top_zp=[x]"}}),
             Bin())
          .problems;
  EXPECT_THAT(two, HasSubstr("'0' is no number"));
  EXPECT_THAT(two, HasSubstr("'x' is no whole number"));
}

TEST(CompassImportTest, NoByteOfTheFilesMakesItCrash) {
  const std::string bin = Bin();
  const std::string text = kQuantized;
  for (size_t i = 0; i < text.size(); ++i) {
    for (const char c : {'0', '9', '-', '[', '\n'}) {
      std::string damaged = text;
      damaged[i] = c;
      EXPECT_FALSE(absl::IsInternal(Import(damaged, bin).graph.status())) << i << c;
    }
  }
  for (size_t i = 0; i < bin.size(); ++i) {
    for (const int value : {0, 127, 128, 255}) {
      std::string damaged = bin;
      damaged[i] = static_cast<char>(value);
      EXPECT_FALSE(absl::IsInternal(Import(text, damaged).graph.status())) << i;
    }
    EXPECT_FALSE(Import(text, bin.substr(0, i)).graph.ok());
  }
}

}  // namespace
}  // namespace npuc
