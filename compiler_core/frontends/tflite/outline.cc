#include <memory>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/tflite/box_decoder.h"
#include "compiler_core/frontends/tflite/import.h"
#include "compiler_core/frontends/tflite/model_file.h"

namespace npuc {
namespace {

ModelOutline::Port PortOf(const tflite::TensorView& tensor) {
  ModelOutline::Port port{.key = tensor.name, .name = tensor.name};
  port.type = tensor.type.dtype == DType::kInvalid ? tflite::ElementTypeName(tensor.element_type)
                                                   : OutlineTypeName(tensor.type.dtype);
  // The stated shape is what the importer takes; where the signature varies it holds a 1.
  port.dims = tensor.type.shape;
  return port;
}

}  // namespace

absl::StatusOr<ModelOutline> OutlineTfLite(absl::string_view model_bytes, absl::string_view file,
                                           Diagnostics& diagnostics) {
  Diagnostics found;
  const std::unique_ptr<tflite::ModelFile> model =
      tflite::ModelFile::Parse(model_bytes, file, found);
  diagnostics.Append(found);
  RETURN_IF_ERROR(found.ToStatus());
  ModelOutline outline;
  for (const int tensor : model->inputs()) outline.inputs.push_back(PortOf(model->tensor(tensor)));
  for (const int tensor : tflite::OutputsOfCores(*model).tensors) {
    outline.outputs.push_back(PortOf(model->tensor(tensor)));
  }
  for (const tflite::OperatorView& op : model->operators()) {
    ++outline.operators[Printable(op.op)];
  }
  for (const tflite::TensorView& tensor : model->tensors()) {
    if (tensor.data.empty()) continue;
    CountWeight(tensor.type.shape, SizeOf(tensor.type.dtype), outline);
  }
  return outline;
}

}  // namespace npuc
