#include <algorithm>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/onnx/import.h"
#include "compiler_core/frontends/onnx/model_file.h"
#include "compiler_core/frontends/onnx/tensor_proto.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "npuc/fe/onnx/model.pb.h"

namespace npuc {
namespace {

ModelOutline::Port PortOf(const onnx::TensorInfo& info) {
  ModelOutline::Port port{
      .key = info.name, .name = info.name, .dims = info.dims, .dim_names = info.dim_names};
  if (!info.is_tensor) {
    port.type = "no tensor";
  } else if (info.data_type != 0) {
    const DType dtype = onnx::DTypeFromWire(info.data_type);
    port.type =
        dtype == DType::kInvalid ? onnx::DataTypeName(info.data_type) : OutlineTypeName(dtype);
  }
  return port;
}

// ModelProto's producer_name and producer_version, which the importer has no use for.
std::string ProducerOf(absl::string_view bytes, int64_t opset) {
  std::string name;
  std::string version;
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  using Wire = google::protobuf::internal::WireFormatLite;
  while (const uint32_t tag = in.ReadTag()) {
    const int field = Wire::GetTagFieldNumber(tag);
    const bool is_text = Wire::GetTagWireType(tag) == Wire::WIRETYPE_LENGTH_DELIMITED;
    bool is_read = false;
    if (is_text && (field == 2 || field == 3)) {
      is_read = Wire::ReadBytes(&in, field == 2 ? &name : &version);
    } else {
      is_read = Wire::SkipField(&in, tag);
    }
    if (!is_read) break;
  }
  std::string producer = Printable(name);
  if (!version.empty()) absl::StrAppend(&producer, " ", Printable(version));
  return absl::StrCat(producer, producer.empty() ? "" : ", ", "operator set ", opset);
}

void CountTensor(const fe::onnx::TensorProto& tensor, ModelOutline& outline) {
  CountWeight({tensor.dims().data(), static_cast<size_t>(tensor.dims().size())},
              onnx::WireSize(tensor.data_type()), outline);
}

// The file beside the model that holds its constants, where it is one that can lie there.
std::string DataFileOf(const onnx::ModelFile& file) {
  for (const auto& graph : file.graphs()) {
    for (const onnx::NodeView& node : graph->nodes()) {
      for (int k = 0; k < node.input_count(); ++k) {
        const auto* weight = graph->FindInitializer(node.input(k));
        const std::string name = weight == nullptr ? "" : onnx::LocationOf(*weight);
        if (name.empty()) continue;
        const bool is_plain = !absl::StrContains(name, '/') && name != "." && name != "..";
        return is_plain ? name : "";
      }
    }
  }
  return "";
}

// Names of classes beside their scores are left out: no core has texts.
void AddOutputs(const std::vector<onnx::TensorInfo>& outputs, ModelOutline& outline) {
  const auto is_text = [](const onnx::TensorInfo& output) {
    return output.is_tensor && output.data_type == fe::onnx::TensorProto::STRING;
  };
  const bool has_others = !std::all_of(outputs.begin(), outputs.end(), is_text);
  for (const onnx::TensorInfo& output : outputs) {
    if (is_text(output) && has_others) {
      outline.notes.push_back(absl::StrCat("output '", Printable(output.name),
                                           "' gives texts, which no core has; it is left out"));
    } else {
      outline.outputs.push_back(PortOf(output));
    }
  }
}

// Graphs inside of nodes count once, as do functions for each call.
void CountOperators(const onnx::ModelFile& file, ModelOutline& outline) {
  absl::flat_hash_set<const fe::onnx::TensorProto*> counted;
  for (const auto& graph : file.graphs()) {
    for (const onnx::NodeView& node : graph->nodes()) {
      for (int k = 0; k < node.input_count(); ++k) {
        const auto* weight = graph->FindInitializer(node.input(k));
        if (weight != nullptr && counted.insert(weight).second) CountTensor(*weight, outline);
      }
      if (node.op() == "Constant") {
        const auto value = node.TensorOf("value");
        if (value.ok()) CountTensor(**value, outline);
        continue;
      }
      ++outline.operators[node.domain().empty()
                              ? std::string(node.op())
                              : absl::StrCat(Printable(node.domain()), ".", Printable(node.op()))];
    }
  }
}

}  // namespace

absl::StatusOr<ModelOutline> OutlineOnnx(absl::string_view model_bytes, absl::string_view file,
                                         Diagnostics& diagnostics) {
  Diagnostics found;
  const std::unique_ptr<onnx::ModelFile> model = onnx::ModelFile::Parse(model_bytes, file, found);
  diagnostics.Append(found);
  RETURN_IF_ERROR(found.ToStatus());
  ModelOutline outline{.producer = ProducerOf(model_bytes, model->main().opset())};
  for (const onnx::TensorInfo& input : model->main().inputs()) {
    if (model->main().FindInitializer(input.name) == nullptr)
      outline.inputs.push_back(PortOf(input));
  }
  AddOutputs(model->main().outputs(), outline);
  outline.data_file = DataFileOf(*model);
  CountOperators(*model, outline);
  return outline;
}

}  // namespace npuc
