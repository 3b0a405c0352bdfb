#ifndef NPUC_COMPILER_CORE_CONFIG_CONFIG_KEYS_H_
#define NPUC_COMPILER_CORE_CONFIG_CONFIG_KEYS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/target/family.h"

namespace npuc {

// The keys of a config as data: the parser checks against this table, and help and documentation
// are printed from it. The rows stand in base/compile_options.inc. Immutable; everything here is
// thread-safe.

inline constexpr size_t kMaxPaths = 4;

// "A|B" as people read it: "A, B".
std::string WordsOf(absl::string_view list);

enum class ConfigType : uint8_t {
  kChoice,   // one of `choices`
  kBool,     // as YAML 1.1 has it: true/false, yes/no, on/off
  kInteger,  // lo..hi
  kBytes,    // the same, also with K (1,024) or M behind it
  kText,     // one line
  kPath,     // a file name, relative to the config's folder
  kPaths,    // such a name, or [name, ...] of at most kMaxPaths
  kNames,    // [name, ...] of nodes or tensors; indices where the framework has no names
  kIndices,  // [index, ...]
  kShapes,   // name: [dim, ...]
  kRanges,   // name: [min, max]
  kValues,   // name: number, true or false, or a list of these
  kSizes,    // name: integer above 0
  kMapping,  // any mapping
};

// When report.json echoes an option.
enum class ConfigEcho : uint8_t { kIfSet, kAlways, kNever };

struct ConfigKey {
  absl::string_view name;
  ConfigType type = ConfigType::kText;
  std::string required_for = {};         // frameworks, "TF|PT"; "*": all; empty: optional
  absl::string_view default_value = "";  // as it would be written; empty: none
  std::string choices = {};              // kChoice: "a|b"
  int64_t lo = 0;                        // kInteger
  int64_t hi = 0;
  FamilySet families = {};               // cores that have the key; empty: every core
  FamilySet no_effect_on = {};           // cores that take the key and do nothing with it
  absl::string_view why_no_effect = "";  // there; empty: they compute in integers
  std::string frameworks = {};           // "TF|PT"; empty: every framework
  ConfigEcho echo = ConfigEcho::kIfSet;
  absl::string_view example = "";  // a value as one would write it
  absl::string_view meaning = "";  // one sentence without a full stop
};

// In the order of base/compile_options.inc.
absl::Span<const ConfigKey> AllConfigKeys();

// Null where unknown. Case counts.
const ConfigKey* FindConfigKey(absl::string_view name);

// "a list of names": what a value of this type is, for messages and help.
absl::string_view ConfigTypeName(ConfigType type);

// Whether `list`, "A|B|C", holds `item`.
bool ListHolds(absl::string_view list, absl::string_view item);

// The names of the cores of some families, without aliases: "GRUS|LEO"; "" of the empty set.
std::string CoresOf(const FamilySet& families);

// Every key with its type, default, cores, frameworks and meaning, as text for a terminal.
std::string ConfigHelp();

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_CONFIG_CONFIG_KEYS_H_
