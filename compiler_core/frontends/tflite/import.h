#ifndef NPUC_COMPILER_CORE_FRONTENDS_TFLITE_IMPORT_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TFLITE_IMPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/boxes/box_settings.h"
#include "compiler_core/frontends/common/outline.h"
#include "compiler_core/frontends/common/plugins.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc {

// Reads a TFLite model and imports what options.outputs need (empty: the outputs that the file
// states), cut at options.inputs, whose names are those of tensors. A quantized model becomes the
// QDQ form of ops/quantize.h: its inputs and outputs are float, an input's Quantize and an output's
// Dequantize hold the parameters of what the file stores. The result has been through VerifyGraph.
// Every problem goes to `diagnostics`, with options.model_name as file; the status is that of the
// first error. model_bytes is read during the call only. `boxes`, where it is not null, gets the
// settings of an operator that decodes boxes, which is left out. Thread-safe.
absl::StatusOr<Graph> ImportTfLite(absl::string_view model_bytes, const CompileOptions& options,
                                   Diagnostics& diagnostics, const frontend::Plugins& plugins = {},
                                   std::optional<BoxSettings>* boxes = nullptr);

// The TFLite operators that ImportTfLite has a rule for, sorted. Whether a rule succeeds also
// depends on the node.
std::vector<std::string> ImportedTfLiteOps();

// Reads what the file states of itself; no operator is imported. Errors go to `diagnostics`, `file`
// names the model there. Thread-safe.
absl::StatusOr<ModelOutline> OutlineTfLite(absl::string_view model_bytes, absl::string_view file,
                                           Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TFLITE_IMPORT_H_
