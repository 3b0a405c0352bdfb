#include "compiler_core/pipeline/integer_runs_test_util.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include "compiler_core/base/fixed_point.h"
#include "compiler_core/base/status.h"
#include "compiler_core/emit/integer_codec.h"
#include "compiler_core/emit/written_test_util.h"
#include "compiler_core/ir/integer/access.h"
#include "compiler_core/lowering/integer/code_weights.h"
#include "compiler_core/lowering/integer/lower_integer.h"
#include "compiler_core/memplan/plan.h"
#include "compiler_core/ops/layers.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/sim/simulator.h"

namespace npuc {
namespace {

int64_t Stored(const PortTensor& port, double value) {
  return std::clamp(RoundHalfEven(value / port.scale) + port.zero_point,
                    integer::LowestValue(port.dtype), integer::HighestValue(port.dtype));
}

void AppendStored(const PortTensor& port, const Tensor& values, std::vector<uint8_t>& bytes) {
  const size_t size = static_cast<size_t>(SizeOf(port.dtype));
  const size_t begin = static_cast<size_t>(port.offset_bytes);
  bytes.resize(std::max(bytes.size(), begin + static_cast<size_t>(values.element_count()) * size));
  for (int64_t i = 0; i < values.element_count(); ++i) {
    const int64_t stored = Stored(port, values.at(i));
    std::memcpy(bytes.data() + begin + static_cast<size_t>(i) * size, &stored, size);
  }
}

std::vector<double> RealValues(const PortTensor& port, const std::vector<uint8_t>& bytes) {
  std::vector<double> values;
  const size_t size = static_cast<size_t>(SizeOf(port.dtype));
  for (int64_t k = 0; k < ElementCount(port.shape); ++k) {
    const size_t i = static_cast<size_t>(port.offset_bytes) + static_cast<size_t>(k) * size;
    int64_t stored = static_cast<int8_t>(bytes[i]);
    if (port.dtype == DType::kUint8) stored = bytes[i];
    if (port.dtype == DType::kInt16) stored = static_cast<int16_t>(bytes[i] | bytes[i + 1] << 8);
    values.push_back(static_cast<double>(stored - port.zero_point) * port.scale);
  }
  return values;
}

}  // namespace

QuantPlan PlanByExtrema(const Graph& graph, const std::vector<std::vector<Tensor>>& samples,
                        int bits, bool symmetric) {
  QuantPlan plan;
  plan.layers = GroupLayers(graph);
  plan.settings.resize(plan.layers.size());
  const DType dtype = bits == 8 ? DType::kInt8 : DType::kInt16;
  const double top = std::ldexp(1.0, bits - 1) - 1;
  for (const Layer& layer : plan.layers) {
    for (const ValueId output : layer.outputs) {
      Graph part = graph;
      part.AddOutput({"part", output});
      double low = 0;
      double high = 1e-6;
      for (const std::vector<Tensor>& sample : samples) {
        const Tensor values = RunReference(part, sample)->back();
        for (const float value : values.ToFloats()) {
          low = std::min(low, double{value});
          high = std::max(high, double{value});
        }
      }
      QuantParams params;
      params.dtype = dtype;
      params.qmin = static_cast<int64_t>(-top - 1);
      params.qmax = static_cast<int64_t>(top);
      if (symmetric) {
        params.scale = {std::max(-low, high) / top};
        params.zero_point = {0};
      } else {
        params.scale = {(high - low) / (2 * top + 1)};
        params.zero_point = {params.qmin - RoundHalfEven(low / params.scale[0])};
      }
      plan.values[output] = params;
    }
    if (!layer.weight.valid()) continue;
    double largest = 0;
    for (const float w : graph.ConstantOf(layer.weight)->ToFloats()) {
      largest = std::max(largest, std::abs(double{w}));
    }
    plan.values[layer.weight] = {
        dtype, static_cast<int64_t>(-top), static_cast<int64_t>(top), -1, {largest / top}, {0}};
  }
  return plan;
}

absl::StatusOr<CompiledModel> CompileIntegers(const Graph& graph, const QuantPlan& plan) {
  Diagnostics diagnostics;
  ASSIGN_OR_RETURN(integer::Program program, LowerInteger(graph, plan, "m", diagnostics));
  RETURN_IF_ERROR(CodeWeights(program));
  RETURN_IF_ERROR(PlanMemoryByRows(program, 16, /*ports_in_data=*/true).status());
  RETURN_IF_ERROR(CheckMemoryPlan(program));
  CompiledModel model;
  model.core = "X2_1204";
  model.command_set = CommandSet::kInteger;
  model.inputs = program.inputs;
  model.outputs = program.outputs;
  ASSIGN_OR_RETURN(model.cmd_content, integer::EncodeCommands(program));
  model.weight_content = program.weights;
  model.data_bytes = program.data_bytes;
  model.input_offset = program.input_offset;
  model.output_offset = program.output_offset;
  return ReadArtifact(ModelFileBytes(model), "m.npuc", diagnostics);
}

absl::StatusOr<std::vector<std::vector<double>>> SimulateIntegers(const CompiledModel& model,
                                                                  absl::Span<const Tensor> inputs) {
  Diagnostics diagnostics;
  ASSIGN_OR_RETURN(const std::unique_ptr<Simulator> simulator,
                   Simulator::Load(model, "m.npuc", diagnostics));
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < inputs.size(); ++i) AppendStored(model.inputs[i], inputs[i], bytes);
  std::vector<uint8_t> output;
  RETURN_IF_ERROR(simulator->Run(bytes, output));
  std::vector<std::vector<double>> results;
  for (const PortTensor& port : model.outputs) results.push_back(RealValues(port, output));
  return results;
}

Tensor AsStored(const PortTensor& port, const Tensor& values) {
  std::vector<float> real(static_cast<size_t>(values.element_count()));
  for (int64_t i = 0; i < values.element_count(); ++i) {
    real[static_cast<size_t>(i)] = static_cast<float>(
        static_cast<double>(Stored(port, values.at(i)) - port.zero_point) * port.scale);
  }
  return Tensor::FromFloats(values.shape(), real);
}

}  // namespace npuc
