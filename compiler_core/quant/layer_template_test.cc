#include "compiler_core/quant/layer_template.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/files_test_util.h"
#include "compiler_core/base/trim_text.h"
#include "compiler_core/quant/test_nets_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<Layer> Layers() {
  std::vector<Layer> layers(3);
  layers[0].name = "input";
  layers[1].name = "conv/1";
  layers[1].type = "Convolution";
  layers[2].name = "dense";
  return layers;
}

// Every diagnostic of a template, as users see them.
std::vector<std::string> Problems(absl::string_view text) {
  Diagnostics diagnostics;
  std::vector<LayerSettings> settings(3);
  const std::vector<LayerSettings> before = settings;
  const absl::Status status = ReadLayerTemplate(text, "t.json", Layers(), settings, diagnostics);
  EXPECT_EQ(status.ok(), diagnostics.list().empty());
  EXPECT_TRUE(status.ok() || settings == before);
  std::vector<std::string> out;
  for (const Diagnostic& diagnostic : diagnostics.list()) out.push_back(diagnostic.ToString());
  return out;
}

std::string SourceFile(absl::string_view path) {
  const char* root = std::getenv("NPUC_SOURCE_DIR");
  std::ifstream stream(absl::StrCat(root == nullptr ? "." : root, "/", path));
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

// A template a line, and below it what must be said about it.
TEST(LayerTemplateTest, MalformedTemplatesAndTheirErrors) {
  const std::string file = SourceFile("compiler_core/quant/malformed_templates.txt");
  const std::vector<std::string> lines = absl::StrSplit(file, '\n', absl::SkipEmpty());
  ASSERT_GE(lines.size(), 2u * 30);
  for (size_t i = 0; i + 1 < lines.size(); i += 2) {
    EXPECT_THAT(Problems(lines[i]), ElementsAre(lines[i + 1])) << lines[i];
  }
  EXPECT_THAT(Problems(""), ElementsAre(HasSubstr("it is empty")));
}

TEST(LayerTemplateTest, AllProblemsAtOnce) {
  EXPECT_EQ(Problems("{\"conv/1\": {\"q_bits_weight\": 3, \"q_bits\": 1},\n \"dens\": 4}").size(),
            4u);
}

TEST(LayerTemplateTest, TheRealTemplateIsAccepted) {
  // The open-source optimizer's own file, layer for layer.
  const std::string text =
      ReadTestFile(SharedFolder() / "fixtures" / "compass" / "kws_opt_template.json");
  if (text.empty()) GTEST_SKIP() << "no template at " << SharedFolder();
  std::vector<Layer> layers(14);
  layers[0].name = "t0";
  for (int i = 1; i < 14; ++i) layers[i].name = absl::StrCat("t", 21 + i);
  std::vector<LayerSettings> settings(14);
  Diagnostics diagnostics;
  ASSERT_TRUE(ReadLayerTemplate(text, "t.json", layers, settings, diagnostics).ok())
      << diagnostics.ToStatus();
  for (const LayerSettings& s : settings) {
    EXPECT_EQ(s.activation_method, QuantMethod::kPerTensorAsymmetric);
    EXPECT_EQ(s.weight_method, QuantMethod::kPerChannelSymmetricRestricted);
    EXPECT_EQ(s.activation_strategy.kind, QuantStrategy::Kind::kMean);
  }
}

class RoundTripTest : public ::testing::Test {
 protected:
  void SetUp() override {
    graph_ = MakeKeywordNet({}, 1);
    samples_ = MakeSamples(graph_, 16, 2);
  }
  QuantizeResult Quantized(const std::string& opt_template) {
    QuantizeInput input = InputOf(graph_, samples_);
    input.options.activation_strategy = {strategy_, 0};
    input.opt_template = opt_template;
    if (!opt_template.empty()) input.template_name = "t.json";
    Diagnostics diagnostics;
    absl::StatusOr<QuantizeResult> result = Quantize(input, diagnostics);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *std::move(result) : QuantizeResult{};
  }
  Graph graph_;
  std::string samples_;
  QuantStrategy::Kind strategy_ = QuantStrategy::Kind::kAuto;
};

TEST_F(RoundTripTest, SameBytes) {
  const QuantizeResult first = Quantized("");
  const QuantizeResult second = Quantized(first.opt_template);
  EXPECT_EQ(second.opt_template, first.opt_template);
  EXPECT_EQ(second.plan.values, first.plan.values);
  EXPECT_EQ(second.plan.constants, first.plan.constants);
}

struct Edit {
  const char* key;
  const char* value;
  const char* beside = "";  // in both templates: what the key needs to show
};

bool SamePlan(const QuantizeResult& a, const QuantizeResult& b, size_t i, bool with_bias) {
  const Layer& layer = a.plan.layers[i];
  const auto same = [&](ValueId id) {
    const auto in_a = a.plan.values.find(id);
    const auto in_b = b.plan.values.find(id);
    if (in_a == a.plan.values.end() || in_b == b.plan.values.end()) {
      return (in_a == a.plan.values.end()) == (in_b == b.plan.values.end());
    }
    return in_a->second == in_b->second;
  };
  const LayerQuant& x = a.plan.settings[i];
  const LayerQuant& y = b.plan.settings[i];
  return same(layer.weight) && same(layer.outputs[0]) && (!with_bias || same(layer.bias)) &&
         x.in_float == y.in_float && x.lut_bits == y.lut_bits &&
         x.multiplier_bits == y.multiplier_bits && x.bias_effective_bits == y.bias_effective_bits;
}

TEST_F(RoundTripTest, EachKeyChangesItsLayerAlone) {
  const Edit edits[] = {
      {"q_mode_activation", "\"per_tensor_asymmetric\"", "\"force_dtype_int\": true"},
      {"q_mode_weight", "\"per_channel_symmetric_full_range\""},
      {"q_bits_activation", "12"},
      {"q_bits_weight", "4"},
      {"q_bits_bias", "16"},
      {"q_strategy_activation", "\"1std\""},
      {"q_strategy_weight", "\"1std\""},
      {"running_statistic_momentum", "0.1", "\"q_strategy_activation\": \"mean\""},
      {"histc_bins", "64", "\"q_strategy_activation\": \"0.9percentile\""},
      {"lut_items_in_bits", "10"},
      {"force_dtype_int", "true"},
      {"trigger_float_op", "\"float32_preferred\""},
      {"multiplier_bits", "12"},
      {"bias_effective_bits", "6"},
      {"trim_infinity_before_statistic", "\"(-1, 0.1):clip\""},
  };
  constexpr size_t kLayer = 3;  // pw0, a 1x1 convolution with a ReLU
  strategy_ = QuantStrategy::Kind::kExtrema;
  for (const Edit& edit : edits) {
    SCOPED_TRACE(edit.key);
    const bool beside = edit.beside[0] != '\0';
    const QuantizeResult without = Quantized(absl::StrCat("{\"pw0\": {", edit.beside, "}}"));
    const QuantizeResult with = Quantized(absl::StrCat(
        "{\"pw0\": {", edit.beside, beside ? ", " : "", "\"", edit.key, "\": ", edit.value, "}}"));
    std::set<std::string> differ;
    for (size_t i = 0; i < with.plan.layers.size(); ++i) {
      // A bias has the scale of the layer's operand: its integers follow the layer before.
      if (!SamePlan(with, without, i, i == kLayer)) differ.insert(with.plan.layers[i].name);
    }
    EXPECT_THAT(differ, ElementsAre("pw0"));
    // And what the template says is what the next one says.
    EXPECT_THAT(with.opt_template, HasSubstr(absl::StrCat("\"", edit.key, "\": ")));
    EXPECT_EQ(Quantized(with.opt_template).opt_template, with.opt_template);
  }
}

TEST(LayerTemplateTest, TheSchemaHasTheReadersKeys) {
  const std::string text = SourceFile("compiler_core/quant/opt_template.schema.json");
  for (const absl::string_view key : LayerTemplateKeys()) {
    EXPECT_THAT(text, HasSubstr(absl::StrCat("\"", std::string(key), "\": {"))) << key;
  }
  EXPECT_EQ(Problems("{}").size(), 0u);
}

TEST(TrimInfinityTest, TextBothWays) {
  for (const char* text : {"(-3, 4.5):clip", "(0, 1e+30):second"}) {
    ASSERT_TRUE(TrimInfinityFromText(text).has_value()) << text;
    EXPECT_EQ(TextOf(*TrimInfinityFromText(text)), text);
  }
  for (const char* text : {"", "(1, 0):clip", "(0, 1)", "0, 1:clip", "(0, 1, 2):clip",
                           "(a, 1):clip", "(0, 1):third", "(nan, 1):clip", "(inf, inf):clip"}) {
    EXPECT_FALSE(TrimInfinityFromText(text).has_value()) << text;
  }
  // The guide's form: infinities alone are beyond the ends of f32.
  EXPECT_EQ(*TrimInfinityFromText("(-inf, inf):second"), (TrimInfinity{-3e38, 3e38, true}));
}

}  // namespace
}  // namespace npuc
