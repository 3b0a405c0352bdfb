#include "compiler_core/base/artifact_name.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace npuc {

bool IsValidArtifactName(absl::string_view name) {
  return !name.empty() && name.size() <= kMaxArtifactNameBytes && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                  absl::StrContains("_-.+", c);
         });
}

}  // namespace npuc
