#include <utility>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/ops/shape_util.h"
#include "compiler_core/passes/apply.h"
#include "compiler_core/passes/rewriter.h"

namespace npuc {
namespace {

// Adds the nodes of one Softmax or LogSoftmax; the result.
ValueId Expand(Graph& graph, const Node& node, const TensorType& type, bool log) {
  const absl::StatusOr<int64_t> axis =
      AxisAttr(node, "axis", static_cast<int64_t>(type.shape.size()), -1);
  NPUC_CHECK(axis.ok());  // the node has passed VerifyGraph
  TensorType reduced = type;
  reduced.shape[*axis] = 1;
  const AttrMap reduction = {{"axes", std::vector<int64_t>{*axis}}, {"keep_dims", true}};
  const auto source = [&](absl::string_view suffix) { return DerivedSource(node.source, suffix); };
  const ValueId x = node.inputs[0];
  const ValueId max = graph.AddValue(Op::kReduceMax, {x}, reduction, reduced, source("max"));
  const ValueId shifted = graph.AddValue(Op::kSub, {x, max}, {}, type, source("sub"));
  const ValueId exp = graph.AddValue(Op::kExp, {shifted}, {}, type, source("exp"));
  const ValueId sum = graph.AddValue(Op::kReduceSum, {exp}, reduction, reduced, source("sum"));
  if (!log) return graph.AddValue(Op::kDiv, {exp, sum}, {}, type, node.source);
  const ValueId log_sum = graph.AddValue(Op::kLog, {sum}, {}, reduced, source("log"));
  return graph.AddValue(Op::kSub, {shifted, log_sum}, {}, type, node.source);
}

}  // namespace

Graph ApplyRewriteSoftmax(Graph graph) {
  if (!HasOp(graph, {Op::kSoftmax, Op::kLogSoftmax})) return graph;
  Rewriter rewriter(std::move(graph));
  for (int i = 0; i < rewriter.old().node_count(); ++i) {
    Node node = rewriter.Take(i);
    const bool log = node.op == Op::kLogSoftmax;
    if (!log && node.op != Op::kSoftmax) {
      rewriter.Append(std::move(node));
      continue;
    }
    rewriter.Replace(node, Expand(rewriter.graph(), node, rewriter.type(node.outputs[0]), log));
  }
  return rewriter.Finish();
}

}  // namespace npuc
