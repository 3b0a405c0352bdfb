#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_FIND_NAN_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_FIND_NAN_H_

#include <cmath>

#include "absl/types/span.h"
#include "compiler_core/base/find_rare.h"

namespace npuc::frontend {

// The first NaN; the end where there is none.
inline absl::Span<const float>::const_iterator FindNan(absl::Span<const float> values) {
  return FindRare(values, [](float value) { return std::isnan(value); });
}

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_FIND_NAN_H_
