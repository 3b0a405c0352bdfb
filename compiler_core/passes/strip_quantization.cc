#include <utility>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/ops/quantize.h"
#include "compiler_core/passes/apply.h"
#include "compiler_core/passes/rewriter.h"

namespace npuc {
namespace {

// The constant behind a Dequantize as floats; it keeps the constant's name.
ValueId AddFloats(Graph& graph, const Node& node) {
  const Tensor integers = *graph.ConstantOf(node.inputs[0]);
  const absl::StatusOr<std::vector<Tensor>> floats =
      FindOp("Dequantize")->reference(node, {integers});
  NPUC_CHECK(floats.ok());  // VerifyGraph saw the node, and the kernel takes whatever infer does
  const NodeSource& source = graph.def(node.inputs[0]).source;
  return graph.AddConst(floats->front(), source.name.empty() ? node.source : source);
}

// The float value that goes through a Quantize straight into this Dequantize; invalid where there
// is none.
ValueId FloatsBehind(const Graph& graph, const Node& node, const TensorType& result) {
  const Node& quantize = graph.def(node.inputs[0]);
  if (quantize.op != "Quantize" || graph.type(quantize.inputs[0]) != result) return ValueId();
  return AreInverse(quantize, node, graph.type(node.inputs[0])) ? quantize.inputs[0] : ValueId();
}

}  // namespace

Graph ApplyStripQuantization(Graph graph) {
  Rewriter rewriter(std::move(graph));
  for (int i = 0; i < rewriter.old().node_count(); ++i) {
    Node node = rewriter.Take(i);
    if (node.op == "Dequantize" && rewriter.graph().ConstantOf(node.inputs[0]) != nullptr) {
      rewriter.Set(node.outputs[0], AddFloats(rewriter.graph(), node));
      continue;
    }
    const ValueId floats = node.op == "Dequantize" ? FloatsBehind(rewriter.graph(), node,
                                                                  rewriter.type(node.outputs[0]))
                                                   : ValueId();
    if (floats.valid()) {
      rewriter.Replace(node, floats);
    } else {
      rewriter.Append(std::move(node));
    }
  }
  return DropUnused(rewriter.Finish(), false);
}

}  // namespace npuc
