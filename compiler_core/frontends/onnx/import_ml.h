#ifndef NPUC_COMPILER_CORE_FRONTENDS_ONNX_IMPORT_ML_H_
#define NPUC_COMPILER_CORE_FRONTENDS_ONNX_IMPORT_ML_H_

#include "absl/types/span.h"
#include "compiler_core/frontends/onnx/node_import.h"

namespace npuc::onnx {

// The rules of domain ai.onnx.ml.
absl::Span<const ImportRule> MlRules();

}  // namespace npuc::onnx

#endif  // NPUC_COMPILER_CORE_FRONTENDS_ONNX_IMPORT_ML_H_
