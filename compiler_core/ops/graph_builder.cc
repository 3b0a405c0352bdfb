#include "compiler_core/ops/graph_builder.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc {

absl::StatusOr<std::vector<ValueId>> GraphBuilder::Add(Op op, std::vector<ValueId> inputs,
                                                       AttrMap attrs, const NodeSource& source) {
  Node node{op, std::move(inputs), {}, std::move(attrs), source};
  ASSIGN_OR_RETURN(std::vector<TensorType> types, InferNode(*graph_, node));
  if (fold_) {
    // An Identity of a constant is that constant, under the name that users know it by.
    if (node.op == Op::kIdentity && graph_->ConstantOf(node.inputs[0]) != nullptr)
      return node.inputs;
    std::optional<std::vector<Tensor>> folded = FoldNode(*graph_, node, types, budget_);
    if (folded.has_value()) {
      std::vector<ValueId> results;
      results.reserve(folded->size());
      const NodeSource folded_source = FoldedSource(*graph_, node);
      for (Tensor& tensor : *folded) {
        results.push_back(graph_->AddConst(std::move(tensor), folded_source));
      }
      return results;
    }
  }
  const NodeId id = graph_->AddNode(node.op, std::move(node.inputs), std::move(node.attrs),
                                    std::move(types), source);
  return graph_->node(id).outputs;
}

absl::StatusOr<ValueId> GraphBuilder::AddOne(Op op, std::vector<ValueId> inputs, AttrMap attrs,
                                             const NodeSource& source) {
  ASSIGN_OR_RETURN(const std::vector<ValueId> results,
                   Add(op, std::move(inputs), std::move(attrs), source));
  if (results.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(op), " gives ", results.size(), " results where one is wanted"));
  }
  return results[0];
}

ValueId GraphBuilder::Const(Tensor value, const NodeSource& source) {
  return graph_->AddConst(std::move(value), source);
}

}  // namespace npuc
