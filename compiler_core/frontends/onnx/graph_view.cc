#include "compiler_core/frontends/onnx/graph_view.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "npuc/fe/onnx/model.pb.h"

namespace npuc::onnx {
namespace {

// For a diagnostic. A name over the limit is of no use: its beginning is enough.
std::string Shown(absl::string_view name) {
  constexpr size_t kBeginning = 200;
  return name.size() > kMaxNameBytes ? Printable(name, kBeginning) : std::string(name);
}

TensorInfo InfoOf(const fe::onnx::ValueInfo& proto) {
  TensorInfo info;
  info.name = proto.name();
  if (!proto.has_type()) return info;
  info.is_tensor = proto.type().has_tensor_type();
  info.data_type = proto.type().tensor_type().elem_type();
  if (!proto.type().tensor_type().has_shape()) return info;
  info.dims.emplace();
  for (const auto& dim : proto.type().tensor_type().shape().dim()) {
    info.dim_names.push_back(dim.has_dim_value() ? "" : dim.dim_param());
    info.dims->push_back(dim.has_dim_value() ? std::max<int64_t>(dim.dim_value(), -1) : -1);
    if (info.dims->size() > kMaxRank + 1) break;  // refused by its rank
  }
  return info;
}

}  // namespace

GraphView::GraphView(const fe::onnx::GraphProto& proto, int64_t opset, absl::string_view file,
                     Diagnostics& diagnostics)
    : opset_(opset) {
  nodes_.reserve(static_cast<size_t>(proto.node_size()));
  for (const auto& node : proto.node()) nodes_.emplace_back(&node);
  CheckNodes(file, diagnostics);
  CheckTensors(proto, file, diagnostics);
}

GraphView::Producer GraphView::FindProducer(absl::string_view name) const {
  const auto it = producers_.find(name);
  return it == producers_.end() ? Producer() : it->second;
}
const fe::onnx::TensorProto* GraphView::FindInitializer(absl::string_view name) const {
  const auto it = initializers_.find(name);
  return it == initializers_.end() ? nullptr : it->second;
}
int GraphView::FindInput(absl::string_view name) const {
  const auto it = input_index_.find(name);
  return it == input_index_.end() ? -1 : it->second;
}
const TensorInfo* GraphView::FindInfo(absl::string_view name) const {
  const auto it = infos_.find(name);
  return it == infos_.end() ? nullptr : &it->second;
}
int GraphView::DataTypeOf(absl::string_view tensor) const {
  const fe::onnx::TensorProto* const initializer = FindInitializer(tensor);
  if (initializer != nullptr) return initializer->data_type();
  const int input = FindInput(tensor);
  if (input >= 0) return inputs_[static_cast<size_t>(input)].data_type;
  const TensorInfo* const info = FindInfo(tensor);
  if (info != nullptr && info->data_type != 0) return info->data_type;
  const Producer producer = FindProducer(tensor);
  if (producer.node < 0) return 0;
  const NodeView& from = node(producer.node);
  if (from.op() == "Cast") {
    return static_cast<int>(std::clamp<int64_t>(from.Int("to").value_or(0), 0, INT16_MAX));
  }
  const auto constant =
      from.op() == "Constant" ? from.TensorOf("value") : absl::NotFoundError("no constant");
  return constant.ok() ? (*constant)->data_type() : 0;
}
std::vector<absl::string_view> GraphView::TensorNames() const {
  std::vector<absl::string_view> names;
  for (const TensorInfo& input : inputs_) {
    names.emplace_back(input.name);
  }
  for (const NodeView& node : nodes_) {
    for (int i = 0; i < node.output_count(); ++i) names.push_back(node.output(i));
  }
  return names;
}

bool GraphView::Defines(absl::string_view name) const {
  return FindInput(name) >= 0 || FindInitializer(name) != nullptr || FindProducer(name).node >= 0;
}

// Tensors with a name each, one producer each, counts within the limits.
void GraphView::CheckNodes(absl::string_view file, Diagnostics& diagnostics) {
  const auto add = [&](DiagnosticKind kind, const NodeView& node, std::string message) {
    diagnostics.Add({.kind = kind,
                     .message = std::move(message),
                     .file = std::string(file),
                     .node = Shown(node.name()),
                     .op = Shown(node.op()),
                     .fix = "export the model again"});
  };
  for (int i = 0; i < node_count(); ++i) {
    const NodeView& node = nodes_[static_cast<size_t>(i)];
    const fe::onnx::NodeProto& proto = node.proto();
    size_t longest = std::max(node.name().size(), node.op().size());
    for (const std::string& name : proto.input()) longest = std::max(longest, name.size());
    for (const std::string& name : proto.output()) longest = std::max(longest, name.size());
    if (longest > kMaxNameBytes || proto.input_size() > kMaxInputsPerNode ||
        proto.output_size() > kMaxInputsPerNode || proto.attribute_size() > kMaxAttributesPerNode) {
      add(DiagnosticKind::kModelLimitExceeded, node,
          absl::StrCat("node ", i, " has ", proto.input_size(), " operands, ", proto.output_size(),
                       " results, ", proto.attribute_size(), " attributes and a name of ", longest,
                       " bytes; allowed are at most ", kMaxInputsPerNode, ", ", kMaxInputsPerNode,
                       ", ", kMaxAttributesPerNode, " and ", kMaxNameBytes));
      continue;
    }
    if (node.op().empty() || node.output_count() == 0) {
      add(DiagnosticKind::kMalformedNode, node,
          absl::StrCat("node ", i, " of the file has no ",
                       node.op().empty() ? "operator" : "result"));
      continue;
    }
    for (int k = 0; k < node.output_count(); ++k) {
      if (node.output(k).empty()) continue;
      const auto [it, inserted] = producers_.emplace(node.output(k), Producer{i, k});
      if (inserted) continue;
      add(DiagnosticKind::kOnnxDuplicateTensor, node,
          absl::StrCat("nodes ", it->second.node, " and ", i, " of the file both give tensor '",
                       Printable(node.output(k)), "'; a tensor has one producer"));
    }
  }
}

void GraphView::CheckTensors(const fe::onnx::GraphProto& graph, absl::string_view file,
                             Diagnostics& diagnostics) {
  for (const auto& tensor : graph.initializer()) {
    initializers_.emplace(absl::string_view(tensor.name()), &tensor);
  }
  for (const auto& input : graph.input()) {
    input_index_.emplace(absl::string_view(input.name()), static_cast<int>(inputs_.size()));
    inputs_.push_back(InfoOf(input));
  }
  for (const auto& output : graph.output()) {
    outputs_.push_back(InfoOf(output));
    infos_.emplace(absl::string_view(output.name()), outputs_.back());
  }
  for (const auto& info : graph.value_info())
    infos_.emplace(absl::string_view(info.name()), InfoOf(info));
  if (graph.sparse_initializer_size() > 0) {
    diagnostics.Add({.kind = DiagnosticKind::kBadTensor,
                     .message = absl::StrCat("the model has ", graph.sparse_initializer_size(),
                                             " sparse initializers; allowed are dense ones"),
                     .file = std::string(file),
                     .fix = "export the model with dense initializers"});
  }
}

}  // namespace npuc::onnx
