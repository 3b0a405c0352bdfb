#include "compiler_core/pipeline/file_limits.h"

#include "absl/strings/str_cat.h"

namespace npuc {

absl::Status CheckFileSize(absl::string_view file, size_t bytes, size_t most,
                           const std::string& model_name, Diagnostics& diagnostics) {
  if (bytes <= most) return absl::OkStatus();
  Diagnostics found;
  found.Add({.kind = DiagnosticKind::kProgramTooLarge,
             .message = absl::StrCat(file, " would have ", bytes, " bytes; at most ", most,
                                     " are read back"),
             .file = model_name,
             .fix = "compile a smaller model"});
  diagnostics.Append(found);
  return found.ToStatus();
}

}  // namespace npuc
