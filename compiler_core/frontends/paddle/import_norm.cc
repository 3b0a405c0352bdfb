// Normalisations.
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/activations.h"
#include "compiler_core/frontends/common/windows.h"
#include "compiler_core/frontends/paddle/op_import.h"

namespace npuc::paddle {
namespace {

absl::Status ImportBatchNorm(OpImporter& node) {
  ASSIGN_OR_RETURN(const double epsilon, node.FloatOr("epsilon", 1e-5));
  ASSIGN_OR_RETURN(const bool is_last, IsChannelsLast(node, "data_layout"));
  std::vector<ValueRef> operands;
  for (const char* parameter : {"X", "Scale", "Bias", "Mean", "Variance"}) {
    ASSIGN_OR_RETURN(operands.emplace_back(), node.In(parameter));
  }
  const size_t rank = operands[0]->type.shape.size();
  if (rank < 2) return absl::InvalidArgumentError("an operand without channels");
  const bool turns = rank > 2 && !is_last;
  if (turns) {
    ASSIGN_OR_RETURN(operands[0], ChannelsLast(node, operands[0]));
  }
  ASSIGN_OR_RETURN(ValueRef y, node.Emit("BatchNorm", operands, {{"epsilon", epsilon}}));
  if (turns) {
    ASSIGN_OR_RETURN(y, ChannelsFirst(node, y));
  }
  return node.Give("Y", std::move(y));
}

// y * scale + bias, each of a shape that broadcasts, where they are there.
absl::StatusOr<ValueRef> ScaledAndShifted(OpImporter& node, Term y, const Shape& shape) {
  for (const char* parameter : {"Scale", "Bias"}) {
    if (!node.Takes(parameter)) continue;
    ASSIGN_OR_RETURN(const ValueRef value, node.Reshaped(node.Optional(parameter), shape));
    const Term factor(node, value);
    y = parameter[0] == 'S' ? y * factor : y + factor;
  }
  return y.value;
}

absl::Status ImportInstanceNorm(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("X"));
  ASSIGN_OR_RETURN(const double epsilon, node.FloatOr("epsilon", 1e-5));
  const Shape& in = x->type.shape;
  if (in.size() < 3) return absl::InvalidArgumentError("an operand without spatial dimensions");
  std::vector<int64_t> axes;
  for (size_t i = 2; i < in.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  Shape channels(in.size() - 1, 1);
  channels[0] = in[1];
  return node.Give(
      "Y",
      ScaledAndShifted(node, frontend::Normalize(Term(node, x), axes, epsilon).value, channels));
}

absl::Status ImportLayerNorm(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("X"));
  ASSIGN_OR_RETURN(const double epsilon, node.FloatOr("epsilon", 1e-5));
  ASSIGN_OR_RETURN(int64_t begin, node.IntOr("begin_norm_axis", 1));
  const Shape& in = x->type.shape;
  const auto rank = static_cast<int64_t>(in.size());
  ASSIGN_OR_RETURN(begin, node.Axis(begin, rank));
  std::vector<int64_t> axes;
  for (int64_t i = begin; i < rank; ++i) axes.push_back(i);
  return node.Give("Y",
                   ScaledAndShifted(node, frontend::Normalize(Term(node, x), axes, epsilon).value,
                                    Shape(in.begin() + begin, in.end())));
}

absl::Status ImportGroupNorm(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("X"));
  ASSIGN_OR_RETURN(const double epsilon, node.FloatOr("epsilon", 1e-5));
  ASSIGN_OR_RETURN(const int64_t groups, node.IntOr("groups", 1));
  ASSIGN_OR_RETURN(const bool is_last, IsChannelsLast(node, "data_layout"));
  const Shape in = x->type.shape;
  if (is_last || in.size() < 2 || groups < 1 || in[1] % groups != 0 || in[0] < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(groups, " groups over ", TypeToString(x->type), ", channels first"));
  }
  ASSIGN_OR_RETURN(const ValueRef rows,
                   node.Reshaped(x, {in[0], groups, x->type.element_count() / (in[0] * groups)}));
  const Term normal = frontend::Normalize(Term(node, rows), {2}, epsilon).value;
  RETURN_IF_ERROR(normal.value.status());
  ASSIGN_OR_RETURN(const ValueRef y, node.Reshaped(*normal.value, in));
  Shape channels(in.size() - 1, 1);
  channels[0] = in[1];
  return node.Give("Y", ScaledAndShifted(node, Term(node, y), channels));
}

// x / sqrt(sum of squares along the axis + epsilon)
absl::Status ImportL2Norm(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("X"));
  ASSIGN_OR_RETURN(const double epsilon, node.FloatOr("epsilon", 1e-10));
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", -1));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, static_cast<int64_t>(x->type.shape.size())));
  const Term term(node, x);
  const Term sum = Reduced("ReduceSum", Apply("Square", term), {axis}, true);
  const Term length = Apply("Sqrt", sum + epsilon);
  return node.Give("Out", (term / length).value);
}

// x / (k + alpha * sum of squares over n neighbouring channels) ^ beta
absl::Status ImportLrn(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("X"));
  ASSIGN_OR_RETURN(const int64_t n, node.IntOr("n", 5));
  ASSIGN_OR_RETURN(const double k, node.FloatOr("k", 2));
  ASSIGN_OR_RETURN(const double alpha, node.FloatOr("alpha", 1e-4));
  ASSIGN_OR_RETURN(const double beta, node.FloatOr("beta", 0.75));
  ASSIGN_OR_RETURN(const bool is_last, IsChannelsLast(node, "data_format"));
  const Shape& in = x->type.shape;
  if (n < 1 || n > 4096 || in.size() != 4) {
    return absl::InvalidArgumentError(absl::StrCat("n ", n, " over ", TypeToString(x->type)));
  }
  ASSIGN_OR_RETURN(const ValueRef squares, node.Emit("Square", {x}));
  const size_t channels = is_last ? 3 : 1;
  std::vector<int64_t> paddings(8, 0);
  paddings[2 * channels] = (n - 1) / 2;
  paddings[2 * channels + 1] = n - 1 - (n - 1) / 2;
  ASSIGN_OR_RETURN(const ValueRef padded, node.Padded(squares, std::move(paddings), 0));
  ValueRef sum;
  for (int64_t i = 0; i < n; ++i) {
    ASSIGN_OR_RETURN(const ValueRef part,
                     node.Sliced(padded, static_cast<int64_t>(channels), i, in[channels]));
    if (sum == nullptr) {
      sum = part;
      continue;
    }
    ASSIGN_OR_RETURN(sum, node.Emit("Add", {sum, part}));
  }
  const Term divisor = Pow(Term(node, sum) * alpha + k, beta);
  return node.Give("Out", (Term(node, x) / divisor).value);
}

constexpr ImportRule kNormRules[] = {
    {"batch_norm", ImportBatchNorm},
    {"group_norm", ImportGroupNorm},
    {"instance_norm", ImportInstanceNorm},
    {"layer_norm", ImportLayerNorm},
    {"lrn", ImportLrn},
    {"norm", ImportL2Norm},
    {"sync_batch_norm", ImportBatchNorm},
};

}  // namespace

absl::Span<const ImportRule> NormRules() { return kNormRules; }

}  // namespace npuc::paddle
