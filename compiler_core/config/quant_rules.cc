#include "compiler_core/config/quant_rules.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/table_bits.h"

namespace npuc {
namespace {

using StrategyKind = QuantStrategy::Kind;

class QuantRules {
 public:
  QuantRules(const ConfigSettings& all, ConfigReporter& reporter)
      : reporter_(reporter),
        core_(*all.core),
        config_(*all.quant),
        options_(all.quant->options),
        usual_(all.quant->preset),
        place_(all.Find("QUANT")->key_place),
        cores_(CoresAsked(all)),
        has_template_(all.present.contains("OPT_CONFIG") || HasFile(kTemplateRole)) {}

  void Check() {
    if (IsFixedPoint(core_)) CheckFixedPoint();
    CheckTables();
    CheckStatistics();
    CheckMeasured();
    Note("unify_scales_for_concat_max_depth",
         options_.unify_scales_for_concat ||
             options_.unify_scales_for_concat_max_depth == usual_.unify_scales_for_concat_max_depth,
         "unify_scales_for_concat is not true", "set unify_scales_for_concat: true, or");
    Note("bias_effective_bits",
         options_.bias_effective_bits == usual_.bias_effective_bits ||
             options_.bias_effective_bits < options_.bias_bits,
         absl::StrCat("bias_bits is ", options_.bias_bits));
    CheckTiles();
    Note("dump_dir", config_.dump || config_.dump_dir == ".", "dump is not true",
         "set dump: true, or");
    Note("metric_batch_size", config_.metric_batch_size == 1, "items are run one by one");
  }

 private:
  static int64_t CoresAsked(const ConfigSettings& all) {
    const ConfigSetting* cores = all.Find("CORES");
    return cores == nullptr ? 0 : cores->number;
  }

  void Note(absl::string_view key, bool has_effect, absl::string_view why,
            absl::string_view instead = "") {
    if (has_effect) return;
    reporter_.Add(DiagnosticKind::kConfigNoEffect, place_,
                  absl::StrCat(key, " in QUANT changes nothing: ", why),
                  absl::StrCat(instead, instead.empty() ? "" : " ", "remove the line"));
  }

  bool HasFile(absl::string_view role) const {
    return std::any_of(config_.files.begin(), config_.files.end(),
                       [&](const QuantFile& file) { return file.role == role; });
  }

  // What a fixed-point core settles by itself: 16 bits, and the least Q that holds every value.
  void CheckFixedPoint() {
    const auto check = [&](absl::string_view key, bool same) {
      Note(key, same,
           absl::StrCat("core ", core_.name,
                        " has 16 bits and a power of two as scale that holds every value"));
    };
    const auto wide = [](int bits, int usual_bits) { return bits == usual_bits || bits == 16; };
    check("preset", config_.preset == QuantOptions());
    check("weight_bits", wide(options_.weight_bits, usual_.weight_bits));
    check("activation_bits", wide(options_.activation_bits, usual_.activation_bits));
    check("bias_bits", options_.bias_bits == usual_.bias_bits);
    check("quantize_method_for_weight", options_.weight_method == usual_.weight_method);
    check("quantize_method_for_activation", options_.activation_method == usual_.activation_method);
    check("calibration_strategy_for_weight", options_.weight_strategy == usual_.weight_strategy);
    check("calibration_strategy_for_activation",
          options_.activation_strategy == usual_.activation_strategy ||
              options_.activation_strategy.kind == StrategyKind::kExtrema);
    check("mixed_precision_auto_search", options_.mixed_precision_batches < 1);
    check("force_float_ir", !options_.force_float_ir);
    check("least_sqnr", options_.least_sqnr_db == usual_.least_sqnr_db);
  }

  void CheckTables() {
    const int bits = options_.lut_items_in_bits;
    if (bits == usual_.lut_items_in_bits || bits == kCompassTableBits || has_template_) return;
    if (IsFixedPoint(core_)) {
      Note("lut_items_in_bits", options_.lut_items_in_bits > kLeastFixedPointTableBits,
           absl::StrCat("core ", core_.name, " has tables of 2^", kLeastFixedPointTableBits,
                        " entries or more"));
      return;
    }
    Note("lut_items_in_bits", options_.activation_bits > 8 || options_.mixed_precision_batches > 0,
         "a table of 8-bit values has 256 entries", "set activation_bits above 8, or");
  }

  // Parts of layers, which are for cores that work side by side, and by rows.
  void CheckTiles() {
    const QuantOptions usual;
    const bool is_alone = CoresOf(core_) == 1 || cores_ == 1;
    const std::string why =
        CoresOf(core_) > 1 ? "CORES is 1"
                           : absl::StrCat("core ", core_.name,
                                          " is one core; OPTIMIZE: size finds its own stripes");
    Note("featuremap_tiling_param", options_.featuremap_tiling.empty() || !is_alone, why);
    Note("featuremap_splits_item_y", options_.featuremap_rows == 1 || !is_alone, why);
    Note("featuremap_splits_item_x", options_.featuremap_columns == 1,
         "parts of layers are by rows alone", "set featuremap_splits_item_y, or");
    Note("featuremap_splits_overlap_rate",
         options_.featuremap_overlap_percent == usual.featuremap_overlap_percent ||
             (options_.featuremap_rows > 1 && !is_alone),
         is_alone ? why : "featuremap_splits_item_y is 1");
  }

  // Statistics that no strategy of the config reads, and that nobody asked to see.
  void CheckStatistics() {
    if (options_.save_statistic_info || has_template_) return;
    const StrategyKind kind =
        IsFixedPoint(core_) ? StrategyKind::kExtrema : options_.activation_strategy.kind;
    const auto is = [kind](std::initializer_list<StrategyKind> kinds) {
      return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
    };
    const bool from_file = HasFile(kStatisticsRole);
    const bool reads_running =
        !from_file &&
        is({StrategyKind::kMean, StrategyKind::kStd, StrategyKind::kAciqLaplace,
            StrategyKind::kAciqGauss, StrategyKind::kBestSingle, StrategyKind::kAuto});
    const bool reads_histogram =
        (!from_file &&
         is({StrategyKind::kKld, StrategyKind::kPercentile, StrategyKind::kAciqLaplace,
             StrategyKind::kBestSingle, StrategyKind::kAuto})) ||
        (!IsFixedPoint(core_) && options_.weight_strategy.kind == StrategyKind::kKld);
    const std::string why = from_file
                                ? "the statistics come from statistic_file"
                                : "no calibration strategy of the config reads what it is about";
    Note("running_statistic_momentum",
         reads_running || options_.running_statistic_momentum == usual_.running_statistic_momentum,
         why);
    Note("calibration_batch_size",
         reads_running || options_.calibration_batch_size == usual_.calibration_batch_size, why);
    Note("histc_bins", reads_histogram || options_.histc_bins == usual_.histc_bins, why);
    Note("trim_infinity_before_statistic", !from_file || !options_.trim_infinity.has_value(), why);
  }

  // What measures on calibration_data needs it.
  void CheckMeasured() {
    if (!HasFile(kStatisticsRole)) return;
    const std::string why =
        "it measures on calibration_data, and statistic_file stands in its place";
    Note("mixed_precision_auto_search", options_.mixed_precision_batches < 1 || IsFixedPoint(core_),
         why);
    Note("least_sqnr", options_.least_sqnr_db == usual_.least_sqnr_db || IsFixedPoint(core_), why);
    const std::vector<GlobalCalibration>& global = options_.global_calibration;
    Note("global_calibration",
         global.empty() || std::find(global.begin(), global.end(),
                                     GlobalCalibration::kEqualization) != global.end(),
         why);
  }

  ConfigReporter& reporter_;
  const CoreSpec& core_;
  const QuantConfig& config_;
  const QuantOptions& options_;
  const QuantOptions usual_;
  const ConfigPlace place_;
  const int64_t cores_;  // CORES; 0: not said
  const bool has_template_;
};

}  // namespace

void CheckQuantEffect(const ConfigSettings& settings, ConfigReporter& reporter) {
  if (settings.core == nullptr || settings.core->integer == nullptr ||
      !settings.quant.has_value()) {
    return;
  }
  QuantRules(settings, reporter).Check();
}

}  // namespace npuc
