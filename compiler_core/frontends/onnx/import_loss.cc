// Losses over known labels: a mask of the labels' places picks the probabilities.
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/evaluator.h"
#include "compiler_core/frontends/onnx/node_import.h"

namespace npuc::onnx {
namespace {

// 1 where the class is the label and the label is not ignored: [N,C,...] for labels [N,...].
absl::StatusOr<ValueRef> LabelMask(NodeImporter& node, const Shape& shape, DType dtype) {
  ASSIGN_OR_RETURN(const Tensor labels, node.Constant(1, "labels"));
  const bool has_ignored = node.node().HasAttr("ignore_index");
  ASSIGN_OR_RETURN(const int64_t ignored, node.IntOr("ignore_index", 0));
  Shape label_shape = shape;
  if (shape.size() >= 2) label_shape.erase(label_shape.begin() + 1);
  if (shape.size() < 2 || labels.shape() != label_shape || !IsInteger(labels.dtype()) ||
      ElementCount(shape) > kMaxEvaluatedElements) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the scores are ", ShapeToString(shape), " and the labels ", TypeToString(labels.type())));
  }
  const int64_t classes = shape[1];
  int64_t inner = 1;
  for (size_t i = 2; i < shape.size(); ++i) inner *= shape[i];
  std::vector<double> mask(static_cast<size_t>(ElementCount(shape)), 0);
  for (int64_t i = 0; i < labels.element_count(); ++i) {
    const int64_t label = labels.int_at(i);
    if (has_ignored && label == ignored) continue;
    if (label < 0 || label >= classes) {
      return absl::InvalidArgumentError(
          absl::StrCat("label ", label, " is not one of ", classes, " classes"));
    }
    mask[static_cast<size_t>((i / inner * classes + label) * inner + i % inner)] = 1;
  }
  return node.Floats(shape, mask, dtype);
}

// -mask * weight * log_probabilities, summed over the classes and reduced.
absl::StatusOr<ValueRef> Loss(NodeImporter& node, const Term& log_probabilities) {
  RETURN_IF_ERROR(log_probabilities.value.status());
  const TensorType type = (*log_probabilities.value)->type;
  ASSIGN_OR_RETURN(ValueRef mask, LabelMask(node, type.shape, type.dtype));
  if (node.has(2)) {
    if (node.shape(2) != Shape{type.shape[1]}) {
      return absl::InvalidArgumentError(
          absl::StrCat("the weights are ", TypeToString(node.type(2))));
    }
    Shape column(type.shape.size() - 1, 1);
    column[0] = type.shape[1];
    ASSIGN_OR_RETURN(const ValueRef weight, node.Reshaped(node.input(2), std::move(column)));
    ASSIGN_OR_RETURN(mask, node.Emit("Mul", {mask, weight}));
  }
  ASSIGN_OR_RETURN(const std::string reduction, node.StringOr("reduction", "mean"));
  const Term picked = -(log_probabilities * Term(node, mask));
  RETURN_IF_ERROR(picked.value.status());
  if (reduction == "none") return node.Reduced("ReduceSum", *picked.value, {1}, false);
  std::vector<int64_t> all;
  for (size_t i = 0; i < type.shape.size(); ++i) all.push_back(static_cast<int64_t>(i));
  const Term sum(node, node.Reduced("ReduceSum", *picked.value, all, false));
  if (reduction == "sum") return sum.value;
  if (reduction != "mean") {
    return node.BadAttribute(absl::InvalidArgumentError(absl::StrCat(
        "attribute 'reduction' is '", Printable(reduction), "'; allowed are none, sum and mean")));
  }
  return (sum / Term(node, node.Reduced("ReduceSum", mask, all, false))).value;
}

absl::Status ImportNll(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 3));
  return node.SetOutput(Loss(node, Term(node, node.input(0))));
}

absl::Status ImportSoftmaxCrossEntropy(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 3));
  const Term log_probabilities(node,
                               node.Emit("LogSoftmax", {node.input(0)}, {{"axis", int64_t{1}}}));
  ASSIGN_OR_RETURN(const ValueRef loss, Loss(node, log_probabilities));
  return node.SetOutputs({loss, *log_probabilities.value});
}

constexpr ImportRule kLossRules[] = {
    {"NegativeLogLikelihoodLoss", ImportNll},
    {"SoftmaxCrossEntropyLoss", ImportSoftmaxCrossEntropy},
};

}  // namespace

absl::Span<const ImportRule> LossRules() { return kLossRules; }

}  // namespace npuc::onnx
