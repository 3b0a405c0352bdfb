#ifndef NPUC_COMPILER_CORE_FRONTENDS_PADDLE_IMPORT_H_
#define NPUC_COMPILER_CORE_FRONTENDS_PADDLE_IMPORT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/byte_source.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/common/outline.h"
#include "compiler_core/frontends/common/plugins.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc {

// Reads a program of PaddlePaddle (__model__, .pdmodel) and its parameters, and imports what
// options.outputs need (empty: the outputs that the program states, with operators that decode
// boxes cut off), cut at options.inputs, by names of variables. `parameters` is the
// file of all of them or a zip of the folder with a file for each; null where there is none; read
// during the call only. The result has been through VerifyGraph. Every problem goes to
// `diagnostics`, with options.model_name as file; the status is that of the first error.
// Thread-safe.
absl::StatusOr<Graph> ImportPaddle(absl::string_view program, const ByteSource* parameters,
                                   const CompileOptions& options, Diagnostics& diagnostics,
                                   const frontend::Plugins& plugins = {});

// The operators that ImportPaddle has a rule for, sorted. Whether a rule succeeds also depends on
// the operator's attributes.
std::vector<std::string> ImportedPaddleOps();

// Reads what the program states of itself; no operator is imported. Errors go to `diagnostics`,
// `file` names the program there. Thread-safe.
absl::StatusOr<ModelOutline> OutlinePaddle(absl::string_view program, absl::string_view file,
                                           Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_FRONTENDS_PADDLE_IMPORT_H_
