#include "compiler_core/base/suggest.h"

#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"

namespace npuc {

std::string DidYouMean(absl::string_view word, absl::Span<const absl::string_view> known,
                       absl::string_view otherwise) {
  const std::string nearest = NearestMatch(word, known);
  if (nearest.empty()) return std::string(otherwise);
  return absl::StrCat("did you mean '", Printable(nearest), "'?");
}

}  // namespace npuc
