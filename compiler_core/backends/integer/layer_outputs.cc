#include "compiler_core/backends/integer/layer_outputs.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/backends/integer/integer_model.h"
#include "compiler_core/base/status.h"
#include "compiler_core/emit/integer_codec.h"
#include "compiler_core/lowering/integer/lower_integer.h"
#include "compiler_core/memplan/plan.h"

namespace npuc {
namespace {

// Adds the results of all layers to the graph's outputs.
std::vector<LayerResult> AddOutputs(IntegerModel& model) {
  std::map<ValueId, size_t> outputs;
  std::set<std::string> names;
  for (const GraphOutput& output : model.graph.outputs()) {
    outputs.emplace(output.value, outputs.size());
    names.insert(output.name);
  }
  size_t next = model.graph.outputs().size();
  std::vector<LayerResult> results;
  for (size_t i = 0; i < model.plan.layers.size(); ++i) {
    const Layer& layer = model.plan.layers[i];
    if (layer.type == "Input" || layer.inputs.empty()) continue;
    for (const ValueId value : layer.outputs) {
      const auto [place, added] = outputs.emplace(value, next);
      if (added) {
        std::string name = layer.name;
        for (int k = 2; !names.insert(name).second; ++k) name = absl::StrCat(layer.name, "_", k);
        model.graph.AddOutput({name, value});
        ++next;
      }
      results.push_back({static_cast<int>(i), layer.name, layer.type, place->second});
    }
  }
  return results;
}

}  // namespace

absl::StatusOr<CompiledModel> AssembleModel(const integer::Program& program,
                                            const std::string& model_name, const CoreSpec& core,
                                            Diagnostics& diagnostics) {
  CompiledModel model;
  model.core = std::string(core.name);
  model.command_set = CommandSet::kInteger;
  model.inputs = program.inputs;
  model.outputs = program.outputs;
  model.weight_content = program.weights;
  model.data_bytes = program.data_bytes;
  model.input_offset = program.input_offset;
  model.output_offset = program.output_offset;
  RETURN_IF_ERROR(CheckArtifactLimits(model, model_name, diagnostics));
  ASSIGN_OR_RETURN(model.cmd_content, integer::EncodeCommands(program));
  return model;
}

absl::StatusOr<LayerOutputs> MakeLayerOutputs(const CompileRequest& request, Graph imported,
                                              Diagnostics& diagnostics) {
  const std::string& model_name = request.options.model_name;
  const CoreSpec* core = FindCore(request.options.core);
  if (core == nullptr || core->integer == nullptr) {
    diagnostics.Add({.kind = DiagnosticKind::kConfigNotForTarget,
                     .message = absl::StrCat("core ", Printable(request.options.core),
                                             " has no layers of integers to write"),
                     .file = model_name,
                     .fix = "set CORENAME: X2_1204, or another integer core"});
    return diagnostics.ToStatus();
  }
  ASSIGN_OR_RETURN(const Graph graph, IntegerGraph(request, std::move(imported), diagnostics));
  ASSIGN_OR_RETURN(IntegerModel model, MakeIntegerModel(request, graph, diagnostics));
  LayerOutputs all;
  all.results = AddOutputs(model);
  ASSIGN_OR_RETURN(integer::Program program,
                   LowerInteger(model.graph, model.plan, model_name, diagnostics));
  RETURN_IF_ERROR(PlanMemory(program, core->integer->buffer_alignment_bytes).status());
  RETURN_IF_ERROR(CheckMemoryPlan(program));
  ASSIGN_OR_RETURN(all.model, AssembleModel(program, model_name, *core, diagnostics));
  for (const int input : model.state_inputs) {
    if (input >= 0) all.state_inputs.push_back(static_cast<size_t>(input));
  }
  all.graph = std::move(model.graph);
  return all;
}

}  // namespace npuc
