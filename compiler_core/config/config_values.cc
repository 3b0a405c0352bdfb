#include "compiler_core/config/config_values.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/fp16.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/graph/types.h"
#include "compiler_core/target/chips.h"

namespace npuc {
namespace {

using Kind = ConfigNode::Kind;

ConfigPlace PlaceOf(const ConfigNode& node) { return {node.line, node.column}; }

// What reading one key needs at every step.
struct Reading {
  const ConfigKey& key;
  ConfigReporter& reporter;

  bool WrongType(const ConfigNode& node, absl::string_view wanted) const {
    reporter.Add(DiagnosticKind::kConfigWrongType, PlaceOf(node),
                 absl::StrCat(key.name, " takes ", wanted, ", found ", DescribeNode(node)),
                 absl::StrCat("write it like ", key.name, ": ", key.example));
    return false;
  }
  bool NotAllowed(const ConfigNode& node, std::string message, std::string fix) const {
    reporter.Add(DiagnosticKind::kConfigValueNotAllowed, PlaceOf(node), std::move(message),
                 std::move(fix));
    return false;
  }
};

// As PyYAML, which the vendor's compiler reads configs with, resolves a plain scalar.
std::optional<bool> ParseYamlBool(absl::string_view text) {
  for (absl::string_view word : {"yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"}) {
    if (text == word) return true;
  }
  for (absl::string_view word :
       {"no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"}) {
    if (text == word) return false;
  }
  return std::nullopt;
}

// Decimal without leading zeros (YAML 1.1 would read those as octal), or 0x and hex digits.
std::optional<int64_t> ParseYamlInteger(absl::string_view text) {
  absl::string_view digits = text;
  if (!absl::ConsumePrefix(&digits, "-")) absl::ConsumePrefix(&digits, "+");
  const bool negative = absl::StartsWith(text, "-");
  uint64_t magnitude = 0;
  if (absl::ConsumePrefix(&digits, "0x")) {
    if (digits.empty() || !absl::ascii_isxdigit(digits[0]) ||
        !absl::SimpleHexAtoi(digits, &magnitude)) {
      return std::nullopt;
    }
  } else if (digits.empty() || !absl::ascii_isdigit(digits[0]) ||
             (digits.size() > 1 && digits[0] == '0') || !absl::SimpleAtoi(digits, &magnitude)) {
    return std::nullopt;
  }
  if (magnitude > (uint64_t{1} << 62)) return std::nullopt;
  return negative ? -static_cast<int64_t>(magnitude) : static_cast<int64_t>(magnitude);
}

std::optional<double> ParseYamlNumber(absl::string_view text) {
  for (char c : text) {  // SimpleAtod alone would take inf, nan and hex as well
    if (!absl::ascii_isdigit(c) && !absl::StrContains("+-.eE", absl::string_view(&c, 1))) {
      return std::nullopt;
    }
  }
  double value = 0;
  if (!absl::SimpleAtod(text, &value) || !std::isfinite(value)) return std::nullopt;
  return value;
}

constexpr absl::string_view kNames = "names";  // what a key wants: those are longer than a line

// One line of text of bounded length. Numbers and words such as on are taken as they are written:
// where a name is meant there is nothing else that they could stand for.
bool ReadLine(const Reading& reading, const ConfigNode& node, absl::string_view wanted,
              std::string& out) {
  if (node.kind != Kind::kScalar) return reading.WrongType(node, wanted);
  const size_t limit = wanted == kNames ? kMaxNodeNameBytes : kMaxConfigTextBytes;
  if (node.text.empty() || node.text.size() > limit) {
    return reading.NotAllowed(
        node,
        absl::StrCat(reading.key.name, " takes 1 to ", limit, " bytes here, found ",
                     node.text.size()),
        absl::StrCat("write it like ", reading.key.name, ": ", reading.key.example));
  }
  for (char c : node.text) {
    if (!absl::ascii_iscntrl(c)) continue;
    return reading.NotAllowed(
        node, absl::StrCat(reading.key.name, " holds a control character: ", DescribeNode(node)),
        "write one line of plain text");
  }
  out = node.text;
  return true;
}

// A name of a node or of its output: NAME or NAME:K.
bool ReadName(const Reading& reading, const ConfigNode& node, ConfigName& out) {
  out.place = PlaceOf(node);
  if (!ReadLine(reading, node, kNames, out.text)) return false;
  if (!IsTensorName(out.text)) {
    return reading.NotAllowed(
        node, absl::StrCat(DescribeNode(node), " is not a name: NAME or NAME:K, K in 0..1023"),
        "name a node of the model, or its output K");
  }
  return true;
}

bool ReadInteger(const Reading& reading, const ConfigNode& node, absl::string_view wanted,
                 int64_t& out) {
  const std::optional<int64_t> number =
      node.kind == Kind::kScalar && node.plain ? ParseYamlInteger(node.text) : std::nullopt;
  if (!number.has_value()) return reading.WrongType(node, wanted);
  out = *number;
  return true;
}

bool ReadChoice(const Reading& reading, const ConfigNode& node, ConfigSetting& setting) {
  if (!ReadLine(reading, node, ConfigTypeName(ConfigType::kChoice), setting.text)) return false;
  if (ListHolds(reading.key.choices, setting.text)) return true;
  const CoreSpec* of_chip = reading.key.name == "CORENAME" ? FindCoreOfChip(setting.text) : nullptr;
  if (of_chip != nullptr) {
    return reading.NotAllowed(node,
                              absl::StrCat("CORENAME ", Printable(setting.text),
                                           " is a chip; its core is ", of_chip->name),
                              absl::StrCat("write CORENAME: ", of_chip->name));
  }
  const std::vector<absl::string_view> choices = absl::StrSplit(reading.key.choices, '|');
  return reading.NotAllowed(
      node,
      absl::StrCat(reading.key.name, " is ", DescribeNode(node), ", not one of ",
                   absl::StrReplaceAll(reading.key.choices, {{"|", ", "}})),
      reading.reporter.Suggest(setting.text, choices, "write one of these"));
}

bool ReadBool(const Reading& reading, const ConfigNode& node, ConfigSetting& setting) {
  const std::optional<bool> flag =
      node.kind == Kind::kScalar && node.plain ? ParseYamlBool(node.text) : std::nullopt;
  if (!flag.has_value()) return reading.WrongType(node, ConfigTypeName(ConfigType::kBool));
  setting.flag = *flag;
  return true;
}

// "64K" becomes "64" and 1,024.
std::pair<absl::string_view, int64_t> SplitUnit(absl::string_view text) {
  if (absl::ConsumeSuffix(&text, "K")) return {text, int64_t{1} << 10};
  if (absl::ConsumeSuffix(&text, "M")) return {text, int64_t{1} << 20};
  return {text, 1};
}

bool ReadBoundedInteger(const Reading& reading, const ConfigNode& node, ConfigSetting& setting) {
  ConfigNode number = node;
  int64_t unit = 1;
  if (reading.key.type == ConfigType::kBytes && node.kind == Kind::kScalar) {
    const auto [digits, of_text] = SplitUnit(node.text);
    number.text = std::string(digits);
    unit = of_text;
  }
  const std::optional<int64_t> value =
      node.kind == Kind::kScalar && node.plain ? ParseYamlInteger(number.text) : std::nullopt;
  if (!value.has_value()) return reading.WrongType(node, ConfigTypeName(reading.key.type));
  setting.number = *value;
  // Before the product, which would overflow.
  if (*value >= 0 && *value <= reading.key.hi) setting.number *= unit;
  if (setting.number >= reading.key.lo && setting.number <= reading.key.hi) return true;
  return reading.NotAllowed(node,
                            absl::StrCat(reading.key.name, " is ", setting.number, ", not in ",
                                         reading.key.lo, "..", reading.key.hi),
                            "write a number in that range");
}

bool ReadNames(const Reading& reading, const ConfigNode& node, ConfigSetting& setting) {
  if (node.kind != Kind::kSequence) {
    return reading.WrongType(node, ConfigTypeName(ConfigType::kNames));
  }
  bool ok = true;
  std::set<std::string> seen;
  for (const ConfigNode& item : node.items) {
    ConfigName name;
    if (!ReadName(reading, item, name)) {
      ok = false;
    } else if (!seen.insert(CanonicalTensorName(name.text)).second) {
      reading.reporter.Add(
          DiagnosticKind::kConfigDuplicate, name.place,
          absl::StrCat(reading.key.name, " lists '", Printable(name.text), "' twice"),
          "list each tensor once; NAME is NAME:0");
      ok = false;
    } else {
      setting.names.push_back(std::move(name));
    }
  }
  return ok;
}

bool ReadIndices(const Reading& reading, const ConfigNode& node, ConfigSetting& setting) {
  if (node.kind != Kind::kSequence) {
    return reading.WrongType(node, ConfigTypeName(ConfigType::kIndices));
  }
  bool ok = true;
  for (const ConfigNode& item : node.items) {
    ConfigIndex index{.place = PlaceOf(item)};
    if (!ReadInteger(reading, item, ConfigTypeName(ConfigType::kIndices), index.value)) {
      ok = false;
    } else if (index.value < 0 || index.value > 1023) {
      ok = reading.NotAllowed(item, absl::StrCat("index ", index.value, " is not in 0..1023"),
                              "count inputs from 0");
    } else {
      setting.indices.push_back(index);
    }
  }
  return ok;
}

// yaml-cpp places an absent value on the line after it: take its key's place instead.
ConfigNode ValueAt(const ConfigNode& key, const ConfigNode& value) {
  if (value.kind != Kind::kNull) return value;
  ConfigNode nothing;
  nothing.line = key.line;
  nothing.column = key.column;
  return nothing;
}

bool ReadShape(const Reading& reading, const ConfigNode& node, absl::string_view of,
               std::vector<int64_t>& dims) {
  constexpr absl::string_view kWanted = "a shape such as [1, 64] for each input";
  if (node.kind != Kind::kSequence) return reading.WrongType(node, kWanted);
  if (node.items.size() > static_cast<size_t>(kMaxRank)) {
    return reading.NotAllowed(node,
                              absl::StrCat("the shape of '", Printable(of), "' has ",
                                           node.items.size(), " dimensions, over ", kMaxRank),
                              "check the shape");
  }
  int64_t elements = 1;
  for (const ConfigNode& item : node.items) {
    int64_t dim = 0;
    if (!ReadInteger(reading, item, kWanted, dim)) return false;
    if (dim < 1 || dim > kMaxElements) {
      return reading.NotAllowed(item,
                                absl::StrCat("the shape of '", Printable(of), "' has dimension ",
                                             dim, ", not in 1..", kMaxElements),
                                "write the sizes that inference uses, the batch size included");
    }
    if (elements > kMaxElements / dim) {
      return reading.NotAllowed(
          node,
          absl::StrCat("the shape of '", Printable(of), "' has over ", kMaxElements, " elements"),
          "check the shape");
    }
    elements *= dim;
    dims.push_back(dim);
  }
  return true;
}

bool ReadShapes(const Reading& reading, const ConfigNode& node, ConfigSetting& setting) {
  if (node.kind != Kind::kMapping) {
    return reading.WrongType(node, ConfigTypeName(ConfigType::kShapes));
  }
  bool ok = true;
  std::set<std::string> seen;
  std::set<std::string> written;  // exact repeats are reported with the syntax
  for (size_t i = 0; i + 1 < node.items.size(); i += 2) {
    const ConfigNode& key = node.items[i];
    if (key.kind != Kind::kScalar) continue;  // reported with the syntax
    ConfigShape shape;
    const bool name_ok = ReadName(reading, key, shape.name);
    if (!ReadShape(reading, ValueAt(key, node.items[i + 1]), key.text, shape.dims) || !name_ok) {
      ok = false;
      continue;
    }
    const bool first = seen.insert(CanonicalTensorName(shape.name.text)).second;
    if (!first && written.insert(shape.name.text).second) {
      reading.reporter.Add(
          DiagnosticKind::kConfigDuplicate, shape.name.place,
          absl::StrCat(reading.key.name, " lists '", Printable(shape.name.text), "' twice"),
          "list each tensor once; NAME is NAME:0");
      ok = false;
    }
    written.insert(shape.name.text);
    if (first) setting.shapes.push_back(std::move(shape));
  }
  return ok;
}

// A range must give a compression step that fp16 can hold.
bool CheckRange(const Reading& reading, const ConfigNode& node, const ConfigRange& range) {
  const std::string what = absl::StrCat("the range of '", Printable(range.name.text), "', [",
                                        range.min, ", ", range.max, "],");
  if (range.min >= range.max) {
    return reading.NotAllowed(node, absl::StrCat(what, " does not have min below max"),
                              "write [min, max]");
  }
  if (range.min < -kLargestHalf || range.max > kLargestHalf) {
    return reading.NotAllowed(node, absl::StrCat(what, " leaves fp16's -65504..65504"),
                              "write a range that fp16 can hold");
  }
  if (FloatToHalf(static_cast<float>((range.max - range.min) / 255)) == 0) {
    return reading.NotAllowed(node, absl::StrCat(what, " is too narrow: its step is 0 in fp16"),
                              "write a wider range");
  }
  return true;
}

bool ReadRange(const Reading& reading, const ConfigNode& node, ConfigRange& range) {
  constexpr absl::string_view kWanted = "[min, max] for each weight";
  if (node.kind != Kind::kSequence || node.items.size() != 2) {
    return reading.WrongType(node, kWanted);
  }
  double* const bounds[] = {&range.min, &range.max};
  for (int i = 0; i < 2; ++i) {
    const ConfigNode& item = node.items[i];
    const std::optional<double> number =
        item.kind == Kind::kScalar && item.plain ? ParseYamlNumber(item.text) : std::nullopt;
    if (!number.has_value()) return reading.WrongType(item, "two finite numbers for each weight");
    *bounds[i] = *number;
  }
  return CheckRange(reading, node, range);
}

bool ReadRanges(const Reading& reading, const ConfigNode& node, ConfigSetting& setting) {
  if (node.kind != Kind::kMapping) {
    return reading.WrongType(node, ConfigTypeName(ConfigType::kRanges));
  }
  bool ok = true;
  std::set<absl::string_view> seen;
  for (size_t i = 0; i + 1 < node.items.size(); i += 2) {
    const ConfigNode& key = node.items[i];
    if (key.kind != Kind::kScalar || !seen.insert(key.text).second) continue;  // reported already
    ConfigRange range;
    const bool name_ok = ReadName(reading, key, range.name);
    if (!ReadRange(reading, ValueAt(key, node.items[i + 1]), range) || !name_ok) {
      ok = false;
    } else {
      setting.ranges.push_back(std::move(range));
    }
  }
  return ok;
}

bool ReadNumber(const Reading& reading, const ConfigNode& node, ConfigValue& value) {
  const bool is_plain = node.kind == Kind::kScalar && node.plain;
  const std::optional<bool> flag = is_plain ? ParseYamlBool(node.text) : std::nullopt;
  const std::optional<int64_t> whole = is_plain ? ParseYamlInteger(node.text) : std::nullopt;
  const std::optional<double> number = is_plain ? ParseYamlNumber(node.text) : std::nullopt;
  constexpr int64_t kMostExact = int64_t{1} << 53;  // of a double
  if (whole.has_value() && (*whole > kMostExact || *whole < -kMostExact)) {
    return reading.NotAllowed(node, absl::StrCat(reading.key.name, " holds ", *whole),
                              "write a number from -2^53 to 2^53");
  }
  if (!flag.has_value() && !whole.has_value() && !number.has_value()) {
    return reading.WrongType(node, "a finite number, true or false for each input");
  }
  value.is_whole = value.is_whole && (flag.has_value() || whole.has_value());
  value.numbers.push_back(flag.has_value()    ? static_cast<double>(*flag)
                          : whole.has_value() ? static_cast<double>(*whole)
                                              : *number);
  return true;
}

bool ReadConstant(const Reading& reading, const ConfigNode& node, ConfigValue& value) {
  constexpr size_t kMaxNumbers = 4096;
  value.is_list = node.kind == Kind::kSequence;
  if (!value.is_list) return ReadNumber(reading, node, value);
  if (node.items.empty() || node.items.size() > kMaxNumbers) {
    return reading.NotAllowed(
        node,
        absl::StrCat("the list of '", Printable(value.name.text), "' has ", node.items.size(),
                     " numbers; allowed are 1 to ", kMaxNumbers),
        "make it an initializer of the model, or an input");
  }
  return std::all_of(node.items.begin(), node.items.end(),
                     [&](const ConfigNode& item) { return ReadNumber(reading, item, value); });
}

bool ReadSize(const Reading& reading, const ConfigNode& node, ConfigValue& value) {
  int64_t size = 0;
  if (!ReadInteger(reading, node, "an integer for each dimension", size)) return false;
  if (size < 1 || size > kMaxElements) {
    return reading.NotAllowed(node,
                              absl::StrCat("dimension '", Printable(value.name.text), "' is ", size,
                                           ", not in 1..", kMaxElements),
                              "write the size that inference uses");
  }
  value.numbers = {static_cast<double>(size)};
  return true;
}

// Dimensions have names of any kind; inputs those of tensors.
bool ReadValues(const Reading& reading, const ConfigNode& node, ConfigSetting& setting) {
  const bool are_sizes = setting.key->type == ConfigType::kSizes;
  if (node.kind != Kind::kMapping) {
    return reading.WrongType(node, ConfigTypeName(setting.key->type));
  }
  bool ok = true;
  std::set<std::string> seen;
  for (size_t i = 0; i + 1 < node.items.size(); i += 2) {
    const ConfigNode& key = node.items[i];
    if (key.kind != Kind::kScalar || !seen.insert(key.text).second) continue;  // reported already
    ConfigValue value;
    value.name.place = PlaceOf(key);
    const bool name_ok = are_sizes ? ReadLine(reading, key, kNames, value.name.text)
                                   : ReadName(reading, key, value.name);
    const ConfigNode item = ValueAt(key, node.items[i + 1]);
    const bool value_ok =
        are_sizes ? ReadSize(reading, item, value) : ReadConstant(reading, item, value);
    ok = ok && name_ok && value_ok;
    if (name_ok && value_ok) setting.values.push_back(std::move(value));
  }
  return ok;
}

// A model may be a folder, written with '/' at its end.
bool ReadPath(const Reading& reading, const ConfigNode& node, ConfigSetting& setting) {
  if (!ReadLine(reading, node, ConfigTypeName(setting.key->type), setting.text)) return false;
  if (setting.key->name != "MODEL_FILE") return true;
  while (setting.text.size() > 1 && setting.text.back() == '/') setting.text.pop_back();
  return true;
}

bool ReadPaths(const Reading& reading, const ConfigNode& node, ConfigSetting& setting) {
  const absl::string_view wanted = ConfigTypeName(ConfigType::kPaths);
  const std::vector<ConfigNode> one = {node};
  const std::vector<ConfigNode>& items = node.kind == Kind::kSequence ? node.items : one;
  if (items.empty() || items.size() > kMaxPaths) return reading.WrongType(node, wanted);
  for (const ConfigNode& item : items) {
    ConfigName path{"", PlaceOf(item)};
    if (!ReadLine(reading, item, wanted, path.text)) return false;
    if (path.text.back() == '/') return reading.WrongType(item, wanted);
    setting.names.push_back(std::move(path));
  }
  return true;
}

}  // namespace

void ConfigReporter::Add(DiagnosticKind kind, ConfigPlace place, std::string message,
                         std::string fix) {
  diagnostics_.Add({.kind = kind,
                    .message = std::move(message),
                    .file = file_,
                    .line = place.line,
                    .column = place.column,
                    .fix = std::move(fix)});
}

bool ReadConfigValue(const ConfigNode& value, ConfigReporter& reporter, ConfigSetting& setting) {
  const Reading reading{*setting.key, reporter};
  if (value.kind == Kind::kNull) {
    ConfigNode at_key;  // yaml-cpp places an absent value on the line after it
    at_key.line = setting.key_place.line;
    at_key.column = setting.key_place.column;
    return reading.WrongType(at_key, ConfigTypeName(setting.key->type));
  }
  switch (setting.key->type) {
    case ConfigType::kChoice:
      return ReadChoice(reading, value, setting);
    case ConfigType::kBool:
      return ReadBool(reading, value, setting);
    case ConfigType::kInteger:
    case ConfigType::kBytes:
      return ReadBoundedInteger(reading, value, setting);
    case ConfigType::kPath:
      return ReadPath(reading, value, setting);
    case ConfigType::kPaths:
      return ReadPaths(reading, value, setting);
    case ConfigType::kText:
      return ReadLine(reading, value, ConfigTypeName(setting.key->type), setting.text);
    case ConfigType::kNames:
      return ReadNames(reading, value, setting);
    case ConfigType::kIndices:
      return ReadIndices(reading, value, setting);
    case ConfigType::kShapes:
      return ReadShapes(reading, value, setting);
    case ConfigType::kRanges:
      return ReadRanges(reading, value, setting);
    case ConfigType::kValues:
    case ConfigType::kSizes:
      return ReadValues(reading, value, setting);
    case ConfigType::kMapping:
      return value.kind == Kind::kMapping ||
             reading.WrongType(value, ConfigTypeName(ConfigType::kMapping));
  }
  NPUC_CHECK(false);
  return false;
}

bool IsTensorName(absl::string_view text) {
  const std::string name = absl::StrReplaceAll(text, {{"::", "__"}});
  const std::vector<absl::string_view> parts = absl::StrSplit(name, ':');
  if (parts.size() > 2 || parts[0].empty()) return false;
  if (parts.size() == 1) return true;
  const std::optional<int64_t> number = ParseYamlInteger(parts[1]);
  return number.has_value() && absl::ascii_isdigit(parts[1][0]) && *number < 1024 &&
         !absl::StartsWith(parts[1], "0x");
}

std::string CanonicalTensorName(absl::string_view name) {
  absl::ConsumeSuffix(&name, ":0");
  return std::string(name);
}

}  // namespace npuc
