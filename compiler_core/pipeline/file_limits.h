#ifndef NPUC_COMPILER_CORE_PIPELINE_FILE_LIMITS_H_
#define NPUC_COMPILER_CORE_PIPELINE_FILE_LIMITS_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"

namespace npuc {

// Refuses to write a file that its reader, whose limit `most` is, would not take back.
absl::Status CheckFileSize(absl::string_view file, size_t bytes, size_t most,
                           const std::string& model_name, Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PIPELINE_FILE_LIMITS_H_
