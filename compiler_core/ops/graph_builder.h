#ifndef NPUC_COMPILER_CORE_OPS_GRAPH_BUILDER_H_
#define NPUC_COMPILER_CORE_OPS_GRAPH_BUILDER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/ops/op.h"

namespace npuc {

// Builds graphs operator by operator: infers types at once, and where every operand is a constant
// computes the value at once by the operator's reference function (bounded by kMaxFoldedElements
// of output and, over the builder's life, by FoldBudget). So front ends are abstract interpreters:
// shapes are static and shape arithmetic is plain numbers from the first node on. Does not own the
// graph.
class GraphBuilder {
 public:
  static constexpr int64_t kMaxFoldedElements = int64_t{1} << 24;

  explicit GraphBuilder(Graph* graph, bool fold = true) : graph_(graph), fold_(fold) {}

  Graph& graph() { return *graph_; }
  const TensorType& type(ValueId id) const { return graph_->type(id); }
  const Tensor* constant(ValueId id) const { return graph_->ConstantOf(id); }

  // Adds a node; its outputs. Errors are the operator's InferShapes errors, INVALID_ARGUMENT.
  absl::StatusOr<std::vector<ValueId>> Add(Op op, std::vector<ValueId> inputs, AttrMap attrs,
                                           const NodeSource& source);
  // The same for operators with one output.
  absl::StatusOr<ValueId> AddOne(Op op, std::vector<ValueId> inputs, AttrMap attrs,
                                 const NodeSource& source);
  ValueId Const(Tensor value, const NodeSource& source);

 private:
  Graph* graph_;
  bool fold_;
  FoldBudget budget_{.elements_per_value = kMaxFoldedElements};
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_OPS_GRAPH_BUILDER_H_
