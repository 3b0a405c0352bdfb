// Reductions and softmax.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/evaluator.h"
#include "compiler_core/frontends/common/selection.h"
#include "compiler_core/frontends/tensorflow/node_import.h"

namespace npuc::tf {
namespace {

struct Reduction {
  std::vector<int64_t> axes;  // sorted, unique, not negative
  bool keep_dims = false;
};

absl::StatusOr<Reduction> ReadReduction(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  Reduction reduction;
  ASSIGN_OR_RETURN(reduction.axes, node.ConstantInts(1, "axes"));
  ASSIGN_OR_RETURN(reduction.axes, node.Axes(std::move(reduction.axes), node.rank(0)));
  ASSIGN_OR_RETURN(reduction.keep_dims, node.BoolOr("keep_dims", false));
  return reduction;
}

absl::Status Reduce(NodeImporter& node, absl::string_view op) {
  ASSIGN_OR_RETURN(const Reduction reduction, ReadReduction(node));
  return node.SetOutput(node.Reduced(op, node.input(0), reduction.axes, reduction.keep_dims));
}

absl::Status ImportSum(NodeImporter& node) { return Reduce(node, "ReduceSum"); }
absl::Status ImportMean(NodeImporter& node) { return Reduce(node, "ReduceMean"); }
absl::Status ImportMax(NodeImporter& node) { return Reduce(node, "ReduceMax"); }

// min x = -max -x, exactly.
absl::Status ImportMin(NodeImporter& node) {
  ASSIGN_OR_RETURN(const Reduction reduction, ReadReduction(node));
  if (reduction.axes.empty()) {
    return node.SetOutput(node.input(0));
  }
  ASSIGN_OR_RETURN(const ValueRef negated, node.Emit("Neg", {node.input(0)}));
  ASSIGN_OR_RETURN(const ValueRef greatest,
                   node.Reduced("ReduceMax", negated, reduction.axes, reduction.keep_dims));
  return node.EmitOutput("Neg", {greatest});
}

absl::Status ImportEvaluatedReduction(NodeImporter& node) {
  ASSIGN_OR_RETURN(const Reduction reduction, ReadReduction(node));
  ASSIGN_OR_RETURN(const Tensor x, node.Constant(0, "operand"));
  return node.SetConstant(
      EvaluateReduction(node.node().op(), x, reduction.axes, reduction.keep_dims));
}

absl::Status ImportLogic(NodeImporter& node) {
  if (node.IsConstant(0)) return ImportEvaluatedReduction(node);
  ASSIGN_OR_RETURN(const Reduction reduction, ReadReduction(node));
  return node.SetOutput(frontend::ReducedLogic(node, node.node().op() == "All", node.input(0),
                                               reduction.axes, reduction.keep_dims));
}

absl::Status ImportSoftmax(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  if (node.rank(0) < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the operand is ", TypeToString(node.type(0)), "; it must be a vector"));
  }
  return node.EmitOutput(node.node().op(), {node.input(0)},
                         {{"axis", static_cast<int64_t>(node.rank(0) - 1)}});
}

constexpr ImportRule kReduceRules[] = {
    {"All", ImportLogic},
    {"Any", ImportLogic},
    {"LogSoftmax", ImportSoftmax},
    {"Max", ImportMax},
    {"Mean", ImportMean},
    {"Min", ImportMin},
    {"Prod", ImportEvaluatedReduction},
    {"Softmax", ImportSoftmax},
    {"Sum", ImportSum},
};

}  // namespace

absl::Span<const ImportRule> ReduceRules() { return kReduceRules; }

}  // namespace npuc::tf
