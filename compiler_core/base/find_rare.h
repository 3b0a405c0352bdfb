#ifndef NPUC_COMPILER_CORE_BASE_FIND_RARE_H_
#define NPUC_COMPILER_CORE_BASE_FIND_RARE_H_

#include <algorithm>
#include <cstdint>

#include "absl/types/span.h"

namespace npuc {

// The first value that is sought; the end where there is none, which is found out without a branch
// for each value. For what nearly no tensor has.
template <typename T, typename IsSought>
typename absl::Span<const T>::const_iterator FindRare(absl::Span<const T> values,
                                                      const IsSought& is_sought) {
  int32_t any = 0;
  for (const T value : values) any |= is_sought(value) ? 1 : 0;
  if (any == 0) return values.end();
  return std::find_if(values.begin(), values.end(), is_sought);
}

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_FIND_RARE_H_
