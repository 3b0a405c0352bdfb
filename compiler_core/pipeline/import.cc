#include "compiler_core/pipeline/import.h"

#include "absl/strings/str_cat.h"
#include "compiler_core/frontends/onnx/import.h"
#include "compiler_core/frontends/tensorflow/import.h"
#include "compiler_core/frontends/tflite/import.h"
#include "compiler_core/frontends/torchscript/import.h"

namespace npuc {

absl::StatusOr<Graph> ImportModel(absl::string_view model_bytes, const CompileOptions& options,
                                  Diagnostics& diagnostics) {
  if (options.framework == Framework::kTensorFlow) {
    return ImportTensorFlow(model_bytes, options, diagnostics);
  }
  if (options.framework == Framework::kOnnx) return ImportOnnx(model_bytes, options, diagnostics);
  if (options.framework == Framework::kTfLite) {
    return ImportTfLite(model_bytes, options, diagnostics);
  }
  if (options.framework == Framework::kTorchScript) {
    return ImportTorchScript(model_bytes, options, diagnostics);
  }
  diagnostics.Add(
      {.kind = DiagnosticKind::kFrameworkNotSupported,
       .message = absl::StrCat("no front end for FRAMEWORK ", FrameworkName(options.framework)),
       .file = options.model_name,
       .fix = "set FRAMEWORK: TF with a frozen GraphDef, PT with a TorchScript archive, TFLITE or "
              "ONNX"});
  return diagnostics.ToStatus();
}

std::vector<std::string> ImportedOps(Framework framework) {
  if (framework == Framework::kOnnx) return ImportedOnnxOps();
  if (framework == Framework::kTfLite) return ImportedTfLiteOps();
  return {};
}

}  // namespace npuc
