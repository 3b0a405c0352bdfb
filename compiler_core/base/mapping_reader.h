#ifndef NPUC_COMPILER_CORE_BASE_MAPPING_READER_H_
#define NPUC_COMPILER_CORE_BASE_MAPPING_READER_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/yaml_tree.h"

namespace npuc {

// Reads the keys of one mapping of a side file in YAML, and remembers which of them were asked for.
// A function whose name is a type reads a value of it; where the key is absent the value stays as
// it is, and where it does not fit that is reported. Used on one thread.
class MappingReader {
 public:
  static constexpr size_t kMaxNumbers = 64;

  // `what` names the mapping in messages: "the settings of boxes". All outlive the reader.
  MappingReader(const ConfigNode& mapping, absl::string_view what, absl::string_view file,
                Diagnostics& diagnostics)
      : mapping_(mapping), what_(what), file_(file), diagnostics_(diagnostics) {}

  void Report(DiagnosticKind kind, const ConfigNode& at, std::string message, std::string fix);

  bool Has(absl::string_view key) { return Find(key) != nullptr; }
  // The value of a key; null where there is none.
  const ConfigNode* Find(absl::string_view key);
  // The value of a key that has to be there; null: it is not, which is reported.
  const ConfigNode* Needed(absl::string_view key);

  // A line of 1 to 1024 bytes, which has to be there.
  void Text(absl::string_view key, std::string& to);
  void Flag(absl::string_view key, bool& to);
  // A number above `above` and of at most `most`.
  void Number(absl::string_view key, double above, double most, double& to);
  // A whole number of least..most.
  void Whole(absl::string_view key, int64_t least, int64_t most, int64_t& to);
  // A list of at most kMaxNumbers numbers, or of lists of them, one after the other.
  void Numbers(absl::string_view key, double above, double most, std::vector<double>& to);
  // A list of `count` whole numbers of 1..most, which has to be there.
  void Wholes(absl::string_view key, size_t count, int64_t most, std::vector<int64_t>& to);
  // Calls `read` for each mapping of a list of 1 to `most`, which has to be there, and finishes it.
  void Mappings(absl::string_view key, size_t most,
                const std::function<void(MappingReader& one, const ConfigNode& at)>& read);

  void WrongType(absl::string_view key, const ConfigNode& value, absl::string_view wanted);
  void NotAllowed(absl::string_view key, const ConfigNode& value, std::string allowed);
  // Reports the keys that nobody asked for.
  void Finish();

 private:
  void ReadNumber(absl::string_view key, const ConfigNode& value, double above, double most,
                  double& to);
  void ReadWhole(absl::string_view key, const ConfigNode& value, int64_t least, int64_t most,
                 int64_t& to);

  const ConfigNode& mapping_;
  const absl::string_view what_;
  const absl::string_view file_;
  Diagnostics& diagnostics_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_MAPPING_READER_H_
