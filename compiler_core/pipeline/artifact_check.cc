#include "compiler_core/pipeline/artifact_check.h"

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/emit/header_reader.h"
#include "compiler_core/emit/model_file.h"
#include "compiler_core/emit/raw_file.h"

namespace npuc {
namespace {

// A header of the integer cores, which has no npu_unit: the header reader knows the vendor's form,
// and firmware alone reads this one. Its last line is the writer's last, so a cut one shows;
// NAME.npuc beside it holds the same model and is read whole.
bool IsIntegerHeader(absl::string_view bytes) {
  constexpr size_t kHead = 2048;
  const absl::string_view head = bytes.substr(0, kHead);
  return absl::StrContains(head, "\nconst char *npu_core = \"") &&
         !absl::StrContains(head, "\nconst char *npu_unit = \"");
}

absl::Status CheckIntegerHeader(absl::string_view bytes) {
  if (absl::EndsWith(bytes, "] __attribute__ ((aligned(4)));\n")) return absl::OkStatus();
  return absl::InternalError("it does not end as a header does");
}

}  // namespace

absl::Status CheckArtifact(absl::string_view name, absl::string_view output_file,
                           absl::string_view bytes) {
  Diagnostics diagnostics;
  absl::Status status;
  if (name == output_file) {
    status = IsIntegerHeader(bytes) ? CheckIntegerHeader(bytes)
             : IsRawFile(bytes)     ? ReadRawFile(bytes, name, diagnostics).status()
                                    : ReadCHeader(bytes, name, diagnostics).status();
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
