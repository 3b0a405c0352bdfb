#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "compiler_core/ops/quantize.h"
#include "compiler_core/passes/apply.h"
#include "compiler_core/passes/rewriter.h"

namespace npuc {
namespace {

const std::vector<int64_t>& IntsOf(const Node& node, absl::string_view name) {
  return std::get<std::vector<int64_t>>(node.attrs.find(name)->second);  // VerifyGraph saw it
}

bool All(const std::vector<int64_t>& values, int64_t wanted) {
  return std::all_of(values.begin(), values.end(), [=](int64_t v) { return v == wanted; });
}

bool IsWholeSlice(const Node& node, const TensorType& operand) {
  if (IntsOf(node, "size") != operand.shape) return false;
  for (size_t i = 0; i < operand.shape.size(); ++i) {
    // Of a dimension of one or none there is only one slice that keeps its size.
    if (operand.shape[i] > 1 && IntsOf(node, "strides")[i] != 1) return false;
  }
  return true;
}

// Whether the node's only result is its only operand, element for element.
bool IsIdentity(const Graph& graph, const Node& node, const TensorType& result) {
  if (node.inputs.size() != 1) return false;
  const TensorType& operand = graph.type(node.inputs[0]);
  if (operand != result) return false;
  if (node.op == Op::kIdentity || node.op == Op::kReshape || node.op == Op::kConcat) return true;
  if (node.op == Op::kSplit) return IntsOf(node, "sizes").size() == 1;
  if (node.op == Op::kTranspose) {
    const std::vector<int64_t>& perm = IntsOf(node, "perm");
    return std::is_sorted(perm.begin(), perm.end());
  }
  if (node.op == Op::kSlice) return IsWholeSlice(node, operand);
  if (node.op == Op::kPad) return All(IntsOf(node, "paddings"), 0);
  if (node.op == Op::kReduceSum || node.op == Op::kReduceMean || node.op == Op::kReduceMax) {
    return IntsOf(node, "axes").empty();
  }
  if (node.op == Op::kMaxPool || node.op == Op::kAvgPool) {
    return All(IntsOf(node, "kernel"), 1) && All(IntsOf(node, "strides"), 1);
  }
  return false;
}

// The operand that a Maximum with -infinity, or a Minimum with infinity, gives; invalid where the
// node is neither.
ValueId UnboundedOperand(const Graph& graph, const Node& node, const TensorType& result) {
  if (node.op != Op::kMaximum && node.op != Op::kMinimum) return ValueId();
  const double limit = node.op == Op::kMaximum ? -HUGE_VAL : HUGE_VAL;
  for (const size_t i : {0, 1}) {
    const Tensor* bound = graph.ConstantOf(node.inputs[1 - i]);
    if (bound == nullptr || bound->dtype() != DType::kFloat32 ||
        graph.type(node.inputs[i]) != result) {
      continue;
    }
    const absl::Span<const float> limits = bound->as<float>();
    if (std::all_of(limits.begin(), limits.end(), [=](float x) { return x == limit; })) {
      return node.inputs[i];
    }
  }
  return ValueId();
}

// The integers (of at most 16 bits: the way to f32 and back is exact) that a Quantize restores;
// invalid where it is none.
ValueId RestoredIntegers(const Graph& graph, const Node& node, const TensorType& result) {
  if (node.op != Op::kQuantize || SizeOf(result.dtype) > 2) return ValueId();
  const Node& dequantize = graph.def(node.inputs[0]);
  if (dequantize.op != Op::kDequantize || graph.type(node.inputs[0]).dtype != DType::kFloat32 ||
      graph.type(dequantize.inputs[0]) != result || node.attrs.contains("qmin") ||
      node.attrs.contains("qmax")) {
    return ValueId();
  }
  return AreInverse(node, dequantize, result) ? dequantize.inputs[0] : ValueId();
}

// The value that the node's only result equals; invalid where there is none.
ValueId EqualValue(const Graph& graph, const Node& node, const TensorType& result) {
  if (node.outputs.size() != 1) return ValueId();
  if (IsIdentity(graph, node, result)) return node.inputs[0];
  const ValueId integers = RestoredIntegers(graph, node, result);
  return integers.valid() ? integers : UnboundedOperand(graph, node, result);
}

// Whether the pass has anything to do at a node; the first such node shows before any is changed.
bool IsRemovable(const Graph& graph, const Node& node) {
  if (node.op == Op::kReshape && graph.def(node.inputs[0]).op == Op::kReshape) return true;
  return EqualValue(graph, node, graph.type(node.outputs[0])).valid();
}

}  // namespace

Graph ApplyRemoveIdentity(Graph graph) {
  const bool has_any = std::any_of(graph.nodes().begin(), graph.nodes().end(),
                                   [&](const Node& node) { return IsRemovable(graph, node); });
  if (!has_any) return graph;
  Rewriter rewriter(std::move(graph));
  for (int i = 0; i < rewriter.old().node_count(); ++i) {
    Node node = rewriter.Take(i);
    if (node.op == Op::kReshape) {
      const Node& operand = rewriter.graph().def(node.inputs[0]);
      if (operand.op == Op::kReshape) node.inputs = operand.inputs;
    }
    const ValueId equal = EqualValue(rewriter.graph(), node, rewriter.type(node.outputs[0]));
    if (equal.valid()) {
      rewriter.Replace(node, equal);
    } else {
      rewriter.Append(std::move(node));
    }
  }
  return rewriter.Finish();
}

}  // namespace npuc
