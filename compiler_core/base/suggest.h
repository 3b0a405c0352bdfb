#ifndef NPUC_COMPILER_CORE_BASE_SUGGEST_H_
#define NPUC_COMPILER_CORE_BASE_SUGGEST_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace npuc {

// The fix of a diagnostic about a wrong name: "did you mean 'x'?" with the NearestMatch of the
// known ones, or `otherwise` where none is near.
std::string DidYouMean(absl::string_view word, absl::Span<const absl::string_view> known,
                       absl::string_view otherwise);

// What `program` says of a word in the place of a command: a line with the nearest of the commands,
// or all of them.
std::string NoSuchCommand(absl::string_view program, absl::string_view word,
                          absl::Span<const std::string> commands);

// DidYouMean for a whole file within one budget, so that one with many wrong names among many known
// ones is not slow to refuse: `otherwise` where a look would take more than what is left.
class Suggester {
 public:
  std::string DidYouMean(absl::string_view word, absl::Span<const absl::string_view> known,
                         absl::string_view otherwise);

 private:
  int64_t budget_ = 10'000'000;  // character pairs compared
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_SUGGEST_H_
