#include "compiler_core/quant/opt_template.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace npuc {
namespace {

// The shortest decimal that reads back to the same double; "null" where JSON has no number.
std::string Number(double value) {
  if (!std::isfinite(value)) return "null";
  if (value == 0) return "0";  // JSON readers may lose the sign of -0
  char buffer[32];
  const std::to_chars_result end = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, end.ptr);
}

std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string Display(const TemplateDisplay& display) {
  constexpr char kIndent[] = ",\n            ";
  return absl::StrCat(
      "\"just_for_display\": {\n            \"shape\": [", absl::StrJoin(display.shape, ", "), "]",
      kIndent, "\"used_by\": ", Quoted(display.used_by), kIndent,
      "\"step\": ", Number(display.step), kIndent, "\"sparsity\": ", Number(display.sparsity),
      kIndent, "\"error\": {\"max_abs\": ", Number(display.error_max_abs),
      ", \"rms\": ", Number(display.error_rms), "}\n        }");
}

}  // namespace

std::string WriteOptTemplate(absl::Span<const TemplateWeight> weights) {
  std::vector<std::string> layers;
  for (const TemplateWeight& weight : weights) {
    const WeightSetting& setting = weight.setting;
    std::vector<std::string> members;
    if (setting.q_bits.has_value()) {
      members.push_back(absl::StrCat("\"q_bits_weight\": ", *setting.q_bits));
    }
    if (setting.min.has_value() && setting.max.has_value() && std::isfinite(*setting.min) &&
        std::isfinite(*setting.max)) {
      members.push_back(absl::StrCat("\"min\": ", Number(*setting.min)));
      members.push_back(absl::StrCat("\"max\": ", Number(*setting.max)));
    }
    if (weight.display.has_value()) members.push_back(Display(*weight.display));
    layers.push_back(members.empty()
                         ? absl::StrCat("    ", Quoted(weight.name), ": {}")
                         : absl::StrCat("    ", Quoted(weight.name), ": {\n        ",
                                        absl::StrJoin(members, ",\n        "), "\n    }"));
  }
  if (layers.empty()) return "{}\n";
  return absl::StrCat("{\n", absl::StrJoin(layers, ",\n"), "\n}\n");
}

}  // namespace npuc
