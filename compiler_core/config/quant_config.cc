#include "compiler_core/config/quant_config.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/trim_text.h"
#include "compiler_core/quant/metrics/metrics.h"

namespace npuc {
namespace {

using Kind = ConfigNode::Kind;

// What one value is read with. `text` is a scalar's, as it is written.
struct Value {
  const ConfigNode& node;
  QuantConfig& config;
  const std::string& text() const { return node.text; }
};

struct QuantKey {
  absl::string_view name;
  absl::string_view allowed;  // for messages and help
  absl::string_view default_value;
  enum class Shape : uint8_t { kScalar, kNames, kFiles, kLater } shape;
  // Sets the option; false where the value is none of the allowed ones.
  bool (*read)(const Value& value);
  absl::Span<const absl::string_view> words = {};  // for near misses
};
using Shape = QuantKey::Shape;

bool Integer(const Value& value, int64_t low, int64_t high, int64_t& out) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(value.text(), &number) || number < low || number > high) return false;
  out = number;
  return true;
}

bool Integer(const Value& value, int low, int high, int& out) {
  int64_t number = 0;
  if (!Integer(value, int64_t{low}, int64_t{high}, number)) return false;
  out = static_cast<int>(number);
  return true;
}

bool Bool(const Value& value, bool& out) {
  const std::string lower = absl::AsciiStrToLower(value.text());
  for (const absl::string_view word : {"true", "yes", "on"}) {
    if (lower == word) return out = true;
  }
  for (const absl::string_view word : {"false", "no", "off"}) {
    if (lower == word) return !(out = false);
  }
  return false;
}

bool OnlyFalse(const Value& value) {
  bool flag = true;
  return Bool(value, flag) && !flag;
}

bool Method(const Value& value, absl::Span<const QuantMethod> allowed, QuantMethod& out) {
  const std::optional<QuantMethod> method = QuantMethodFromName(value.text());
  if (!method.has_value() || std::find(allowed.begin(), allowed.end(), *method) == allowed.end()) {
    return false;
  }
  out = *method;
  return true;
}

bool WeightStrategy(const Value& value) {
  using K = QuantStrategy::Kind;
  const std::optional<QuantStrategy> strategy = QuantStrategyFromName(value.text());
  if (!strategy.has_value() ||
      (strategy->kind != K::kExtrema && strategy->kind != K::kStd && strategy->kind != K::kKld)) {
    return false;
  }
  value.config.options.weight_strategy = *strategy;
  return true;
}

bool ActivationStrategy(const Value& value) {
  const std::optional<QuantStrategy> strategy = QuantStrategyFromName(value.text());
  if (strategy.has_value()) value.config.options.activation_strategy = *strategy;
  return strategy.has_value();
}

bool Momentum(const Value& value) {
  double number = 0;
  if (!absl::SimpleAtod(value.text(), &number) || !(number >= 0 && number <= 1)) return false;
  value.config.options.running_statistic_momentum = number;
  return true;
}

bool Trim(const Value& value) {
  value.config.options.trim_infinity = TrimInfinityFromText(value.text());
  return value.config.options.trim_infinity.has_value();
}

// "batches,threshold,L or G".
bool MixedPrecision(const Value& value) {
  const std::vector<absl::string_view> parts = absl::StrSplit(value.text(), ',');
  if (parts.size() != 3) return false;
  QuantOptions& options = value.config.options;
  double threshold = 0;
  int64_t batches = 0;
  const absl::string_view sense = absl::StripAsciiWhitespace(parts[2]);
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(parts[0]), &batches) || batches > 65536 ||
      !absl::SimpleAtod(absl::StripAsciiWhitespace(parts[1]), &threshold) ||
      !(threshold >= 0 && threshold <= 1e6) || (sense != "L" && sense != "G")) {
    return false;
  }
  options.mixed_precision_batches = std::max<int64_t>(batches, 0);
  options.mixed_precision_threshold = threshold;
  options.mixed_precision_less_is_better = sense == "L";
  return true;
}

bool Dataset(const Value& value) {
  const std::string lower = absl::AsciiStrToLower(value.text());
  return lower == "numpy" || lower == "numpydataset";
}

constexpr absl::string_view kGlobal[] = {"equalization", "adaround", "bias_correction"};

bool Global(const Value& value) {
  for (size_t i = 0; i < std::size(kGlobal); ++i) {
    if (value.text() != kGlobal[i]) continue;
    const auto what = static_cast<GlobalCalibration>(i);
    std::vector<GlobalCalibration>& list = value.config.options.global_calibration;
    if (std::find(list.begin(), list.end(), what) == list.end()) list.push_back(what);
    return true;
  }
  return false;
}

constexpr absl::string_view kWeightWords[] = {
    "per_tensor_symmetric_restricted_range", "per_tensor_symmetric_full_range",
    "per_channel_symmetric_restricted_range", "per_channel_symmetric_full_range"};
constexpr absl::string_view kActivationWords[] = {"per_tensor_symmetric_restricted_range",
                                                  "per_tensor_symmetric_full_range",
                                                  "per_tensor_asymmetric"};
constexpr absl::string_view kStrategyWords[] = {
    "mean", "extrema", "3std", "KLD", "in_ir", "percentile", "aciq_laplace", "aciq_gauss", "auto"};

constexpr absl::string_view kMetricWords[] = {"cosine", "mse", "sqnr", "topk", "auc", "wer"};

bool MetricName(const Value& value) {
  const absl::StatusOr<QualityMetric> metric = MetricFromName(value.text());
  if (metric.ok()) value.config.options.metrics.push_back(NameOf(*metric));
  return metric.ok();
}

const std::vector<QuantKey>& Keys() {
  using V = const Value&;
  static const std::vector<QuantKey> kKeys = {
      {"weight_bits", "4 to 16", "8", Shape::kScalar,
       [](V v) { return Integer(v, 4, 16, v.config.options.weight_bits); }},
      {"bias_bits", "16 to 48", "32", Shape::kScalar,
       [](V v) { return Integer(v, 16, 48, v.config.options.bias_bits); }},
      {"activation_bits", "8 to 16", "8", Shape::kScalar,
       [](V v) { return Integer(v, 8, 16, v.config.options.activation_bits); }},
      {"lut_items_in_bits", "4 to 16", "8", Shape::kScalar,
       [](V v) { return Integer(v, 4, 16, v.config.options.lut_items_in_bits); }},
      {"quantize_method_for_weight",
       "per_tensor_symmetric_restricted_range, per_tensor_symmetric_full_range, "
       "per_channel_symmetric_restricted_range, per_channel_symmetric_full_range",
       "per_tensor_symmetric_restricted_range", Shape::kScalar,
       [](V v) { return Method(v, kWeightMethods, v.config.options.weight_method); }, kWeightWords},
      {"quantize_method_for_activation",
       "per_tensor_symmetric_restricted_range, per_tensor_symmetric_full_range, "
       "per_tensor_asymmetric",
       "per_tensor_symmetric_full_range", Shape::kScalar,
       [](V v) { return Method(v, kActivationMethods, v.config.options.activation_method); },
       kActivationWords},
      {"calibration_strategy_for_activation",
       "mean, extrema, Nstd (3std), KLD, in_ir, Npercentile (0.9999percentile), aciq_laplace, "
       "aciq_gauss, auto (tries them all)",
       "mean", Shape::kScalar, &ActivationStrategy, kStrategyWords},
      {"calibration_strategy_for_weight", "extrema, Nstd (3std), KLD", "extrema", Shape::kScalar,
       &WeightStrategy, kStrategyWords},
      {"calibration_data", "a .npy or .npz file, or a mapping of inputs to .npy files", "",
       Shape::kFiles, nullptr},
      {"calibration_batch_size", "1 to 65536 samples", "1", Shape::kScalar,
       [](V v) { return Integer(v, 1, 65536, v.config.options.calibration_batch_size); }},
      {"dataset", "numpy", "numpy", Shape::kScalar, &Dataset},
      {"running_statistic_momentum", "0 to 1", "0.9", Shape::kScalar, &Momentum},
      {"histc_bins", "16 to 65536", "2048", Shape::kScalar,
       [](V v) { return Integer(v, 16, 65536, v.config.options.histc_bins); }},
      {"trim_infinity_before_statistic", "(min, max):clip or (min, max):second", "", Shape::kScalar,
       &Trim},
      {"save_statistic_info", "true or false", "false", Shape::kScalar,
       [](V v) { return Bool(v, v.config.options.save_statistic_info); }},
      {"statistic_file", "the statistics.json of an earlier compile", "", Shape::kFiles, nullptr},
      {"opt_config", "an opt_template.json; the same as OPT_CONFIG", "", Shape::kFiles, nullptr},
      {"bias_effective_bits", "2 to 48", "32", Shape::kScalar,
       [](V v) { return Integer(v, 2, 48, v.config.options.bias_effective_bits); }},
      {"unify_scales_for_concat", "true or false", "false", Shape::kScalar,
       [](V v) { return Bool(v, v.config.options.unify_scales_for_concat); }},
      {"unify_scales_for_concat_max_depth", "1 to 1000", "20", Shape::kScalar,
       [](V v) { return Integer(v, 1, 1000, v.config.options.unify_scales_for_concat_max_depth); }},
      {"mixed_precision_auto_search", "'batches,threshold,L' or 'batches,threshold,G'", "0,0.,L",
       Shape::kScalar, &MixedPrecision},
      {"global_calibration", "a list of equalization, adaround, bias_correction", "", Shape::kNames,
       &Global, kGlobal},
      {"fake_quant_scopes_for_debug",
       "a list of layers that stay in float: for npuc reference and evaluate --quantized", "",
       Shape::kNames,
       [](V v) {
         v.config.options.fake_quant_scopes.push_back(v.text());
         return true;
       }},
      {"fake_quant_operators_for_debug", "a list of layer types that do", "", Shape::kNames,
       [](V v) {
         v.config.options.fake_quant_operators.push_back(v.text());
         return true;
       }},
      {"force_float_ir", "true or false: a quantized model is turned back into float first",
       "false", Shape::kScalar, [](V v) { return Bool(v, v.config.options.force_float_ir); }},
      {"with_winograd", "false: this compiler has no Winograd form", "false", Shape::kScalar,
       &OnlyFalse},
      {"cast_dtypes_for_lib", "false: there is no operator library here", "false", Shape::kScalar,
       &OnlyFalse},
      {"dump", "false: npuc run dumps tensors", "false", Shape::kScalar, &OnlyFalse},
      {"data", "a .npy or .npz file, or a mapping of inputs to .npy files, to measure on", "",
       Shape::kFiles, nullptr},
      {"label", "a .npy file of integers, one (of wer: a row) for each item of data", "",
       Shape::kFiles, nullptr},
      {"metric", "a list of cosine, mse, sqnr, topk:N, auc, wer:N", "cosine, mse, sqnr",
       Shape::kNames, &MetricName, kMetricWords},
      {"metric_batch_size", "1 to 65536; items are run one by one, so all give the same", "1",
       Shape::kScalar, [](V v) { return Integer(v, 1, 65536, v.config.metric_batch_size); }},
      {"without_batch_dim", "", "", Shape::kLater, nullptr},
      {"dump_dir", "", "", Shape::kLater, nullptr},
      {"featuremap_tiling_param", "", "", Shape::kLater, nullptr},
      {"featuremap_splits_item_x", "", "", Shape::kLater, nullptr},
      {"featuremap_splits_item_y", "", "", Shape::kLater, nullptr},
      {"featuremap_splits_overlap_rate", "", "", Shape::kLater, nullptr},
  };
  return kKeys;
}

const QuantKey* FindQuantKey(absl::string_view name) {
  for (const QuantKey& key : Keys()) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

class Reader {
 public:
  Reader(ConfigReporter& reporter, QuantConfig& config) : reporter_(reporter), config_(config) {}

  bool Read(const ConfigNode& mapping) {
    for (size_t i = 0; i + 1 < mapping.items.size(); i += 2) {
      const ConfigNode& key = mapping.items[i];
      if (key.kind != Kind::kScalar) continue;  // reported with the syntax
      if (!seen_.insert(key.text).second) continue;
      const QuantKey* known = FindQuantKey(key.text);
      if (known == nullptr) {
        ReportUnknown(key);
        continue;
      }
      if (known->shape == Shape::kLater) {
        Report(DiagnosticKind::kConfigNotSupportedYet, key,
               absl::StrCat("QUANT: ", known->name, " is not supported yet by this version"),
               "remove the line");
        continue;
      }
      ReadValue(*known, key, mapping.items[i + 1]);
    }
    CheckTogether(mapping);
    return ok_;
  }

 private:
  void Report(DiagnosticKind kind, const ConfigNode& at, std::string message, std::string fix) {
    ok_ = false;
    reporter_.Add(kind, {at.line, at.column}, std::move(message), std::move(fix));
  }

  void ReportUnknown(const ConfigNode& key) {
    Report(DiagnosticKind::kConfigUnknownKey, key,
           absl::StrCat("QUANT: unknown key '", Printable(key.text, 80), "'"),
           reporter_.Suggest(key.text, QuantKeyNames(), "remove the line"));
  }

  void WrongType(const QuantKey& key, const ConfigNode& at, const ConfigNode& value) {
    Report(
        DiagnosticKind::kConfigWrongType, at,
        absl::StrCat("QUANT: ", key.name, " takes ", key.allowed, ", found ", DescribeNode(value)),
        "write one of these");
  }

  void ReadValue(const QuantKey& key, const ConfigNode& key_node, const ConfigNode& value) {
    const ConfigNode& at = value.kind == Kind::kNull ? key_node : value;
    if (key.shape == Shape::kFiles) return ReadFiles(key, at, value);
    if (key.shape == Shape::kNames && value.kind == Kind::kSequence) {
      for (const ConfigNode& item : value.items) ReadScalar(key, item, item);
      return;
    }
    ReadScalar(key, at, value);
  }

  void ReadScalar(const QuantKey& key, const ConfigNode& at, const ConfigNode& value) {
    constexpr size_t kMostBytes = 1024;
    if (value.kind != Kind::kScalar || value.text.empty() || value.text.size() > kMostBytes) {
      return WrongType(key, at, value);
    }
    if (key.read({value, config_})) return;
    Report(
        DiagnosticKind::kConfigValueNotAllowed, at,
        absl::StrCat("QUANT: ", key.name, " is ", DescribeNode(value), "; allowed: ", key.allowed),
        reporter_.Suggest(value.text, key.words, "write one of these"));
  }

  void AddFile(const QuantKey& key, std::string role, const ConfigNode& value) {
    const size_t slash = value.text.rfind('/');
    const std::string base = slash == std::string::npos ? value.text : value.text.substr(slash + 1);
    if (value.kind != Kind::kScalar || base.empty() || base == "." || base == ".." ||
        value.text.size() > kMaxConfigTextBytes || value.text.find('\0') != std::string::npos) {
      return WrongType(key, value, value);
    }
    config_.files.push_back({std::move(role), value.text, value.line});
  }

  void ReadFiles(const QuantKey& key, const ConfigNode& at, const ConfigNode& value) {
    if (key.name == "opt_config") return AddFile(key, kTemplateRole, value);
    if (key.name == "statistic_file") return AddFile(key, kStatisticsRole, value);
    if (key.name == "label") return AddFile(key, kLabelRole, value);
    const bool is_data = key.name == "data";
    const absl::string_view role = is_data ? kDataRole : kCalibrationRole;
    std::vector<std::string>& inputs =
        is_data ? config_.options.data_inputs : config_.options.calibration_inputs;
    if (value.kind == Kind::kScalar) {
      inputs = {""};
      return AddFile(key, std::string(role), value);
    }
    if (value.kind != Kind::kMapping || value.items.empty()) return WrongType(key, at, value);
    if (value.items.size() / 2 > kMaxCalibrationFiles) {
      return Report(DiagnosticKind::kConfigValueNotAllowed, at,
                    absl::StrCat("QUANT: ", key.name, " names ", value.items.size() / 2,
                                 " files; at most ", kMaxCalibrationFiles),
                    "put the inputs into one .npz file");
    }
    for (size_t i = 0; i + 1 < value.items.size(); i += 2) {
      if (value.items[i].kind != Kind::kScalar) continue;  // reported with the syntax
      inputs.push_back(value.items[i].text);
      AddFile(key, absl::StrCat(role, "[", i / 2, "]"), value.items[i + 1]);
    }
  }

  void CheckTogether(const ConfigNode& mapping) {
    if (seen_.count("calibration_data") > 0 && seen_.count("statistic_file") > 0) {
      Report(DiagnosticKind::kConfigConflict, mapping,
             "QUANT: statistic_file stands in place of calibration_data, and both are given",
             "keep one of the two");
    }
    if (config_.files.size() > kMaxQuantFiles) {
      Report(DiagnosticKind::kConfigConflict, mapping,
             absl::StrCat("QUANT names ", config_.files.size(), " files; at most ", kMaxQuantFiles),
             "put inputs into one .npz file");
    }
    CheckMetrics(mapping);
  }

  void CheckMetrics(const ConfigNode& mapping) {
    const auto refuse = [&](absl::string_view message, absl::string_view fix) {
      Report(DiagnosticKind::kConfigConflict, mapping, absl::StrCat("QUANT: ", message),
             std::string(fix));
    };
    const std::vector<std::string>& metrics = config_.options.metrics;
    const bool labelled = std::any_of(metrics.begin(), metrics.end(), [](const std::string& name) {
      return NeedsLabels(*MetricFromName(name));
    });
    const bool has_label = seen_.count("label") > 0;
    if (seen_.count("data") == 0 && (has_label || seen_.count("metric") > 0)) {
      refuse("metric and label are about data, which is not given", "add a line like data: x.npy");
    } else if (labelled && !has_label) {
      refuse("a metric needs labels, and label is not given", "add a line like label: labels.npy");
    } else if (has_label && !labelled && ok_) {
      refuse("label is given, and no metric needs it", "add a line like metric: [topk:1]");
    }
  }

  ConfigReporter& reporter_;
  QuantConfig& config_;
  std::set<std::string> seen_;
  bool ok_ = true;
};

}  // namespace

bool ReadQuantConfig(const ConfigNode& mapping, ConfigReporter& reporter, QuantConfig& config) {
  return Reader(reporter, config).Read(mapping);
}

std::vector<absl::string_view> QuantKeyNames() {
  std::vector<absl::string_view> names;
  for (const QuantKey& key : Keys()) names.push_back(key.name);
  return names;
}

bool IsQuantKey(absl::string_view name) { return FindQuantKey(name) != nullptr; }

bool QuantKeyTakesList(absl::string_view name) {
  const QuantKey* key = FindQuantKey(name);
  return key != nullptr && key->shape == Shape::kNames;
}

std::string QuantConfigHelp() {
  std::string out;
  for (const QuantKey& key : Keys()) {
    absl::StrAppend(&out, "  ", key.name, ": ",
                    key.shape == Shape::kLater ? "not supported yet" : key.allowed);
    if (!key.default_value.empty()) absl::StrAppend(&out, "; default ", key.default_value);
    absl::StrAppend(&out, "\n");
  }
  return out;
}

}  // namespace npuc
