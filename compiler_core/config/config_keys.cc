#include "compiler_core/config/config_keys.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/framework.h"
#include "compiler_core/base/status.h"

namespace npuc {
namespace {

constexpr FamilySet kIntegers = {NpuFamily::kInteger, NpuFamily::kFixedPoint};
constexpr FamilySet kBooks = {NpuFamily::kFp16Books};
constexpr FamilySet kFloats = {NpuFamily::kFp16, NpuFamily::kFp16Books};

// "GRUS|V150|LEO|V100": the names and aliases of cores.
std::string NamesOfCores() {
  std::vector<absl::string_view> names;
  for (const CoreSpec* core : AllCores()) {
    names.push_back(core->name);
    if (core->alias != core->name) names.push_back(core->alias);
  }
  return absl::StrJoin(names, "|");
}

int64_t MostNpuSramBytes() {
  int64_t most = 0;
  for (const CoreSpec* core : AllCores()) {
    if (core->family == NpuFamily::kFp16) most = std::max(most, core->limits->npu_sram_bytes);
  }
  return most;
}

std::vector<ConfigKey> MakeKeys() {
  using T = ConfigType;
  using Echo = ConfigEcho;
  constexpr int64_t kAnyInt = int64_t{1} << 31;
  return {
#define NPUC_OPTION(field, ...) {__VA_ARGS__},
#define NPUC_OPTION_WITHOUT_KEY(field)
#define NPUC_KEY(...) {__VA_ARGS__},
#include "compiler_core/base/compile_options.inc"
  };
}

}  // namespace

std::string WordsOf(absl::string_view list) { return absl::StrReplaceAll(list, {{"|", ", "}}); }

absl::Span<const ConfigKey> AllConfigKeys() {
  static const auto& keys = *new std::vector<ConfigKey>(MakeKeys());
  return keys;
}

const ConfigKey* FindConfigKey(absl::string_view name) {
  for (const ConfigKey& key : AllConfigKeys()) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

absl::string_view ConfigTypeName(ConfigType type) {
  switch (type) {
    case ConfigType::kChoice:
      return "one of a few words";
    case ConfigType::kBool:
      return "true or false";
    case ConfigType::kInteger:
      return "an integer";
    case ConfigType::kBytes:
      return "a number of bytes, K or M may stand behind it";
    case ConfigType::kText:
      return "one line of text";
    case ConfigType::kPath:
      return "a file name";
    case ConfigType::kPaths:
      return "a file name, or a list of at most 4";
    case ConfigType::kNames:
      return "a list of names";
    case ConfigType::kIndices:
      return "a list of indices";
    case ConfigType::kShapes:
      return "a mapping of names to shapes";
    case ConfigType::kRanges:
      return "a mapping of names to [min, max]";
    case ConfigType::kValues:
      return "a mapping of names to numbers, true, false or lists of these";
    case ConfigType::kSizes:
      return "a mapping of names to sizes";
    case ConfigType::kMapping:
      return "a mapping";
  }
  NPUC_CHECK(false);
  return "";
}

bool ListHolds(absl::string_view list, absl::string_view item) {
  if (item.empty()) return false;
  for (absl::string_view part : absl::StrSplit(list, '|')) {
    if (part == item) return true;
  }
  return false;
}

std::string CoresOf(const FamilySet& families) {
  std::vector<absl::string_view> names;
  for (const CoreSpec* core : AllCores()) {
    if (families.Holds(core->family)) names.push_back(core->name);
  }
  return absl::StrJoin(names, "|");
}

std::string ConfigHelp() {
  const auto words = [](absl::string_view list) {
    return absl::StrReplaceAll(list, {{"|", ", "}});
  };
  std::string out;
  for (const ConfigKey& key : AllConfigKeys()) {
    absl::StrAppend(&out, key.name, ": ", key.example, "\n    ", key.meaning, "\n    ",
                    key.type == ConfigType::kChoice ? words(key.choices)
                                                    : std::string(ConfigTypeName(key.type)));
    if (key.hi > 0) absl::StrAppend(&out, ", ", key.lo, "..", key.hi);
    if (!key.required_for.empty()) {
      absl::StrAppend(&out, "; required",
                      key.required_for == "*" ? "" : " for " + words(key.required_for));
    }
    if (!key.default_value.empty()) absl::StrAppend(&out, "; default ", key.default_value);
    if (!key.families.empty()) {
      absl::StrAppend(&out, "; only core ", words(CoresOf(key.families)));
    }
    if (!key.frameworks.empty()) {
      absl::StrAppend(&out, "; only framework ", words(key.frameworks));
    }
    absl::StrAppend(&out, "\n");
  }
  return out;
}

}  // namespace npuc
