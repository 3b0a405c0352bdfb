#include "compiler_core/config/quant_config.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Read {
  QuantConfig config;
  std::vector<std::string> problems;
};

Read ReadText(const std::string& text) {
  Read read;
  Diagnostics diagnostics;
  ConfigReporter reporter("c.yaml", diagnostics);
  const std::optional<ConfigNode> root = ParseConfigYaml(text, "c.yaml", diagnostics);
  const bool ok = root.has_value() && ReadQuantConfig(*root, reporter, read.config);
  EXPECT_EQ(ok, !diagnostics.has_errors());
  for (const Diagnostic& diagnostic : diagnostics.list()) {
    read.problems.push_back(diagnostic.ToString());
  }
  return read;
}

TEST(QuantConfigTest, ReadsEveryKey) {
  const Read read = ReadText(R"(
weight_bits: 4
bias_bits: 24
activation_bits: 16
lut_items_in_bits: 10
quantize_method_for_weight: per_channel_symmetric_full_range
quantize_method_for_activation: per_tensor_asymmetric
calibration_strategy_for_activation: auto
calibration_strategy_for_weight: 3std
calibration_data: {a: x/a.npy, b: b.npy}
calibration_batch_size: 8
dataset: numpy
running_statistic_momentum: 0.5
histc_bins: 1024
trim_infinity_before_statistic: (-10, 10):clip
save_statistic_info: true
opt_config: t.json
bias_effective_bits: 16
unify_scales_for_concat: true
unify_scales_for_concat_max_depth: 3
mixed_precision_auto_search: 2,0.01,G
global_calibration: [equalization, adaround]
fake_quant_scopes_for_debug: [conv1]
fake_quant_operators_for_debug: Softmax
with_winograd: false
cast_dtypes_for_lib: false
dump: false
)");
  EXPECT_THAT(read.problems, ElementsAre());
  QuantOptions want;
  want.weight_bits = 4;
  want.bias_bits = 24;
  want.activation_bits = 16;
  want.lut_items_in_bits = 10;
  want.weight_method = QuantMethod::kPerChannelSymmetricFull;
  want.activation_method = QuantMethod::kPerTensorAsymmetric;
  want.activation_strategy = {QuantStrategy::Kind::kAuto, 0};
  want.weight_strategy = {QuantStrategy::Kind::kStd, 3};
  want.calibration_inputs = {"a", "b"};
  want.calibration_batch_size = 8;
  want.running_statistic_momentum = 0.5;
  want.histc_bins = 1024;
  want.trim_infinity = TrimInfinity{-10, 10, false};
  want.save_statistic_info = true;
  want.bias_effective_bits = 16;
  want.unify_scales_for_concat = true;
  want.unify_scales_for_concat_max_depth = 3;
  want.mixed_precision_batches = 2;
  want.mixed_precision_threshold = 0.01;
  want.mixed_precision_less_is_better = false;
  want.global_calibration = {GlobalCalibration::kEqualization, GlobalCalibration::kAdaround};
  want.fake_quant_scopes = {"conv1"};
  want.fake_quant_operators = {"Softmax"};
  EXPECT_EQ(read.config.options, want);
  std::vector<std::string> files;
  for (const QuantFile& file : read.config.files) {
    files.push_back(absl::StrCat(file.role, "=", file.path, ":", file.line));
  }
  EXPECT_THAT(files, ElementsAre("QUANT.calibration_data[0]=x/a.npy:10",
                                 "QUANT.calibration_data[1]=b.npy:10", "OPT_CONFIG=t.json:17"));
}

TEST(QuantConfigTest, OtherKeysGoBeforeThePreset) {
  const Read best = ReadText("calibration_strategy_for_activation: KLD\npreset: best\n");
  EXPECT_THAT(best.problems, ElementsAre());
  QuantOptions want;
  want.weight_method = QuantMethod::kPerChannelSymmetricRestricted;
  want.activation_method = QuantMethod::kPerTensorAsymmetric;
  want.activation_strategy = {QuantStrategy::Kind::kKld, 0};
  want.least_sqnr_db = kPoorSqnrDb;
  EXPECT_EQ(best.config.options, want);
  EXPECT_EQ(best.config.preset.activation_strategy.kind, QuantStrategy::Kind::kBestSingle);
  EXPECT_EQ(ReadText("preset: fast\n").config.options.activation_strategy.kind,
            QuantStrategy::Kind::kExtrema);
  EXPECT_EQ(ReadText("preset: compass\n").config.options, QuantOptions());
  EXPECT_THAT(ReadText("preset: bests\n").problems, ElementsAre(HasSubstr("did you mean 'best'?")));
}

TEST(QuantConfigTest, EveryProblemAtOnceWithItsPlace) {
  const Read read = ReadText(
      "weight_bit: 8\nweight_bits: 3\nbias_bits: wide\nquantize_method_for_weight: "
      "per_tensor_asymmetric\ncalibration_strategy_for_activation: extreme\ncalibration_data: [a]\n"
      "statistic_file: s.json\nglobal_calibration: [adaround, adaroud]\nmetric: topq\n"
      "with_winograd: true\nmixed_precision_auto_search: '1,0.1'\n");
  EXPECT_THAT(
      read.problems,
      ElementsAre(
          HasSubstr("c.yaml:1:1: QUANT: unknown key 'weight_bit'; did you mean 'weight_bits'?"),
          HasSubstr("c.yaml:2:14: QUANT: weight_bits is '3'; allowed: 4 to 16"),
          HasSubstr("c.yaml:3:12: QUANT: bias_bits is 'wide'; allowed: 16 to 48"),
          HasSubstr("c.yaml:4:29: QUANT: quantize_method_for_weight"),
          HasSubstr("c.yaml:5:38: QUANT: calibration_strategy_for_activation is 'extreme'"),
          HasSubstr("c.yaml:6:19: QUANT: calibration_data takes a .npy or .npz file"),
          HasSubstr("did you mean 'adaround'?"),
          HasSubstr("metric is 'topq'; allowed: a list of cosine"),
          HasSubstr("with_winograd in QUANT changes nothing"),
          HasSubstr("mixed_precision_auto_search"), HasSubstr("both are given"),
          HasSubstr("metric and label are about data")));
}

TEST(QuantConfigTest, LayersByNumberAndTypeAndTheirRules) {
  const Read read = ReadText(
      "fake_quant_scopes_for_debug: ['[(0,3),(5,6)]', conv1]\n"
      "trim_infinity_before_statistic: '[softmax:(0, inf):second, (2,4):(-1,1):clip]'\n");
  EXPECT_THAT(read.problems, ElementsAre());
  EXPECT_THAT(read.config.options.fake_quant_ids, ElementsAre(LayerIds{0, 3}, LayerIds{5, 6}));
  EXPECT_THAT(read.config.options.fake_quant_scopes, ElementsAre("conv1"));
  EXPECT_FALSE(read.config.options.trim_infinity.has_value());
  EXPECT_THAT(read.config.options.trim_rules, ElementsAre(TrimRule{"softmax", {}, {0, 3e38, true}},
                                                          TrimRule{"", {2, 4}, {-1, 1, false}}));
  for (const char* wrong :
       {"fake_quant_scopes_for_debug: '[(3,1)]'\n", "fake_quant_scopes_for_debug: '[(1,2'\n",
        "fake_quant_scopes_for_debug: '[(1,2,3)]'\n", "fake_quant_scopes_for_debug: '(-1,2)'\n",
        "trim_infinity_before_statistic: '[]'\n", "trim_infinity_before_statistic: '[Abs]'\n",
        "trim_infinity_before_statistic: '[(1,2):(-1,1)]'\n",
        "trim_infinity_before_statistic: '[Abs:(1,-1):clip'\n",
        "featuremap_tiling_param: '[(1,2,3)]'\n", "featuremap_tiling_param: '[(2,1,2,2)]'\n",
        "featuremap_tiling_param: '[(1,2,0,1)]'\n", "featuremap_tiling_param: '[(1,2,65,1)]'\n",
        "featuremap_splits_item_y: 0\n", "featuremap_splits_overlap_rate: 100\n"}) {
    EXPECT_THAT(ReadText(wrong).problems, ElementsAre(HasSubstr("; allowed: "))) << wrong;
  }
}

TEST(QuantConfigTest, ManualTiling) {
  const Read read = ReadText(
      "featuremap_tiling_param: '[(1,2,4,1),(5,5,2,3)]'\nfeaturemap_splits_item_y: 3\n"
      "featuremap_splits_overlap_rate: 0\n");
  EXPECT_THAT(read.problems, ElementsAre());
  const QuantOptions& options = read.config.options;
  EXPECT_THAT(options.featuremap_tiling,
              ElementsAre(LayerTiles{{1, 2}, 4, 1}, LayerTiles{{5, 5}, 2, 3}));
  EXPECT_EQ(options.featuremap_rows, 3);
  EXPECT_EQ(options.featuremap_overlap_percent, 0);
}

TEST(QuantConfigTest, KeysWithoutEffectSaySoOnce) {
  const Read read =
      ReadText("cast_dtypes_for_lib: [Abs, tile]\nwith_winograd: false\nwithout_batch_dim: true\n");
  EXPECT_THAT(read.problems, ElementsAre(HasSubstr("cast_dtypes_for_lib in QUANT changes nothing"),
                                         HasSubstr("without_batch_dim in QUANT changes nothing")));
  EXPECT_EQ(read.config.options, QuantOptions());
  EXPECT_THAT(ReadText("dump: true\ndump_dir: d\n").config.dump_dir, "d");
}

TEST(QuantConfigTest, MetricsAndTheirFiles) {
  const Read read = ReadText(
      "data: {a: x.npy, b: y.npy}\nlabel: labels.npy\nmetric: [cosine, topk, 'wer:3']\n"
      "metric_batch_size: 16\n");
  EXPECT_THAT(read.problems, ElementsAre());
  EXPECT_THAT(read.config.options.metrics, ElementsAre("cosine", "topk", "wer:3"));
  EXPECT_THAT(read.config.options.data_inputs, ElementsAre("a", "b"));
  std::vector<std::string> files;
  for (const QuantFile& file : read.config.files) {
    files.push_back(absl::StrCat(file.role, "=", file.path));
  }
  EXPECT_THAT(files,
              ElementsAre("QUANT.data[0]=x.npy", "QUANT.data[1]=y.npy", "QUANT.label=labels.npy"));
  EXPECT_THAT(ReadText("data: x.npy\nlabel: y.npy\nmetric: [TopKMetric, cosdistancemetric]\n")
                  .config.options.metrics,
              ElementsAre("topk:1", "cosine"));
  EXPECT_THAT(ReadText("data: x.npy\nmetric: auc\n").problems,
              ElementsAre(HasSubstr("a metric needs labels")));
  EXPECT_THAT(ReadText("data: x.npy\nlabel: y.npy\n").problems,
              ElementsAre(HasSubstr("no metric needs it")));
}

TEST(QuantConfigTest, HelpNamesEveryKey) {
  EXPECT_THAT(QuantConfigHelp(), HasSubstr("  weight_bits: 4 to 16; default 8\n"));
  EXPECT_THAT(QuantConfigHelp(),
              HasSubstr("with_winograd: true or false; default false; changes "));
}

}  // namespace
}  // namespace npuc
