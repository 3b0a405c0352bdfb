#ifndef NPUC_COMPILER_CORE_FRONTENDS_ONNX_IMPORT_H_
#define NPUC_COMPILER_CORE_FRONTENDS_ONNX_IMPORT_H_

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

// The file beside a model that holds data of its tensors, which state its name.
struct OnnxDataFile {
  std::string name;                   // base name
  const ByteSource* bytes = nullptr;  // null: there is none; read during the import only
};

// Reads an ONNX model and imports what options.outputs need (empty: the outputs that the file
// states), cut at options.inputs, whose names are those of tensors. Inputs that the file states and
// options.inputs leave out count as the file states them; unknown dimensions are a diagnostic.
// Shapes are static and shape arithmetic is done here; channels-first operators become
// channels-last ones between transposes; all floats are computed as f32. The result has
// been through VerifyGraph. Every problem goes to `diagnostics`, with options.model_name as file;
// the status is that of the first error. model_bytes is read during the call only. Thread-safe.
absl::StatusOr<Graph> ImportOnnx(absl::string_view model_bytes, const CompileOptions& options,
                                 Diagnostics& diagnostics, const OnnxDataFile& data = {},
                                 const frontend::Plugins& plugins = {});

// The ONNX operator types that ImportOnnx has a rule for, sorted. Whether a rule succeeds also
// depends on the node.
std::vector<std::string> ImportedOnnxOps();

// Reads what the file states of itself; no operator is imported. Errors go to `diagnostics`, `file`
// names the model there. Thread-safe.
absl::StatusOr<ModelOutline> OutlineOnnx(absl::string_view model_bytes, absl::string_view file,
                                         Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_FRONTENDS_ONNX_IMPORT_H_
