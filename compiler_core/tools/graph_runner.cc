#include "compiler_core/tools/graph_runner.h"

#include <optional>
#include <utility>

#include "compiler_core/backends/states.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/ops/quantize.h"

namespace npuc {

GraphRunner::GraphRunner(Graph graph, const CompileOptions& options, Edges edges)
    : graph_(std::move(graph)) {
  for (const ValueId value : graph_.inputs()) {
    inputs_.push_back(Port(graph_.def(value).source.name, value));
  }
  for (const GraphOutput& output : graph_.outputs()) {
    outputs_.push_back(Port(output.name, output.value));
  }
  Diagnostics order_is_told_by_the_compile;
  const std::vector<int> states = StatesOf(graph_, options, order_is_told_by_the_compile);
  std::vector<bool> is_state(inputs_.size(), false);
  for (size_t i = 0; i < states.size(); ++i) {
    outputs_[i].state_input = states[i];
    if (states[i] >= 0) is_state[static_cast<size_t>(states[i])] = true;
  }
  if (edges == Edges::kRealValues) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!is_state[i]) TakeScale(graph_.inputs()[i], inputs_[i]);
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (outputs_[i].state_input < 0) TakeScale(graph_.outputs()[i].value, outputs_[i]);
    }
  }
  for (std::vector<PortTensor>* ports : {&inputs_, &outputs_}) {
    int64_t offset = 0;
    for (PortTensor& port : *ports) {
      port.offset_bytes = offset;
      offset += ElementCount(port.shape) * SizeOf(port.dtype);
    }
  }
}

absl::Status GraphRunner::Run(absl::Span<const uint8_t> input, std::vector<uint8_t>& output) {
  std::vector<Tensor> arguments;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const TensorType type{inputs_[i].dtype, inputs_[i].shape};
    const uint8_t* from = input.data() + inputs_[i].offset_bytes;
    const Tensor value(type, std::vector<uint8_t>(from, from + type.size_bytes()));
    arguments.push_back(CastTensor(value, graph_.type(graph_.inputs()[i]).dtype));
  }
  ASSIGN_OR_RETURN(const std::vector<Tensor> results, RunReference(graph_, arguments));
  output.clear();
  for (size_t i = 0; i < results.size(); ++i) {
    const Tensor value = CastTensor(results[i], outputs_[i].dtype);
    output.insert(output.end(), value.bytes().begin(), value.bytes().end());
  }
  return absl::OkStatus();
}

PortTensor GraphRunner::Port(const std::string& name, ValueId value) const {
  PortTensor port;
  port.name = name;
  port.shape = graph_.type(value).shape;
  port.dtype = DType::kFloat32;
  return port;
}

// The one scale of all Dequantize nodes that read the integers, or of the Quantize that makes them.
void GraphRunner::TakeScale(ValueId value, PortTensor& port) const {
  const TensorType& integers = graph_.type(value);
  if (!IsInteger(integers.dtype) || SizeOf(integers.dtype) > 2) return;
  std::vector<const Node*> nodes;
  if (graph_.def(value).op == Op::kQuantize) nodes.push_back(&graph_.def(value));
  for (const Node& node : graph_.nodes()) {
    if (node.op == Op::kDequantize && node.inputs[0] == value) nodes.push_back(&node);
  }
  std::optional<QuantParams> scale;
  for (const Node* node : nodes) {
    const absl::StatusOr<QuantParams> params = QuantParamsOf(*node, integers);
    if (!params.ok() || params->scale.size() != 1) return;
    if (scale.has_value() &&
        (params->scale != scale->scale || params->zero_point != scale->zero_point)) {
      return;
    }
    scale = *params;
  }
  if (!scale.has_value()) return;
  port.dtype = integers.dtype;
  port.scale = scale->scale[0];
  port.zero_point = scale->zero_point[0];
}

}  // namespace npuc
