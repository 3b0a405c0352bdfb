// Reductions and what is made of them.
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/evaluator.h"
#include "compiler_core/frontends/common/selection.h"
#include "compiler_core/frontends/tflite/node_import.h"
#include "npuc/fe/tflite/npuc_tflite_generated.h"

namespace npuc::tflite {
namespace {

struct Reduction {
  std::vector<int64_t> axes;
  bool keep_dims = false;
};

absl::StatusOr<Reduction> ReadReduction(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  Reduction reduction;
  ASSIGN_OR_RETURN(reduction.axes, node.ConstantInts(1, "axes"));
  ASSIGN_OR_RETURN(reduction.axes, node.Axes(std::move(reduction.axes), node.rank(0)));
  const auto* options = node.raw().options_as_ReducerOptions();
  reduction.keep_dims = options != nullptr && options->keep_dims();
  return reduction;
}

absl::Status Reduce(NodeImporter& node, absl::string_view op) {
  ASSIGN_OR_RETURN(Reduction reduction, ReadReduction(node));
  return node.SetOutput(
      node.Reduced(op, node.input(0), std::move(reduction.axes), reduction.keep_dims));
}

absl::Status ImportMean(NodeImporter& node) { return Reduce(node, "ReduceMean"); }
absl::Status ImportSum(NodeImporter& node) { return Reduce(node, "ReduceSum"); }
absl::Status ImportMax(NodeImporter& node) { return Reduce(node, "ReduceMax"); }

// The least is the greatest of the negated ones.
absl::Status ImportMin(NodeImporter& node) {
  ASSIGN_OR_RETURN(Reduction reduction, ReadReduction(node));
  ASSIGN_OR_RETURN(const ValueRef negated, node.Emit("Neg", {node.input(0)}));
  const Term greatest(
      node, node.Reduced("ReduceMax", negated, std::move(reduction.axes), reduction.keep_dims));
  return node.SetOutput((-greatest).value);
}

absl::Status Evaluate(NodeImporter& node, absl::string_view op) {
  ASSIGN_OR_RETURN(const Reduction reduction, ReadReduction(node));
  ASSIGN_OR_RETURN(const Tensor x, node.Constant(0, "operand"));
  return node.SetConstant(EvaluateReduction(op, x, reduction.axes, reduction.keep_dims));
}

absl::Status ImportProd(NodeImporter& node) { return Evaluate(node, "Prod"); }

absl::Status ImportLogic(NodeImporter& node) {
  const bool all = node.op() == "REDUCE_ALL";
  if (node.IsConstant(0)) return Evaluate(node, all ? "All" : "Any");
  ASSIGN_OR_RETURN(Reduction reduction, ReadReduction(node));
  return node.SetOutput(frontend::ReducedLogic(node, all, node.input(0), std::move(reduction.axes),
                                               reduction.keep_dims));
}

// Operands: value, axis.
absl::Status ImportArg(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(int64_t axis, node.ConstantInt(1, "axis"));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0)));
  return node.SetOutput(frontend::ArgOf(
      node, node.input(0),
      {.axis = axis, .is_min = node.op() == "ARG_MIN", .dtype = node.output(0).type.dtype}));
}

// The largest elements of the last dimension and their indices.
absl::Status ImportTopK(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const int64_t k, node.ConstantInt(1, "k"));
  ASSIGN_OR_RETURN(frontend::Extrema extrema,
                   frontend::ExtremaOf(node, node.input(0), node.rank(0) - 1, k, false));
  ASSIGN_OR_RETURN(extrema.indices, frontend::CastTo(node, extrema.indices, DType::kInt32));
  return node.SetOutputs({std::move(extrema.values), std::move(extrema.indices)});
}

absl::Status ImportSoftmax(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const auto* options, node.Required(node.raw().options_as_SoftmaxOptions()));
  const Term x = Term(node, node.input(0)) * static_cast<double>(options->beta());
  RETURN_IF_ERROR(x.value.status());
  return node.EmitOutput("Softmax", {*x.value}, {{"axis", int64_t{-1}}});
}

absl::Status ImportLogSoftmax(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  return node.EmitOutput("LogSoftmax", {node.input(0)}, {{"axis", int64_t{-1}}});
}

// x / max(sqrt(sum of squares), 1e-6) along the last dimension. The float kernel bounds the root
// and not the sum: with the bound of the sum, 1e-12, both are the same function.
// Source: kernels/internal/reference/l2normalization.h.
absl::Status ImportL2Normalization(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  if (node.rank(0) < 1) return absl::InvalidArgumentError("a scalar operand");
  const Term x(node, node.input(0));
  const Term sum = Reduced("ReduceSum", Apply("Square", x), {node.rank(0) - 1}, true);
  const auto* options = node.raw().options_as_L2NormOptions();
  return node.SetActivated((x * Apply("Rsqrt", Max(sum, 1e-12))).value,
                           options == nullptr ? 0 : options->activation());
}

constexpr ImportRule kReduceRules[] = {
    {"ARG_MAX", ImportArg},
    {"ARG_MIN", ImportArg},
    {"L2_NORMALIZATION", ImportL2Normalization},
    {"LOG_SOFTMAX", ImportLogSoftmax},
    {"MEAN", ImportMean},
    {"REDUCE_ALL", ImportLogic},
    {"REDUCE_ANY", ImportLogic},
    {"REDUCE_MAX", ImportMax},
    {"REDUCE_MIN", ImportMin},
    {"REDUCE_PROD", ImportProd},
    {"SOFTMAX", ImportSoftmax},
    {"SUM", ImportSum},
    {"TOPK_V2", ImportTopK},
};

}  // namespace

absl::Span<const ImportRule> ReduceRules() { return kReduceRules; }

}  // namespace npuc::tflite
