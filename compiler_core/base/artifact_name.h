#ifndef NPUC_COMPILER_CORE_BASE_ARTIFACT_NAME_H_
#define NPUC_COMPILER_CORE_BASE_ARTIFACT_NAME_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace npuc {

// The one rule for names of artifacts: a config's OUTPUT_FILE is held to it before anything is
// compiled, the worker and the artifact cache take no others.

inline constexpr size_t kMaxArtifactNameBytes = 128;
// OUTPUT_FILE is shorter, so that names made of it (NAME.npuc) are within the bound.
inline constexpr size_t kMaxOutputFileBytes = 100;

// 1 to kMaxArtifactNameBytes of A-Z a-z 0-9 '_' '-' '.' '+', not beginning with '.': a file name
// that is safe on any file system, in a URL and in any header.
bool IsValidArtifactName(absl::string_view name);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_ARTIFACT_NAME_H_
