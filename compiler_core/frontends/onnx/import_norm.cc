// Normalisations.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/activations.h"
#include "compiler_core/frontends/onnx/node_import.h"
#include "compiler_core/frontends/onnx/window_attrs.h"

namespace npuc::onnx {
namespace {

// [C] as [C,1,1...], which broadcasts over the spatial dimensions of [N,C,...].
absl::StatusOr<ValueRef> PerChannel(NodeImporter& node, const ValueRef& value, int64_t rank) {
  Shape shape(static_cast<size_t>(rank - 1), 1);
  if (value->type.shape.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a parameter is ", TypeToString(value->type), "; it must be a vector"));
  }
  shape[0] = value->type.shape[0];
  return node.Reshaped(value, std::move(shape));
}

// Says why a BatchNormalization takes mean and variance from the batch; "" where it does not.
// Operator set 6 has is_test, "If set to nonzero, run spatial batch normalization in test mode,
// default is 0". Sets 7 to 13 tell the modes by the outputs: "Output case #1: Y, mean, var,
// saved_mean, saved_var (training mode). Output case #2: Y (test mode)", whether anything reads
// them or not.
absl::StatusOr<std::string> TrainingModeOf(NodeImporter& node) {
  if (node.opset() >= 14) {
    ASSIGN_OR_RETURN(const bool training, node.BoolOr("training_mode", false));
    return training ? "training_mode is 1" : "";
  }
  if (node.opset() < 7) {
    ASSIGN_OR_RETURN(const bool is_test, node.BoolOr("is_test", false));
    return is_test ? "" : "is_test is 0";
  }
  for (int i = 1; i < node.node().output_count(); ++i) {
    const absl::string_view name = node.node().output(i);
    if (!name.empty()) return absl::StrCat("output ", i, ", '", Printable(name), "', is there");
  }
  return "";
}

absl::Status ImportBatchNorm(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(5, 5));
  ASSIGN_OR_RETURN(const std::string training, TrainingModeOf(node));
  if (!training.empty()) {
    return node.FailMode(absl::StrCat(training, ": mean and variance would come from the batch"),
                         "export the model in inference mode");
  }
  ASSIGN_OR_RETURN(const double epsilon, node.FloatOr("epsilon", 1e-5));
  if (node.rank(0) < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("the operand is ", TypeToString(node.type(0)), "; it must have channels"));
  }
  ValueRef x = node.input(0);
  if (node.rank(0) > 2) {
    ASSIGN_OR_RETURN(x, ChannelsLast(node, x));
  }
  std::vector<ValueRef> operands = {x};
  for (int i = 1; i < 5; ++i) {
    ASSIGN_OR_RETURN(operands.emplace_back(), node.Converted(node.input(i), x->type.dtype));
  }
  ASSIGN_OR_RETURN(ValueRef y, node.Emit("BatchNorm", operands, {{"epsilon", epsilon}}));
  if (node.rank(0) > 2) {
    ASSIGN_OR_RETURN(y, ChannelsFirst(node, y));
  }
  return node.SetOutput(std::move(y));
}

absl::Status ImportInstanceNorm(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(3, 3));
  ASSIGN_OR_RETURN(const double epsilon, node.FloatOr("epsilon", 1e-5));
  if (node.rank(0) < 3) return absl::InvalidArgumentError("the operand has no spatial dimensions");
  std::vector<int64_t> axes;
  for (int64_t i = 2; i < node.rank(0); ++i) axes.push_back(i);
  ASSIGN_OR_RETURN(const ValueRef scale, PerChannel(node, node.input(1), node.rank(0)));
  ASSIGN_OR_RETURN(const ValueRef offset, PerChannel(node, node.input(2), node.rank(0)));
  const Term x(node, node.input(0));
  const Term y = Normalize(x, axes, epsilon).value;
  const Term shift(node, offset);
  return node.SetOutput((y * Term(node, scale) + shift).value);
}

absl::Status ImportGroupNorm(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(3, 3));
  ASSIGN_OR_RETURN(const double epsilon, node.FloatOr("epsilon", 1e-5));
  ASSIGN_OR_RETURN(const int64_t groups, node.RequiredInt("num_groups"));
  const Shape& shape = node.shape(0);
  if (node.rank(0) < 2 || groups < 1 || shape[1] % groups != 0) {
    return absl::InvalidArgumentError(absl::StrCat("the operand is ", TypeToString(node.type(0)),
                                                   " and the groups are ", groups));
  }
  ASSIGN_OR_RETURN(
      ValueRef x,
      node.Reshaped(
          node.input(0),
          {shape[0], groups,
           groups == 0 || shape[0] == 0 ? 0 : node.type(0).element_count() / (shape[0] * groups)}));
  Term y = Normalize(Term(node, x), {2}, epsilon).value;
  RETURN_IF_ERROR(y.value.status());
  ASSIGN_OR_RETURN(x, node.Reshaped(*y.value, shape));
  // Before operator set 21 there is one parameter a group.
  std::vector<ValueRef> parameters;
  for (int i = 1; i < 3; ++i) {
    ValueRef value = node.input(i);
    if (node.rank(i) == 1 && node.shape(i)[0] == groups && groups != shape[1]) {
      ASSIGN_OR_RETURN(value, node.Reshaped(value, {groups, 1}));
      const ValueRef ones =
          node.Floats({groups, shape[1] / groups},
                      std::vector<double>(static_cast<size_t>(shape[1]), 1), value->type.dtype);
      ASSIGN_OR_RETURN(value, node.Emit("Mul", {value, ones}));
      ASSIGN_OR_RETURN(value, node.Reshaped(value, {shape[1]}));
    }
    ASSIGN_OR_RETURN(parameters.emplace_back(), PerChannel(node, value, node.rank(0)));
  }
  y = Term(node, x);
  y = y * Term(node, parameters[0]);
  return node.SetOutput((y + Term(node, parameters[1])).value);
}

// The axes from attribute `axis` on, the last one where it is left out.
absl::StatusOr<std::vector<int64_t>> TrailingAxes(NodeImporter& node) {
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", -1));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0)));
  std::vector<int64_t> axes;
  for (int64_t i = axis; i < node.rank(0); ++i) axes.push_back(i);
  return axes;
}

absl::Status ImportLayerNorm(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 3));
  ASSIGN_OR_RETURN(const std::vector<int64_t> axes, TrailingAxes(node));
  ASSIGN_OR_RETURN(const double epsilon, node.FloatOr("epsilon", 1e-5));
  const frontend::Normalized normal = Normalize(Term(node, node.input(0)), axes, epsilon);
  const Term weight(node, node.input(1));
  Term y = normal.value * weight;
  if (node.has(2)) y = y + Term(node, node.input(2));
  RETURN_IF_ERROR(y.value.status());
  return node.SetOutputs({*y.value, *normal.mean.value, *normal.scale.value});
}

absl::Status ImportRmsNorm(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const std::vector<int64_t> axes, TrailingAxes(node));
  ASSIGN_OR_RETURN(const double epsilon, node.FloatOr("epsilon", 1e-5));
  const Term x(node, node.input(0));
  const Term inverse = frontend::InverseDeviation(x, axes, epsilon);
  const Term y = x * inverse;
  return node.SetOutput((y * Term(node, node.input(1))).value);
}

absl::Status ImportMvn(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(std::vector<int64_t> axes, node.IntsOr("axes", {0, 2, 3}));
  ASSIGN_OR_RETURN(axes, node.Axes(std::move(axes), node.rank(0)));
  const Term x(node, node.input(0));
  const Term centred = x - Reduced("ReduceMean", x, axes, true);
  const Term deviation =
      Apply("Sqrt", Reduced("ReduceMean", Apply("Square", centred), axes, true)) + 1e-9;
  return node.SetOutput((centred / deviation).value);
}

absl::Status ImportLpNorm(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", -1));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0)));
  ASSIGN_OR_RETURN(const int64_t p, node.IntOr("p", 2));
  if (p != 1 && p != 2) return node.FailMode(absl::StrCat("p is ", p), "use p 1 or 2");
  const Term x(node, node.input(0));
  const Term norm = Norm(x, p, {axis}, true);
  return node.SetOutput((x / norm).value);
}

// x / (bias + alpha / size * sum of squares over `size` neighbouring channels) ^ beta
absl::Status ImportLrn(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const int64_t size, node.RequiredInt("size"));
  ASSIGN_OR_RETURN(const double alpha, node.FloatOr("alpha", 1e-4));
  ASSIGN_OR_RETURN(const double beta, node.FloatOr("beta", 0.75));
  ASSIGN_OR_RETURN(const double bias, node.FloatOr("bias", 1));
  constexpr int64_t kMostChannels = 1 << 12;
  if (size < 1 || size > kMostChannels || node.rank(0) < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("size ", size, " over ", TypeToString(node.type(0))));
  }
  const Term x(node, node.input(0));
  const Term squares = Apply("Square", x);
  RETURN_IF_ERROR(squares.value.status());
  std::vector<int64_t> paddings(2 * node.shape(0).size(), 0);
  paddings[2] = (size - 1) / 2;
  paddings[3] = size - 1 - paddings[2];
  ASSIGN_OR_RETURN(const ValueRef padded, node.Padded(*squares.value, paddings, 0));
  ValueRef sum;
  for (int64_t i = 0; i < size; ++i) {
    ASSIGN_OR_RETURN(const ValueRef part, node.Sliced(padded, 1, i, node.shape(0)[1]));
    if (sum == nullptr) {
      sum = part;
      continue;
    }
    ASSIGN_OR_RETURN(sum, node.Emit("Add", {sum, part}));
  }
  const Term base = Term(node, sum) * (alpha / static_cast<double>(size)) + bias;
  return node.SetOutput((x / Pow(base, beta)).value);
}

constexpr ImportRule kNormRules[] = {
    {"BatchNormalization", ImportBatchNorm},       {"GroupNormalization", ImportGroupNorm},
    {"InstanceNormalization", ImportInstanceNorm}, {"LRN", ImportLrn},
    {"LayerNormalization", ImportLayerNorm},       {"LpNormalization", ImportLpNorm},
    {"MeanVarianceNormalization", ImportMvn},      {"RMSNormalization", ImportRmsNorm},
};

}  // namespace

absl::Span<const ImportRule> NormRules() { return kNormRules; }

}  // namespace npuc::onnx
