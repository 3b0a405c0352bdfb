#include "compiler_core/frontends/torchscript/choice.h"

#include <optional>
#include <utility>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/evaluator.h"
#include "compiler_core/frontends/common/selection.h"
#include "compiler_core/frontends/torchscript/torch_type.h"
#include "compiler_core/frontends/torchscript/truth.h"

namespace npuc::pt {
namespace {

// The row of cores' lists that a choice by a known condition counts as: cores compute a product.
constexpr absl::string_view kRow = "Mul";

Tensor Inverted(const Tensor& flags) {
  std::vector<int64_t> inverted(static_cast<size_t>(flags.element_count()));
  for (size_t i = 0; i < inverted.size(); ++i) {
    inverted[i] = flags.at(static_cast<int64_t>(i)) == 0 ? 1 : 0;
  }
  return CastTensor(Tensor::FromInts(flags.shape(), inverted), DType::kBool);
}

bool IsZero(const Tensor& values) {
  for (int64_t i = 0; i < values.element_count(); ++i) {
    if (values.at(i) != 0) return false;
  }
  return true;
}

// x where the known flags hold, else 0.
absl::StatusOr<ValueRef> Kept(OpCall& call, const Tensor& flags, const ValueRef& x) {
  const ValueRef condition = call.MakeConstant(flags);
  // A constant that is placed for an operator becomes floats; the condition stays a boolean.
  condition->id = call.state().builder.Const(flags, condition->source);
  return call.EmitUnder(kRow, "Select", {condition, x, call.Scalar(0)});
}

// The known a where the flags hold, else the known b, of one type.
absl::StatusOr<Tensor> BothKnown(const Tensor& flags, const Tensor& a, const Tensor& b) {
  const bool has_float = IsFloat(a.dtype()) || IsFloat(b.dtype());
  const DType dtype = has_float                ? DType::kFloat32
                      : a.dtype() == b.dtype() ? a.dtype()
                                               : DType::kInt64;
  return EvaluateSelect(flags, CastTensor(a, dtype), CastTensor(b, dtype));
}

// A choice that Filled() made: `x` where `kept` holds, else `added`, which is 0 where it holds.
struct KnownFill {
  Tensor kept;
  ValueRef x;
  Tensor added;
};

std::optional<KnownFill> KnownFillOf(OpCall& call, const ValueRef& value) {
  const Graph& graph = call.state().builder.graph();
  if (!value->id.valid() || graph.def(value->id).op != Op::kAdd) return std::nullopt;
  const Node& sum = graph.def(value->id);
  const Node& select = graph.def(sum.inputs[0]);
  const Tensor* const added = graph.ConstantOf(sum.inputs[1]);
  if (added == nullptr || select.op != Op::kSelect) return std::nullopt;
  const Tensor* const kept = graph.ConstantOf(select.inputs[0]);
  const Tensor* const rest = graph.ConstantOf(select.inputs[2]);
  if (kept == nullptr || rest == nullptr || kept->shape() != added->shape()) return std::nullopt;
  if (!IsZero(*rest)) return std::nullopt;
  for (int64_t i = 0; i < added->element_count(); ++i) {
    if (kept->at(i) != 0 && added->at(i) != 0) return std::nullopt;
  }
  const ValueRef x =
      frontend::ResultValues(call.state().builder, {select.inputs[1]}, value->source)[0];
  return KnownFill{*kept, x, *added};
}

// The known `fill` where the flags hold, else x. Cores make a product with zeros and ones and a sum
// of it, and 0 times an infinite fill is NaN; so a fill of a filled value is one fill.
absl::StatusOr<ValueRef> Filled(OpCall& call, const Tensor& flags, const Tensor& fill,
                                const ValueRef& x) {
  Tensor kept = Inverted(flags);
  ValueRef from = x;
  ASSIGN_OR_RETURN(Tensor added,
                   BothKnown(flags, CastTensor(fill, DType::kFloat32), Tensor::ScalarFloat(0)));
  if (std::optional<KnownFill> before = KnownFillOf(call, x)) {
    const Tensor none = CastTensor(Tensor::FromInts({}, {0}), DType::kBool);
    ASSIGN_OR_RETURN(added, EvaluateSelect(kept, before->added, added));
    ASSIGN_OR_RETURN(kept, EvaluateSelect(kept, before->kept, none));
    from = before->x;
  }
  ASSIGN_OR_RETURN(const ValueRef rest, Kept(call, kept, from));
  ASSIGN_OR_RETURN(const Shape shape, BroadcastShape(rest->type.shape, added.shape()));
  if (IsZero(added) && rest->type.shape == shape) return rest;
  return call.Emit("Add", {rest, call.MakeConstant(std::move(added))});
}

absl::StatusOr<ValueRef> ChosenByKnown(OpCall& call, const Tensor& flags, const ValueRef& a,
                                       const ValueRef& b) {
  if (a->constant.has_value()) return Filled(call, flags, *a->constant, b);
  if (b->constant.has_value()) return Filled(call, Inverted(flags), *b->constant, a);
  ASSIGN_OR_RETURN(const ValueRef from_a, Kept(call, flags, a));
  ASSIGN_OR_RETURN(const ValueRef from_b, Kept(call, Inverted(flags), b));
  return call.Emit("Add", {from_a, from_b});
}

}  // namespace

absl::StatusOr<ValueRef> Chosen(OpCall& call, const ValueRef& condition, const ValueRef& a,
                                const ValueRef& b) {
  const int64_t type = CommonType({a, b});
  if (condition->constant.has_value()) {
    const Tensor flags = CastTensor(*condition->constant, DType::kBool);
    if (a->constant.has_value() && b->constant.has_value()) {
      ASSIGN_OR_RETURN(Tensor chosen, BothKnown(flags, *a->constant, *b->constant));
      return call.MakeConstant(std::move(chosen));
    }
    ASSIGN_OR_RETURN(const ValueRef chosen, ChosenByKnown(call, flags, a, b));
    return WithTorchType(chosen, type);
  }
  const auto as_floats = [&](const ValueRef& value) {
    if (!value->constant.has_value()) return value;
    return call.MakeConstant(CastTensor(*value->constant, DType::kFloat32));
  };
  ASSIGN_OR_RETURN(const ValueRef truth, Truth(call, condition));
  ASSIGN_OR_RETURN(const ValueRef chosen,
                   frontend::Selected(call, truth, as_floats(a), as_floats(b)));
  return WithTorchType(chosen, type);
}

}  // namespace npuc::pt
