#include "compiler_core/quant/quantize.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler_core/base/fixed_point.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/graph/text.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/quant/data/npy.h"
#include "compiler_core/quant/operand_moments.h"
#include "compiler_core/quant/test_nets_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using testing::HasSubstr;

QuantizeResult Quantized(const QuantizeInput& input) {
  Diagnostics diagnostics;
  absl::StatusOr<QuantizeResult> result = Quantize(input, diagnostics);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : QuantizeResult{};
}

std::string Problem(const QuantizeInput& input) {
  Diagnostics diagnostics;
  const absl::StatusOr<QuantizeResult> result = Quantize(input, diagnostics);
  EXPECT_EQ(result.ok(), !diagnostics.has_errors());
  return std::string(result.status().message());
}

class QuantizeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    graph_ = MakeKeywordNet({}, 1);
    samples_ = MakeSamples(graph_, 24, 2);
  }
  QuantizeInput Input() { return InputOf(graph_, samples_); }
  // The error at the only output, relative to its energy.
  double ErrorOf(const QuantOptions& options) {
    QuantizeInput input = Input();
    input.options = options;
    return Quantized(input).outputs[0].relative();
  }
  // A run by mixed precision that is to have a third of the error of 8 bits, which it sets `most`
  // to.
  QuantizeResult WithAThirdOfTheError(double& most) {
    QuantizeInput input = Input();
    input.options.activation_strategy = {QuantStrategy::Kind::kExtrema, 0};
    most = (1 - Quantized(input).outputs[0].cosine()) / 3;
    input.options.mixed_precision_batches = 1;
    input.options.mixed_precision_threshold = most;
    return Quantized(input);
  }
  Graph graph_;
  std::string samples_;
};

QuantOptions PerChannel() {
  QuantOptions options;
  options.weight_method = QuantMethod::kPerChannelSymmetricRestricted;
  options.activation_method = QuantMethod::kPerTensorAsymmetric;
  options.activation_strategy = {QuantStrategy::Kind::kExtrema, 0};
  return options;
}

TEST_F(QuantizeTest, MoreBitsLessError) {
  double last = 1;
  for (const int bits : {8, 10, 12, 16}) {
    QuantOptions options = PerChannel();
    options.activation_bits = options.weight_bits = bits;
    const double error = ErrorOf(options);
    EXPECT_LT(error, last * 0.5) << bits;
    last = error;
  }
  EXPECT_LT(last, 1e-6);
}

TEST_F(QuantizeTest, ThePlanHoldsWhatLoweringNeeds) {
  QuantizeInput input = Input();
  input.options = PerChannel();
  const QuantizeResult result = Quantized(input);
  ASSERT_EQ(result.plan.settings.size(), result.plan.layers.size());
  for (const Layer& layer : result.plan.layers) {
    for (const ValueId id : layer.outputs) {
      const QuantParams& params = result.plan.values.at(id);
      ASSERT_EQ(params.scale.size(), 1u);
      EXPECT_GT(params.scale[0], 0);
      EXPECT_GE(params.zero_point[0], params.qmin);
      EXPECT_LE(params.zero_point[0], params.qmax);
    }
    if (!layer.weight.valid()) continue;
    const QuantParams& weight = result.plan.values.at(layer.weight);
    EXPECT_EQ(result.plan.constants.at(layer.weight).dtype(), DType::kInt8);
    EXPECT_EQ(weight.qmin, -127);
    const QuantParams& bias = result.plan.values.at(layer.bias);
    EXPECT_EQ(result.plan.constants.at(layer.bias).dtype(), DType::kInt32);
    ASSERT_EQ(bias.scale.size(), weight.scale.size());
    const double input_scale = result.plan.values.at(layer.inputs[0]).scale[0];
    for (size_t c = 0; c < bias.scale.size(); ++c) {
      EXPECT_DOUBLE_EQ(bias.scale[c], weight.scale[c] * input_scale);
    }
  }
  // A ReLU's result is unsigned, and what only moves values keeps its operand's parameters.
  const auto layer = [&](absl::string_view name) -> const Layer& {
    for (const Layer& l : result.plan.layers) {
      if (l.name == name) return l;
    }
    NPUC_CHECK(false);
    return result.plan.layers[0];
  };
  EXPECT_EQ(result.plan.values.at(layer("conv").outputs[0]).dtype, DType::kUint8);
  EXPECT_EQ(result.plan.values.at(layer("dense").outputs[0]).dtype, DType::kInt8);
  EXPECT_EQ(result.plan.values.at(layer("flat").outputs[0]),
            result.plan.values.at(layer("pool").outputs[0]));
}

TEST_F(QuantizeTest, AutoIsNeverWorseThanAnySingleStrategy) {
  for (const uint32_t seed : {1u, 2u, 3u}) {
    graph_ = MakeKeywordNet({}, seed);
    QuantOptions options = PerChannel();
    options.activation_strategy = {QuantStrategy::Kind::kAuto, 0};
    const double with_auto = ErrorOf(options);
    for (const char* name :
         {"extrema", "mean", "3std", "6std", "percentile", "KLD", "aciq_laplace", "aciq_gauss"}) {
      options.activation_strategy = *QuantStrategyFromName(name);
      EXPECT_LE(with_auto, ErrorOf(options)) << name << ", seed " << seed;
    }
  }
}

TEST_F(QuantizeTest, BestSingleIsAsGoodAsEachStrategyAlone) {
  QuantOptions options = PerChannel();
  options.activation_strategy = {QuantStrategy::Kind::kBestSingle, 0};
  const double best = ErrorOf(options);
  double least = std::numeric_limits<double>::infinity();
  for (const char* name : {"extrema", "mean", "3std", "6std", "0.9999percentile", "KLD",
                           "aciq_laplace", "aciq_gauss"}) {
    options.activation_strategy = *QuantStrategyFromName(name);
    least = std::min(least, ErrorOf(options));
  }
  EXPECT_EQ(best, least);
}

TEST_F(QuantizeTest, SamplesFarBeyondTheModelsRangeAreDoubted) {
  Diagnostics diagnostics;
  QuantizeInput input = Input();
  ASSERT_TRUE(Quantize(input, diagnostics).ok());
  EXPECT_TRUE(diagnostics.list().empty());
  input.in_ir[graph_.inputs()[0]] = {-1e-3, 1e-3};
  ASSERT_TRUE(Quantize(input, diagnostics).ok());
  ASSERT_EQ(diagnostics.list().size(), 1u);
  EXPECT_THAT(diagnostics.list()[0].ToString(), HasSubstr("the model states -0.001 to 0.001"));
}

TEST_F(QuantizeTest, PerChannelEqualizationAndAdaroundHelpWhereTheyShould) {
  graph_ = MakeKeywordNet({.softmax = false, .channel_spread = 100}, 4);
  QuantOptions options = PerChannel();
  options.weight_method = QuantMethod::kPerTensorSymmetricRestricted;
  const double per_tensor = ErrorOf(options);
  options.global_calibration = {GlobalCalibration::kEqualization};
  EXPECT_LT(ErrorOf(options), per_tensor * 0.5);
  EXPECT_LT(ErrorOf(PerChannel()), per_tensor * 0.5);
  QuantOptions four = PerChannel();
  four.weight_bits = 4;
  four.activation_bits = 16;
  const double nearest = ErrorOf(four);
  four.global_calibration = {GlobalCalibration::kAdaround};
  const double adaround = ErrorOf(four);
  EXPECT_LT(adaround, nearest * 0.7);
  // Its biases have taken the mean error already: correction finds nothing more to gain.
  four.global_calibration = {GlobalCalibration::kAdaround, GlobalCalibration::kBiasCorrection};
  EXPECT_LT(adaround, ErrorOf(four) * 1.05);
}

// So many samples that one row of 16 is taken, of results that are 16 wide: at even steps only the
// left border's, where a part of each weight meets nothing but padding.
TEST_F(QuantizeTest, AdaroundSeesAllColumnsOfAPicture) {
  graph_ = MakeKeywordNet({.height = 32, .width = 32, .channels = 4, .blocks = 1}, 5);
  samples_ = MakeSamples(graph_, 1024, 6);
  const QuantizeInput input = Input();
  QuantState state;
  state.graph = &graph_;
  state.layers = input.layers;
  absl::StatusOr<FloatExecutor> executor = FloatExecutor::Create(graph_);
  ASSERT_TRUE(executor.ok());
  state.executor = state.quantized = *executor;
  absl::StatusOr<SampleSet> samples = SampleSet::Open(input.calibration, graph_);
  ASSERT_TRUE(samples.ok());
  int conv = 0;
  while (state.layers[conv].name != "conv") ++conv;
  ASSERT_TRUE(HasMoments(state, conv));
  const absl::StatusOr<OperandMoments> moments = MeasureMoments(state, conv, *samples);
  ASSERT_TRUE(moments.ok());
  ASSERT_EQ(moments->inner, 4 * 3);
  // The samples are noise: every weight of the kernel meets as much of it, padding aside.
  const double middle = moments->own[4 * 12 + 4];
  for (int64_t i = 0; i < moments->inner; ++i) {
    EXPECT_GT(moments->own[i * 12 + i], middle * 0.8) << i;
    EXPECT_LT(moments->own[i * 12 + i], middle * 1.2) << i;
  }
}

TEST_F(QuantizeTest, BiasCorrectionTakesAwayTheMeanError) {
  QuantOptions options = PerChannel();
  options.weight_bits = 4;
  const double without = ErrorOf(options);
  options.global_calibration = {GlobalCalibration::kBiasCorrection};
  EXPECT_LT(ErrorOf(options), without);
}

TEST_F(QuantizeTest, BiasesThatDoNotFitAreWidenedOrNamed) {
  graph_ = MakeKeywordNet({.bias_spread = 10}, 1);
  QuantizeInput input = Input();
  input.options = PerChannel();
  const auto none = testing::Not(testing::Contains(HasSubstr("bias")));
  EXPECT_THAT(Quantized(input).log, none);
  // Sums of 8-bit operands have no room for more than was asked for.
  input.options.bias_bits = 16;
  Diagnostics warned;
  EXPECT_TRUE(Quantize(input, warned).ok());
  ASSERT_FALSE(warned.list().empty());
  EXPECT_EQ(warned.list()[0].kind, DiagnosticKind::kBiasTooWide);
  EXPECT_EQ(warned.list()[0].node, "conv");
  EXPECT_THAT(warned.list()[0].ToString(), HasSubstr("is cut to the largest of 16"));
  EXPECT_THAT(warned.list()[0].ToString(), HasSubstr("set bias_bits (q_bits_bias) to "));
  // Those of 16-bit operands have.
  input.options.activation_bits = input.options.weight_bits = 16;
  const QuantizeResult wide = Quantized(input);
  EXPECT_THAT(wide.log, testing::Contains(HasSubstr("layer 'conv': its biases need ")));
  EXPECT_LT(wide.outputs[0].relative(), 1e-6);
  EXPECT_GT(wide.settings[1].bias_bits, 16);
  // The template has what was taken, and gives it again.
  input.template_name = "t.json";
  input.opt_template = wide.opt_template;
  const QuantizeResult again = Quantized(input);
  EXPECT_EQ(again.opt_template, wide.opt_template);
  EXPECT_THAT(again.log, none);
}

// A channel whose weights are zero, or next to nothing as behind a folded BatchNormalization, is
// its bias.
TEST_F(QuantizeTest, BiasesBesideWeightsOfNoWeightStay) {
  const std::string text = R"(graph "m" {
  %0 = Placeholder() : f32[1,2] @"x"
  %1 = Const() {value = f32[2,3] "0000803f00000000ffe6db2e0000803f00000000ffe6db2e"} : f32[2,3] @"w"
  %2 = MatMul(%0, %1) : f32[1,3] @"fc"
  %3 = Const() {value = f32[3] "0000000000000040000000c0"} : f32[3] @"b"
  %4 = Add(%2, %3) : f32[1,3] @"biased"
  return %4 @"y"
})";
  const absl::StatusOr<Graph> graph = ParseGraph(text);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const std::string samples = MakeSamples(*graph, 24, 2);
  for (const int bits : {8, 16}) {
    QuantizeInput input = InputOf(*graph, samples);
    input.options = PerChannel();
    input.options.weight_bits = input.options.activation_bits = bits;
    Diagnostics diagnostics;
    const absl::StatusOr<QuantizeResult> result = Quantize(input, diagnostics);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(diagnostics.list().empty()) << diagnostics.list()[0].ToString();
    const Layer& layer = result->plan.layers.back();
    const QuantParams& params = result->plan.values.at(layer.bias);
    const Tensor& stored = result->plan.constants.at(layer.bias);
    for (const int64_t channel : {1, 2}) {
      const double bias =
          static_cast<double>(stored.int_at(channel)) * params.scale[static_cast<size_t>(channel)];
      EXPECT_NEAR(bias, channel == 1 ? 2 : -2, 1e-5) << bits << " bits, channel " << channel;
      EXPECT_LE(std::abs(stored.int_at(channel)), bits == 8 ? 1 << 30 : int64_t{1} << 44);
    }
  }
}

TEST_F(QuantizeTest, SixteenBitsHoldDataBeyondTheCalibrations) {
  QuantizeInput input = Input();
  input.options = PerChannel();
  const auto input_scale = [&] {
    const QuantizeResult result = Quantized(input);
    return result.plan.values.at(result.plan.layers[0].outputs[0]).scale[0];
  };
  const double range_8 = input_scale() * 255;
  input.options.activation_bits = 12;
  EXPECT_NEAR(input_scale() * 4095, range_8, 1e-6 * range_8);
  input.options.activation_bits = 16;
  EXPECT_NEAR(input_scale() * 65535, 2 * range_8, 1e-6 * range_8);
}

TEST(SplitSamplesTest, ArenasStayWithinTheirBound) {
  const Graph graph = MakeKeywordNet({}, 1);
  const int64_t most = static_cast<int64_t>(SplitSamples(graph, 100000, 1 << 10).search.size());
  EXPECT_GE(most, 32);
  for (const int64_t arena_bytes : {int64_t{1} << 23, int64_t{1} << 25, int64_t{1} << 30}) {
    const int64_t search =
        static_cast<int64_t>(SplitSamples(graph, 100000, arena_bytes).search.size());
    EXPECT_EQ(search, std::clamp<int64_t>(kMostArenaBytes / arena_bytes, 8, most)) << arena_bytes;
  }
}

TEST(SplitSamplesTest, NoSampleIsInBothSets) {
  const Graph graph = MakeKeywordNet({}, 1);
  for (const int64_t count : {8, 9, 60, 128, 10000}) {
    const SampleSplit split = SplitSamples(graph, count, 1 << 16);
    std::vector<int64_t> all = split.search;
    all.insert(all.end(), split.check.begin(), split.check.end());
    std::sort(all.begin(), all.end());
    EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end()) << count;
    EXPECT_GE(all.front(), 0);
    EXPECT_LT(all.back(), count);
    EXPECT_LE(split.search.size(), 256u);
    EXPECT_GE(split.check.size(), split.search.size()) << count;
    EXPECT_GT(all.back(), count * 3 / 4) << "spread over the set";
  }
  EXPECT_EQ(SplitSamples(graph, 7, 1 << 16).search, SplitSamples(graph, 7, 1 << 16).check);
}

TEST_F(QuantizeTest, EqualizedGraphsComputeTheSame) {
  QuantizeInput input = Input();
  input.options = PerChannel();
  input.options.global_calibration = {GlobalCalibration::kEqualization};
  const QuantizeResult result = Quantized(input);
  EXPECT_THAT(result.log, testing::Contains(HasSubstr("equalization: 4 pairs")));
  std::vector<float> values(12 * 8);
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
  const Tensor x = Tensor::FromFloats({1, 12, 8, 1}, values);
  const Tensor want = RunReference(graph_, {x}).value()[0];
  const Tensor got = RunReference(result.graph, {x}).value()[0];
  for (int64_t i = 0; i < want.element_count(); ++i) {
    EXPECT_NEAR(got.at(i), want.at(i), 1e-5 * std::fabs(want.at(i)) + 1e-7);
  }
}

TEST_F(QuantizeTest, MixedPrecisionMeetsTheThresholdWithFewLayers) {
  // One layer's weights are such that 8 bits in one scale lose most channels.
  graph_ = MakeKeywordNet({.blocks = 4, .softmax = false, .channel_spread = 300}, 5);
  samples_ = MakeSamples(graph_, 24, 2);
  double most = 0;
  const QuantizeResult result = WithAThirdOfTheError(most);
  EXPECT_LE(1 - result.outputs[0].cosine(), most);
  int raised = 0;
  for (const LayerSettings& settings : result.settings) raised += settings.activation_bits == 16;
  EXPECT_GT(raised, 0);
  EXPECT_LE(raised * 2, static_cast<int>(result.settings.size()));
  EXPECT_THAT(result.log, testing::Contains(HasSubstr("sensitivity of")));
}

// Two layers of one weight.
constexpr absl::string_view kOneWeight = R"(graph "m" {
  %0 = Placeholder() : f32[1,3] @"x"
  %1 = Const() {value = f32[3,3] "WEIGHT"} : f32[3,3] @"w"
  %2 = Const() {value = f32[3] "00004040000000c00000a03f"} : f32[3] @"b1"
  %3 = MatMul(%0, %1) : f32[1,3] @"m1"
  %4 = Add(%3, %2) : f32[1,3] @"a1"
  %5 = Relu(%4) : f32[1,3] @"r1"
  %6 = Const() {value = f32[3] "000080bf000000400000a0c0"} : f32[3] @"b2"
  %7 = MatMul(%5, %1) : f32[1,3] @"m2"
  %8 = Add(%7, %6) : f32[1,3] @"a2"
  return %8 @"y"
})";

Graph OneWeight() {
  constexpr absl::string_view kWeight =
      "0000803fcdcc4c3dcdcccc3d0000003fcdcccc3ecdcc4cbe0000803e0000003f9a99193f";
  return *ParseGraph(absl::StrReplaceAll(kOneWeight, {{"WEIGHT", kWeight}}));
}

TEST_F(QuantizeTest, MixedPrecisionKeepsEachBiasInUnitsOfItsWeight) {
  graph_ = OneWeight();
  samples_ = MakeSamples(graph_, 24, 2);
  double most = 0;
  const QuantizeResult result = WithAThirdOfTheError(most);
  int layers = 0;
  for (size_t i = 0; i < result.plan.layers.size(); ++i) {
    const Layer& layer = result.plan.layers[i];
    if (!layer.bias.valid()) continue;
    ++layers;
    EXPECT_EQ(result.settings[i].weight_bits, 16);
    EXPECT_DOUBLE_EQ(result.plan.values.at(layer.bias).scale[0],
                     result.plan.values.at(layer.inputs[0]).scale[0] *
                         result.plan.values.at(layer.weight).scale[0]);
  }
  EXPECT_EQ(layers, 2);
  EXPECT_LE(1 - result.outputs[0].cosine(), most);
}

// A run with the fewer bits of biases answers as the integers that lowering is given.
TEST_F(QuantizeTest, EffectiveBitsAreOfTheLargestBias) {
  graph_ = OneWeight();
  samples_ = MakeSamples(graph_, 24, 2);
  QuantizeInput input = Input();
  input.options.activation_method = QuantMethod::kPerTensorAsymmetric;
  input.options.bias_effective_bits = 4;
  const QuantizeResult result = Quantized(input);
  int layers = 0;
  for (const Layer& layer : result.plan.layers) {
    if (!layer.bias.valid()) continue;
    ++layers;
    const Tensor& weight = result.plan.constants.at(layer.weight);
    const int64_t zero = result.plan.values.at(layer.inputs[0]).zero_point[0];
    std::vector<int64_t> sums;
    for (int64_t o = 0; o < 3; ++o) {
      sums.push_back(result.plan.constants.at(layer.bias).int_at(o));
      for (int64_t i = 0; i < 3; ++i) sums.back() -= zero * weight.int_at(i * 3 + o);
    }
    std::vector<int64_t> kept = sums;
    KeepHighBits(4, kept);
    EXPECT_EQ(kept, sums);
  }
  EXPECT_EQ(layers, 2);
}

TEST_F(QuantizeTest, StatedBoundsHoldWhateverSamplesShow) {
  graph_ = OneWeight();
  samples_ = MakeSamples(graph_, 24, 2);
  for (const char* name : {"extrema", "mean", "KLD", "best_single"}) {
    QuantizeInput input = Input();
    input.options.activation_strategy = *QuantStrategyFromName(name);
    input.stated[graph_.inputs()[0]] = {0, 255};
    const QuantParams params = Quantized(input).plan.values.at(graph_.inputs()[0]);
    EXPECT_GE(static_cast<double>(params.qmax - params.zero_point[0]) * params.scale[0],
              255 - params.scale[0])
        << name;
  }
}

TEST_F(QuantizeTest, LayersInFloatStayAsTheyAre) {
  QuantizeInput input = Input();
  input.options = PerChannel();
  for (const Layer& layer : input.layers) input.options.fake_quant_scopes.push_back(layer.name);
  EXPECT_EQ(Quantized(input).outputs[0].error, 0);
  input.options.fake_quant_scopes.clear();
  input.options.fake_quant_operators = {"FullyConnected", "Softmax"};
  const QuantizeResult result = Quantized(input);
  for (size_t i = 0; i < result.plan.layers.size(); ++i) {
    const std::string& type = result.plan.layers[i].type;
    EXPECT_EQ(result.plan.settings[i].in_float, type == "FullyConnected" || type == "Softmax");
  }
  // Between two such layers there are no integers.
  EXPECT_FALSE(result.plan.values.contains(graph_.outputs()[0].value));
  EXPECT_TRUE(result.plan.values.contains(graph_.inputs()[0]));
}

TEST_F(QuantizeTest, LayersAreNamedByNumberAndByTypeInAnyCase) {
  QuantizeInput input = Input();
  input.options = PerChannel();
  input.options.fake_quant_operators = {"softMAX", "Tile"};
  input.options.fake_quant_ids = {{1, 1}};
  const QuantizeResult result = Quantized(input);
  for (size_t i = 0; i < result.plan.layers.size(); ++i) {
    EXPECT_EQ(result.plan.settings[i].in_float, i == 1 || result.plan.layers[i].type == "Softmax");
  }
  const auto last = static_cast<int64_t>(input.layers.size());
  input.options.fake_quant_ids = {{0, last}};
  EXPECT_THAT(Problem(input), HasSubstr(absl::StrCat("names layers 0 to ", last,
                                                     "; the model has 0 to ", last - 1)));
  input.options.fake_quant_ids.clear();
  input.options.fake_quant_scopes = {"nowhere"};
  EXPECT_THAT(Problem(input), HasSubstr("names 'nowhere', which no layer of the model has"));
}

TEST_F(QuantizeTest, TrimRulesAreOfSomeLayersAlone) {
  QuantizeInput input = Input();
  input.options = PerChannel();
  const QuantizeResult plain = Quantized(input);
  input.options.trim_rules = {{"", {0, 0}, {-0.25, 0.25, false}}};
  const QuantizeResult trimmed = Quantized(input);
  const ValueId first = input.layers[0].outputs[0];
  const ValueId last = graph_.outputs()[0].value;
  EXPECT_NE(trimmed.plan.values.at(first), plain.plan.values.at(first));
  EXPECT_EQ(trimmed.plan.values.at(last), plain.plan.values.at(last));
  input.options.trim_rules = {{"softmax", {}, {-1, 0.001, false}}};
  const QuantizeResult of_type = Quantized(input);
  EXPECT_EQ(of_type.plan.values.at(first), plain.plan.values.at(first));
}

TEST_F(QuantizeTest, StatisticsFilesStandForTheData) {
  QuantizeInput input = Input();
  input.options = PerChannel();
  input.options.activation_strategy = {QuantStrategy::Kind::kKld, 0};
  input.options.save_statistic_info = true;
  const QuantizeResult first = Quantized(input);
  ASSERT_FALSE(first.statistics.empty());
  QuantizeInput again = Input();
  again.options = input.options;
  again.calibration.clear();
  again.statistics_name = "statistics.json";
  again.statistics = first.statistics;
  const QuantizeResult second = Quantized(again);
  EXPECT_EQ(second.statistics, first.statistics);
  EXPECT_EQ(second.plan.values, first.plan.values);
  again.statistics = "{}";
  EXPECT_THAT(Problem(again), HasSubstr("has nothing about"));
  again.statistics = "{\"input\": {\"extrema_min\": 1}}";
  EXPECT_THAT(Problem(again), HasSubstr("tensor 'input'"));
}

TEST_F(QuantizeTest, SaysWhatIsMissing) {
  QuantizeInput input = Input();
  input.options.activation_strategy = {QuantStrategy::Kind::kInIr, 0};
  EXPECT_THAT(Problem(input), HasSubstr("in_ir"));
  input = Input();
  input.calibration.clear();
  EXPECT_THAT(Problem(input), HasSubstr("no calibration data"));
  input = Input();
  input.calibration = {FileOf("not numpy")};
  EXPECT_THAT(Problem(input), HasSubstr("not a usable .npy file"));
}

TEST_F(QuantizeTest, SameInputSameResult) {
  QuantizeInput input = Input();
  input.options = PerChannel();
  input.options.activation_strategy = {QuantStrategy::Kind::kAuto, 0};
  input.options.global_calibration = {GlobalCalibration::kEqualization,
                                      GlobalCalibration::kAdaround,
                                      GlobalCalibration::kBiasCorrection};
  const QuantizeResult a = Quantized(input);
  const QuantizeResult b = Quantized(input);
  EXPECT_EQ(a.opt_template, b.opt_template);
  EXPECT_EQ(a.plan.values, b.plan.values);
  EXPECT_EQ(a.plan.constants, b.plan.constants);
}

// y = op(x), then a dense layer that reads y; sample 1 of 2 makes y what it must not be.
QuantizeInput InputOfFunction(Op op, const std::string& samples, Graph& graph) {
  graph = *ParseGraph(absl::StrCat(R"(graph "m" {
  %0 = Placeholder() : f32[1,4] @"x"
  %1 = )",
                                   NameOf(op), R"((%0) : f32[1,4] @"culprit"
  %2 = Const() {value = f32[4,3] splat "0000003f"} : f32[4,3] @"w"
  %3 = Const() {value = f32[3] splat "0000003f"} : f32[3] @"b"
  %4 = MatMul(%1, %2) : f32[1,3] @"fc"
  %5 = Add(%4, %3) : f32[1,3] @"fc_bias"
  return %5 @"y"
})"));
  return InputOf(graph, samples);
}

std::string TwoSamples(float bad) {
  const std::vector<float> values = {1, 2, 3, 4, 1, bad, 3, 4};
  NpyArray array;
  array.shape = {2, 4};
  array.bytes.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return WriteNpy(array).value();
}

TEST(QuantizeSamples, ThatAreAllAlikeAreDoubted) {
  Graph graph;
  NpyArray array;
  array.shape = {3, 4};
  array.bytes.assign(12 * sizeof(float), 0);
  const std::string zeros = WriteNpy(array).value();
  const QuantizeInput input = InputOfFunction(Op::kTanh, zeros, graph);
  Diagnostics diagnostics;
  ASSERT_TRUE(Quantize(input, diagnostics).ok());
  ASSERT_FALSE(diagnostics.list().empty());
  EXPECT_THAT(diagnostics.list()[0].ToString(), HasSubstr("for input 'x' is 0 throughout"));
}

// The figures are those of the core's tables, not of the functions.
TEST(QuantizeTables, FiguresSeeTheTable) {
  Graph graph;
  NpyArray array;
  array.shape = {64, 4};
  std::vector<float> values;
  for (int i = 0; i < 256; ++i) values.push_back(0.02F * std::pow(1.02F, static_cast<float>(i)));
  array.bytes.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  const std::string samples = WriteNpy(array).value();
  QuantizeInput input = InputOfFunction(Op::kReciprocal, samples, graph);
  input.options.activation_bits = 16;
  input.options.activation_strategy = {QuantStrategy::Kind::kExtrema, 0};
  const QuantizeResult chosen = Quantized(input);
  const size_t function = 1;  // behind the input
  EXPECT_GT(chosen.plan.settings[function].lut_bits, 12);
  input.options.lut_items_in_bits = 8;
  const QuantizeResult coarse = Quantized(input);
  EXPECT_EQ(coarse.plan.settings[function].lut_bits, 8);
  EXPECT_LT(coarse.outputs[0].sqnr_db(), chosen.outputs[0].sqnr_db() - 20);
}

// A LogSoftmax's figures are those of its tables of exponentials and logarithms, and of the 16 bits
// of what lies between them.
TEST(QuantizeTables, FiguresSeeTheTablesOfALogSoftmax) {
  NpyArray array;
  array.shape = {64, 4};
  std::vector<float> values;
  for (int i = 0; i < 256; ++i) values.push_back(8 * std::sin(0.7F * static_cast<float>(i * i)));
  array.bytes.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  const std::string samples = WriteNpy(array).value();
  const auto sqnr_db = [&samples](int lut_bits) {
    Graph graph = *ParseGraph(R"(graph "m" {
  %0 = Placeholder() : f32[1,4] @"x"
  %1 = LogSoftmax(%0) : f32[1,4] @"y"
  return %1 @"y"
})");
    QuantizeInput input = InputOf(graph, samples);
    input.options.activation_bits = 16;
    input.options.activation_strategy = {QuantStrategy::Kind::kExtrema, 0};
    input.options.lut_items_in_bits = lut_bits;
    return Quantized(input).outputs[0].sqnr_db();
  };
  // Rounding the input and the result alone to 16 bits would give 88.2 dB, with any table.
  EXPECT_LT(sqnr_db(16), 87);
  EXPECT_GT(sqnr_db(16), 80);
  EXPECT_LT(sqnr_db(8), sqnr_db(16) - 1);
}

// Whatever takes statistics of a value that is not finite: one diagnostic with layer and sample.
TEST(QuantizeNotFinite, NamesTheLayerAndTheSample) {
  using G = GlobalCalibration;
  std::vector<QuantOptions> ways(6);
  ways[1].activation_strategy = {QuantStrategy::Kind::kAuto, 0};
  ways[2].activation_strategy = {QuantStrategy::Kind::kKld, 0};
  ways[3].activation_strategy = {QuantStrategy::Kind::kPercentile, 0.999};
  ways[4].global_calibration = {G::kEqualization, G::kAdaround, G::kBiasCorrection};
  ways[5].mixed_precision_batches = 1;
  struct Case {
    Op op;
    float operand;
    const char* value;
  };
  for (const Case& one : {Case{Op::kLog, 0, "-inf"}, Case{Op::kSqrt, -1, "NaN"},
                          Case{Op::kReciprocal, 0, "inf"}, Case{Op::kExp, 500, "inf"}}) {
    Graph graph;
    const std::string samples = TwoSamples(one.operand);
    QuantizeInput input = InputOfFunction(one.op, samples, graph);
    for (const bool fixed_point : {false, true}) {
      for (const QuantOptions& options : ways) {
        input.options = options;
        input.fixed_point = fixed_point;
        EXPECT_THAT(Problem(input),
                    HasSubstr(absl::StrCat("sample 1 of calibration_data makes the layer 'culprit' "
                                           "give ",
                                           one.value)))
            << one.op;
      }
    }
  }
}

// Trimmed infinities are counted as what they are trimmed to, and nothing behind sees the others.
TEST(QuantizeNotFinite, TrimmedInfinitiesAreTaken) {
  Graph graph;
  const std::string samples = TwoSamples(0);
  QuantizeInput input = InputOfFunction(Op::kLog, samples, graph);
  input.options.trim_infinity = TrimInfinity{-50, 50, false};
  input.options.activation_strategy = {QuantStrategy::Kind::kExtrema, 0};
  const QuantizeResult result = Quantized(input);
  ASSERT_EQ(result.outputs.size(), 1);
  EXPECT_TRUE(std::isfinite(result.outputs[0].cosine()));
}

TEST(QuantizeNotFinite, AWeightIsRefusedByItsLayer) {
  Graph graph = *ParseGraph(R"(graph "m" {
  %0 = Placeholder() : f32[1,4] @"x"
  %1 = Const() {value = f32[4,3] splat "0000807f"} : f32[4,3] @"w"
  %2 = MatMul(%0, %1) : f32[1,3] @"fc"
  return %2 @"y"
})");
  const std::string samples = TwoSamples(1);
  EXPECT_THAT(Problem(InputOf(graph, samples)),
              HasSubstr("the weight of layer 'fc' is not finite at element 0"));
}

bool IsPowerOfTwo(double x) {
  int exponent = 0;
  return std::frexp(x, &exponent) == 0.5;
}

TEST_F(QuantizeTest, AFixedPointCoreHasPowersOfTwoThatHoldTheExtremes) {
  QuantizeInput input = Input();
  input.fixed_point = true;
  input.options.save_statistic_info = true;
  const QuantizeResult result = Quantized(input);
  EXPECT_LT(result.outputs[0].relative(), 1e-6);
  int activations = 0;
  for (const auto& [id, params] : result.plan.values) {
    ASSERT_EQ(params.scale.size(), 1U);
    EXPECT_EQ(params.zero_point[0], 0);
    const Tensor* constant = result.graph.ConstantOf(id);
    if (params.dtype == DType::kInt64) continue;  // a bias
    EXPECT_TRUE(IsPowerOfTwo(params.scale[0])) << params.scale[0];
    EXPECT_EQ(params.dtype, DType::kInt16);
    activations += constant == nullptr ? 1 : 0;
    if (constant == nullptr) continue;
    double greatest = 0;
    for (int64_t i = 0; i < constant->element_count(); ++i) {
      greatest = std::max(greatest, std::fabs(constant->at(i)));
    }
    EXPECT_LE(greatest / params.scale[0], 32767.5);
    EXPECT_GT(greatest / params.scale[0], 32767.5 / 2);
  }
  EXPECT_GT(activations, 4);
}

TEST_F(QuantizeTest, WhatIsFedBackSharesItsParameters) {
  QuantizeInput input = Input();
  input.fixed_point = true;
  const ValueId fed = graph_.inputs()[0];
  const ValueId output = graph_.outputs()[0].value;
  EXPECT_FALSE(Quantized(input).plan.values.at(fed) == Quantized(input).plan.values.at(output));
  input.state_inputs = {0};
  const QuantizeResult result = Quantized(input);
  EXPECT_EQ(result.plan.values.at(fed), result.plan.values.at(output));
}

TEST_F(QuantizeTest, ATemplateCannotChangeWhatAFixedPointCoreSettles) {
  QuantizeInput input = Input();
  input.fixed_point = true;
  const std::string written = Quantized(input).opt_template;
  input.template_name = "t.json";
  input.opt_template = written;
  EXPECT_EQ(Quantized(input).opt_template, written);
  const std::string layer = input.layers[1].name;
  const std::string edited =
      absl::StrCat("{\"", layer, "\": {\"q_bits_activation\": 8, \"q_bits_weight\": 8}}");
  input.opt_template = edited;
  EXPECT_THAT(Problem(input), HasSubstr("a fixed-point core has 16 bits"));
}

}  // namespace
}  // namespace npuc
