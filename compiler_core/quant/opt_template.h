#ifndef NPUC_COMPILER_CORE_QUANT_OPT_TEMPLATE_H_
#define NPUC_COMPILER_CORE_QUANT_OPT_TEMPLATE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/diagnostic.h"

namespace npuc {

// opt_template.json of a float core such as GRUS: one object per weight, keyed by the name of the
// weight's node, in graph order. A compile writes it; edited, it comes back through OPT_CONFIG.
//
//   "dense/kernel": {
//       "q_bits_weight": 8,              8: compressed (LEO: 4 to 8), 16: as it is
//       "min": -0.5, "max": 0.5,         the range that is compressed
//       "just_for_display": { ... }      ignored when read
//   }

inline constexpr size_t kMaxTemplateBytes = 64 << 20;
inline constexpr int kMaxTemplateDepth = 16;

// What a template sets for a weight; what is absent is left to the config. min and max come
// together, min < max, both finite in fp16.
struct WeightSetting {
  std::optional<int> q_bits = {};  // 8 or 16; LEO: 4 to 8 or 16
  std::optional<double> min = {};
  std::optional<double> max = {};
  bool operator==(const WeightSetting&) const = default;
};

using WeightSettings = std::map<std::string, WeightSetting, std::less<>>;

// What a compile found out about a weight. Numbers that are not finite are written as null.
struct TemplateDisplay {
  std::vector<int64_t> shape = {};
  std::string used_by = {};  // name of the first node that reads it
  double step = 0;           // between codes; 0 where not compressed
  double sparsity = 0;       // share of weights that are stored as zero, 0..1
  double error_max_abs = 0;  // of the stored weights against the model's float ones
  double error_rms = 0;
};

struct TemplateWeight {
  std::string name;  // UTF-8; other bytes are written as U+FFFD
  WeightSetting setting;
  std::optional<TemplateDisplay> display = {};
};

// The template's text: same weights, same bytes. Every number is the shortest decimal that reads
// back to the same double, so that a template fed back unedited changes nothing. A min or max that
// is not finite is left out. Thread-safe.
std::string WriteOptTemplate(absl::Span<const TemplateWeight> weights);

// Reads a template strictly: unknown layers and keys, wrong types, values out of range and
// duplicates are errors with line, column and the nearest known name. `name` is the file's name
// for diagnostics; least_bits is the least of q_bits_weight, 4 to 8. All problems go to
// `diagnostics`; the status is the first one's. Thread-safe.
absl::StatusOr<WeightSettings> ReadOptTemplate(absl::string_view text, absl::string_view name,
                                               absl::Span<const std::string> known_weights,
                                               int least_bits, Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_OPT_TEMPLATE_H_
