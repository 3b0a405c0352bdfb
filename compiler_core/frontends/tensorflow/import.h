#ifndef NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_IMPORT_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_IMPORT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/common/outline.h"
#include "compiler_core/frontends/common/plugins.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc {

// Reads a frozen TensorFlow GraphDef and imports what options.outputs need, cut at options.inputs:
// every declared input becomes a graph input (in their order, used or not), whatever node it names.
// Shapes are static and shape arithmetic is done here; NCHW operators become NHWC ones between
// transposes; DT_DOUBLE and DT_BFLOAT16 are computed as f32. The result has been through
// VerifyGraph. Every problem goes to `diagnostics`, with options.model_name as file; the status is
// that of the first error. model_bytes is read during the call only. Thread-safe.
absl::StatusOr<Graph> ImportTensorFlow(absl::string_view model_bytes, const CompileOptions& options,
                                       Diagnostics& diagnostics,
                                       const frontend::Plugins& plugins = {});

// Reads what the file states of itself; no operator is imported. Inputs are its Placeholders, their
// unknown dimensions filled in where a weight behind them tells; outputs the nodes behind an input
// that no other node reads. Errors go to `diagnostics`, `file` names the model there. Thread-safe.
absl::StatusOr<ModelOutline> OutlineTensorFlow(absl::string_view model_bytes,
                                               absl::string_view file, Diagnostics& diagnostics);

// The TensorFlow operator types that ImportTensorFlow has a rule for, sorted. Whether a rule
// succeeds also depends on the node and on the operators of the IR.
std::vector<std::string> ImportedTensorFlowOps();

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_IMPORT_H_
