#ifndef NPUC_COMPILER_CORE_BASE_TRIM_TEXT_H_
#define NPUC_COMPILER_CORE_BASE_TRIM_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler_core/base/quant_options.h"

namespace npuc {

// trim_infinity_before_statistic as configs and templates write it: "(min, max):clip" or
// "(min, max):second", min below max, both of f32; -inf and inf stand for its ends. nullopt where
// it is neither.
std::optional<TrimInfinity> TrimInfinityFromText(absl::string_view text);
std::string TextOf(const TrimInfinity& trim);

// The form for some layers alone: "[Abs:(0, inf):second, ...]" by type, "[(1, 10):(-1, 1):clip,
// ...]" by number. nullopt where it is neither, or has no rule or more than kMaxLayerRules.
std::optional<std::vector<TrimRule>> TrimRulesFromText(absl::string_view text);

// Layer numbers as fake_quant_scopes_for_debug has them: "[(0, 3)]", "(0,3),(5,6)". nullopt where
// it is no such list.
std::optional<std::vector<LayerIds>> LayerIdsFromText(absl::string_view text);

// "[(1,2,3), (4,5,6)]": lists of `arity` whole numbers from 0 on; the brackets may be missing.
std::optional<std::vector<std::vector<int64_t>>> TuplesFromText(absl::string_view text,
                                                                size_t arity);

inline constexpr size_t kMaxLayerRules = 4096;

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_TRIM_TEXT_H_
