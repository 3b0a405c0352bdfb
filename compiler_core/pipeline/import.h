#ifndef NPUC_COMPILER_CORE_PIPELINE_IMPORT_H_
#define NPUC_COMPILER_CORE_PIPELINE_IMPORT_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc {

// The model's graph by the front end of options.framework: what `npuc reference` runs and what
// Compile starts from. Problems go to diagnostics.
absl::StatusOr<Graph> ImportModel(absl::string_view model_bytes, const CompileOptions& options,
                                  Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PIPELINE_IMPORT_H_
