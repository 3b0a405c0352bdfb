#include "compiler_core/config/config.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/yaml_tree.h"
#include "compiler_core/config/cfg_config.h"
#include "compiler_core/config/config_keys.h"
#include "compiler_core/config/config_options.h"
#include "compiler_core/config/config_rules.h"
#include "compiler_core/config/config_values.h"
#include "compiler_core/config/quant_config.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {
namespace {

void ReportUnknownKey(const ConfigNode& key, ConfigReporter& reporter) {
  std::vector<absl::string_view> known;
  for (const ConfigKey& entry : AllConfigKeys()) known.push_back(entry.name);
  reporter.Add(DiagnosticKind::kConfigUnknownKey, {key.line, key.column},
               absl::StrCat("unknown key '", Printable(key.text, 80), "'"),
               reporter.Suggest(key.text, known, "remove the line"));
}

std::optional<Framework> FrameworkOf(const ConfigSettings& settings) {
  if (settings.present.count("FRAMEWORK") == 0) return Framework::kTensorFlow;
  const ConfigSetting* setting = settings.Find("FRAMEWORK");
  return setting == nullptr ? std::nullopt : FrameworkNamed(setting->text);
}

// Reads each value by its key's type; nothing between keys is looked at.
ConfigSettings ReadSettings(const ConfigNode& root, ConfigReporter& reporter) {
  ConfigSettings all;
  for (size_t i = 0; i + 1 < root.items.size(); i += 2) {
    const ConfigNode& key_node = root.items[i];
    if (key_node.kind != ConfigNode::Kind::kScalar) continue;  // reported with the syntax
    const ConfigKey* key = FindConfigKey(key_node.text);
    if (key == nullptr) {
      ReportUnknownKey(key_node, reporter);
      continue;
    }
    const ConfigPlace key_place{key_node.line, key_node.column};
    if (!all.present.emplace(key->name, key_place).second) continue;  // reported with the syntax
    const ConfigNode& value = root.items[i + 1];
    ConfigSetting setting;
    setting.key = key;
    setting.key_place = key_place;
    setting.place = {value.line, value.column};
    if (ReadConfigValue(value, reporter, setting)) {
      if (key->name == "QUANT") {
        QuantConfig quant;
        if (ReadQuantConfig(value, reporter, quant)) all.quant = std::move(quant);
      }
      // One setting under two names.
      all.settings.emplace(key->name == "INPUT_DATA" ? "CONST_INPUTS" : key->name,
                           std::move(setting));
    }
  }
  if (const ConfigSetting* core = all.Find("CORENAME")) all.core = FindCore(core->text);
  all.framework = FrameworkOf(all);
  return all;
}

// The second file of a model, where it has one: as named, or beside MODEL_FILE.
std::optional<ConfigFile> DataFileOf(const ConfigSettings& all, const FrameworkInfo& framework,
                                     const ConfigFile& model) {
  if (framework.data_file == DataFile::kNone) return std::nullopt;
  std::string role(framework.data_key);
  if (const ConfigSetting* named = all.Find(role)) {
    return ConfigFile{std::move(role), named->text, named->place.line};
  }
  if (framework.data_file != DataFile::kAlways) return std::nullopt;
  const absl::string_view name = FileNameOf(model.path);
  const size_t dot = name.rfind('.');
  const size_t stem = dot == absl::string_view::npos || dot == 0 ? name.size() : dot;
  const size_t folder = model.path.size() - name.size();
  return ConfigFile{std::move(role),
                    absl::StrCat(model.path.substr(0, folder + stem), framework.data_ending),
                    model.line};
}

// The options of a config in which no error was found.
ParsedConfig MakeConfig(const ConfigSettings& all) {
  ParsedConfig config;
  CompileOptions& options = config.options;
  SetOptions(all, options);
  // These depend on more than their own keys.
  options.core = std::string(all.core->name);
  if (options.npu_unit.empty() && !all.core->npu_units.empty()) {
    options.npu_unit = std::string(all.core->npu_units[0]);
  }
  for (const auto& [key, role] :
       {std::pair("MODEL_FILE", "MODEL_FILE"), std::pair("PB_FILE", "MODEL_FILE"),
        std::pair("OPT_CONFIG", "OPT_CONFIG"), std::pair(kBoxesRole, kBoxesRole),
        std::pair("ADDRESSES", "ADDRESSES")}) {
    const ConfigSetting* setting = all.Find(key);
    if (setting != nullptr) config.files.push_back({role, setting->text, setting->place.line});
  }
  if (const ConfigSetting* plugins = all.Find(kPluginsRole)) {
    for (size_t i = 0; i < plugins->names.size(); ++i) {
      const ConfigName& path = plugins->names[i];
      config.files.push_back({PluginsRole(i), path.text, path.place.line});
    }
  }
  options.model_name = std::string(FileNameOf(config.files[0].path));
  if (auto data = DataFileOf(all, InfoOf(options.framework), config.files[0]); data.has_value()) {
    config.files.push_back(*std::move(data));
  }
  if (all.quant.has_value()) {
    options.quant = all.quant->options;
    for (const QuantFile& file : all.quant->files) {
      config.files.push_back({file.role, file.path, file.line});
    }
  }
  config.output_path = all.Find("OUTPUT_FILE")->text;
  return config;
}

// In the order of the file; what has no place comes first.
Diagnostics Sorted(const Diagnostics& found) {
  if (found.dropped_count() > 0) return found;
  std::vector<Diagnostic> list = found.list();
  std::stable_sort(list.begin(), list.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return std::pair(a.line, a.column) < std::pair(b.line, b.column);
  });
  Diagnostics sorted;
  for (Diagnostic& diagnostic : list) sorted.Add(std::move(diagnostic));
  return sorted;
}

}  // namespace

std::string PluginsRole(size_t number) { return absl::StrCat(kPluginsRole, "[", number, "]"); }

absl::StatusOr<ParsedConfig> ParseConfig(absl::string_view text, absl::string_view name,
                                         Diagnostics& diagnostics) {
  Diagnostics found;  // errors that the caller collected before are not this config's
  const auto fail = [&] {
    const Diagnostics sorted = Sorted(found);
    diagnostics.Append(sorted);
    return sorted.ToStatus();
  };
  ConfigReporter reporter(name, found);
  const bool is_cfg = IsCfgConfig(text);
  CfgTask task;
  const std::optional<ConfigNode> root = is_cfg ? ReadCfgConfig(text, name, task, reporter, found)
                                                : ParseConfigYaml(text, name, found);
  if (!root.has_value()) return fail();
  if (root->kind == ConfigNode::Kind::kNull) {
    reporter.Add(DiagnosticKind::kConfigUnreadable, {}, "the config has no keys",
                 "write CORENAME, MODEL_FILE, OUTPUT_FILE, INPUT_OPS and OUTPUT_OPS");
    return fail();
  }
  if (root->kind != ConfigNode::Kind::kMapping) {
    reporter.Add(
        DiagnosticKind::kConfigWrongType, {root->line, root->column},
        absl::StrCat("a config is a mapping of keys to values, found ", DescribeNode(*root)),
        "write KEY: value, a key a line");
    return fail();
  }
  const ConfigSettings settings = ReadSettings(*root, reporter);
  // What a .cfg file lacks was said in its own words.
  if (!is_cfg || !found.has_errors()) CheckConfigRules(settings, reporter);
  if (found.has_errors()) return fail();
  diagnostics.Append(Sorted(found));
  ParsedConfig config = MakeConfig(settings);
  config.is_cfg = is_cfg;
  config.task = std::move(task);
  if (settings.quant.has_value() && settings.quant->dump) {
    config.task.dump_dir = settings.quant->dump_dir;
  }
  return config;
}

}  // namespace npuc
