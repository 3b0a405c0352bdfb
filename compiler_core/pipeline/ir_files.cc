#include "compiler_core/pipeline/ir_files.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/backends/integer/integer_model.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/import_state.h"
#include "compiler_core/ir/compass/check.h"
#include "compiler_core/ops/layers.h"
#include "compiler_core/pipeline/file_limits.h"
#include "compiler_core/pipeline/import.h"
#include "compiler_core/quant/kept/float_form.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {
namespace {

// A layer of one node, a clamp.
Layer ClampLayer(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const ValueId operand = ClampOf(graph, node)->operand;
  Layer layer;
  layer.name = node.source.name;
  layer.type = std::string(LayerTypeOf(graph, node));
  layer.nodes = {id};
  layer.root = id;
  layer.inputs = {operand};
  for (const ValueId input : node.inputs) {
    if (input != operand) layer.weight = input;
  }
  layer.outputs = node.outputs;
  return layer;
}

// A float layer of the IR has RELU and RELU6 alone: other clamps become layers of their own.
std::vector<Layer> SplitClamps(const Graph& graph, std::vector<Layer> layers) {
  std::vector<Layer> split;
  for (Layer& layer : layers) {
    const ClampRange clamps = ClampsOf(graph, layer);
    const std::vector<NodeId> nodes = layer.nodes;
    size_t kept = nodes.size();
    if (clamps != ClampRange() && clamps != kReluRange && clamps != kRelu6Range) {
      while (kept > 1 && ClampOf(graph, graph.node(nodes[kept - 1])).has_value()) --kept;
    }
    layer.nodes.resize(kept);
    layer.outputs = graph.node(layer.nodes.back()).outputs;
    split.push_back(std::move(layer));
    for (size_t i = kept; i < nodes.size(); ++i) split.push_back(ClampLayer(graph, nodes[i]));
  }
  return split;
}

absl::StatusOr<IrFiles> WriteFloat(const Graph& graph, const std::string& model_name,
                                   Diagnostics& diagnostics) {
  ASSIGN_OR_RETURN(const FloatForm form, MakeFloatForm(graph));
  QuantPlan plan;
  plan.layers = SplitClamps(form.graph, GroupLayers(form.graph));
  ASSIGN_OR_RETURN(IrFiles files, WriteIr(form.graph, plan, model_name, diagnostics));
  files.document.head.Set("precision", "float32");
  return files;
}

}  // namespace

absl::StatusOr<ModelIr> MakeIrFiles(const CompileRequest& request, IrForm form,
                                    const std::string& name, Diagnostics& diagnostics) {
  const CompileOptions& options = request.options;
  ASSIGN_OR_RETURN(Graph imported, ImportModel(request, diagnostics));
  ASSIGN_OR_RETURN(const Graph graph, IntegerGraph(request, std::move(imported), diagnostics));
  const CoreSpec* core = FindCore(options.core);
  if (form == IrForm::kAsModel && !KeepsIntegers(request, graph)) form = IrForm::kFloat;
  ModelIr ir;
  if (form == IrForm::kFloat || core == nullptr || core->integer == nullptr) {
    ASSIGN_OR_RETURN(ir.files, WriteFloat(graph, name, diagnostics));
  } else {
    ASSIGN_OR_RETURN(IntegerModel model, MakeIntegerModel(request, graph, diagnostics));
    ASSIGN_OR_RETURN(ir.files, WriteIr(model.graph, model.plan, name, diagnostics));
    if (model.quantized_here) ir.opt_template = std::move(model.opt_template);
    ir.statistics = std::move(model.statistics);
    ir.numpy_statistics = std::move(model.numpy_statistics);
  }
  RETURN_IF_ERROR(CheckFileSize("the IR's text", compass::PrintDocument(ir.files.document).size(),
                                compass::kMaxTextBytes, options.model_name, diagnostics));
  RETURN_IF_ERROR(CheckFileSize("the IR's .bin", ir.files.bin.size(),
                                static_cast<size_t>(frontend::kMaxConstantBytes),
                                options.model_name, diagnostics));
  Diagnostics ours;
  const absl::Status sound = compass::CheckDocument(
      ir.files.document, static_cast<int64_t>(ir.files.bin.size()), options.model_name, ours);
  if (!sound.ok()) {
    diagnostics.Add(
        {.kind = DiagnosticKind::kInternalError,
         .message = absl::StrCat("the IR files written break their own rules: ", sound.message()),
         .file = options.model_name});
    return diagnostics.ToStatus();
  }
  return ir;
}

}  // namespace npuc
