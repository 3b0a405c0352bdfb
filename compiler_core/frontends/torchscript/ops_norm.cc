// Normalisation.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/activations.h"
#include "compiler_core/frontends/torchscript/layers.h"
#include "compiler_core/frontends/torchscript/layout.h"
#include "compiler_core/frontends/torchscript/op_call.h"

namespace npuc::pt {
namespace {

// A parameter of one value a channel, or that many of `fallback`.
absl::StatusOr<ValueRef> ChannelParameter(OpCall& call, int arg, int64_t channels, float fallback) {
  ASSIGN_OR_RETURN(ValueRef value, call.OptionalTensor(arg));
  if (value != nullptr) return value;
  return call.MakeConstant(
      Tensor::FromFloats({channels}, std::vector<float>(static_cast<size_t>(channels), fallback)));
}

// input, weight, bias, running_mean, running_var, training, momentum, eps
absl::StatusOr<ScriptValue> ImportBatchNorm(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const bool trains, call.BoolOr(5, false));
  if (trains || !call.Has(3) || !call.Has(4)) {
    return call.Fail(DiagnosticKind::kUnsupportedOperatorMode,
                     "batch_norm runs in training mode: its statistics come from the batch",
                     "call model.eval() before torch.jit.trace or torch.jit.script");
  }
  const size_t rank = x->type.shape.size();
  if (rank < 2) return absl::InvalidArgumentError("the input must have channels");
  const int64_t channels = x->type.shape[1];
  ASSIGN_OR_RETURN(const ValueRef scale, ChannelParameter(call, 1, channels, 1));
  ASSIGN_OR_RETURN(const ValueRef offset, ChannelParameter(call, 2, channels, 0));
  ASSIGN_OR_RETURN(const ValueRef mean, call.TensorArg(3));
  ASSIGN_OR_RETURN(const ValueRef variance, call.TensorArg(4));
  ASSIGN_OR_RETURN(const double epsilon, call.FloatOr(7, 1e-5));
  ASSIGN_OR_RETURN(ValueRef y, ChannelsToLast(call, x));
  ASSIGN_OR_RETURN(y, call.EmitUnder(rank == 4 ? "BatchNorm2d" : "BatchNorm1d", "BatchNorm",
                                     {y, scale, offset, mean, variance}, {{"epsilon", epsilon}}));
  return call.Result(ChannelsFromLast(call, y));
}

absl::StatusOr<ValueRef> Scaled(OpCall& call, ValueRef y, const ValueRef& weight,
                                const ValueRef& bias) {
  if (weight != nullptr) {
    ASSIGN_OR_RETURN(y, call.Emit("Mul", {y, weight}));
  }
  if (bias != nullptr) {
    ASSIGN_OR_RETURN(y, call.Emit("Add", {y, bias}));
  }
  return y;
}

absl::StatusOr<ScriptValue> ImportLayerNorm(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const std::vector<int64_t> shape, call.Ints(1));
  ASSIGN_OR_RETURN(const ValueRef weight, call.OptionalTensor(2));
  ASSIGN_OR_RETURN(const ValueRef bias, call.OptionalTensor(3));
  ASSIGN_OR_RETURN(const double epsilon, call.FloatOr(4, 1e-5));
  ASSIGN_OR_RETURN(ValueRef y,
                   LayerNorm(call, x, static_cast<int64_t>(shape.size()), weight, bias, epsilon));
  return call.Result(std::move(y));
}

// Each group of channels by itself; with as many groups as channels it is instance norm.
absl::StatusOr<ValueRef> GroupNorm(OpCall& call, const ValueRef& x, int64_t groups, ValueRef weight,
                                   ValueRef bias, double epsilon) {
  const Shape shape = x->type.shape;
  if (shape.size() < 2 || groups < 1 || shape[1] % groups != 0 || shape[0] < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(groups, " groups do not fit ", TypeToString(x->type)));
  }
  const int64_t rest = x->type.element_count() / (shape[0] * groups);
  ASSIGN_OR_RETURN(ValueRef y, call.Reshaped(x, {shape[0], groups, rest}));
  ASSIGN_OR_RETURN(y, Normalize(Term(call, y), {2}, epsilon).value.value);
  ASSIGN_OR_RETURN(y, call.Reshaped(y, shape));
  Shape channels(shape.size() - 1, 1);
  channels[0] = shape[1];
  for (ValueRef* parameter : {&weight, &bias}) {
    if (*parameter == nullptr) continue;
    ASSIGN_OR_RETURN(*parameter, call.Reshaped(*parameter, channels));
  }
  return Scaled(call, std::move(y), weight, bias);
}

absl::StatusOr<ScriptValue> ImportGroupNorm(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const int64_t groups, call.Int(1));
  ASSIGN_OR_RETURN(const ValueRef weight, call.OptionalTensor(2));
  ASSIGN_OR_RETURN(const ValueRef bias, call.OptionalTensor(3));
  ASSIGN_OR_RETURN(const double epsilon, call.FloatOr(4, 1e-5));
  return call.Result(GroupNorm(call, x, groups, weight, bias, epsilon));
}

// input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps
absl::StatusOr<ScriptValue> ImportInstanceNorm(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const bool own, call.BoolOr(5, true));
  if (!own) return call.FailMode("instance_norm with running statistics", "use BatchNorm");
  ASSIGN_OR_RETURN(const ValueRef weight, call.OptionalTensor(1));
  ASSIGN_OR_RETURN(const ValueRef bias, call.OptionalTensor(2));
  ASSIGN_OR_RETURN(const double epsilon, call.FloatOr(7, 1e-5));
  if (x->type.shape.size() < 3) return absl::InvalidArgumentError("the input has no extent");
  return call.Result(GroupNorm(call, x, x->type.shape[1], weight, bias, epsilon));
}

// What torch.nn.utils.weight_norm computes a weight by: v * g / |v|, the norm over all dimensions
// but one (all where dim is -1).
absl::StatusOr<ScriptValue> ImportWeightNorm(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef v, call.TensorArg(0));
  ASSIGN_OR_RETURN(const ValueRef g, call.TensorArg(1));
  ASSIGN_OR_RETURN(const int64_t dim, call.IntOr(2, 0));
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < static_cast<int64_t>(v->type.shape.size()); ++axis) {
    if (axis != dim) axes.push_back(axis);
  }
  const Term norm = Norm(Term(call, v), 2, axes, /*keep_dims=*/true);
  const Term scale = Term(call, g) / norm;
  return call.Result((Term(call, v) * scale).value);
}

constexpr OpRule kNormRules[] = {
    {"_weight_norm", "v g dim", ImportWeightNorm},
    {"batch_norm", "input weight bias running_mean running_var training momentum eps cudnn_enabled",
     ImportBatchNorm},
    {"group_norm", "input num_groups weight bias eps cudnn_enabled", ImportGroupNorm},
    {"instance_norm",
     "input weight bias running_mean running_var use_input_stats momentum eps cudnn_enabled",
     ImportInstanceNorm},
    {"layer_norm", "input normalized_shape weight bias eps cudnn_enable", ImportLayerNorm},
};

}  // namespace

absl::StatusOr<ValueRef> LayerNorm(OpCall& call, const ValueRef& x, int64_t count,
                                   const ValueRef& weight, const ValueRef& bias, double epsilon) {
  const auto rank = static_cast<int64_t>(x->type.shape.size());
  if (count > rank || count < 1) return absl::InvalidArgumentError("the shape does not fit");
  std::vector<int64_t> axes;
  for (int64_t axis = rank - count; axis < rank; ++axis) axes.push_back(axis);
  ASSIGN_OR_RETURN(ValueRef y, Normalize(Term(call, x), axes, epsilon).value.value);
  return Scaled(call, std::move(y), weight, bias);
}

absl::Span<const OpRule> NormRules() { return kNormRules; }

}  // namespace npuc::pt
