#ifndef NPUC_COMPILER_CORE_BASE_SUGGEST_H_
#define NPUC_COMPILER_CORE_BASE_SUGGEST_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace npuc {

// The fix of a diagnostic about a wrong name: "did you mean 'x'?" with the NearestMatch of the
// known ones, or `otherwise` where none is near.
std::string DidYouMean(absl::string_view word, absl::Span<const absl::string_view> known,
                       absl::string_view otherwise);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_SUGGEST_H_
