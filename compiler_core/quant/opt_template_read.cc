#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler_core/base/fp16.h"
#include "compiler_core/base/json_positions.h"
#include "compiler_core/base/suggest.h"
#include "compiler_core/base/utf8.h"
#include "compiler_core/quant/opt_template.h"

namespace npuc {
namespace {

using Json = nlohmann::json;

constexpr absl::string_view kDisplay = "just_for_display";
constexpr absl::string_view kKeys[] = {"q_bits_weight", "min", "max", kDisplay};

// Checks the events of a template against its layout. Levels: 0 outside, 1 in the object of
// layers, 2 in a layer; what lies in a value that does not matter is skipped.
class TemplateHandler : public nlohmann::json_sax<Json> {
 public:
  TemplateHandler(absl::string_view text, absl::string_view file,
                  absl::Span<const std::string> known_weights, int least_bits,
                  Diagnostics& diagnostics)
      : positions_(text),
        file_(file),
        least_bits_(least_bits),
        known_(known_weights.begin(), known_weights.end()),
        known_list_(known_.begin(), known_.end()),
        diagnostics_(diagnostics) {}

  bool Parse() { return positions_.Parse(*this); }
  WeightSettings& settings() { return settings_; }

  bool null() override { return Scalar("null", std::nullopt, false); }
  bool boolean(bool value) override {
    return Scalar(value ? "true" : "false", std::nullopt, false);
  }
  bool number_integer(number_integer_t value) override {
    return Scalar(absl::StrCat(value), static_cast<double>(value), true);
  }
  bool number_unsigned(number_unsigned_t value) override {
    return Scalar(absl::StrCat(value), static_cast<double>(value), true);
  }
  bool number_float(number_float_t value, const string_t& text) override {
    return Scalar(text, value, false);
  }
  bool string(string_t& value) override {
    return Scalar(absl::StrCat("the text '", Printable(value, 60), "'"), std::nullopt, false);
  }
  bool binary(binary_t&) override { return false; }  // JSON text has no binary values

  bool start_object(std::size_t) override { return Start(true); }
  bool start_array(std::size_t) override { return Start(false); }
  bool end_object() override { return End(); }
  bool end_array() override { return End(); }
  bool key(string_t& name) override;
  bool parse_error(std::size_t position, const std::string& last_token,
                   const nlohmann::detail::exception& error) override;

 private:
  void Report(DiagnosticKind kind, JsonPlace place, std::string message, std::string fix);
  void Report(DiagnosticKind kind, size_t offset, std::string message, std::string fix);
  void WrongType(size_t offset, absl::string_view found);
  bool Scalar(const std::string& shown, std::optional<double> number, bool is_integer);
  std::string BitsTaken() const {
    return least_bits_ < 8 ? absl::StrCat(least_bits_, " to 8 or 16") : "8 or 16";
  }
  void SetBits(size_t offset, const std::string& shown, double number);
  void SetBound(size_t offset, const std::string& shown, double number);
  bool Start(bool is_object);
  bool End();
  void EndLayer();

  JsonPositions positions_;
  std::string file_;
  const int least_bits_;  // of q_bits_weight
  std::set<std::string, std::less<>> known_;
  std::vector<absl::string_view> known_list_;
  Diagnostics& diagnostics_;
  WeightSettings settings_;

  int depth_ = 0;       // open objects and arrays
  int skip_above_ = 0;  // > 0: everything deeper than this does not matter
  std::string layer_;   // at level 2, and its value's place
  JsonPlace layer_place_;
  bool layer_counts_ = false;  // known, and not a repeat
  WeightSetting setting_;
  bool setting_ok_ = true;
  std::string key_;
  std::set<std::string> layers_seen_;
  std::set<std::string> keys_seen_;
  Suggester suggester_;
};

void TemplateHandler::Report(DiagnosticKind kind, JsonPlace place, std::string message,
                             std::string fix) {
  diagnostics_.Add({.kind = kind,
                    .message = std::move(message),
                    .file = file_,
                    .line = place.line,
                    .column = place.column,
                    .fix = std::move(fix)});
}

void TemplateHandler::Report(DiagnosticKind kind, size_t offset, std::string message,
                             std::string fix) {
  Report(kind, positions_.PlaceOf(offset), std::move(message), std::move(fix));
}

void TemplateHandler::WrongType(size_t offset, absl::string_view found) {
  std::string wanted = absl::StrCat("layer '", Printable(layer_), "' takes an object of settings");
  std::string fix = "write it like \"NAME\": {\"q_bits_weight\": 8}";
  if (depth_ == 0) {
    wanted = "a template is an object of layers";
    fix = "start from the opt_template.json of an earlier compile";
  } else if (depth_ == 2) {
    wanted = absl::StrCat(key_, " takes ", key_ == "q_bits_weight" ? BitsTaken() : "a number");
    fix = key_ == "q_bits_weight" ? "write 8 to compress the weight, 16 to leave it"
                                  : "write a number";
    setting_ok_ = false;
  }
  Report(DiagnosticKind::kTemplateWrongType, offset, absl::StrCat(wanted, ", found ", found), fix);
}

bool TemplateHandler::Scalar(const std::string& shown, std::optional<double> number,
                             bool is_integer) {
  const size_t offset = positions_.NextToken();
  if (skip_above_ > 0) return true;
  if (depth_ < 2) {
    WrongType(offset, shown);
    return true;
  }
  if (key_ == "q_bits_weight") {
    if (is_integer) {
      SetBits(offset, shown, *number);
    } else {
      WrongType(offset, shown);
    }
  } else if (key_ == "min" || key_ == "max") {
    if (number.has_value()) {
      SetBound(offset, shown, *number);
    } else {
      WrongType(offset, shown);
    }
  }
  return true;
}

void TemplateHandler::SetBits(size_t offset, const std::string& shown, double number) {
  if ((number >= least_bits_ && number <= 8) || number == 16) {
    setting_.q_bits = static_cast<int>(number);
    return;
  }
  setting_ok_ = false;
  Report(DiagnosticKind::kTemplateValueNotAllowed, offset,
         absl::StrCat("q_bits_weight is ", shown, ", not ", BitsTaken()),
         "write 8 to compress the weight, 16 to leave it");
}

void TemplateHandler::SetBound(size_t offset, const std::string& shown, double number) {
  if (number >= -kLargestHalf && number <= kLargestHalf) {
    (key_ == "min" ? setting_.min : setting_.max) = number;
    return;
  }
  setting_ok_ = false;
  Report(DiagnosticKind::kTemplateValueNotAllowed, offset,
         absl::StrCat(key_, " is ", shown, ", outside fp16's -65504..65504"),
         "write a number that fp16 can hold");
}

bool TemplateHandler::Start(bool is_object) {
  const size_t offset = positions_.NextToken();
  if (depth_ >= kMaxTemplateDepth) {
    Report(DiagnosticKind::kTemplateUnreadable, offset,
           absl::StrCat("values nested deeper than ", kMaxTemplateDepth),
           "start from the opt_template.json of an earlier compile");
    return false;
  }
  if (skip_above_ == 0) {
    const bool wanted =
        is_object ? depth_ < 2 || key_ == kDisplay : key_ == kDisplay && depth_ == 2;
    if (!wanted) WrongType(offset, is_object ? "an object" : "a list");
    if (!wanted && depth_ == 0) return false;
    if (!wanted || depth_ == 2) skip_above_ = depth_;
    if (wanted && depth_ == 1) {
      setting_ = {};
      setting_ok_ = true;
      layer_place_ = positions_.PlaceOf(offset);
      keys_seen_.clear();
    }
  }
  ++depth_;
  return true;
}

bool TemplateHandler::End() {
  positions_.NextToken();
  --depth_;
  if (skip_above_ > 0) {
    if (depth_ == skip_above_) skip_above_ = 0;
  } else if (depth_ == 1) {
    EndLayer();
  }
  return true;
}

void TemplateHandler::EndLayer() {
  if (!setting_ok_) return;
  const std::string what = absl::StrCat("layer '", Printable(layer_), "'");
  if (setting_.min.has_value() != setting_.max.has_value()) {
    Report(DiagnosticKind::kTemplateValueNotAllowed, layer_place_,
           absl::StrCat(what, " has ",
                        setting_.min.has_value() ? "min without max" : "max without min"),
           "give both or neither");
    return;
  }
  if (setting_.min.has_value()) {
    const std::string range = absl::StrCat("[", *setting_.min, ", ", *setting_.max, "]");
    if (*setting_.min >= *setting_.max) {
      Report(DiagnosticKind::kTemplateValueNotAllowed, layer_place_,
             absl::StrCat(what, " has the range ", range, ", whose min is not below max"),
             "write min below max");
      return;
    }
    if (FloatToHalf(static_cast<float>((*setting_.max - *setting_.min) / 255)) == 0) {
      Report(DiagnosticKind::kTemplateValueNotAllowed, layer_place_,
             absl::StrCat(what, " has the range ", range, ", whose step is 0 in fp16"),
             "write a wider range");
      return;
    }
  }
  if (layer_counts_) settings_[layer_] = setting_;
}

bool TemplateHandler::key(string_t& name) {
  const size_t offset = positions_.NextToken();
  if (skip_above_ > 0) return true;
  if (depth_ == 2) {
    key_ = name;
    if (!keys_seen_.insert(name).second) {
      setting_ok_ = false;
      Report(DiagnosticKind::kTemplateDuplicateKey, offset,
             absl::StrCat("layer '", Printable(layer_), "' has '", Printable(name), "' twice"),
             "keep one of the two");
    }
    if (std::find(std::begin(kKeys), std::end(kKeys), name) == std::end(kKeys)) {
      setting_ok_ = false;
      Report(DiagnosticKind::kTemplateUnknownKey, offset,
             absl::StrCat("unknown key '", Printable(name, 80), "'"),
             suggester_.DidYouMean(name, kKeys,
                                   "a layer takes q_bits_weight, min, max, just_for_display"));
      key_ = std::string(kDisplay);  // whatever its value is, it is not looked at
    }
    return true;
  }
  layer_ = name;
  key_.clear();
  layer_counts_ = known_.count(name) > 0;
  if (!layer_counts_) {
    Report(DiagnosticKind::kTemplateUnknownLayer, offset,
           absl::StrCat("the model has no weight '", Printable(name), "'"),
           suggester_.DidYouMean(name, known_list_, "remove the layer"));
  }
  if (!layers_seen_.insert(name).second) {
    layer_counts_ = false;
    Report(DiagnosticKind::kTemplateDuplicateKey, offset,
           absl::StrCat("layer '", Printable(name), "' is given twice"), "keep one of the two");
  }
  return true;
}

bool TemplateHandler::parse_error(std::size_t position, const std::string&,
                                  const nlohmann::detail::exception& error) {
  const JsonError syntax = positions_.SyntaxError(position, error);
  Report(DiagnosticKind::kTemplateSyntax, syntax.place, syntax.message,
         "correct the syntax at this place or just before it");
  return false;
}

// Size and encoding, before the parser sees a byte.
bool CheckText(absl::string_view text, absl::string_view file, Diagnostics& diagnostics) {
  std::string message;
  if (text.size() > kMaxTemplateBytes) {
    message = absl::StrCat("the template has ", text.size(), " bytes, over ", kMaxTemplateBytes);
  } else if (const size_t invalid = FirstInvalidUtf8(text); invalid != absl::string_view::npos) {
    message = absl::StrCat("byte ", Printable(text.substr(invalid, 1)), " at offset ", invalid,
                           " is not UTF-8");
  } else if (absl::StripAsciiWhitespace(text).empty()) {
    message = "the template is empty";
  } else {
    return true;
  }
  diagnostics.Add({.kind = DiagnosticKind::kTemplateUnreadable,
                   .message = std::move(message),
                   .file = std::string(file),
                   .fix = "start from the opt_template.json of an earlier compile"});
  return false;
}

}  // namespace

absl::StatusOr<WeightSettings> ReadOptTemplate(absl::string_view text, absl::string_view name,
                                               absl::Span<const std::string> known_weights,
                                               int least_bits, Diagnostics& diagnostics) {
  Diagnostics found;
  WeightSettings settings;
  if (CheckText(text, name, found)) {
    TemplateHandler handler(text, name, known_weights, least_bits, found);
    try {
      handler.Parse();
    } catch (const std::exception& e) {
      found.Add({.kind = DiagnosticKind::kTemplateSyntax,
                 .message = absl::StrCat("the JSON reader failed: ", Printable(e.what())),
                 .file = std::string(name),
                 .fix = "simplify the template"});
    }
    settings = std::move(handler.settings());
  }
  diagnostics.Append(found);
  if (found.has_errors()) return found.ToStatus();
  return settings;
}

}  // namespace npuc
