#ifndef NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_IMPORT_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_IMPORT_H_

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
namespace pt {
struct TorchArchive;  // archive.h
}

// Reads a TorchScript archive (torch.jit.save of PyTorch 1.10 to 2.x, traced or scripted) and runs
// its `forward` with tensors of the shapes in options.inputs, which names them by index; what it
// computes becomes the graph. Graph inputs are in the order of options.inputs and carry the names
// of forward's parameters, or input_N where the archive has made one up; outputs, lists and tuples
// flattened in order, are output_0, output_1 ... and options.fp16_outputs names them by index.
// Inputs in options.input_ncx_to_nxc are declared in their transposed shape, with a Transpose
// behind them. The result has been through VerifyGraph. Every problem goes to `diagnostics`, with
// the archive's line of code; the status is that of the first error. model_bytes is read during the
// call only. Thread-safe.
absl::StatusOr<Graph> ImportTorchScript(absl::string_view model_bytes,
                                        const CompileOptions& options, Diagnostics& diagnostics,
                                        const frontend::Plugins& plugins = {});
// The same from an archive that is read already.
absl::StatusOr<Graph> ImportTorchArchive(const pt::TorchArchive& archive,
                                         const CompileOptions& options, Diagnostics& diagnostics,
                                         const frontend::Plugins& plugins = {});

// The functions of torch that are imported, sorted, without torch's private ones.
std::vector<std::string> ImportedTorchOps();

// Reads what the file states of itself; no operator is imported. Errors go to `diagnostics`, `file`
// names the model there. Thread-safe.
absl::StatusOr<ModelOutline> OutlineTorchScript(absl::string_view model_bytes,
                                                absl::string_view file, Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_IMPORT_H_
