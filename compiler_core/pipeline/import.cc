#include "compiler_core/pipeline/import.h"

#include "absl/strings/str_cat.h"
#include "compiler_core/config/config.h"
#include "compiler_core/frontends/compass/import.h"
#include "compiler_core/frontends/onnx/import.h"
#include "compiler_core/frontends/tensorflow/import.h"
#include "compiler_core/frontends/tflite/import.h"
#include "compiler_core/frontends/torchscript/import.h"

namespace npuc {

absl::StatusOr<Graph> ImportModel(const CompileRequest& request, Diagnostics& diagnostics) {
  const CompileOptions& options = request.options;
  const absl::string_view model_bytes = request.model_bytes;
  if (options.framework == Framework::kTorchScript) {
    return ImportTorchScript(model_bytes, options, diagnostics);
  }
  if (options.framework == Framework::kTensorFlow) {
    return ImportTensorFlow(model_bytes, options, diagnostics);
  }
  if (options.framework == Framework::kOnnx) {
    const auto data = request.side_inputs.find(kModelBinRole);
    if (data == request.side_inputs.end()) return ImportOnnx(model_bytes, options, diagnostics);
    const std::string& path = data->second.name;
    return ImportOnnx(model_bytes, options, diagnostics,
                      {path.substr(path.rfind('/') + 1), data->second.bytes.get()});
  }
  if (options.framework == Framework::kTfLite) {
    return ImportTfLite(model_bytes, options, diagnostics);
  }
  if (options.framework == Framework::kCompass) {
    const auto bin = request.side_inputs.find(kModelBinRole);
    const ViewSource nothing{absl::string_view()};
    return ImportCompass(model_bytes,
                         bin == request.side_inputs.end() ? nothing : *bin->second.bytes, options,
                         diagnostics);
  }
  diagnostics.Add(
      {.kind = DiagnosticKind::kFrameworkNotSupported,
       .message = absl::StrCat("no front end for FRAMEWORK ", FrameworkName(options.framework)),
       .file = options.model_name,
       .fix = "set FRAMEWORK: TF with a frozen GraphDef, PT with a TorchScript archive, TFLITE, "
              "ONNX or COMPASS"});
  return diagnostics.ToStatus();
}

std::vector<std::string> ImportedOps(Framework framework) {
  if (framework == Framework::kTorchScript) return ImportedTorchOps();
  if (framework == Framework::kOnnx) return ImportedOnnxOps();
  if (framework == Framework::kTfLite) return ImportedTfLiteOps();
  if (framework == Framework::kCompass) return ImportedCompassLayers();
  return {};
}

}  // namespace npuc
