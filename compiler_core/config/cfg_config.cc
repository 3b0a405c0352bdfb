#include "compiler_core/config/cfg_config.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/framework.h"
#include "compiler_core/base/preprocess.h"
#include "compiler_core/config/cfg_keys.h"
#include "compiler_core/config/cfg_text.h"
#include "compiler_core/config/config.h"
#include "compiler_core/config/quant_config.h"

namespace npuc {
namespace {

using Kind = ConfigNode::Kind;
using Become = CfgBecome;

constexpr char kByteOrderMark[] = "\xef\xbb\xbf";
constexpr char kDefaultFormat[] = "TF";
constexpr char kDefaultRunOutput[] = "output.bin";

ConfigNode Scalar(const CfgText& text) {
  return {Kind::kScalar, true, std::string(text.text), {}, text.place.line, text.place.column};
}

ConfigNode Holder(Kind kind, ConfigPlace place) {
  return {kind, false, "", {}, place.line, place.column};
}

ConfigNode NamesOf(const CfgText& list) {
  ConfigNode node = Holder(Kind::kSequence, list.place);
  for (const CfgText& part : SplitAtCommas(list)) node.items.push_back(Scalar(part));
  return node;
}

// The tool whose file it is: [Common] alone with keys of aipuparse or aipuopt is theirs.
CfgTask::Kind ToolOf(const CfgFile& file) {
  const bool is_common_alone =
      std::all_of(file.sections.begin(), file.sections.end(),
                  [](const std::string& section) { return section == "Common"; });
  const auto has = [&](absl::string_view key) {
    return std::any_of(file.entries.begin(), file.entries.end(),
                       [&](const CfgEntry& entry) { return entry.key == key; });
  };
  const bool has_other = std::any_of(file.entries.begin(), file.entries.end(),
                                     [](const CfgEntry& entry) { return entry.key != "mode"; });
  if (!is_common_alone || !has_other) return CfgTask::Kind::kBuild;
  return has("graph") || has("bin") ? CfgTask::Kind::kQuantize : CfgTask::Kind::kParse;
}

// Turns the entries of a file into the tree of a YAML config, and into a task.
class CfgReader {
 public:
  CfgReader(ConfigReporter& reporter, CfgTask& task) : reporter_(reporter), task_(task) {}

  ConfigNode Read(absl::string_view text) {
    const CfgFile file = ReadCfgText(text, reporter_);
    task_.kind = ToolOf(file);
    for (const CfgEntry& entry : file.entries) ReadEntry(entry);
    Assemble();
    return std::move(root_);
  }

 private:
  bool IsBuild() const {
    return task_.kind == CfgTask::Kind::kBuild || task_.kind == CfgTask::Kind::kRun;
  }
  // Where a key is looked up first, a section or a tool, and the section of aipubuild behind it.
  std::pair<absl::string_view, absl::string_view> SectionsOf(absl::string_view section) const {
    if (task_.kind == CfgTask::Kind::kParse) return {kParseTool, "Parser"};
    if (task_.kind == CfgTask::Kind::kQuantize) return {kQuantizeTool, "Optimizer"};
    return {section, section};
  }

  void ReadEntry(const CfgEntry& entry) {
    const auto [first, second] = SectionsOf(entry.section);
    const CfgKey* key = FindCfgKey(first, entry.key);
    if (key == nullptr) key = FindCfgKey(second, entry.key);
    const bool is_quant = key == nullptr && second == "Optimizer" && IsQuantKey(entry.key);
    if (key == nullptr && !is_quant) return ReportUnknown(entry, first, second);
    if (entry.value.text.empty()) return;  // as if the line were not there
    if (is_quant) return AddQuant(entry.key, entry.name, entry.value);
    Apply(*key, entry.name, entry.value);
  }

  void ReportUnknown(const CfgEntry& entry, absl::string_view first, absl::string_view second) {
    std::vector<absl::string_view> known;
    std::string otherwise = "remove the line";
    for (const CfgKey& key : AllCfgKeys()) {
      if (key.section == first || key.section == second) known.push_back(key.name);
      if (key.name == entry.key && IsBuild()) {
        otherwise = absl::StrCat("it is a key of [", key.section, "]");
      }
    }
    if (second == "Optimizer") {
      for (const absl::string_view name : QuantKeyNames()) known.push_back(name);
    }
    if (IsBuild() && IsQuantKey(entry.key)) otherwise = "it is a key of [Optimizer]";
    reporter_.Add(
        DiagnosticKind::kConfigUnknownKey, entry.name.place,
        absl::StrCat("[", entry.section, "]: unknown key '", Printable(entry.name.text, 80), "'"),
        otherwise == "remove the line" ? reporter_.Suggest(entry.key, known, otherwise)
                                       : otherwise);
  }

  void Apply(const CfgKey& key, const CfgText& name, const CfgText& value) {
    switch (key.become) {
      case Become::kValue:
      case Become::kShapes:
      case Become::kSteps:
        values_[key.name] = value;
        return;
      case Become::kBoxes:
      case Become::kTask:
        if (!key.words.empty() && !IsWord(key.words, value.text) && !IsBoxesFile(key, value)) {
          return RefuseValue(key, value);
        }
        values_[key.name] = value;
        return;
      case Become::kNames:
        has_output_ = has_output_ || key.to == "OUTPUT_OPS";
        return Put(key.to, name.place, NamesOf(value));
      case Become::kFormat:
        return PutFormat(key, name, value);
      case Become::kQuant:
        return AddQuant(key.to, name, value);
      case Become::kChecked:
        if (!IsWord(key.words, value.text)) return RefuseValue(key, value);
        return NoEffect(name, key.why);
      case Become::kNothing:
        return NoEffect(name, key.why);
    }
  }

  static bool IsWord(absl::string_view words, absl::string_view value) {
    const std::vector<absl::string_view> list = absl::StrSplit(words, '|', absl::SkipEmpty());
    return std::any_of(list.begin(), list.end(), [value](absl::string_view word) {
      return absl::EqualsIgnoreCase(word, value);
    });
  }

  static bool IsBoxesFile(const CfgKey& key, const CfgText& value) {
    return key.become == Become::kBoxes && absl::EndsWith(value.text, ".yaml");
  }

  void RefuseValue(const CfgKey& key, const CfgText& value) {
    RefuseValue(key, value, absl::StrSplit(key.words, '|'));
  }
  void RefuseValue(const CfgKey& key, const CfgText& value,
                   const std::vector<absl::string_view>& words) {
    reporter_.Add(DiagnosticKind::kConfigValueNotAllowed, value.place,
                  absl::StrCat(key.name, " is '", Printable(value.text, 80),
                               "'; allowed: ", absl::StrJoin(words, ", ")),
                  reporter_.Suggest(value.text, words, "write one of these"));
  }

  void NoEffect(const CfgText& name, absl::string_view why) {
    reporter_.Add(DiagnosticKind::kConfigNoEffect, name.place,
                  absl::StrCat(name.text, " changes nothing: ", why), "the line may stay");
  }

  void PutFormat(const CfgKey& key, const CfgText& name, const CfgText& value) {
    has_model_type_ = true;
    std::vector<absl::string_view> words;
    for (const FrameworkInfo& format : AllFrameworks()) {
      if (format.cfg_word.empty()) continue;
      words.push_back(format.cfg_word);
      if (!absl::EqualsIgnoreCase(format.cfg_word, value.text)) continue;
      framework_ = format.framework;
      return Put(key.to, name.place, Scalar({format.name, value.place}));
    }
    RefuseValue(key, value, words);
  }

  void Put(absl::string_view key, ConfigPlace place, ConfigNode value) {
    root_.items.push_back(Scalar({key, place}));
    root_.items.push_back(std::move(value));
  }

  void AddQuant(absl::string_view key, const CfgText& name, const CfgText& value) {
    const auto [first, added] = quant_lines_.emplace(key, name.place.line);
    if (!added) {
      return reporter_.Add(
          DiagnosticKind::kConfigDuplicate, name.place,
          absl::StrCat("key 'QUANT.", key, "' is given twice, first on line ", first->second),
          "keep one of the two");
    }
    quant_.items.push_back(Scalar({key, name.place}));
    quant_.items.push_back(QuantKeyTakesList(key) ? NamesOf(value) : Scalar(value));
    if (quant_.line == 0) quant_.line = name.place.line, quant_.column = name.place.column;
  }

  void Missing(absl::string_view key, absl::string_view what, absl::string_view example) {
    const absl::string_view section = !IsBuild()        ? "Common"
                                      : key == "inputs" ? "GBuilder"
                                                        : "Parser";
    reporter_.Add(DiagnosticKind::kConfigMissingKey, {},
                  absl::StrCat("[", section, "] ", key, " is missing: ", what),
                  absl::StrCat("add a line like ", key, " = ", example));
  }

  // The value of a key, null where it has none.
  const CfgText* Find(absl::string_view key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : &found->second;
  }

  bool Take(absl::string_view key, absl::string_view to) {
    const CfgText* value = Find(key);
    if (value != nullptr) Put(to, value->place, Scalar(*value));
    return value != nullptr;
  }

  void Assemble() {
    if (!Take("target", "CORENAME")) Put("CORENAME", {}, Scalar({kDefaultCfgTarget, {}}));
    if (task_.kind == CfgTask::Kind::kQuantize) {
      Put("FRAMEWORK", {}, Scalar({"COMPASS", {}}));
      framework_ = Framework::kCompass;
      if (!Take("graph", "MODEL_FILE")) Missing("graph", "the text of the IR", "net.txt");
      if (!Take("bin", "MODEL_BIN")) Missing("bin", "the weights of the IR", "net.bin");
    } else {
      if (!has_model_type_) framework_ = FrameworkNamed(kDefaultFormat);
      if (!Take("input_model", "MODEL_FILE")) Missing("input_model", "the model", "model.pb");
      Take("input_bin", HasWeightsFile() ? "WEIGHTS_FILE" : "MODEL_BIN");
      Take("caffe_prototxt", "PROTOTXT");
    }
    IsBuild() ? AssembleBuild() : AssembleIr();
    PutSteps();
    PutBoxes();
    PutInputs();
    const bool needs_output = framework_.has_value() && InfoOf(*framework_).needs_output_ops;
    if (needs_output && !has_output_) Missing("output", "the model's outputs", "result");
    if (quant_.items.empty()) return;
    const ConfigPlace place = {quant_.line, quant_.column};
    Put("QUANT", place, std::move(quant_));
  }

  bool HasWeightsFile() const {
    return framework_.has_value() && InfoOf(*framework_).data_key == "WEIGHTS_FILE";
  }

  // The files that the tools of the IR write: output_dir/NAME.txt and .bin.
  void AssembleIr() {
    const CfgText* name = Find("quant_ir_name");
    if (name == nullptr) name = Find("model_name");
    if (name == nullptr) return Missing("model_name", "it names the IR", "kws");
    if (name->text.find('/') != absl::string_view::npos) {
      reporter_.Add(DiagnosticKind::kConfigValueNotAllowed, name->place,
                    absl::StrCat("'", Printable(name->text, 80), "' names the IR, and has a '/'"),
                    "write the folder as output_dir");
    }
    task_.ir_name = std::string(name->text);
    if (const CfgText* folder = Find("output_dir")) task_.output_dir = std::string(folder->text);
    PutOutputFile("", *name);
  }

  void AssembleBuild() {
    const CfgText* const mode = Find("mode");
    const CfgText* const inputs = Find("inputs");
    const bool runs =
        mode == nullptr ? inputs != nullptr : absl::EqualsIgnoreCase(mode->text, "run");
    if (runs) {
      task_.kind = CfgTask::Kind::kRun;
    } else if (inputs != nullptr) {
      NoEffect({"inputs", inputs->place}, "nothing is run with mode = build");
    }
    if (runs && inputs == nullptr) {
      Missing("inputs", "the files that the simulator reads; mode is run", "input.bin");
    } else if (runs) {
      for (const CfgText& file : SplitAtCommas(*inputs)) task_.inputs.emplace_back(file.text);
    }
    const CfgText* const profile = Find("profile");
    task_.profiles = profile != nullptr && absl::EqualsIgnoreCase(profile->text, "true");
    if (const CfgText* const svg = Find("svg")) task_.svg_path = std::string(svg->text);
    if (const CfgText* const png = Find("png")) task_.png_path = std::string(png->text);
    const CfgText* const outputs = Find("outputs");
    const bool is_header = outputs != nullptr && absl::EndsWith(outputs->text, ".h");
    if (!runs && is_header) return Put("OUTPUT_FILE", outputs->place, Scalar(*outputs));
    if (outputs != nullptr) task_.output_path = std::string(outputs->text);
    if (runs && outputs == nullptr) task_.output_path = kDefaultRunOutput;
    const CfgText* const model_name = Find("model_name");
    if (model_name == nullptr) return Missing("model_name", "it names the result", "kws");
    const size_t slash =
        runs || outputs == nullptr ? absl::string_view::npos : outputs->text.rfind('/');
    PutOutputFile(slash == absl::string_view::npos ? "" : outputs->text.substr(0, slash + 1),
                  *model_name);
  }

  void PutOutputFile(absl::string_view folder, const CfgText& name) {
    ConfigNode file = Scalar(name);
    file.text = absl::StrCat(folder, name.text, ".h");
    Put("OUTPUT_FILE", name.place, std::move(file));
  }

  // preprocess_type = RESIZE, RGB2BGR and preprocess_params = {...}, {}.
  void PutSteps() {
    const CfgText* const types = Find("preprocess_type");
    const CfgText* const params = Find("preprocess_params");
    if (types == nullptr) {
      if (params == nullptr) return;
      return NoEffect({"preprocess_params", params->place}, "there is no preprocess_type");
    }
    const std::vector<CfgText> each = SplitAtCommas(*types);
    std::vector<CfgText> braces;
    if (params != nullptr) braces = SplitAtCommas(*params);
    if (!braces.empty() && braces.size() != each.size()) {
      return reporter_.Add(
          DiagnosticKind::kConfigConflict, params->place,
          absl::StrCat("preprocess_type has ", each.size(), " steps, preprocess_params ",
                       braces.size()),
          "give braces for each step, empty ones too: {bilinear,[1,448,448,3]}, {}");
    }
    std::string text;
    for (size_t i = 0; i < each.size(); ++i) {
      absl::StrAppend(&text, i == 0 ? "" : ", ", each[i].text, " ",
                      braces.empty() ? "" : braces[i].text);
    }
    const absl::Status status = PreprocessFromText(text).status();
    if (status.ok()) return Put("PREPROCESS", types->place, Scalar({text, types->place}));
    reporter_.Add(DiagnosticKind::kConfigValueNotAllowed, types->place,
                  absl::StrCat("preprocess_type: ", status.message()),
                  "write steps and their braces like RESIZE, RGB2BGR and "
                  "{bilinear,[1,448,448,3]}, {}");
  }

  // detection_postprocess = YOLO3_TINY, and the numbers beside it: BOXES, in one line.
  void PutBoxes() {
    const CfgText* const type = Find("detection_postprocess");
    constexpr absl::string_view kNumbers[] = {"iou_threshold", "obj_threshold", "max_box_num"};
    constexpr absl::string_view kSides[] = {"image_height", "image_width"};
    if (type == nullptr) {
      for (const absl::Span<const absl::string_view> keys :
           {absl::MakeConstSpan(kNumbers), absl::MakeConstSpan(kSides)}) {
        for (const absl::string_view key : keys) {
          if (const CfgText* const value = Find(key)) {
            NoEffect({key, value->place}, "there is no detection_postprocess");
          }
        }
      }
      return;
    }
    std::vector<std::string> settings;
    if (absl::EndsWith(type->text, ".yaml")) {
      Put(kBoxesRole, type->place, Scalar(*type));
    } else {
      settings.push_back(absl::StrCat("type: ", absl::AsciiStrToUpper(type->text)));
    }
    for (const absl::string_view key : kNumbers) {
      if (const CfgText* const value = Find(key)) AddNumber(key, *value, settings);
    }
    const CfgText* const height = Find(kSides[0]);
    const CfgText* const width = Find(kSides[1]);
    if (height != nullptr && width != nullptr) {
      if (!IsWhole(*height) || !IsWhole(*width)) return;
      settings.push_back(absl::StrCat("image_size: [", height->text, ", ", width->text, "]"));
    } else if (height != nullptr || width != nullptr) {
      Missing(kSides[height == nullptr ? 0 : 1], "the other side of the image is given", "416");
    }
    if (settings.empty()) return;
    const std::string text = absl::StrCat("{", absl::StrJoin(settings, ", "), "}");
    Put("BOXES", type->place, Scalar({text, type->place}));
  }

  // False, and reported: a side of the image is no whole number.
  bool IsWhole(const CfgText& value) {
    int64_t number = 0;
    if (absl::SimpleAtoi(value.text, &number) && number > 0) return true;
    reporter_.Add(DiagnosticKind::kConfigWrongType, value.place,
                  absl::StrCat("image_width and image_height take whole numbers, found '",
                               Printable(value.text, 80), "'"),
                  "write a number of pixels");
    return false;
  }

  void AddNumber(absl::string_view key, const CfgText& value, std::vector<std::string>& settings) {
    double number = 0;
    if (absl::SimpleAtod(value.text, &number)) {
      settings.push_back(absl::StrCat(key, ": ", value.text));
      return;
    }
    reporter_.Add(DiagnosticKind::kConfigWrongType, value.place,
                  absl::StrCat(key, " takes a number, found '", Printable(value.text, 80), "'"),
                  "write a number");
  }

  void PutInputs() {
    const CfgText* const names = Find("input");
    const CfgText* const shapes = Find("input_shape");
    if (names == nullptr && shapes == nullptr) {
      if (!framework_.has_value() || !InfoOf(*framework_).needs_input_ops) return;
      Missing("input", "the model's inputs", "input");
      return Missing("input_shape", "the inputs' shapes", "[1,224,224,3]");
    }
    if (names == nullptr) return Missing("input", "whose shapes these are", "input");
    if (shapes == nullptr) {
      return Missing("input_shape", "the inputs' shapes", "[1,224,224,3]");
    }
    const std::vector<CfgText> list = SplitAtCommas(*names);
    const std::vector<CfgText> each = SplitAtCommas(*shapes);
    if (list.size() != each.size()) {
      return reporter_.Add(
          DiagnosticKind::kConfigConflict, shapes->place,
          absl::StrCat("input names ", list.size(), " tensors, input_shape has ", each.size()),
          "give one shape for each input, such as [1,224,224,3],[1,10]");
    }
    ConfigNode inputs = Holder(Kind::kMapping, names->place);
    std::set<absl::string_view> seen;
    for (size_t i = 0; i < list.size(); ++i) {
      if (!seen.insert(list[i].text).second) {
        reporter_.Add(DiagnosticKind::kConfigDuplicate, list[i].place,
                      absl::StrCat("input '", Printable(list[i].text, 80), "' is given twice"),
                      "keep one of the two");
        continue;
      }
      inputs.items.push_back(Scalar(list[i]));
      inputs.items.push_back(ShapeOf(each[i]));
    }
    Put("INPUT_OPS", names->place, std::move(inputs));
  }

  ConfigNode ShapeOf(const CfgText& text) {
    if (text.text.size() < 2 || text.text.front() != '[' || text.text.back() != ']') {
      reporter_.Add(DiagnosticKind::kConfigWrongType, text.place,
                    absl::StrCat("input_shape takes lists of numbers, found '",
                                 Printable(text.text, 80), "'"),
                    "write it like input_shape = [1,224,224,3]");
      return Holder(Kind::kSequence, text.place);
    }
    const CfgText inside = text.From(1).Upto(text.text.size() - 2).Stripped();
    return inside.text.empty() ? Holder(Kind::kSequence, text.place) : NamesOf(inside);
  }

  ConfigReporter& reporter_;
  CfgTask& task_;
  ConfigNode root_ = Holder(Kind::kMapping, {1, 1});
  ConfigNode quant_ = Holder(Kind::kMapping, {});
  std::optional<Framework> framework_;  // nullopt: one without a front end
  bool has_model_type_ = false;
  bool has_output_ = false;
  std::map<absl::string_view, CfgText> values_;
  std::map<std::string, int, std::less<>> quant_lines_;
};

// True where a message or a fix names the key as a word.
bool IsNamed(absl::string_view key, const Diagnostics& diagnostics) {
  if (key.empty()) return false;
  const auto is_part = [](char c) { return absl::ascii_isalnum(c) || c == '_'; };
  const auto names = [&](absl::string_view text) {
    for (size_t at = text.find(key); at != text.npos; at = text.find(key, at + 1)) {
      const size_t end = at + key.size();
      if ((at == 0 || !is_part(text[at - 1])) && (end == text.size() || !is_part(text[end]))) {
        return true;
      }
    }
    return false;
  };
  return std::any_of(diagnostics.list().begin(), diagnostics.list().end(),
                     [&](const Diagnostic& d) { return names(d.message) || names(d.fix); });
}

// Returns the section that the first line that is no comment begins, with its brackets; empty where
// that line begins none.
CfgText FirstSection(absl::string_view text) {
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const CfgText all = CfgText{line, {number, 1}}.Stripped();
    if (all.text.empty() || all.text[0] == '#' || all.text[0] == ';') continue;
    const size_t close = all.text.find(']');
    const bool is_section = all.text[0] == '[' && close != absl::string_view::npos;
    return is_section ? all.Upto(close + 1) : CfgText{};
  }
  return {};
}

}  // namespace

bool IsCfgConfig(absl::string_view text) {
  absl::ConsumePrefix(&text, kByteOrderMark);
  const absl::string_view line = FirstSection(text).text;
  // A YAML list in brackets has no letters alone in them, and is no config either.
  return line.size() > 2 && std::all_of(line.begin() + 1, line.end() - 1, [](char c) {
           return absl::ascii_isalpha(c) || c == ' ' || c == '_';
         });
}

bool IsDarknetNet(absl::string_view text) {
  absl::ConsumePrefix(&text, kByteOrderMark);
  const absl::string_view line = FirstSection(text).text;
  return line == "[net]" || line == "[network]";
}

std::optional<ConfigNode> ReadCfgConfig(absl::string_view text, absl::string_view name,
                                        CfgTask& task, ConfigReporter& reporter,
                                        Diagnostics& diagnostics) {
  absl::ConsumePrefix(&text, kByteOrderMark);
  if (!CheckConfigText(text, name, diagnostics)) return std::nullopt;
  if (IsDarknetNet(text)) {
    reporter.Add(
        DiagnosticKind::kConfigUnreadable, FirstSection(text).place,
        absl::StrCat("the file is the .cfg of a Darknet net, which begins with [net], and no "
                     "config of aipubuild, whose sections are ",
                     absl::StrJoin(kCfgSections, ", ")),
        absl::StrCat("run npuc init ", Printable(name), ", which writes a config for it"));
    return std::nullopt;
  }
  return CfgReader(reporter, task).Read(text);
}

void AddCfgWords(absl::string_view name, Diagnostics& diagnostics) {
  std::map<absl::string_view, std::string> words;
  for (const CfgKey& key : AllCfgKeys()) {
    if (key.become == Become::kQuant || !IsNamed(key.to, diagnostics)) continue;
    std::string& said = words[key.to];
    absl::StrAppend(
        &said, said.empty() ? "" : " and ", key.name, " of ",
        key.section == kQuantizeTool ? "aipuopt's [Common]" : absl::StrCat("[", key.section, "]"));
  }
  if (words.empty()) return;
  diagnostics.Add({.kind = DiagnosticKind::kConfigOtherWords,
                   .message = absl::StrCat("the messages name keys of a YAML config; in a .cfg ",
                                           absl::StrJoin(words, ", ", absl::PairFormatter(" is "))),
                   .file = std::string(name)});
}

}  // namespace npuc
