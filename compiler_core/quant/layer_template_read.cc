#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/json_tree.h"
#include "compiler_core/base/suggest.h"
#include "compiler_core/base/trim_text.h"
#include "compiler_core/quant/layer_template.h"

namespace npuc {
namespace {

using Kind = JsonNode::Kind;

constexpr absl::string_view kDisplay = "just_for_display";
constexpr absl::string_view kStart = "start from the opt_template.json of an earlier compile";

// What a key's value must be. `read` sets the setting, or gives false where the value is none of
// the allowed ones, which `allowed` lists.
struct TemplateKey {
  absl::string_view name;
  enum class Type : uint8_t { kInteger, kNumber, kBool, kText, kAny } type;
  std::string allowed;
  std::vector<absl::string_view> words = {};  // of kText: for near misses
  bool (*read)(const JsonNode& value, LayerSettings& settings);
};
using Type = TemplateKey::Type;

bool InRange(const JsonNode& value, int64_t low, int64_t high, int& out) {
  if (value.integer < low || value.integer > high) return false;
  out = static_cast<int>(value.integer);
  return true;
}

bool ReadMethod(const JsonNode& value, absl::Span<const QuantMethod> allowed, QuantMethod& out) {
  const std::optional<QuantMethod> method = QuantMethodFromName(value.text);
  if (!method.has_value()) return false;
  if (std::find(allowed.begin(), allowed.end(), *method) == allowed.end()) return false;
  out = *method;
  return true;
}

std::vector<absl::string_view> Words(absl::Span<const QuantMethod> methods) {
  std::vector<absl::string_view> words;
  for (const QuantMethod method : methods) words.push_back(NameOf(method));
  return words;
}

std::string List(const std::vector<absl::string_view>& words) { return absl::StrJoin(words, ", "); }

bool ReadWeightStrategy(const JsonNode& value, LayerSettings& settings) {
  const std::optional<QuantStrategy> strategy = QuantStrategyFromName(value.text);
  using K = QuantStrategy::Kind;
  if (!strategy.has_value() ||
      (strategy->kind != K::kExtrema && strategy->kind != K::kStd && strategy->kind != K::kKld)) {
    return false;
  }
  settings.weight_strategy = *strategy;
  return true;
}

bool ReadActivationStrategy(const JsonNode& value, LayerSettings& settings) {
  const std::optional<QuantStrategy> strategy = QuantStrategyFromName(value.text);
  if (strategy.has_value()) settings.activation_strategy = *strategy;
  return strategy.has_value();
}

bool IsFalse(const JsonNode& value, LayerSettings&) { return !value.flag; }
bool IsAnything(const JsonNode&, LayerSettings&) { return true; }

const std::vector<TemplateKey>& Keys() {
  using S = LayerSettings;
  using N = const JsonNode&;
  static const std::vector<TemplateKey> kKeys = {
      {"with_winograd", Type::kBool, "false: this compiler has no Winograd form", {}, &IsFalse},
      {"q_mode_activation", Type::kText, List(Words(kActivationMethods)), Words(kActivationMethods),
       [](N v, S& s) { return ReadMethod(v, kActivationMethods, s.activation_method); }},
      {"q_mode_weight", Type::kText, List(Words(kWeightMethods)), Words(kWeightMethods),
       [](N v, S& s) { return ReadMethod(v, kWeightMethods, s.weight_method); }},
      {"q_mode_bias", Type::kText, List(Words(kWeightMethods)), Words(kWeightMethods),
       [](N v, S& s) {
         QuantMethod method{};  // a bias has the scale that its sums have: nothing is left to set
         return ReadMethod(v, kWeightMethods, method);
       }},
      {"q_bits_activation",
       Type::kInteger,
       "8 to 16",
       {},
       [](N v, S& s) { return InRange(v, 8, 16, s.activation_bits); }},
      {"q_bits_weight",
       Type::kInteger,
       "4 to 16",
       {},
       [](N v, S& s) { return InRange(v, 4, 16, s.weight_bits); }},
      {"q_bits_bias",
       Type::kInteger,
       "16 to 48",
       {},
       [](N v, S& s) { return InRange(v, 16, 48, s.bias_bits); }},
      {"q_strategy_activation",
       Type::kText,
       std::string(QuantStrategyForms()),
       {"mean", "extrema", "3std", "KLD", "in_ir", "percentile", "aciq_laplace", "aciq_gauss",
        "best_single", "auto"},
       &ReadActivationStrategy},
      {"q_strategy_weight",
       Type::kText,
       "extrema, Nstd (3std), KLD",
       {"extrema", "3std", "KLD"},
       &ReadWeightStrategy},
      {"q_strategy_bias",
       Type::kText,
       "extrema",
       {"extrema"},
       [](N v, S& s) { return v.text == "extrema"; }},
      {"running_statistic_momentum",
       Type::kNumber,
       "0 to 1",
       {},
       [](N v, S& s) {
         if (!(v.number >= 0 && v.number <= 1)) return false;
         s.momentum = v.number;
         return true;
       }},
      {"histc_bins",
       Type::kInteger,
       "16 to 65536",
       {},
       [](N v, S& s) {
         if (v.integer < 16 || v.integer > 65536) return false;
         s.histc_bins = v.integer;
         return true;
       }},
      {"lut_items_in_bits",
       Type::kInteger,
       "4 to 16",
       {},
       [](N v, S& s) { return InRange(v, 4, 16, s.lut_bits); }},
      {"force_dtype_int",
       Type::kBool,
       "true, false",
       {},
       [](N v, S& s) {
         s.force_dtype_int = v.flag;
         return true;
       }},
      {"force_shift_positive",
       Type::kBool,
       "false: this compiler chooses shifts itself",
       {},
       &IsFalse},
      {"trigger_float_op",
       Type::kText,
       "disable, float32_preferred",
       {"disable", "float32_preferred"},
       [](N v, S& s) {
         s.in_float = v.text == "float32_preferred";
         return s.in_float || v.text == "disable";
       }},
      {"multiplier_bits",
       Type::kInteger,
       "2 to 31",
       {},
       [](N v, S& s) { return InRange(v, 2, 31, s.multiplier_bits); }},
      {"bias_effective_bits",
       Type::kInteger,
       "2 to 48, at most q_bits_bias",
       {},
       [](N v, S& s) { return InRange(v, 2, 48, s.bias_effective_bits); }},
      {"unify_scales_for_multi_inputs_operators",
       Type::kBool,
       "false: unify_scales_for_concat in the config does it for the whole model",
       {},
       &IsFalse},
      {"resize_degrade_to_nearest",
       Type::kBool,
       "false: resize_degrade_to_nearest of QUANT does it for the whole model",
       {},
       &IsFalse},
      {"trim_infinity_before_statistic",
       Type::kText,
       "'(min, max):clip', '(min, max):second'",
       {},
       [](N v, S& s) {
         s.trim = TrimInfinityFromText(v.text);
         return s.trim.has_value();
       }},
      {"regularize_activation_perchannel_scales",
       Type::kBool,
       "false: activations have one scale here",
       {},
       &IsFalse},
      // How Compass approximates a function; here lut_items_in_bits alone says that.
      {"extra_params", Type::kText, "a text", {}, &IsAnything},
      {"approx_params", Type::kText, "a text", {}, &IsAnything},
      {kDisplay, Type::kAny, "anything", {}, &IsAnything},
  };
  return kKeys;
}

absl::string_view NameOfType(Type type) {
  switch (type) {
    case Type::kInteger:
      return "an integer";
    case Type::kNumber:
      return "a number";
    case Type::kBool:
      return "true or false";
    case Type::kText:
      return "a text";
    case Type::kAny:
      return "anything";
  }
  return "";
}

bool HasType(const JsonNode& value, Type type) {
  switch (type) {
    case Type::kInteger:
      return value.kind == Kind::kInteger;
    case Type::kNumber:
      return value.is_number();
    case Type::kBool:
      return value.kind == Kind::kBool;
    case Type::kText:
      return value.kind == Kind::kString;
    case Type::kAny:
      return true;
  }
  return false;
}

class TemplateReader {
 public:
  TemplateReader(absl::string_view file, absl::Span<const Layer> layers,
                 std::vector<LayerSettings> settings, Diagnostics& diagnostics)
      : file_(file), settings_(std::move(settings)), diagnostics_(diagnostics) {
    for (size_t i = 0; i < layers.size(); ++i) {
      index_[layers[i].name] = i;
      names_.push_back(layers[i].name);
    }
  }

  void Read(const JsonNode& root) {
    if (root.kind != Kind::kObject) {
      return Report(DiagnosticKind::kTemplateWrongType, root.place,
                    absl::StrCat("a template is an object of layers, found ", DescribeJson(root)),
                    std::string(kStart));
    }
    std::set<std::string> seen;
    for (size_t i = 0; i < root.keys.size(); ++i) {
      const JsonNode::Key& key = root.keys[i];
      const auto layer = index_.find(key.name);
      if (layer == index_.end()) {
        Report(DiagnosticKind::kTemplateUnknownLayer, key.place,
               absl::StrCat("the model has no layer '", Printable(key.name), "'"),
               suggester_.DidYouMean(key.name, names_, "remove the layer"));
      }
      if (!seen.insert(key.name).second) {
        Report(DiagnosticKind::kTemplateDuplicateKey, key.place,
               absl::StrCat("layer '", Printable(key.name), "' is given twice"),
               "keep one of the two");
        continue;
      }
      LayerSettings unused;
      ReadLayer(key, root.items[i], layer == index_.end() ? unused : settings_[layer->second]);
    }
  }

  std::vector<LayerSettings> Take() { return std::move(settings_); }

 private:
  void Report(DiagnosticKind kind, JsonPlace place, std::string message, std::string fix) {
    diagnostics_.Add({.kind = kind,
                      .message = std::move(message),
                      .file = file_,
                      .line = place.line,
                      .column = place.column,
                      .fix = std::move(fix)});
  }

  void ReadLayer(const JsonNode::Key& layer, const JsonNode& value, LayerSettings& settings) {
    if (value.kind != Kind::kObject) {
      return Report(DiagnosticKind::kTemplateWrongType, value.place,
                    absl::StrCat("layer '", Printable(layer.name),
                                 "' takes an object of settings, found ", DescribeJson(value)),
                    "write it like \"NAME\": {\"q_bits_weight\": 8}");
    }
    std::set<std::string> seen;
    const JsonNode* effective = nullptr;
    for (size_t i = 0; i < value.keys.size(); ++i) {
      const JsonNode::Key& key = value.keys[i];
      if (!seen.insert(key.name).second) {
        Report(DiagnosticKind::kTemplateDuplicateKey, key.place,
               absl::StrCat("layer '", Printable(layer.name), "' has '", Printable(key.name),
                            "' twice"),
               "keep one of the two");
        continue;
      }
      if (key.name == "bias_effective_bits") effective = &value.items[i];
      ReadKey(layer, key, value.items[i], settings);
    }
    if (settings.bias_effective_bits <= settings.bias_bits) return;
    if (effective == nullptr) {  // the default follows q_bits_bias down
      settings.bias_effective_bits = settings.bias_bits;
      return;
    }
    Report(
        DiagnosticKind::kTemplateValueNotAllowed, effective->place,
        absl::StrCat("layer '", Printable(layer.name), "': bias_effective_bits is ",
                     settings.bias_effective_bits, ", over its q_bits_bias ", settings.bias_bits),
        "lower the one or raise the other");
  }

  void ReadKey(const JsonNode::Key& layer, const JsonNode::Key& key, const JsonNode& value,
               LayerSettings& settings) {
    const std::vector<TemplateKey>& keys = Keys();
    const auto known = std::find_if(keys.begin(), keys.end(),
                                    [&](const TemplateKey& k) { return k.name == key.name; });
    if (known == keys.end()) {
      return Report(DiagnosticKind::kTemplateUnknownKey, key.place,
                    absl::StrCat("layer '", Printable(layer.name), "': unknown key '",
                                 Printable(key.name, 80), "'"),
                    suggester_.DidYouMean(key.name, LayerTemplateKeys(), "remove the line"));
    }
    if (!HasType(value, known->type)) {
      return Report(DiagnosticKind::kTemplateWrongType, value.place,
                    absl::StrCat("layer '", Printable(layer.name), "': ", key.name, " takes ",
                                 NameOfType(known->type), ", found ", DescribeJson(value)),
                    absl::StrCat("allowed: ", known->allowed));
    }
    if (known->read(value, settings)) return;
    const std::string allowed = absl::StrCat("allowed: ", known->allowed);
    Report(DiagnosticKind::kTemplateValueNotAllowed, value.place,
           absl::StrCat("layer '", Printable(layer.name), "': ", key.name, " is ",
                        DescribeJson(value), "; ", allowed),
           value.kind == Kind::kString
               ? suggester_.DidYouMean(value.text, known->words, "write one of these")
               : "write one of these");
  }

  std::string file_;
  std::vector<LayerSettings> settings_;
  Diagnostics& diagnostics_;
  std::map<std::string, size_t, std::less<>> index_;
  std::vector<absl::string_view> names_;
  Suggester suggester_;
};

}  // namespace

std::vector<absl::string_view> LayerTemplateKeys() {
  std::vector<absl::string_view> names;
  for (const TemplateKey& key : Keys()) names.push_back(key.name);
  return names;
}

absl::Status ReadLayerTemplate(absl::string_view text, absl::string_view name,
                               absl::Span<const Layer> layers, std::vector<LayerSettings>& settings,
                               Diagnostics& diagnostics) {
  Diagnostics found;
  JsonNode root;
  JsonError error;
  TemplateReader reader(name, layers, settings, found);
  if (ParseJsonTree(text, {}, root, error)) {
    reader.Read(root);
  } else {
    found.Add({.kind = error.is_syntax ? DiagnosticKind::kTemplateSyntax
                                       : DiagnosticKind::kTemplateUnreadable,
               .message = error.is_syntax
                              ? error.message
                              : absl::StrCat("the template cannot be read: ", error.message),
               .file = std::string(name),
               .line = error.place.line,
               .column = error.place.column,
               .fix = error.is_syntax ? "correct the syntax at this place or just before it"
                                      : std::string(kStart)});
  }
  diagnostics.Append(found);
  if (found.has_errors()) return found.ToStatus();
  settings = reader.Take();
  return absl::OkStatus();
}

}  // namespace npuc
