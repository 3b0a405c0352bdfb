#include "compiler_core/config/config_rules.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "compiler_core/base/artifact_name.h"
#include "compiler_core/base/preprocess.h"
#include "compiler_core/config/quant_rules.h"

namespace npuc {
namespace {

void CheckMissing(const ConfigSettings& all, ConfigReporter& reporter) {
  for (const ConfigKey& key : AllConfigKeys()) {
    if (key.required_for.empty() || all.present.count(key.name) > 0) continue;
    if (key.name == "MODEL_FILE" && all.present.count("PB_FILE") > 0) continue;
    if (key.required_for != "*" && !(all.framework.has_value() &&
                                     ListHolds(key.required_for, FrameworkName(*all.framework)))) {
      continue;
    }
    const bool is_counted = key.name == "INPUT_OPS" && all.CountsPorts();
    const bool is_known_to_model = key.name == "INPUT_OPS" || key.name == "OUTPUT_OPS";
    reporter.Add(
        DiagnosticKind::kConfigMissingKey, {}, absl::StrCat(key.name, " is missing: ", key.meaning),
        absl::StrCat("add a line like ", key.name, ": ", is_counted ? "{0: [1, 64]}" : key.example,
                     is_known_to_model ? ", or let npuc init MODEL write it" : ""));
  }
  if (all.core != nullptr && all.core->npu_units.size() > 1 && all.present.count("NPU_UNIT") == 0) {
    reporter.Add(DiagnosticKind::kConfigMissingKey, {},
                 absl::StrCat("NPU_UNIT is missing: core ", all.core->name, " has ",
                              absl::StrJoin(all.core->npu_units, ", ")),
                 absl::StrCat("add a line like NPU_UNIT: ", all.core->npu_units[0]));
  }
}

// The key must be one of the config's core and framework.
void CheckBelongs(const ConfigSettings& all, const ConfigKey& key, ConfigPlace place,
                  ConfigReporter& reporter) {
  if (all.core != nullptr && !key.families.empty() && !key.families.Holds(all.core->family)) {
    reporter.Add(DiagnosticKind::kConfigNotForTarget, place,
                 absl::StrCat(key.name, " is a key of core ", WordsOf(CoresOf(key.families)),
                              ", CORENAME is ", all.core->name),
                 "remove the line");
  } else if (all.framework.has_value() && !key.frameworks.empty() &&
             !ListHolds(key.frameworks, FrameworkName(*all.framework))) {
    reporter.Add(DiagnosticKind::kConfigNotForTarget, place,
                 absl::StrCat(key.name, " is a key of framework ", WordsOf(key.frameworks),
                              ", FRAMEWORK is ", FrameworkName(*all.framework)),
                 "remove the line");
  }
}

// A core without units has nothing that NPU_UNIT could choose.
void CheckUnits(const ConfigSettings& all, ConfigReporter& reporter) {
  const ConfigSetting* setting = all.Find("NPU_UNIT");
  if (setting == nullptr || all.core == nullptr || !all.core->npu_units.empty()) return;
  reporter.Add(DiagnosticKind::kConfigNoEffect, setting->key_place,
               absl::StrCat("NPU_UNIT changes nothing: core ", all.core->name, " has no units"),
               "remove the line");
}

// NPU_UNIT and OUTPUT_TYPE take only what the core has.
void CheckCoreChoice(const ConfigSettings& all, absl::string_view key,
                     absl::Span<const absl::string_view> of_core, ConfigReporter& reporter) {
  const ConfigSetting* setting = all.Find(key);
  if (setting == nullptr || of_core.empty()) return;
  for (absl::string_view choice : of_core) {
    if (choice == setting->text) return;
  }
  reporter.Add(
      DiagnosticKind::kConfigNotForTarget, setting->place,
      absl::StrCat("core ", all.core->name, " takes ", key, " ", absl::StrJoin(of_core, ", "),
                   ", found '", Printable(setting->text), "'"),
      absl::StrCat("write ", key, ": ", of_core[0]));
}

// The name under which the output is an artifact, here and in the service.
void CheckOutputName(const ConfigSetting& output, ConfigReporter& reporter) {
  const absl::string_view name = FileNameOf(output.text);
  if (name.empty()) return;  // CheckFiles says so
  if (!IsValidArtifactName(name) || name.size() > kMaxOutputFileBytes) {
    reporter.Add(
        DiagnosticKind::kConfigValueNotAllowed, output.place,
        absl::StrCat("OUTPUT_FILE '", Printable(name), "' is not 1 to ", kMaxOutputFileBytes,
                     " letters, digits, '_', '-', '.' and '+', "
                     "with no '.' first"),
        "write it like OUTPUT_FILE: model.h");
    return;
  }
  if (absl::EndsWith(name, ".npuc")) {
    reporter.Add(DiagnosticKind::kConfigConflict, output.place,
                 absl::StrCat("OUTPUT_FILE ", name,
                              " has the ending of the model file that is written beside it"),
                 "choose another name, such as model.h");
  }
  for (absl::string_view taken :
       {"opt_template.json", "report.json", "report.html", "statistics.json", "compile.log"}) {
    if (name != taken) continue;
    reporter.Add(DiagnosticKind::kConfigConflict, output.place,
                 absl::StrCat("OUTPUT_FILE ", taken, " is the name of another artifact"),
                 "choose another name, such as model.h");
  }
}

void CheckFiles(const ConfigSettings& all, ConfigReporter& reporter) {
  const auto pb_file = all.present.find("PB_FILE");
  if (pb_file != all.present.end() && all.present.count("MODEL_FILE") > 0) {
    reporter.Add(DiagnosticKind::kConfigConflict, pb_file->second,
                 "PB_FILE is the older name of MODEL_FILE, and both are given", "keep MODEL_FILE");
  }
  const auto input_data = all.present.find("INPUT_DATA");
  if (input_data != all.present.end() && all.present.count("CONST_INPUTS") > 0) {
    reporter.Add(DiagnosticKind::kConfigConflict, input_data->second,
                 "INPUT_DATA is another name of CONST_INPUTS, and both are given",
                 "keep CONST_INPUTS");
  }
  for (const auto& [name, setting] : all.settings) {
    if (setting.key->type != ConfigType::kPath || !FileNameOf(setting.text).empty()) continue;
    reporter.Add(DiagnosticKind::kConfigValueNotAllowed, setting.place,
                 absl::StrCat(name, " '", Printable(setting.text), "' does not name a file"),
                 absl::StrCat("write it like ", name, ": ", setting.key->example));
  }
  const auto opt_config = all.present.find("OPT_CONFIG");
  if (opt_config != all.present.end() && all.quant.has_value() &&
      std::any_of(all.quant->files.begin(), all.quant->files.end(),
                  [](const QuantFile& file) { return file.role == kTemplateRole; })) {
    reporter.Add(DiagnosticKind::kConfigConflict, opt_config->second,
                 "OPT_CONFIG is the same as opt_config in QUANT, and both are given",
                 "keep one of the two");
  }
  if (const ConfigSetting* output = all.Find("OUTPUT_FILE"); output != nullptr) {
    CheckOutputName(*output, reporter);
  }
}

bool IsIndex(absl::string_view text) {
  int64_t value = 0;
  return absl::SimpleAtoi(text, &value) && value >= 0 && text == absl::StrCat(value);
}

// An input that is counted, "1", or a part of a container that is: "1.0", "1.key".
bool IsInputIndex(absl::string_view text) {
  const size_t dot = text.find('.');
  return IsIndex(text.substr(0, dot)) &&
         (dot == absl::string_view::npos || (text.back() != '.' && text[dot + 1] != '.'));
}

// Keys that count inputs and outputs where these have no names.
void CheckIndices(const ConfigSettings& all, ConfigReporter& reporter) {
  if (!all.CountsPorts()) return;
  const auto check = [&](absl::string_view key, const ConfigName& name) {
    if (key == "FP16_OUT_OPS" ? IsIndex(name.text) : IsInputIndex(name.text)) return;
    reporter.Add(
        DiagnosticKind::kConfigValueNotAllowed, name.place,
        absl::StrCat(key, " takes indices where FRAMEWORK is ", FrameworkName(*all.framework),
                     ", found '", Printable(name.text), "'"),
        "count from 0");
  };
  std::set<std::string> inputs;
  if (const ConfigSetting* setting = all.Find("INPUT_OPS")) {
    for (const ConfigShape& shape : setting->shapes) {
      check("INPUT_OPS", shape.name);
      inputs.insert(shape.name.text);
    }
  }
  if (const ConfigSetting* setting = all.Find("CONST_INPUTS")) {
    for (const ConfigValue& value : setting->values) check("CONST_INPUTS", value.name);
  }
  if (const ConfigSetting* setting = all.Find("FP16_OUT_OPS")) {
    for (const ConfigName& name : setting->names) check("FP16_OUT_OPS", name);
  }
  if (const ConfigSetting* setting = all.Find("INPUT_NCX_TO_NXC")) {
    for (const ConfigIndex& index : setting->indices) {
      if (inputs.empty() || inputs.count(absl::StrCat(index.value)) > 0) continue;
      reporter.Add(
          DiagnosticKind::kConfigConflict, index.place,
          absl::StrCat("INPUT_NCX_TO_NXC names input ", index.value, ", which is not in INPUT_OPS"),
          "list the input in INPUT_OPS");
    }
  }
}

void CheckFp16Outputs(const ConfigSettings& all, ConfigReporter& reporter) {
  const ConfigSetting* fp16 = all.Find("FP16_OUT_OPS");
  const ConfigSetting* outputs = all.Find("OUTPUT_OPS");
  if (fp16 == nullptr || outputs == nullptr || all.CountsPorts()) return;
  std::set<std::string> known;
  std::vector<absl::string_view> candidates;
  for (const ConfigName& name : outputs->names) {
    known.insert(CanonicalTensorName(name.text));
    candidates.push_back(name.text);
  }
  for (const ConfigName& name : fp16->names) {
    if (known.count(CanonicalTensorName(name.text)) > 0) continue;
    reporter.Add(
        DiagnosticKind::kConfigConflict, name.place,
        absl::StrCat("FP16_OUT_OPS names '", Printable(name.text), "', which is not in OUTPUT_OPS"),
        reporter.Suggest(name.text, candidates, "list it in OUTPUT_OPS too"));
  }
}

// A model without outputs is no model. One without inputs computes constants: odd, but sound.
void CheckNotEmpty(const ConfigSettings& all, ConfigReporter& reporter) {
  const ConfigSetting* setting = all.Find("OUTPUT_OPS");
  if (setting == nullptr || !setting->names.empty()) return;
  reporter.Add(DiagnosticKind::kConfigValueNotAllowed, setting->place, "OUTPUT_OPS is empty",
               absl::StrCat("write it like OUTPUT_OPS: ", setting->key->example));
}

void CheckPreprocess(const ConfigSettings& all, ConfigReporter& reporter) {
  const ConfigSetting* setting = all.Find("PREPROCESS");
  if (setting == nullptr) return;
  const absl::Status status = PreprocessFromText(setting->text).status();
  if (status.ok()) return;
  reporter.Add(DiagnosticKind::kConfigValueNotAllowed, setting->place,
               absl::StrCat("PREPROCESS: ", status.message()),
               absl::StrCat("write it like PREPROCESS: ", setting->key->example));
}

// Keys that only say how to compress, while what they speak of is not compressed.
void CheckNoEffect(const ConfigSettings& all, ConfigReporter& reporter) {
  const auto on = [&](absl::string_view key) {
    const ConfigSetting* setting = all.Find(key);
    return setting != nullptr && setting->flag;
  };
  if (all.core != nullptr && all.core->integer != nullptr) return;  // CheckHasEffect has them
  if (all.present.count("OPT_CONFIG") > 0) return;  // may compress what the flags do not
  const bool compress = on("COMPRESS");
  const bool conv2d_compress = on("CONV2D_COMPRESS");
  const auto check = [&](absl::string_view key, bool has_effect, absl::string_view why,
                         absl::string_view flag) {
    const ConfigSetting* setting = all.Find(key);
    if (setting == nullptr || has_effect) return;
    if (setting->names.empty() && setting->ranges.empty()) return;
    reporter.Add(DiagnosticKind::kConfigNoEffect, setting->key_place,
                 absl::StrCat(key, " changes nothing: ", why, " true"),
                 absl::StrCat("set ", flag, ": true or remove the line"));
  };
  const bool has_books = all.core != nullptr && HasCodeBooks(*all.core);
  for (const absl::string_view key : {"COMPRESS_QUANT_BITS", "COMPRESS_TYPE"}) {
    const ConfigSetting* setting = all.Find(key);
    if (!has_books || setting == nullptr || compress || conv2d_compress) continue;
    reporter.Add(
        DiagnosticKind::kConfigNoEffect, setting->key_place,
        absl::StrCat(key, " changes nothing: neither COMPRESS nor CONV2D_COMPRESS is true"),
        "set COMPRESS: true or remove the line");
  }
  check("EXCLUDE_COMPRESS_OPS", compress, "COMPRESS is not", "COMPRESS");
  check("EXCLUDE_CONV2D_COMPRESS_OPS", conv2d_compress, "CONV2D_COMPRESS is not",
        "CONV2D_COMPRESS");
  check("WEIGHT_MIN_MAX", compress || conv2d_compress, "neither COMPRESS nor CONV2D_COMPRESS is",
        "COMPRESS");
  const ConfigSetting* ranges = all.Find("WEIGHT_MIN_MAX");
  if (ranges == nullptr) return;
  for (const absl::string_view key : {"EXCLUDE_COMPRESS_OPS", "EXCLUDE_CONV2D_COMPRESS_OPS"}) {
    const ConfigSetting* exclude = all.Find(key);
    if (exclude == nullptr || !(key == "EXCLUDE_COMPRESS_OPS" ? compress : conv2d_compress))
      continue;
    std::set<std::string> excluded;
    for (const ConfigName& name : exclude->names) excluded.insert(CanonicalTensorName(name.text));
    for (const ConfigRange& range : ranges->ranges) {
      if (excluded.count(CanonicalTensorName(range.name.text)) == 0) continue;
      reporter.Add(DiagnosticKind::kConfigNoEffect, range.name.place,
                   absl::StrCat("the range of '", Printable(range.name.text),
                                "' changes nothing: ", key, " keeps it uncompressed"),
                   "name the weight in one of the two");
    }
  }
}

// Stripes keep rows over rows of others.
void CheckOptimize(const ConfigSettings& all, ConfigReporter& reporter) {
  const ConfigSetting* optimize = all.Find("OPTIMIZE");
  const ConfigSetting* plan = all.Find("MEMORY_PLAN");
  if (optimize == nullptr || optimize->text != "size" || plan == nullptr ||
      plan->text != "compatible") {
    return;
  }
  reporter.Add(DiagnosticKind::kConfigConflict, optimize->key_place,
               "OPTIMIZE: size lets rows lie over rows of other buffers that are dead, and "
               "MEMORY_PLAN: compatible never does",
               "remove one of the two lines");
}

// LEO's: plain weights of other widths, and less memory.
void CheckBookCore(const ConfigSettings& all, ConfigReporter& reporter) {
  if (all.core == nullptr || !HasCodeBooks(*all.core)) return;
  const ConfigSetting* float16 = all.Find("FLOAT16");
  const ConfigSetting* exponent = all.Find("FLOAT16_EXP_BITS");
  const bool is_on = float16 != nullptr && float16->flag;
  constexpr int64_t kHalfExponentBits = 5;
  if (is_on && (exponent == nullptr || exponent->number == kHalfExponentBits)) {
    reporter.Add(DiagnosticKind::kConfigNoEffect, float16->key_place,
                 "FLOAT16 changes nothing: weights are fp16, with 5 exponent bits, without it too",
                 "add FLOAT16_EXP_BITS for another width, or remove the line");
  }
  if (!is_on && exponent != nullptr) {
    reporter.Add(DiagnosticKind::kConfigNoEffect, exponent->key_place,
                 "FLOAT16_EXP_BITS changes nothing: FLOAT16 is not true",
                 "set FLOAT16: true or remove the line");
  }
  const ConfigSetting* space = all.Find("SPACE_OPTIMIZATION");
  const ConfigSetting* plan = all.Find("MEMORY_PLAN");
  if (space != nullptr && space->flag && plan != nullptr && plan->text == "compatible") {
    reporter.Add(DiagnosticKind::kConfigConflict, space->key_place,
                 "SPACE_OPTIMIZATION lets results lie over operands that are not used again, and "
                 "MEMORY_PLAN: compatible never does",
                 "remove one of the two lines");
  }
}

void CheckCores(const ConfigSettings& all, ConfigReporter& reporter) {
  const ConfigSetting* cores = all.Find("CORES");
  if (cores == nullptr || all.core == nullptr || all.core->integer == nullptr ||
      cores->number <= CoresOf(*all.core)) {
    return;
  }
  reporter.Add(DiagnosticKind::kConfigValueNotAllowed, cores->place,
               absl::StrCat("CORES is ", cores->number, "; core ", all.core->name, " has ",
                            CoresOf(*all.core)),
               "remove the line");
}

// Keys that the core takes and does nothing with. On integer cores those are about the fp16 cores'
// weights, memory and outputs.
void CheckHasEffect(const ConfigSettings& all, ConfigReporter& reporter) {
  if (all.core == nullptr) return;
  for (const ConfigKey& key : AllConfigKeys()) {
    const ConfigSetting* setting = all.Find(key.name);
    if (setting == nullptr || !key.no_effect_on.Holds(all.core->family) ||
        (key.type == ConfigType::kBool && !setting->flag) ||
        (key.type == ConfigType::kNames && setting->names.empty())) {
      continue;
    }
    const std::string why = key.why_no_effect.empty()
                                ? absl::StrCat("core ", all.core->name, " computes in integers")
                                : std::string(key.why_no_effect);
    reporter.Add(DiagnosticKind::kConfigNoEffect, setting->key_place,
                 absl::StrCat(key.name, " changes nothing: ", why), "remove the line");
  }
}

}  // namespace

absl::string_view FileNameOf(absl::string_view path) {
  const size_t slash = path.rfind('/');
  const absl::string_view name = slash == absl::string_view::npos ? path : path.substr(slash + 1);
  return name == "." || name == ".." ? "" : name;
}

void CheckConfigRules(const ConfigSettings& settings, ConfigReporter& reporter) {
  CheckMissing(settings, reporter);
  for (const auto& [name, place] : settings.present) {
    const ConfigKey* key = FindConfigKey(name);
    if (key != nullptr) CheckBelongs(settings, *key, place, reporter);
  }
  if (settings.core != nullptr) {
    CheckCoreChoice(settings, "NPU_UNIT", settings.core->npu_units, reporter);
    CheckCoreChoice(settings, "OUTPUT_TYPE", settings.core->output_types, reporter);
  }
  CheckFiles(settings, reporter);
  CheckIndices(settings, reporter);
  CheckFp16Outputs(settings, reporter);
  CheckNotEmpty(settings, reporter);
  CheckPreprocess(settings, reporter);
  CheckOptimize(settings, reporter);
  CheckCores(settings, reporter);
  CheckNoEffect(settings, reporter);
  CheckUnits(settings, reporter);
  CheckBookCore(settings, reporter);
  CheckHasEffect(settings, reporter);
  CheckQuantEffect(settings, reporter);
}

}  // namespace npuc
