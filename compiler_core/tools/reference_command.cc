#include "compiler_core/tools/reference_command.h"

#include <cstdio>
#include <cstring>
#include <utility>

#include "compiler_core/base/status.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/pipeline/import.h"
#include "compiler_core/pipeline/states.h"
#include "compiler_core/tools/array_files.h"
#include "compiler_core/tools/diagnostics_output.h"
#include "compiler_core/tools/loaded_config.h"
#include "nlohmann/json.hpp"

namespace npuc {
namespace {

using Json = nlohmann::ordered_json;

// A graph run by its operators' reference functions; every port is float32.
class GraphRunner : public FrameRunner {
 public:
  GraphRunner(Graph graph, const CompileOptions& options) : graph_(std::move(graph)) {
    int64_t offset = 0;
    Program ports;
    for (const ValueId value : graph_.inputs()) {
      ports.inputs.push_back(Port(graph_.def(value).source.name, value, offset));
    }
    offset = 0;
    for (const GraphOutput& output : graph_.outputs()) {
      ports.outputs.push_back(Port(output.name, output.value, offset));
      // States are told by fp16 outputs; the values themselves stay float32 here.
      if (output.fp16) ports.outputs.back().dtype = DType::kFloat16;
    }
    Diagnostics order_is_told_by_the_compile;
    AssignStates(ports, options.output_file, options.framework, order_is_told_by_the_compile);
    for (PortTensor& port : ports.outputs) port.dtype = DType::kFloat32;
    inputs_ = std::move(ports.inputs);
    outputs_ = std::move(ports.outputs);
  }

  const std::vector<PortTensor>& inputs() const override { return inputs_; }
  const std::vector<PortTensor>& outputs() const override { return outputs_; }

  absl::Status Run(absl::Span<const uint8_t> input, std::vector<uint8_t>& output) override {
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

 private:
  PortTensor Port(const std::string& name, ValueId value, int64_t& offset) {
    PortTensor port;
    port.name = name;
    port.shape = graph_.type(value).shape;
    port.dtype = DType::kFloat32;
    port.offset_bytes = offset;
    offset += ElementCount(port.shape) * SizeOf(port.dtype);
    return port;
  }

  Graph graph_;
  std::vector<PortTensor> inputs_;
  std::vector<PortTensor> outputs_;
};

absl::Status Run(const ReferenceCommand& command, Json& report, Diagnostics& diagnostics) {
  ASSIGN_OR_RETURN(const LoadedConfig loaded, LoadConfig(command.config_path, diagnostics));
  const CompileOptions& options = loaded.config.options;
  ASSIGN_OR_RETURN(Graph graph, ImportModel(loaded.model, options, diagnostics));
  GraphRunner runner(std::move(graph), options);
  const std::vector<NamedArray> inputs = LoadInputs(command.inputs, diagnostics);
  RETURN_IF_ERROR(diagnostics.ToStatus());
  ASSIGN_OR_RETURN(const RunItemsResult result, RunItems(runner, inputs, 0, diagnostics));
  report["items"] = result.items;
  return WriteOutputs(command.output_dir, !command.json, result, report["outputs"]);
}

}  // namespace

int RunReferenceCommand(const ReferenceCommand& command) {
  Diagnostics diagnostics;
  Json report{{"ok", false}, {"items", 0}, {"outputs", Json::array()}};
  const absl::Status status = Run(command, report, diagnostics);
  const int code = Finish(status, diagnostics);
  if (command.json) {
    report["ok"] = code == 0;
    report["diagnostics"] = Json::parse(DiagnosticsJson(diagnostics));
    std::printf("%s\n", report.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  }
  return code;
}

}  // namespace npuc
