#include "compiler_core/tools/graph_runner.h"

#include <utility>

#include "compiler_core/backends/states.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/op.h"

namespace npuc {

GraphRunner::GraphRunner(Graph graph, const CompileOptions& options) : graph_(std::move(graph)) {
  int64_t offset = 0;
  for (const ValueId value : graph_.inputs()) {
    inputs_.push_back(Port(graph_.def(value).source.name, value, offset));
  }
  offset = 0;
  for (const GraphOutput& output : graph_.outputs()) {
    outputs_.push_back(Port(output.name, output.value, offset));
  }
  Diagnostics order_is_told_by_the_compile;
  const std::vector<int> states = StatesOf(graph_, options, order_is_told_by_the_compile);
  for (size_t i = 0; i < states.size(); ++i) outputs_[i].state_input = states[i];
}

absl::Status GraphRunner::Run(absl::Span<const uint8_t> input, std::vector<uint8_t>& output) {
  std::vector<Tensor> arguments;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const TensorType type{DType::kFloat32, inputs_[i].shape};
    const uint8_t* from = input.data() + inputs_[i].offset_bytes;
    const Tensor value(type, std::vector<uint8_t>(from, from + type.size_bytes()));
    arguments.push_back(CastTensor(value, graph_.type(graph_.inputs()[i]).dtype));
  }
  ASSIGN_OR_RETURN(const std::vector<Tensor> results, RunReference(graph_, arguments));
  output.clear();
  for (const Tensor& result : results) {
    const Tensor value = CastTensor(result, DType::kFloat32);
    output.insert(output.end(), value.bytes().begin(), value.bytes().end());
  }
  return absl::OkStatus();
}

PortTensor GraphRunner::Port(const std::string& name, ValueId value, int64_t& offset) const {
  PortTensor port;
  port.name = name;
  port.shape = graph_.type(value).shape;
  port.dtype = DType::kFloat32;
  port.offset_bytes = offset;
  offset += ElementCount(port.shape) * SizeOf(port.dtype);
  return port;
}

}  // namespace npuc
