#include "compiler_core/base/suggest.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"

namespace npuc {

std::string DidYouMean(absl::string_view word, absl::Span<const absl::string_view> known,
                       absl::string_view otherwise) {
  const std::string nearest = NearestMatch(word, known);
  if (nearest.empty()) return std::string(otherwise);
  return absl::StrCat("did you mean '", Printable(nearest), "'?");
}

std::string NoSuchCommand(absl::string_view program, absl::string_view word,
                          absl::Span<const std::string> commands) {
  const std::vector<absl::string_view> known(commands.begin(), commands.end());
  return absl::StrCat(
      program, ": no command '", Printable(word), "'; ",
      DidYouMean(word, known, absl::StrCat("known: ", absl::StrJoin(commands, ", "))), "\n");
}

std::string Suggester::DidYouMean(absl::string_view word, absl::Span<const absl::string_view> known,
                                  absl::string_view otherwise) {
  int64_t cost = 0;
  for (const absl::string_view name : known)
    cost += static_cast<int64_t>(word.size() * name.size());
  if (cost > budget_) return std::string(otherwise);
  budget_ -= cost;
  return npuc::DidYouMean(word, known, otherwise);
}

}  // namespace npuc
