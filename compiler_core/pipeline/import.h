#ifndef NPUC_COMPILER_CORE_PIPELINE_IMPORT_H_
#define NPUC_COMPILER_CORE_PIPELINE_IMPORT_H_

#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/common/front_end.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/pipeline/compile.h"

namespace npuc {

// The model's graph by the front end of options.framework: what `npuc reference` runs and what
// Compile starts from. Problems go to diagnostics. `boxes`: as ModelFiles has it.
absl::StatusOr<Graph> ImportModel(const CompileRequest& request, Diagnostics& diagnostics,
                                  std::optional<BoxSettings>* boxes = nullptr);

// Fills in the file of the model's constants, where it is among the side inputs.
void SetDataFile(const std::map<std::string, CompileRequest::SideInput>& side_inputs,
                 Framework framework, ModelFiles& files);

const FrontEnd& FrontEndOf(Framework framework);

// The framework whose front end reads such bytes; nullopt: none that they show to be for.
std::optional<Framework> SniffFramework(absl::string_view bytes);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PIPELINE_IMPORT_H_
