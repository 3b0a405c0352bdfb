#ifndef NPUC_COMPILER_CORE_BACKENDS_SELECTION_H_
#define NPUC_COMPILER_CORE_BACKENDS_SELECTION_H_

#include "absl/status/statusor.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {

// The model with floats in place of the booleans and integers that it computes at run time
// (passes/float_selection.h), with a note that says so; errors for each node that has no such form.
absl::StatusOr<Graph> ComputedInFloats(Graph imported, const CoreSpec& core,
                                       const CompileOptions& options, Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BACKENDS_SELECTION_H_
