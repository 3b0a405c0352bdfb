#include "compiler_core/config/config_options.h"

#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "nlohmann/json.hpp"

namespace npuc {
namespace {

using Json = nlohmann::ordered_json;
using WeightRanges = std::map<std::string, std::pair<double, double>>;

// Calls function(key, options.field) for each option that a key sets, in the order of the list.
template <typename Options, typename Function>
void ForEachOption(Options& options, const Function& function) {
  const ConfigKey* key = AllConfigKeys().data();
#define NPUC_OPTION(field, ...) function(*key++, options.field);
#define NPUC_OPTION_WITHOUT_KEY(field)
#define NPUC_KEY(...) ++key;
#include "compiler_core/base/compile_options.inc"
}

// The enumerators stand in the order of the key's choices.
template <typename Enum>
requires std::is_enum_v<Enum>
void Assign(const ConfigSetting& setting, Enum& option) {
  int position = 0;
  for (const absl::string_view choice : absl::StrSplit(setting.key->choices, '|')) {
    if (choice == setting.text) option = static_cast<Enum>(position);
    ++position;
  }
}
// The choices also hold formats without a front end, which are refused before.
void Assign(const ConfigSetting& setting, Framework& option) {
  option = FrameworkNamed(setting.text).value_or(option);
}
void Assign(const ConfigSetting& setting, bool& option) { option = setting.flag; }
void Assign(const ConfigSetting& setting, int64_t& option) { option = setting.number; }
// 0 is the default: the same options as without the key.
void Assign(const ConfigSetting& setting, std::optional<int64_t>& option) {
  if (setting.number > 0) option = setting.number;
}
// The options have the name of a file, not its folder.
void Assign(const ConfigSetting& setting, std::string& option) {
  const bool is_path = setting.key->type == ConfigType::kPath;
  option = is_path ? std::string(FileNameOf(setting.text)) : setting.text;
}
void Assign(const ConfigSetting& setting, std::vector<std::string>& option) {
  for (const ConfigName& name : setting.names) option.push_back(name.text);
}
void Assign(const ConfigSetting& setting, std::vector<int64_t>& option) {
  for (const ConfigIndex& index : setting.indices) option.push_back(index.value);
}
void Assign(const ConfigSetting& setting, std::vector<InputDecl>& option) {
  for (const ConfigShape& shape : setting.shapes) option.push_back({shape.name.text, shape.dims});
}
void Assign(const ConfigSetting& setting, WeightRanges& option) {
  for (const ConfigRange& range : setting.ranges) {
    option[range.name.text] = {range.min, range.max};
  }
}
void Assign(const ConfigSetting& setting, std::vector<ConstInput>& option) {
  for (const ConfigValue& value : setting.values) {
    option.push_back({value.name.text, value.numbers, value.is_list, value.is_whole});
  }
}
void Assign(const ConfigSetting& setting, std::map<std::string, int64_t>& option) {
  for (const ConfigValue& value : setting.values) {
    option[value.name.text] = static_cast<int64_t>(value.numbers[0]);
  }
}
// The rules have checked the text.
void Assign(const ConfigSetting& setting, std::vector<PreprocessStep>& option) {
  absl::StatusOr<std::vector<PreprocessStep>> steps = PreprocessFromText(setting.text);
  if (steps.ok()) option = *std::move(steps);
}
void Assign(const ConfigSetting&, std::optional<QuantOptions>&) {}

template <typename Enum>
requires std::is_enum_v<Enum> Json Echo(const ConfigKey& key, Enum option) {
  const std::vector<std::string> choices = absl::StrSplit(key.choices, '|');
  NPUC_CHECK(static_cast<size_t>(option) < choices.size());
  return choices[static_cast<size_t>(option)];
}
Json Echo(const ConfigKey&, Framework option) { return FrameworkName(option); }
Json Echo(const ConfigKey&, bool option) { return option; }
Json Echo(const ConfigKey&, int64_t option) { return option; }
Json Echo(const ConfigKey&, const std::optional<int64_t>& option) { return option.value_or(0); }
Json Echo(const ConfigKey&, const std::string& option) { return Printable(option); }
Json Echo(const ConfigKey&, const std::vector<int64_t>& option) { return option; }
Json Echo(const ConfigKey&, const std::vector<std::string>& option) {
  Json out = Json::array();
  for (const std::string& item : option) out.push_back(Printable(item));
  return out;
}
Json Echo(const ConfigKey&, const std::vector<InputDecl>& option) {
  Json out = Json::object();
  for (const InputDecl& input : option) out[Printable(input.name)] = input.shape;
  return out;
}
Json Echo(const ConfigKey&, const std::vector<ConstInput>& option) {
  const auto number = [](const ConstInput& input, double value) {
    return input.is_whole ? Json(static_cast<int64_t>(value)) : Json(value);
  };
  Json out = Json::object();
  for (const ConstInput& input : option) {
    Json list = Json::array();
    for (const double value : input.values) list.push_back(number(input, value));
    out[Printable(input.name)] = input.is_list ? list : list[0];
  }
  return out;
}
Json Echo(const ConfigKey&, const std::map<std::string, int64_t>& option) {
  Json out = Json::object();
  for (const auto& [name, size] : option) out[Printable(name)] = size;
  return out;
}
Json Echo(const ConfigKey&, const WeightRanges& option) {
  Json out = Json::object();
  for (const auto& [name, range] : option) out[Printable(name)] = {range.first, range.second};
  return out;
}
Json Echo(const ConfigKey&, const std::vector<PreprocessStep>& option) { return TextOf(option); }
Json Echo(const ConfigKey&, const std::optional<QuantOptions>& option) {
  return QuantJson(*option);
}

template <typename T>
bool IsSet(const T& option) {
  return option != T();
}
template <typename T>
bool IsSet(const std::vector<T>& option) {
  return !option.empty();
}
bool IsSet(const std::optional<QuantOptions>& option) { return option.has_value(); }

}  // namespace

void SetOptions(const ConfigSettings& settings, CompileOptions& options) {
  ForEachOption(options, [&](const ConfigKey& key, auto& option) {
    if (const ConfigSetting* setting = settings.Find(key.name)) {
      Assign(*setting, option);
    } else if constexpr (std::is_same_v<decltype(option), std::string&>) {
      option = std::string(key.default_value);
    }
  });
}

Json ConfigJson(const CompileOptions& options) {
  Json config = Json::object();
  ForEachOption(options, [&](const ConfigKey& key, const auto& option) {
    if (key.echo == ConfigEcho::kAlways || (key.echo == ConfigEcho::kIfSet && IsSet(option))) {
      config[std::string(key.name)] = Echo(key, option);
    }
  });
  return config;
}

}  // namespace npuc
