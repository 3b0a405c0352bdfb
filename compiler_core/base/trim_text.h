#ifndef NPUC_COMPILER_CORE_BASE_TRIM_TEXT_H_
#define NPUC_COMPILER_CORE_BASE_TRIM_TEXT_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "compiler_core/base/quant_options.h"

namespace npuc {

// trim_infinity_before_statistic as configs and templates write it: "(min, max):clip" or
// "(min, max):second", min below max, both of f32. nullopt where it is neither.
std::optional<TrimInfinity> TrimInfinityFromText(absl::string_view text);
std::string TextOf(const TrimInfinity& trim);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_TRIM_TEXT_H_
