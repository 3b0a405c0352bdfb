// Normalisations.
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/activations.h"
#include "compiler_core/frontends/common/windows.h"
#include "compiler_core/frontends/mxnet/node_import.h"

namespace npuc::mxnet {
namespace {

// MXNet's other results are the mean and the deviation, which training uses.
absl::Status RefuseStatistics(NodeImporter& node) {
  ASSIGN_OR_RETURN(const bool gives_them, node.BoolOr("output_mean_var", false));
  if (!gives_them) return absl::OkStatus();
  return node.FailMode("output_mean_var is True", "leave it out");
}

// The axis brought last, and a value brought back.
absl::StatusOr<ValueRef> AxisLast(NodeImporter& node, const ValueRef& value, int64_t axis) {
  const int64_t rank = static_cast<int64_t>(value->type.shape.size());
  if (axis == rank - 1) return value;
  if (axis == 1 && rank > 2) return ChannelsLast(node, value);
  std::vector<int64_t> perm;
  for (int64_t i = 0; i < rank; ++i) {
    if (i != axis) perm.push_back(i);
  }
  perm.push_back(axis);
  return node.Transposed(value, std::move(perm));
}
absl::StatusOr<ValueRef> AxisBack(NodeImporter& node, const ValueRef& value, int64_t axis) {
  const int64_t rank = static_cast<int64_t>(value->type.shape.size());
  if (axis == rank - 1) return value;
  std::vector<int64_t> perm;
  for (int64_t i = 0; i < rank - 1; ++i) {
    if (i == axis) perm.push_back(rank - 1);
    perm.push_back(i);
  }
  return node.Transposed(value, std::move(perm));
}

// data, gamma, beta, moving mean, moving variance. Where fix_gamma is set, which it is unless the
// model says otherwise, gamma is 1 whatever the file holds.
absl::Status ImportBatchNorm(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(5, 5));
  RETURN_IF_ERROR(RefuseStatistics(node));
  ASSIGN_OR_RETURN(const double epsilon, node.FloatOr("eps", 1e-3));
  ASSIGN_OR_RETURN(const bool fix_gamma, node.BoolOr("fix_gamma", true));
  ASSIGN_OR_RETURN(const int64_t axis, node.AxisOr("axis", 1));
  ASSIGN_OR_RETURN(const ValueRef x, AxisLast(node, node.input(0), axis));
  std::vector<ValueRef> operands = {x};
  for (int i = 1; i < 5; ++i) operands.push_back(node.input(i));
  if (fix_gamma) {
    const std::vector<double> ones(static_cast<size_t>(node.type(1).element_count()), 1);
    operands[1] = node.Floats(node.shape(1), ones, x->type.dtype);
  }
  ASSIGN_OR_RETURN(const ValueRef y, node.Emit("BatchNorm", operands, {{"epsilon", epsilon}}));
  return node.SetOutput(AxisBack(node, y, axis));
}

// A vector that broadcasts along every axis but one.
absl::StatusOr<ValueRef> Along(NodeImporter& node, const ValueRef& value, int64_t axis) {
  const Shape& shape = node.shape(0);
  if (value->type.shape != Shape{shape[static_cast<size_t>(axis)]}) {
    return absl::InvalidArgumentError(absl::StrCat("a parameter is ", TypeToString(value->type),
                                                   " for axis ", axis, " of ",
                                                   TypeToString(node.type(0))));
  }
  Shape stretched(shape.size() - static_cast<size_t>(axis), 1);
  stretched[0] = shape[static_cast<size_t>(axis)];
  return node.Reshaped(value, std::move(stretched));
}

absl::Status SetScaled(NodeImporter& node, const Term& y, int64_t axis) {
  ASSIGN_OR_RETURN(const ValueRef scale, Along(node, node.input(1), axis));
  ASSIGN_OR_RETURN(const ValueRef offset, Along(node, node.input(2), axis));
  const Term shift(node, offset);
  return node.SetOutput((y * Term(node, scale) + shift).value);
}

std::vector<int64_t> AxesFrom(const NodeImporter& node, int64_t first) {
  std::vector<int64_t> axes;
  for (int64_t i = first; i < node.rank(0); ++i) axes.push_back(i);
  return axes;
}

absl::Status ImportInstanceNorm(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(3, 3));
  ASSIGN_OR_RETURN(const double epsilon, node.FloatOr("eps", 1e-3));
  if (node.rank(0) < 3) return absl::InvalidArgumentError("the operand has no spatial dimensions");
  const Term x(node, node.input(0));
  return SetScaled(node, frontend::Normalize(x, AxesFrom(node, 2), epsilon).value, 1);
}

absl::Status ImportLayerNorm(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(3, 3));
  RETURN_IF_ERROR(RefuseStatistics(node));
  ASSIGN_OR_RETURN(const double epsilon, node.FloatOr("eps", 1e-5));
  ASSIGN_OR_RETURN(const int64_t axis, node.AxisOr("axis", -1));
  const Term x(node, node.input(0));
  return SetScaled(node, frontend::Normalize(x, {axis}, epsilon).value, axis);
}

absl::Status ImportL2Normalization(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const double epsilon, node.FloatOr("eps", 1e-10));
  ASSIGN_OR_RETURN(const std::string mode, node.StringOr("mode", "instance"));
  std::vector<int64_t> axes = {1};
  if (mode == "instance") axes = AxesFrom(node, 1);
  if (mode == "spatial") axes = AxesFrom(node, 2);
  if (mode != "instance" && mode != "spatial" && mode != "channel") {
    return node.BadChoice("mode", mode, "instance, channel or spatial");
  }
  if (axes.empty() || node.rank(0) < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("the operand is ", TypeToString(node.type(0)), " and the mode ", mode));
  }
  const Term x(node, node.input(0));
  const Term sums = Reduced("ReduceSum", Apply("Square", x), axes, true) + epsilon;
  const Term norm = Apply("Sqrt", sums);
  return node.SetOutput((x / norm).value);
}

// x / (knorm + alpha / nsize * sum of squares over nsize neighbouring channels) ^ beta
absl::Status ImportLrn(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const int64_t size, node.RequiredInt("nsize"));
  ASSIGN_OR_RETURN(const double alpha, node.FloatOr("alpha", 1e-4));
  ASSIGN_OR_RETURN(const double beta, node.FloatOr("beta", 0.75));
  ASSIGN_OR_RETURN(const double bias, node.FloatOr("knorm", 2));
  if (size < 1 || size > 4096 || size % 2 == 0 || node.rank(0) < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("nsize ", size, " over ", TypeToString(node.type(0))));
  }
  const Term x(node, node.input(0));
  const Term squares = Apply("Square", x);
  RETURN_IF_ERROR(squares.value.status());
  std::vector<int64_t> paddings(2 * node.shape(0).size(), 0);
  paddings[2] = paddings[3] = size / 2;
  ASSIGN_OR_RETURN(const ValueRef padded, node.Padded(*squares.value, std::move(paddings), 0));
  ASSIGN_OR_RETURN(ValueRef sum, node.Sliced(padded, 1, 0, node.shape(0)[1]));
  for (int64_t i = 1; i < size; ++i) {
    ASSIGN_OR_RETURN(const ValueRef part, node.Sliced(padded, 1, i, node.shape(0)[1]));
    ASSIGN_OR_RETURN(sum, node.Emit("Add", {sum, part}));
  }
  const Term base = Term(node, sum) * (alpha / static_cast<double>(size)) + bias;
  const Term power = Pow(base, beta);
  return node.SetOutput((x / power).value);
}

constexpr ImportRule kNormRules[] = {
    {"BatchNorm", ImportBatchNorm, 1},          {"BatchNorm_v1", ImportBatchNorm, 1},
    {"CuDNNBatchNorm", ImportBatchNorm, 1},     {"InstanceNorm", ImportInstanceNorm, 1},
    {"L2Normalization", ImportL2Normalization}, {"LRN", ImportLrn},
    {"LayerNorm", ImportLayerNorm, 1},
};

}  // namespace

absl::Span<const ImportRule> NormRules() { return kNormRules; }

}  // namespace npuc::mxnet
