#include "compiler_core/frontends/torchscript/truth.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/evaluator.h"
#include "compiler_core/frontends/common/selection.h"
#include "compiler_core/frontends/torchscript/torch_type.h"
#include "compiler_core/ops/op.h"

namespace npuc::pt {
namespace {

// The operand of the Cast that gave the value, if `wanted` accepts its type; null otherwise.
ValueRef CastFrom(OpCall& call, const ValueRef& value, bool (*wanted)(DType dtype)) {
  if (!value->id.valid()) return nullptr;
  const Graph& graph = call.state().builder.graph();
  const Node& node = graph.def(value->id);
  if (node.op != Op::kCast || !wanted(graph.type(node.inputs[0]).dtype)) return nullptr;
  return frontend::ResultValues(call.state().builder, {node.inputs[0]}, value->source)[0];
}

// Towards zero: floor(max(x, 0)) - floor(max(-x, 0)).
absl::StatusOr<ValueRef> Truncated(OpCall& call, const ValueRef& x) {
  ASSIGN_OR_RETURN(ValueRef above, call.Emit("Relu", {x}));
  ASSIGN_OR_RETURN(ValueRef below, call.Emit("Neg", {x}));
  ASSIGN_OR_RETURN(below, call.Emit("Relu", {below}));
  ASSIGN_OR_RETURN(above, frontend::ComputedUnary(call, "Floor", above));
  ASSIGN_OR_RETURN(below, frontend::ComputedUnary(call, "Floor", below));
  return call.Emit("Sub", {above, below});
}

// a - b * floor(a / b)
absl::StatusOr<ValueRef> Remainder(OpCall& call, const ValueRef& a, const ValueRef& b) {
  ASSIGN_OR_RETURN(ValueRef y, call.Emit("Div", {a, b}));
  ASSIGN_OR_RETURN(y, call.Emit("Floor", {y}));
  ASSIGN_OR_RETURN(y, call.Emit("Mul", {y, b}));
  return call.Emit("Sub", {a, y});
}

// The shared evaluator's name of a comparison; "" of anything else.
absl::string_view ComparisonOf(absl::string_view op) {
  if (op == "eq") return "Equal";
  if (op == "ne") return "NotEqual";
  if (op == "lt") return "Less";
  if (op == "le") return "LessEqual";
  if (op == "gt") return "Greater";
  if (op == "ge") return "GreaterEqual";
  return "";
}

// Its name of another operator; "" of anything else.
absl::string_view ArithmeticOf(absl::string_view op) {
  if (op == "floor") return "Floor";
  if (op == "ceil") return "Ceil";
  if (op == "round") return "Round";
  if (op == "sin") return "Sin";
  if (op == "cos") return "Cos";
  if (op == "floor_divide") return "FloorDiv";
  if (op == "remainder") return "FloorMod";
  return "";
}

}  // namespace

absl::StatusOr<ValueRef> Truth(OpCall& call, const ValueRef& value) {
  if (value->constant.has_value()) {
    return call.MakeConstant(CastTensor(*value->constant, DType::kBool));
  }
  if (value->type.dtype == DType::kBool) return value;
  ValueRef from = CastFrom(call, value, [](DType dtype) { return dtype == DType::kBool; });
  if (from != nullptr) return from;
  return frontend::ComputedBinary(call, "NotEqual", value, call.Scalar(0));
}

absl::StatusOr<ValueRef> Indices(OpCall& call, const ValueRef& value) {
  if (value->constant.has_value()) {
    return call.MakeConstant(CastTensor(*value->constant, DType::kInt64));
  }
  ValueRef from = CastFrom(call, value, &IsInteger);
  if (from != nullptr) return from;
  return call.Emit("Cast", {value}, {{"dtype", std::string("i64")}, {kWholeFact, true}});
}

absl::StatusOr<ValueRef> AsFloats(OpCall& call, absl::StatusOr<ValueRef> value) {
  RETURN_IF_ERROR(value.status());
  if ((*value)->constant.has_value()) return value;
  ASSIGN_OR_RETURN(const ValueRef floats, frontend::CastTo(call, *value, DType::kFloat32));
  return WithTorchType(floats, TorchTypeOf((*value)->type.dtype));
}

absl::StatusOr<ValueRef> ConvertedTo(OpCall& call, const ValueRef& value, int64_t type) {
  const DType to = ElementTypeOf(type);
  if (to == DType::kInvalid) {
    return call.FailMode(absl::StrCat("a conversion to type ", type), "use float32");
  }
  if (TorchTypeOf(value) == type) return value;
  if (value->constant.has_value()) {
    const bool is_wide = to == DType::kFloat64 && value->type.element_count() > 1;
    const DType dtype = is_wide ? DType::kFloat32 : to;
    return WithTorchType(call.MakeConstant(CastTensor(*value->constant, dtype)), type);
  }
  if (IsFloat(to)) return WithTorchType(value, type);
  if (to != DType::kBool) return AsFloats(call, frontend::CastTo(call, value, to));
  return AsFloats(call, Truth(call, value));
}

absl::StatusOr<ValueRef> ComputedAtRunTime(OpCall& call, absl::string_view op, const ValueRef& a,
                                           const ValueRef& b) {
  const auto as_float = [&](const ValueRef& value) {
    if (value == nullptr || !value->constant.has_value()) return value;
    return call.MakeConstant(CastTensor(*value->constant, DType::kFloat32));
  };
  const ValueRef x = as_float(a);
  const ValueRef y = as_float(b);
  const absl::string_view comparison = ComparisonOf(op);
  if (!comparison.empty()) {
    return AsFloats(call, frontend::ComputedBinary(call, comparison, x, y));
  }
  if (op == "floor" || op == "ceil" || op == "round") {
    return frontend::ComputedUnary(call, ArithmeticOf(op), x);
  }
  if (op == "trunc") return Truncated(call, x);
  if (op == "floor_divide") return frontend::ComputedBinary(call, "FloorDiv", x, y);
  if (op == "remainder") return Remainder(call, x, y);
  return ValueRef();
}

absl::StatusOr<Tensor> EvaluatedNow(absl::string_view op, const Tensor& a, const Tensor* b) {
  const bool has_float = IsFloat(a.dtype()) || (b != nullptr && IsFloat(b->dtype()));
  const DType dtype = has_float || op == "sin" || op == "cos" ? DType::kFloat32 : DType::kInt64;
  const Tensor x = CastTensor(a, dtype);
  if (op == "trunc") {
    return EvaluateBinary("TruncateDiv", x, CastTensor(Tensor::FromInts({}, {1}), dtype));
  }
  const absl::string_view comparison = ComparisonOf(op);
  const absl::string_view name = comparison.empty() ? ArithmeticOf(op) : comparison;
  if (b == nullptr) return EvaluateUnary(name, x);
  return EvaluateBinary(name, x, CastTensor(*b, dtype));
}

}  // namespace npuc::pt
