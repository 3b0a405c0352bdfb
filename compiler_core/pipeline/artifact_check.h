#ifndef NPUC_COMPILER_CORE_PIPELINE_ARTIFACT_CHECK_H_
#define NPUC_COMPILER_CORE_PIPELINE_ARTIFACT_CHECK_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace npuc {

// Whether one artifact of a compile is whole: OUTPUT_FILE reads as a C header (of the integer
// cores: begins and ends as one), NAME.npuc as a model file, NAME.json as JSON. Of other names
// nothing is asked. The bytes come from a process that read a stranger's model: the readers are
// bounded, linear and fuzzed, and keep nothing. INTERNAL: it is not; the message names the artifact
// and the first problem.
absl::Status CheckArtifact(absl::string_view name, absl::string_view output_file,
                           absl::string_view bytes);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PIPELINE_ARTIFACT_CHECK_H_
