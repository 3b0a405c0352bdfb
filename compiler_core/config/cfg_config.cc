#include "compiler_core/config/cfg_config.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/framework.h"
#include "compiler_core/base/trim_text.h"
#include "compiler_core/config/config.h"
#include "compiler_core/config/quant_config.h"

namespace npuc {
namespace {

using Kind = ConfigNode::Kind;

constexpr char kByteOrderMark[] = "\xef\xbb\xbf";
constexpr absl::string_view kSections[] = {"Common", "Parser", "Optimizer", "GBuilder"};
constexpr char kDefaultTarget[] = "X2_1204";

enum class Become : uint8_t {
  kValue,    // `to`, a key of the YAML config
  kFormat,   // `to`, by the words of base/frameworks.inc, in any case
  kNames,    // `to`, names between commas
  kShapes,   // beside `input`: the shapes of INPUT_OPS
  kQuant,    // the key of QUANT of the same name
  kChecked,  // one of `words`; changes nothing, `why`
  kNothing,  // changes nothing, `why`
  kRefused,  // `why`
};

struct CfgKey {
  absl::string_view section;
  absl::string_view name;
  Become become;
  absl::string_view to;     // key of the YAML config
  absl::string_view words;  // kChecked, kRefused: values that are taken, "a|b"
  absl::string_view why;    // a clause
};

constexpr char kNoPost[] = "no detection post-processing is built";
constexpr char kNoPre[] = "no preprocessing is built: give the model its inputs as they are";
constexpr char kMemories[] = "a core's memories are those of target/cores";

// The [Optimizer] section takes the keys of QUANT and is not listed.
constexpr CfgKey kCfgKeys[] = {
    {"Common", "mode", Become::kRefused, "", "build",
     "this program builds; npuc run runs what was built"},
    {"Parser", "model_type", Become::kFormat, "FRAMEWORK", "", ""},
    {"Parser", "model_name", Become::kValue, "", "", "OUTPUT_FILE, with .h, without outputs"},
    {"Parser", "model_domain", Become::kChecked, "",
     "image_classification|object_detection|keyword_spotting|speech_recognition|"
     "image_segmentation",
     "it is a word about the model"},
    {"Parser", "input_model", Become::kValue, "MODEL_FILE", "", ""},
    // WEIGHTS_FILE where that is the key of the format's second file.
    {"Parser", "input_bin", Become::kValue, "MODEL_BIN", "", ""},
    {"Parser", "caffe_prototxt", Become::kValue, "PROTOTXT", "", ""},
    {"Parser", "input", Become::kShapes, "INPUT_OPS", "", ""},
    {"Parser", "input_shape", Become::kShapes, "INPUT_OPS", "", ""},
    {"Parser", "output", Become::kNames, "OUTPUT_OPS", "", ""},
    {"Parser", "force_float_ir", Become::kQuant, "QUANT: force_float_ir", "", ""},
    {"Parser", "detection_postprocess", Become::kRefused, "", "", kNoPost},
    {"Parser", "iou_threshold", Become::kRefused, "", "", kNoPost},
    {"Parser", "obj_threshold", Become::kRefused, "", "", kNoPost},
    {"Parser", "max_box_num", Become::kRefused, "", "", kNoPost},
    {"Parser", "image_width", Become::kRefused, "", "", kNoPost},
    {"Parser", "image_height", Become::kRefused, "", "", kNoPost},
    {"Parser", "preprocess_type", Become::kRefused, "", "", kNoPre},
    {"Parser", "preprocess_params", Become::kRefused, "", "", kNoPre},
    {"GBuilder", "target", Become::kValue, "CORENAME", "", ""},
    {"GBuilder", "outputs", Become::kValue, "OUTPUT_FILE", "", ""},
    {"GBuilder", "inputs", Become::kRefused, "", "", "npuc run takes them"},
    {"GBuilder", "simulator", Become::kNothing, "", "", "npuc run is the simulator"},
    {"GBuilder", "profile", Become::kNothing, "", "", "report.json has the profile of each build"},
    {"GBuilder", "prof_unit", Become::kChecked, "", "TPC|DMA|AIFF",
     "report.json has the profile of each build"},
    {"GBuilder", "fast_perf", Become::kNothing, "", "",
     "report.json has the profile of each build"},
    {"GBuilder", "png", Become::kNothing, "", "", "npuc ir draws the graph of an IR"},
    {"GBuilder", "svg", Become::kNothing, "", "", "npuc ir draws the graph of an IR"},
    {"GBuilder", "stack_size", Become::kNothing, "", "", "the command stream uses no stack"},
    {"GBuilder", "tcm_size", Become::kRefused, "", "", kMemories},
    {"GBuilder", "gm_size", Become::kRefused, "", "", kMemories},
    {"GBuilder", "ocm_size", Become::kRefused, "", "", kMemories},
    {"GBuilder", "tiling", Become::kRefused, "", "", "layers are not tiled"},
};

const CfgKey* FindCfgKey(absl::string_view section, absl::string_view name) {
  for (const CfgKey& key : kCfgKeys) {
    if (key.section == section && key.name == name) return &key;
  }
  return nullptr;
}

std::string Words(absl::string_view list) { return absl::StrReplaceAll(list, {{"|", ", "}}); }

// A line's part with its place.
struct Text {
  absl::string_view text;
  ConfigPlace place;
  Text From(size_t offset) const {
    return {text.substr(offset), {place.line, place.column + static_cast<int>(offset)}};
  }
  Text Upto(size_t size) const { return {text.substr(0, size), place}; }
  Text Stripped() const {
    const size_t front = text.size() - absl::StripLeadingAsciiWhitespace(text).size();
    Text out = From(front);
    out.text = absl::StripTrailingAsciiWhitespace(out.text);
    return out;
  }
};

ConfigNode Scalar(const Text& text) {
  return {Kind::kScalar, true, std::string(text.text), {}, text.place.line, text.place.column};
}

ConfigNode Holder(Kind kind, ConfigPlace place) {
  return {kind, false, "", {}, place.line, place.column};
}

// Parts between commas that are in no bracket.
std::vector<Text> SplitAtCommas(const Text& list) {
  std::vector<Text> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= list.text.size(); ++i) {
    const char c = i < list.text.size() ? list.text[i] : ',';
    if (c == '[') ++depth;
    if (c == ']') --depth;
    if (i < list.text.size() && (c != ',' || depth > 0)) continue;
    parts.push_back(list.From(begin).Upto(i - begin).Stripped());
    begin = i + 1;
  }
  return parts;
}

ConfigNode NamesOf(const Text& list) {
  ConfigNode node = Holder(Kind::kSequence, list.place);
  for (const Text& part : SplitAtCommas(list)) node.items.push_back(Scalar(part));
  return node;
}

class CfgReader {
 public:
  explicit CfgReader(ConfigReporter& reporter) : reporter_(reporter) {}

  ConfigNode Read(absl::string_view text) {
    int number = 0;
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      absl::ConsumeSuffix(&line, "\r");
      ++number;
      ReadLine({line, {number, 1}});
    }
    Assemble();
    return std::move(root_);
  }

 private:
  void ReadLine(const Text& line) {
    const Text all = line.Stripped();
    if (all.text.empty() || all.text[0] == '#' || all.text[0] == ';') return;
    if (all.text[0] == '[') return OpenSection(all);
    if (all.place.column > 1 && !section_.empty()) {
      return Syntax(all, "a line that begins with a space would go on with the line above",
                    "write each value on one line");
    }
    const size_t at = all.text.find_first_of("=:");
    if (at == absl::string_view::npos || at == 0) {
      return Syntax(all, absl::StrCat("'", Printable(all.text, 80), "' is no KEY = VALUE"),
                    "write KEY = VALUE");
    }
    if (skip_) return;
    ReadKey(all.Upto(at).Stripped(), all.From(at + 1).Stripped());
  }

  void Syntax(const Text& at, const std::string& message, absl::string_view fix) {
    reporter_.Add(DiagnosticKind::kConfigSyntax, at.place,
                  absl::StrCat("not a well-formed .cfg file: ", message), std::string(fix));
  }

  void OpenSection(const Text& line) {
    skip_ = true;
    if (line.text.back() != ']') {
      return Syntax(line, absl::StrCat("section '", Printable(line.text, 80), "' is not closed"),
                    "write [Section]");
    }
    const Text name = line.From(1).Upto(line.text.size() - 2).Stripped();
    if (std::find(std::begin(kSections), std::end(kSections), name.text) == std::end(kSections)) {
      return reporter_.Add(DiagnosticKind::kConfigUnknownKey, line.place,
                           absl::StrCat("unknown section '", Printable(name.text, 80), "'"),
                           reporter_.Suggest(name.text, kSections, "remove the section"));
    }
    skip_ = IsTwice(absl::StrCat("[", name.text, "]"), "section", line.place);
    section_ = name.text;
  }

  // Whether `what` was there before, which is reported.
  bool IsTwice(const std::string& what, absl::string_view is, ConfigPlace place) {
    const auto [first, added] = lines_.emplace(what, place.line);
    if (added) return false;
    reporter_.Add(DiagnosticKind::kConfigDuplicate, place,
                  absl::StrCat(is, " '", Printable(what, 80), "' is given twice, first on line ",
                               first->second),
                  "keep one of the two");
    return true;
  }

  void ReadKey(const Text& name, const Text& value) {
    const CfgKey* key = FindCfgKey(section_, name.text);
    const bool quant = section_ == "Optimizer" && IsQuantKey(name.text);
    if (key == nullptr && !quant) return ReportUnknown(name);
    if (IsTwice(absl::StrCat(section_, ".", name.text), "key", name.place)) return;
    if (value.text.empty()) {
      return reporter_.Add(DiagnosticKind::kConfigWrongType, name.place,
                           absl::StrCat(name.text, " has no value"), "write KEY = VALUE");
    }
    if (quant) return AddQuant(name, value);
    Apply(*key, name, value);
  }

  void ReportUnknown(const Text& name) {
    std::vector<absl::string_view> known;
    for (const CfgKey& key : kCfgKeys) {
      if (key.section == section_) known.push_back(key.name);
    }
    std::string otherwise = "remove the line";
    if (section_ == "Optimizer") known = QuantKeyNames();
    for (const CfgKey& key : kCfgKeys) {
      if (key.name == name.text) otherwise = absl::StrCat("it is a key of [", key.section, "]");
    }
    if (IsQuantKey(name.text)) otherwise = "it is a key of [Optimizer]";
    reporter_.Add(DiagnosticKind::kConfigUnknownKey, name.place,
                  absl::StrCat("[", section_, "]: unknown key '", Printable(name.text, 80), "'"),
                  otherwise == "remove the line" ? reporter_.Suggest(name.text, known, otherwise)
                                                 : otherwise);
  }

  void Apply(const CfgKey& key, const Text& name, const Text& value) {
    switch (key.become) {
      case Become::kValue:
      case Become::kShapes:
        values_[key.name] = value;
        return;
      case Become::kNames:
        has_output_ = true;
        return Put(key.to, name.place, NamesOf(value));
      case Become::kFormat:
        return PutFormat(key, name, value);
      case Become::kQuant:
        return AddQuant(name, value);
      case Become::kChecked:
        if (!IsWord(key.words, value.text)) {
          return RefuseValue(key, value, absl::StrSplit(key.words, '|'));
        }
        return NoEffect(key, name);
      case Become::kNothing:
        return NoEffect(key, name);
      case Become::kRefused:
        if (IsWord(key.words, value.text)) return;
        reporter_.Add(DiagnosticKind::kConfigNotSupportedYet, name.place,
                      absl::StrCat("[", section_, "] ", name.text, " = ", Printable(value.text, 80),
                                   " is not supported: ", key.why),
                      key.words.empty() ? "remove the line"
                                        : absl::StrCat("write ", name.text, " = ", key.words));
        return;
    }
  }

  static bool IsWord(absl::string_view words, absl::string_view value) {
    const std::vector<absl::string_view> list = absl::StrSplit(words, '|', absl::SkipEmpty());
    return std::any_of(list.begin(), list.end(), [value](absl::string_view word) {
      return absl::EqualsIgnoreCase(word, value);
    });
  }

  void RefuseValue(const CfgKey& key, const Text& value,
                   const std::vector<absl::string_view>& words) {
    reporter_.Add(DiagnosticKind::kConfigValueNotAllowed, value.place,
                  absl::StrCat(key.name, " is '", Printable(value.text, 80),
                               "'; allowed: ", absl::StrJoin(words, ", ")),
                  reporter_.Suggest(value.text, words, "write one of these"));
  }

  void NoEffect(const CfgKey& key, const Text& name) {
    reporter_.Add(DiagnosticKind::kConfigNoEffect, name.place,
                  absl::StrCat(key.name, " changes nothing: ", key.why), "remove the line");
  }

  void PutFormat(const CfgKey& key, const Text& name, const Text& value) {
    has_model_type_ = true;
    std::vector<absl::string_view> words;
    for (const FormatWords& format : AllFormats()) {
      if (format.cfg_word.empty()) continue;
      words.push_back(format.cfg_word);
      if (!absl::EqualsIgnoreCase(format.cfg_word, value.text)) continue;
      framework_ = FrameworkNamed(format.name);
      return Put(key.to, name.place, Scalar({format.name, value.place}));
    }
    RefuseValue(key, value, words);
  }

  void Put(absl::string_view key, ConfigPlace place, ConfigNode value) {
    root_.items.push_back(Scalar({key, place}));
    root_.items.push_back(std::move(value));
  }

  void AddQuant(const Text& name, const Text& value) {
    if (IsTwice(absl::StrCat("QUANT.", name.text), "key", name.place)) return;
    quant_.items.push_back(Scalar(name));
    quant_.items.push_back(QuantKeyTakesList(name.text) ? NamesOf(value) : Scalar(value));
    if (quant_.line == 0) quant_.line = name.place.line, quant_.column = name.place.column;
  }

  void Missing(absl::string_view key, absl::string_view what, absl::string_view example) {
    reporter_.Add(DiagnosticKind::kConfigMissingKey, {},
                  absl::StrCat("[Parser] ", key, " is missing: ", what),
                  absl::StrCat("add a line like ", key, " = ", example));
  }

  void Assemble() {
    const auto take = [this](absl::string_view key, absl::string_view to) {
      const auto found = values_.find(key);
      if (found == values_.end()) return false;
      Put(to, found->second.place, Scalar(found->second));
      return true;
    };
    if (!take("target", "CORENAME")) Put("CORENAME", {}, Scalar({kDefaultTarget, {}}));
    if (!has_model_type_) Missing("model_type", "the model's format", "TFLite");
    if (!take("input_model", "MODEL_FILE")) Missing("input_model", "the model", "model.tflite");
    take("input_bin", HasWeightsFile() ? "WEIGHTS_FILE" : "MODEL_BIN");
    take("caffe_prototxt", "PROTOTXT");
    const auto model_name = values_.find("model_name");
    if (!take("outputs", "OUTPUT_FILE")) {
      if (model_name == values_.end()) {
        Missing("model_name", "it names the result where [GBuilder] has no outputs", "kws");
      } else {
        ConfigNode file = Scalar(model_name->second);
        file.text += ".h";
        Put("OUTPUT_FILE", model_name->second.place, std::move(file));
      }
    }
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

  void PutInputs() {
    const auto names = values_.find("input");
    const auto shapes = values_.find("input_shape");
    if (names == values_.end() && shapes == values_.end()) {
      if (!framework_.has_value() || !InfoOf(*framework_).needs_input_ops) return;
      Missing("input", "the model's inputs", "input");
      return Missing("input_shape", "the inputs' shapes", "[1,224,224,3]");
    }
    if (names == values_.end()) return Missing("input", "whose shapes these are", "input");
    if (shapes == values_.end()) {
      return Missing("input_shape", "the inputs' shapes", "[1,224,224,3]");
    }
    const std::vector<Text> list = SplitAtCommas(names->second);
    const std::vector<Text> each = SplitAtCommas(shapes->second);
    if (list.size() != each.size()) {
      return reporter_.Add(
          DiagnosticKind::kConfigConflict, shapes->second.place,
          absl::StrCat("input names ", list.size(), " tensors, input_shape has ", each.size()),
          "give one shape for each input, such as [1,224,224,3],[1,10]");
    }
    ConfigNode inputs = Holder(Kind::kMapping, names->second.place);
    for (size_t i = 0; i < list.size(); ++i) {
      if (IsTwice(absl::StrCat("input ", list[i].text), "tensor", list[i].place)) continue;
      inputs.items.push_back(Scalar(list[i]));
      inputs.items.push_back(ShapeOf(each[i]));
    }
    Put("INPUT_OPS", names->second.place, std::move(inputs));
  }

  ConfigNode ShapeOf(const Text& text) {
    if (text.text.size() < 2 || text.text.front() != '[' || text.text.back() != ']') {
      reporter_.Add(DiagnosticKind::kConfigWrongType, text.place,
                    absl::StrCat("input_shape takes lists of numbers, found '",
                                 Printable(text.text, 80), "'"),
                    "write it like input_shape = [1,224,224,3]");
      return Holder(Kind::kSequence, text.place);
    }
    const Text inside = text.From(1).Upto(text.text.size() - 2).Stripped();
    return inside.text.empty() ? Holder(Kind::kSequence, text.place) : NamesOf(inside);
  }

  ConfigReporter& reporter_;
  ConfigNode root_ = Holder(Kind::kMapping, {1, 1});
  ConfigNode quant_ = Holder(Kind::kMapping, {});
  absl::string_view section_;
  std::optional<Framework> framework_;  // nullopt: no model_type, or one without a front end
  bool has_model_type_ = false;
  bool has_output_ = false;
  bool skip_ = true;  // lines of a section that was refused
  std::map<std::string, int> lines_;
  std::map<absl::string_view, Text> values_;
};

// Whether a message or a fix names the key as a word.
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

// The first line that is no comment, where it is in brackets; else empty.
Text FirstSection(absl::string_view text) {
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const Text all = Text{line, {number, 1}}.Stripped();
    if (all.text.empty() || all.text[0] == '#' || all.text[0] == ';') continue;
    return all.text.front() == '[' && all.text.back() == ']' ? all : Text{};
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
                                        ConfigReporter& reporter, Diagnostics& diagnostics) {
  absl::ConsumePrefix(&text, kByteOrderMark);
  if (!CheckConfigText(text, name, diagnostics)) return std::nullopt;
  if (IsDarknetNet(text)) {
    reporter.Add(
        DiagnosticKind::kConfigUnreadable, FirstSection(text).place,
        absl::StrCat("the file is the .cfg of a Darknet net, which begins with [net], and no "
                     "config of aipubuild, whose sections are ",
                     absl::StrJoin(kSections, ", ")),
        absl::StrCat("run npuc init ", Printable(name), ", which writes a config for it"));
    return std::nullopt;
  }
  return CfgReader(reporter).Read(text);
}

void AddCfgWords(absl::string_view name, Diagnostics& diagnostics) {
  std::map<absl::string_view, std::string> words;
  for (const CfgKey& key : kCfgKeys) {
    if (key.become == Become::kQuant || !IsNamed(key.to, diagnostics)) continue;
    std::string& said = words[key.to];
    absl::StrAppend(&said, said.empty() ? "" : " and ", key.name, " of [", key.section, "]");
  }
  if (words.empty()) return;
  diagnostics.Add({.kind = DiagnosticKind::kConfigOtherWords,
                   .message = absl::StrCat("the messages name keys of a YAML config; in a .cfg ",
                                           absl::StrJoin(words, ", ", absl::PairFormatter(" is "))),
                   .file = std::string(name)});
}

namespace {

// ", TFLite=TFLITE, ONNX=ONNX": which word becomes which FRAMEWORK.
std::string FormatHelp() {
  std::string out;
  for (const FormatWords& format : AllFormats()) {
    if (format.cfg_word.empty()) continue;
    absl::StrAppend(&out, ", ", format.cfg_word, "=", format.name);
  }
  return out;
}

}  // namespace

std::string CfgConfigHelp() {
  std::string out;
  absl::string_view section;
  const auto open = [&](absl::string_view next) {
    if (section == next) return;
    if (section == "Parser") absl::StrAppend(&out, "  [Optimizer]\n    the keys of QUANT\n");
    absl::StrAppend(&out, "  [", next, "]\n");
    section = next;
  };
  for (const CfgKey& key : kCfgKeys) {
    open(key.section);
    absl::StrAppend(&out, "    ", key.name, ": ");
    switch (key.become) {
      case Become::kFormat:
        absl::StrAppend(&out, key.to, FormatHelp(), "\n");
        continue;
      case Become::kChecked:
        absl::StrAppend(&out, Words(key.words), "; changes nothing, ", key.why, "\n");
        continue;
      case Become::kNothing:
        absl::StrAppend(&out, "changes nothing, ", key.why, "\n");
        continue;
      case Become::kRefused:
        absl::StrAppend(&out, key.words.empty() ? "" : absl::StrCat(key.words, "; otherwise "),
                        "refused, ", key.why, "\n");
        continue;
      default:
        absl::StrAppend(&out, key.to.empty() ? key.why : key.to,
                        key.name == "target" ? absl::StrCat("; default ", kDefaultTarget) : "",
                        "\n");
    }
  }
  return out;
}

}  // namespace npuc
