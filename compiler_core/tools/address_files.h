#ifndef NPUC_COMPILER_CORE_TOOLS_ADDRESS_FILES_H_
#define NPUC_COMPILER_CORE_TOOLS_ADDRESS_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/pipeline/compile.h"

namespace npuc {

// The files of --dump_addr_cfg and --load_addr_cfg (backends/addresses.h).

// Takes the file at `path` in the place of the config's; "": none.
absl::Status TakeAddressFile(const std::string& path, CompileRequest& request,
                             Diagnostics& diagnostics);
// The file of a compile's report.json.
absl::StatusOr<std::string> AddressFileOf(absl::string_view report_json);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_ADDRESS_FILES_H_
