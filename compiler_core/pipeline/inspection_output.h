#ifndef NPUC_COMPILER_CORE_PIPELINE_INSPECTION_OUTPUT_H_
#define NPUC_COMPILER_CORE_PIPELINE_INSPECTION_OUTPUT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "compiler_core/pipeline/inspect.h"
#include "nlohmann/json_fwd.hpp"

namespace npuc {

// "          3 nodes  GELU: the operator is not supported; cut the graph ... [NPUC1110]", a line
// for each reason.
std::string ReasonLines(const CoreVerdict& verdict);
// An array of objects, one for each reason.
nlohmann::ordered_json ReasonsJson(const CoreVerdict& verdict);

// The report of `npuc inspect --json`, diagnostics aside: the outline, and for each family of cores
// the verdict and `configs`, by core the config that `npuc init` writes beside the model.
nlohmann::ordered_json InspectionJson(const InspectRequest& request,
                                      const ModelInspection& inspection);

// The text of `npuc inspect`, for people. `path`: how the first line calls the model.
std::string InspectionText(absl::string_view path, size_t bytes, const ModelInspection& inspection);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PIPELINE_INSPECTION_OUTPUT_H_
