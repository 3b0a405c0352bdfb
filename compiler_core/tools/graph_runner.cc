#include "compiler_core/tools/graph_runner.h"

#include <algorithm>
#include <map>
#include <utility>

#include "compiler_core/backends/states.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/ops/op_traits.h"
#include "compiler_core/ops/quantize.h"

namespace npuc {
namespace {

// The parameters of values that a graph holds as integers, as the compile finds them (FloatFormer):
// an input has those of its first Dequantize, the result of a move those of what it moves.
std::map<ValueId, QuantParams> ParametersOfIntegers(const Graph& graph) {
  std::map<ValueId, QuantParams> known;
  const auto learn = [&](ValueId integers, const Node& node) {
    absl::StatusOr<QuantParams> params = QuantParamsOf(node, graph.type(integers));
    if (params.ok()) known.emplace(integers, *std::move(params));
  };
  for (const Node& node : graph.nodes()) {
    const bool reads = node.op == Op::kDequantize;
    if (reads && graph.def(node.inputs[0]).op == Op::kPlaceholder) learn(node.inputs[0], node);
  }
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::kQuantize) learn(node.outputs[0], node);
    if (!TraitsOf(node.op).keeps_parameters && node.op != Op::kConcat) continue;
    const auto first = std::find_if(node.inputs.begin(), node.inputs.end(),
                                    [&](ValueId input) { return known.contains(input); });
    if (first == node.inputs.end()) continue;
    const QuantParams params = known.at(*first);
    for (const ValueId output : node.outputs) known.emplace(output, params);
  }
  return known;
}

}  // namespace

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
    const std::map<ValueId, QuantParams> known = ParametersOfIntegers(graph_);
    const auto take_scale = [&](ValueId value, PortTensor& port) {
      const auto found = known.find(value);
      const DType dtype = graph_.type(value).dtype;
      if (found == known.end() || found->second.scale.size() != 1 || SizeOf(dtype) > 2) return;
      port.dtype = dtype;
      port.scale = found->second.scale[0];
      port.zero_point = found->second.zero_point[0];
    };
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!is_state[i]) take_scale(graph_.inputs()[i], inputs_[i]);
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (outputs_[i].state_input < 0) take_scale(graph_.outputs()[i].value, outputs_[i]);
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

}  // namespace npuc
