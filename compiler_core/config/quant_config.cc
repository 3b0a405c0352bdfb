#include "compiler_core/config/quant_config.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/trim_text.h"
#include "compiler_core/quant/metrics/metrics.h"
#include "nlohmann/json.hpp"

namespace npuc {
namespace {

using Kind = ConfigNode::Kind;
using Json = nlohmann::ordered_json;

struct QuantKey {
  absl::string_view name;
  enum class Shape : uint8_t { kScalar, kNames, kFiles } shape = Shape::kScalar;
  absl::string_view allowed = "";  // for messages and help
  absl::string_view default_value = "";
  bool echo = false;                               // report.json says what the option was
  absl::Span<const absl::string_view> words = {};  // for near misses
  // For a key without a field of its own. `read` sets options; false where it does not allow the
  // value. `echo_text` is the text in report.json; "" leaves the key out.
  bool (*read)(const std::string& text, QuantConfig& config) = nullptr;
  std::string (*echo_text)(const QuantOptions& options) = nullptr;
  // Why the key changes nothing here, as a clause; "": it does.
  absl::string_view no_effect = "";
};
using KeyShape = QuantKey::Shape;

// Readers of one value as it is written; false where it is none of the allowed ones.

struct Between {
  constexpr Between(int64_t low, int64_t high) : low(low), high(high) {}
  template <typename Integer>
  bool operator()(const std::string& text, Integer& out) const {
    int64_t number = 0;
    if (!absl::SimpleAtoi(text, &number) || number < low || number > high) return false;
    out = static_cast<Integer>(number);
    return true;
  }
  int64_t low;
  int64_t high;
};

bool Bool(const std::string& text, bool& out) {
  const std::string lower = absl::AsciiStrToLower(text);
  for (const absl::string_view word : {"true", "yes", "on"}) {
    if (lower == word) return out = true;
  }
  for (const absl::string_view word : {"false", "no", "off"}) {
    if (lower == word) return !(out = false);
  }
  return false;
}

// Readers of keys without effect: true for an allowed value.
bool IsBool(const std::string& text, QuantConfig&) {
  bool flag = true;
  return Bool(text, flag);
}
bool IsAny(const std::string&, QuantConfig&) { return true; }

// "[(0,3,2,1)]": the first and the last layer, parts by rows, parts by columns.
bool Tiling(const std::string& text, std::vector<LayerTiles>& out) {
  constexpr int64_t kMostRows = 64;
  const auto tuples = TuplesFromText(text, 4);
  if (!tuples.has_value()) return false;
  for (const std::vector<int64_t>& tuple : *tuples) {
    if (tuple[0] > tuple[1] || tuple[2] < 1 || tuple[2] > kMostRows || tuple[3] < 1) return false;
    out.push_back({{tuple[0], tuple[1]}, tuple[2], tuple[3]});
  }
  return true;
}

constexpr absl::string_view kPresetWords[] = {"compass", "fast", "best"};

// Sets what the preset stands for; keys that are read behind it change that.
bool Preset(const std::string& text, QuantConfig& config) {
  QuantOptions& options = config.options;
  if (text == "fast" || text == "best") {
    options.weight_method = QuantMethod::kPerChannelSymmetricRestricted;
    options.activation_method = QuantMethod::kPerTensorAsymmetric;
    options.activation_strategy.kind =
        text == "fast" ? QuantStrategy::Kind::kExtrema : QuantStrategy::Kind::kBestSingle;
    options.least_sqnr_db = text == "fast" ? 0 : kPoorSqnrDb;
  } else if (text != "compass") {
    return false;
  }
  config.preset = options;
  return true;
}

struct MethodOf {
  explicit MethodOf(absl::Span<const QuantMethod> allowed) : allowed(allowed) {}
  bool operator()(const std::string& text, QuantMethod& out) const {
    const std::optional<QuantMethod> method = QuantMethodFromName(text);
    if (!method.has_value() ||
        std::find(allowed.begin(), allowed.end(), *method) == allowed.end()) {
      return false;
    }
    out = *method;
    return true;
  }
  absl::Span<const QuantMethod> allowed;
};

bool WeightStrategy(const std::string& text, QuantStrategy& out) {
  using K = QuantStrategy::Kind;
  const std::optional<QuantStrategy> strategy = QuantStrategyFromName(text);
  if (!strategy.has_value() ||
      (strategy->kind != K::kExtrema && strategy->kind != K::kStd && strategy->kind != K::kKld)) {
    return false;
  }
  out = *strategy;
  return true;
}

bool ActivationStrategy(const std::string& text, QuantStrategy& out) {
  const std::optional<QuantStrategy> strategy = QuantStrategyFromName(text);
  if (strategy.has_value()) out = *strategy;
  return strategy.has_value();
}

bool Momentum(const std::string& text, double& out) {
  double number = 0;
  if (!absl::SimpleAtod(text, &number) || !(number >= 0 && number <= 1)) return false;
  out = number;
  return true;
}

bool Decibels(const std::string& text, double& out) {
  double number = 0;
  if (!absl::SimpleAtod(text, &number) || !(number >= 0 && number <= 60)) return false;
  out = number;
  return true;
}

bool Trim(const std::string& text, QuantConfig& config) {
  QuantOptions& options = config.options;
  options.trim_infinity = TrimInfinityFromText(text);
  if (options.trim_infinity.has_value()) return true;
  std::optional<std::vector<TrimRule>> rules = TrimRulesFromText(text);
  if (!rules.has_value()) return false;
  options.trim_rules = *std::move(rules);
  return true;
}

// "[(0,3),(5,6)]" or the name of a layer.
bool Scopes(const std::string& text, QuantConfig& config) {
  QuantOptions& options = config.options;
  const absl::string_view start = absl::StripLeadingAsciiWhitespace(text);
  if (!absl::StartsWith(start, "(") && !absl::StartsWith(start, "[")) {
    options.fake_quant_scopes.push_back(text);
    return true;
  }
  const std::optional<std::vector<LayerIds>> ids = LayerIdsFromText(text);
  if (!ids.has_value()) return false;
  options.fake_quant_ids.insert(options.fake_quant_ids.end(), ids->begin(), ids->end());
  return true;
}

// "batches,threshold,L" where a greater score is better: the model's may be less by the threshold;
// "batches,-threshold,G" where a smaller one is: the model's may be greater by it.
bool MixedPrecision(const std::string& text, QuantConfig& config) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ',');
  if (parts.size() != 3) return false;
  QuantOptions& options = config.options;
  double threshold = 0;
  int64_t batches = 0;
  const absl::string_view sense = absl::StripAsciiWhitespace(parts[2]);
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(parts[0]), &batches) || batches > 65536 ||
      !absl::SimpleAtod(absl::StripAsciiWhitespace(parts[1]), &threshold) ||
      (sense != "L" && sense != "G") || (sense == "L" && threshold < 0) ||
      !(std::abs(threshold) <= 1e6)) {
    return false;
  }
  options.mixed_precision_batches = std::max<int64_t>(batches, 0);
  options.mixed_precision_threshold = std::abs(threshold);
  options.mixed_precision_less_is_better = sense == "L";
  return true;
}

std::string MixedPrecisionText(const QuantOptions& options) {
  if (options.mixed_precision_batches < 1) return "";
  return absl::StrCat(options.mixed_precision_batches, ",", options.mixed_precision_threshold, ",",
                      options.mixed_precision_less_is_better ? "L" : "G");
}

// "0.5" or "1/255".
bool FractionFromText(absl::string_view text, double& out) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '/');
  double below = 1;
  if (parts.size() > 2 || !absl::SimpleAtod(absl::StripAsciiWhitespace(parts[0]), &out)) {
    return false;
  }
  if (parts.size() == 2 && !absl::SimpleAtod(absl::StripAsciiWhitespace(parts[1]), &below)) {
    return false;
  }
  out /= below;
  return std::isfinite(out);
}

// "scale, zero_point"
bool ReadInputBytes(const std::string& text, QuantConfig& config) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ',');
  InputBytes bytes;
  if (parts.size() != 2 || !FractionFromText(parts[0], bytes.scale) ||
      !(bytes.scale >= 1e-9 && bytes.scale <= 1e9) ||
      !absl::SimpleAtoi(absl::StripAsciiWhitespace(parts[1]), &bytes.zero_point) ||
      bytes.zero_point < 0 || bytes.zero_point > 255) {
    return false;
  }
  config.options.input_bytes = bytes;
  return true;
}

std::string InputBytesText(const QuantOptions& options) {
  if (!options.input_bytes.has_value()) return "";
  return absl::StrCat(options.input_bytes->scale, ", ", options.input_bytes->zero_point);
}

bool Dataset(const std::string& text, QuantConfig&) {
  const std::string lower = absl::AsciiStrToLower(text);
  return lower == "numpy" || lower == "numpydataset" || lower == "numpymultiinputdataset";
}

// In the order of GlobalCalibration.
constexpr absl::string_view kGlobalCalibrationNames[] = {"equalization", "adaround",
                                                         "bias_correction"};

bool Global(const std::string& text, std::vector<GlobalCalibration>& list) {
  for (size_t i = 0; i < std::size(kGlobalCalibrationNames); ++i) {
    if (text != kGlobalCalibrationNames[i]) continue;
    const auto what = static_cast<GlobalCalibration>(i);
    if (std::find(list.begin(), list.end(), what) == list.end()) list.push_back(what);
    return true;
  }
  return false;
}

bool Append(const std::string& text, std::vector<std::string>& list) {
  list.push_back(text);
  return true;
}

bool MetricName(const std::string& text, std::vector<std::string>& list) {
  const absl::StatusOr<QualityMetric> metric = MetricFromName(text);
  if (metric.ok()) list.push_back(NameOf(*metric));
  return metric.ok();
}

constexpr absl::string_view kWeightWords[] = {
    "per_tensor_symmetric_restricted_range", "per_tensor_symmetric_full_range",
    "per_channel_symmetric_restricted_range", "per_channel_symmetric_full_range"};
constexpr absl::string_view kActivationWords[] = {"per_tensor_symmetric_restricted_range",
                                                  "per_tensor_symmetric_full_range",
                                                  "per_tensor_asymmetric"};
constexpr absl::string_view kStrategyWords[] = {
    "mean",       "extrema",      "3std",       "KLD",         "in_ir",
    "percentile", "aciq_laplace", "aciq_gauss", "best_single", "auto"};
constexpr absl::string_view kWeightStrategyWords[] = {"extrema", "3std", "KLD"};
constexpr absl::string_view kMetricWords[] = {"cosine", "mse", "sqnr", "topk", "auc", "wer"};

// A row with a field: its reader is `reader` on that field.
QuantKey With(bool (*read)(const std::string& text, QuantConfig& config), QuantKey key) {
  key.read = read;
  return key;
}

// In the order of base/quant_options.inc.
const std::vector<QuantKey>& Keys() {
  static const auto& keys = *new std::vector<QuantKey>{
#define NPUC_QUANT_OPTION(field, reader, ...)                                  \
  With([](const std::string& text,                                             \
          QuantConfig& config) { return reader(text, config.options.field); }, \
       {__VA_ARGS__}),
#define NPUC_QUANT_OPTION_WITHOUT_KEY(field)
#define NPUC_QUANT_KEY(...) {__VA_ARGS__},
#include "compiler_core/base/quant_options.inc"
  };
  return keys;
}

// The form of a value in report.json.
Json Shown(int value) { return value; }
Json Shown(int64_t value) { return value; }
Json Shown(bool value) { return value; }
Json Shown(double value) { return value; }
Json Shown(QuantMethod value) { return NameOf(value); }
Json Shown(const QuantStrategy& value) { return NameOf(value); }
Json Shown(const std::vector<std::string>& value) { return value; }
Json Shown(const std::vector<LayerTiles>& value) {
  Json list = Json::array();
  for (const LayerTiles& tiles : value) {
    list.push_back({tiles.ids.first, tiles.ids.last, tiles.rows, tiles.columns});
  }
  return list;
}
Json Shown(const std::vector<GlobalCalibration>& value) {
  Json out = Json::array();
  for (const GlobalCalibration what : value) {
    out.push_back(kGlobalCalibrationNames[static_cast<size_t>(what)]);
  }
  return out;
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
    // The preset first, wherever it stands: the other keys change what it sets.
    for (const bool is_preset : {true, false}) {
      for (size_t i = 0; i + 1 < mapping.items.size(); i += 2) {
        const ConfigNode& key = mapping.items[i];
        if (key.kind != Kind::kScalar) continue;  // reported with the syntax
        if ((key.text == "preset") == is_preset) ReadKey(key, mapping.items[i + 1]);
      }
    }
    CheckTogether(mapping);
    return ok_;
  }

 private:
  void ReadKey(const ConfigNode& key, const ConfigNode& value) {
    if (!seen_.insert(key.text).second) return;
    const QuantKey* known = FindQuantKey(key.text);
    if (known == nullptr) return ReportUnknown(key);
    ReadValue(*known, key, value);
  }

  // Says once that a key changes nothing, unless its value is the default.
  void NoteNoEffect(const QuantKey& key, const ConfigNode& at, absl::string_view value) {
    if (key.no_effect.empty() || absl::EqualsIgnoreCase(value, key.default_value) ||
        !noted_.insert(key.name).second) {
      return;
    }
    reporter_.Add(DiagnosticKind::kConfigNoEffect, {at.line, at.column},
                  absl::StrCat(key.name, " in QUANT changes nothing: ", key.no_effect),
                  "remove the line");
  }

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
    if (key.shape == KeyShape::kFiles) return ReadFiles(key, at, value);
    if (key.shape == KeyShape::kNames && value.kind == Kind::kSequence) {
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
    if (key.read(value.text, config_)) return NoteNoEffect(key, at, value.text);
    Report(
        DiagnosticKind::kConfigValueNotAllowed, at,
        absl::StrCat("QUANT: ", key.name, " is ", DescribeNode(value), "; allowed: ", key.allowed),
        reporter_.Suggest(value.text, key.words, "write one of these"));
  }

  void AddFile(const QuantKey& key, std::string role, const ConfigNode& value) {
    std::string path = value.text;  // a folder's may end with '/'
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    const std::string base = path.substr(path.rfind('/') + 1);
    if (value.kind != Kind::kScalar || base.empty() || base == "." || base == ".." ||
        value.text.size() > kMaxConfigTextBytes || value.text.find('\0') != std::string::npos) {
      return WrongType(key, value, value);
    }
    config_.files.push_back({std::move(role), std::move(path), value.line});
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
  std::set<absl::string_view> noted_;
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
  return key != nullptr && key->shape == KeyShape::kNames;
}

std::string QuantConfigHelp() {
  std::string out;
  for (const QuantKey& key : Keys()) {
    absl::StrAppend(&out, "  ", key.name, ": ", key.allowed);
    if (!key.default_value.empty()) absl::StrAppend(&out, "; default ", key.default_value);
    if (!key.no_effect.empty()) absl::StrAppend(&out, "; changes nothing, ", key.no_effect);
    absl::StrAppend(&out, "\n");
  }
  return out;
}

Json QuantJson(const QuantOptions& options) {
  const QuantOptions usual;
  Json out = Json::object();
  const QuantKey* key = Keys().data();
  const auto echo = [&](const auto& value, const auto& usual_value) {
    if (key->echo && !(value == usual_value)) out[std::string(key->name)] = Shown(value);
    ++key;
  };
  const auto echo_text = [&] {
    const std::string text = key->echo_text == nullptr ? "" : key->echo_text(options);
    if (!text.empty()) out[std::string(key->name)] = text;
    ++key;
  };
#define NPUC_QUANT_OPTION(field, ...) echo(options.field, usual.field);
#define NPUC_QUANT_OPTION_WITHOUT_KEY(field)
#define NPUC_QUANT_KEY(...) echo_text();
#include "compiler_core/base/quant_options.inc"
  return out;
}

}  // namespace npuc
