#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_FIND_NAN_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_FIND_NAN_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/types/span.h"

namespace npuc::frontend {

// The first NaN; the end where there is none, which is found out without a branch for each value,
// as nearly no constant has one.
inline absl::Span<const float>::const_iterator FindNan(absl::Span<const float> values) {
  int32_t any = 0;
  for (const float value : values) any |= std::isnan(value) ? 1 : 0;
  if (any == 0) return values.end();
  return std::find_if(values.begin(), values.end(), [](float value) { return std::isnan(value); });
}

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_FIND_NAN_H_
