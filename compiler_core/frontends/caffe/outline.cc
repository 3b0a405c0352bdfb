#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/caffe/blob.h"
#include "compiler_core/frontends/caffe/import.h"

namespace npuc {

absl::StatusOr<ModelOutline> OutlineCaffe(const caffe::CaffeFiles& files,
                                          Diagnostics& diagnostics) {
  Diagnostics found;
  const std::unique_ptr<caffe::Net> net = caffe::Net::Parse(files, found);
  diagnostics.Append(found);
  RETURN_IF_ERROR(found.ToStatus());
  ModelOutline outline{.producer = net->name().empty()
                                       ? ""
                                       : absl::StrCat("Caffe, net '", Printable(net->name()), "'"),
                       .operators_are = "layers"};
  // Losses are not among the layers, so labels of a net as it was trained are no inputs.
  std::vector<bool> is_used(net->tensors().size(), false);
  for (const caffe::Layer& layer : net->layers()) {
    for (const int bottom : layer.bottoms) {
      if (bottom >= 0) is_used[static_cast<size_t>(bottom)] = true;
    }
  }
  for (size_t i = 0; i < net->tensors().size(); ++i) {
    const caffe::NetTensor& tensor = net->tensors()[i];
    if (tensor.layer >= 0 || !is_used[i]) continue;
    outline.inputs.push_back(
        {.key = tensor.blob, .name = tensor.blob, .type = "float32", .dims = tensor.dims});
  }
  for (const int output : net->Outputs()) {
    const std::string& name = net->tensors()[static_cast<size_t>(output)].name;
    outline.outputs.push_back({.key = name, .name = name});
  }
  for (const caffe::Layer& layer : net->layers()) {
    ++outline.operators[layer.type];
    for (const absl::string_view blob : layer.blobs) {
      const absl::StatusOr<std::vector<int64_t>> dims = caffe::BlobDims(blob);
      if (dims.ok()) CountWeight(*dims, sizeof(float), outline);
    }
  }
  for (const caffe::Decoding& decoding : net->decodings()) {
    outline.notes.push_back(absl::StrCat("layer '", Printable(decoding.layer.name), "' (",
                                         decoding.layer.type,
                                         ") decodes boxes, which the firmware does"));
  }
  if (files.is_text_alone) {
    outline.notes.push_back(
        "the file is the net without its weights; name the .caffemodel in MODEL_FILE and this file "
        "in PROTOTXT");
  } else if (!net->is_from_text()) {
    outline.notes.push_back(
        "the net is the one that was trained, as the .caffemodel holds it; name the .prototxt of "
        "its deployment in PROTOTXT where there is one");
  }
  return outline;
}

}  // namespace npuc
