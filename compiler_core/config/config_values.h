#ifndef NPUC_COMPILER_CORE_CONFIG_CONFIG_VALUES_H_
#define NPUC_COMPILER_CORE_CONFIG_CONFIG_VALUES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/suggest.h"
#include "compiler_core/base/yaml_tree.h"
#include "compiler_core/config/config_keys.h"

namespace npuc {

inline constexpr size_t kMaxConfigTextBytes = 1024;  // of a path, a line of text

struct ConfigPlace {
  int line = 0;
  int column = 0;
};

// Adds diagnostics about one config file, and looks for near misses within a budget, so that a
// hostile config cannot buy much time with wrong names. Not thread-safe.
class ConfigReporter {
 public:
  ConfigReporter(absl::string_view file, Diagnostics& diagnostics)
      : file_(file), diagnostics_(diagnostics) {}

  void Add(DiagnosticKind kind, ConfigPlace place, std::string message, std::string fix);
  // The fix for a wrong `word`: Suggester::DidYouMean.
  std::string Suggest(absl::string_view word, absl::Span<const absl::string_view> candidates,
                      absl::string_view otherwise) {
    return suggester_.DidYouMean(word, candidates, otherwise);
  }

 private:
  std::string file_;
  Diagnostics& diagnostics_;
  Suggester suggester_;
};

struct ConfigName {
  std::string text;
  ConfigPlace place;
};
struct ConfigIndex {
  int64_t value = 0;
  ConfigPlace place;
};
struct ConfigShape {
  ConfigName name;
  std::vector<int64_t> dims;
};
struct ConfigRange {
  ConfigName name;
  double min = 0;
  double max = 0;
};

struct ConfigValue {
  ConfigName name;
  std::vector<double> numbers;  // one, or those of a list
  bool is_list = false;
  bool is_whole = true;  // each is written as an integer, or as true or false
};

// A key of the config with its value, typed as the table of keys says. Only the members of its
// type are filled.
struct ConfigSetting {
  const ConfigKey* key = nullptr;
  ConfigPlace key_place;
  ConfigPlace place;                 // of the value
  bool flag = false;                 // kBool
  int64_t number = 0;                // kInteger
  std::string text;                  // kChoice, kText, kPath
  std::vector<ConfigName> names;     // kNames, kPaths
  std::vector<ConfigIndex> indices;  // kIndices
  std::vector<ConfigShape> shapes;   // kShapes, in order
  std::vector<ConfigRange> ranges;   // kRanges
  std::vector<ConfigValue> values;   // kValues, kSizes
};

// Reads `value` into `setting` by the type of setting.key. Every problem is reported; false where
// there is one. Knows nothing of other settings.
bool ReadConfigValue(const ConfigNode& value, ConfigReporter& reporter, ConfigSetting& setting);

// Whether a config can name a tensor so: NAME or NAME:K, K in 0..1023. NAME may hold "::", as the
// names do that PyTorch gives tensors when it writes ONNX files.
bool IsTensorName(absl::string_view text);

// The part of a tensor name NAME:K that decides whether two name the same tensor: "x:0" is "x".
std::string CanonicalTensorName(absl::string_view name);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_CONFIG_CONFIG_VALUES_H_
