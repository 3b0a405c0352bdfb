#ifndef NPUC_COMPILER_CORE_PIPELINE_INSPECT_FILES_H_
#define NPUC_COMPILER_CORE_PIPELINE_INSPECT_FILES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/pipeline/compile.h"

namespace npuc {

// InspectModel for a process that has the model and may write nothing but artifacts.
struct InspectFilesRequest {
  absl::string_view model_bytes;
  std::string model_name;  // base name
  std::map<std::string, CompileRequest::SideInput> side_inputs = {};
  // As the options of `npuc inspect`: "1,40,98" or "NAME=1,40,98"; "NAME=25"; "NAME=16000".
  std::vector<std::string> shapes = {};
  std::vector<std::string> dims = {};
  std::vector<std::string> constants = {};
};

// The artifacts: what `npuc inspect --json` prints, and what `npuc inspect` prints.
inline constexpr char kInspectionJson[] = "inspection.json";
inline constexpr char kInspectionText[] = "inspection.txt";

// Tells `observer` of the two artifacts. Errors: as InspectModel, and a stated fact that cannot be
// read.
absl::Status InspectIntoFiles(const InspectFilesRequest& files, CompileObserver& observer,
                              Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PIPELINE_INSPECT_FILES_H_
