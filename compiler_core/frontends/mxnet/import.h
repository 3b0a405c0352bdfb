#ifndef NPUC_COMPILER_CORE_FRONTENDS_MXNET_IMPORT_H_
#define NPUC_COMPILER_CORE_FRONTENDS_MXNET_IMPORT_H_

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

// Imports a -symbol.json of MXNet with its .params, NAME of which is `params_name`; null: there is
// none, which is reported. INPUT_OPS may name any tensor; OUTPUT_OPS may be left out. Every problem
// of the model goes to `diagnostics`. Thread-safe.
absl::StatusOr<Graph> ImportMxNet(absl::string_view symbol, absl::string_view params_name,
                                  const ByteSource* params, const CompileOptions& options,
                                  Diagnostics& diagnostics, const frontend::Plugins& plugins = {});

// The facts that a symbol states of itself. Only the parameters tell which variables are inputs;
// here they are those that stand where no layer has a parameter.
absl::StatusOr<ModelOutline> OutlineMxNet(absl::string_view symbol, absl::string_view file,
                                          Diagnostics& diagnostics);

// The operators that have a rule, sorted.
std::vector<std::string> ImportedMxNetOps();

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_FRONTENDS_MXNET_IMPORT_H_
