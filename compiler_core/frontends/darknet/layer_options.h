#ifndef NPUC_COMPILER_CORE_FRONTENDS_DARKNET_LAYER_OPTIONS_H_
#define NPUC_COMPILER_CORE_FRONTENDS_DARKNET_LAYER_OPTIONS_H_

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/darknet/cfg_file.h"

namespace npuc::darknet {

// The largest number that an option of a layer may have.
inline constexpr int64_t kMaxOption = int64_t{1} << 20;

// The options of one section, as the functions of its layer type read them. What is wrong with an
// option is reported with its line, and the fallback taken, so that all problems come at once.
class LayerOptions {
 public:
  // All outlive it.
  LayerOptions(const Section* section, const std::string* name, const std::string* file,
               Diagnostics* diagnostics)
      : section_(*section), name_(*name), file_(*file), diagnostics_(*diagnostics) {}

  bool Has(absl::string_view key) const { return section_.Find(key) != nullptr; }
  // A whole number in lo..hi.
  int64_t Int(absl::string_view key, int64_t fallback, int64_t lo = 0, int64_t hi = kMaxOption);
  double Float(absl::string_view key, double fallback);
  bool Flag(absl::string_view key) { return Int(key, 0, -kMaxOption) != 0; }
  std::string Text(absl::string_view key, absl::string_view fallback);
  // Numbers between commas; empty where the key is missing.
  std::vector<int64_t> Ints(absl::string_view key);
  // Reports an option that is not 0, the one value that is honoured.
  void Refuse(absl::string_view key, absl::string_view why);
  // Reports a problem of the section, at the line of `key` where it has that.
  void Fail(DiagnosticKind kind, absl::string_view key, std::string message, std::string fix);
  void FailMode(absl::string_view key, std::string message);

  // Keys that nobody asked for.
  std::vector<const Option*> Unread() const;
  const Section& section() const { return section_; }

 private:
  const Option* Find(absl::string_view key);

  const Section& section_;
  const std::string& name_;
  const std::string& file_;
  Diagnostics& diagnostics_;
  std::set<std::string, std::less<>> read_;
};

}  // namespace npuc::darknet

#endif  // NPUC_COMPILER_CORE_FRONTENDS_DARKNET_LAYER_OPTIONS_H_
