#include "compiler_core/pipeline/artifact_check.h"

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/emit/header_reader.h"
#include "compiler_core/emit/model_file.h"

namespace npuc {

absl::Status CheckArtifact(absl::string_view name, absl::string_view output_file,
                           absl::string_view bytes) {
  Diagnostics diagnostics;
  absl::Status status;
  if (name == output_file) {
    status = ReadCHeader(bytes, name, diagnostics).status();
  } else if (absl::EndsWith(name, ".npuc")) {
    status = ReadModelFile(bytes, name, diagnostics).status();
  } else if (absl::EndsWith(name, ".json") && !nlohmann::json::accept(bytes.begin(), bytes.end())) {
    status = absl::InternalError("it is no JSON");
  }
  if (status.ok()) return status;
  return absl::InternalError(
      absl::StrCat("artifact '", Printable(name), "' is damaged: ", status.message()));
}

}  // namespace npuc
