#ifndef NPUC_COMPILER_CORE_PIPELINE_IMPORT_H_
#define NPUC_COMPILER_CORE_PIPELINE_IMPORT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/pipeline/compile.h"

namespace npuc {

// The model's graph by the front end of options.framework: what `npuc reference` runs and what
// Compile starts from. Problems go to diagnostics.
absl::StatusOr<Graph> ImportModel(const CompileRequest& request, Diagnostics& diagnostics);

// The operators of a framework that its front end has a rule for, sorted (of PyTorch the functions
// of torch); empty for TensorFlow, whose operators the cores' own lists hold. Whether a node
// compiles is judged by what it becomes.
std::vector<std::string> ImportedOps(Framework framework);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PIPELINE_IMPORT_H_
