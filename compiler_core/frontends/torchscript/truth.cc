#include "compiler_core/frontends/torchscript/truth.h"

#include <string>
#include <utility>

#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/selection.h"
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

// Towards zero.
absl::StatusOr<ValueRef> Truncated(OpCall& call, const ValueRef& x) {
  return AsFloats(call, frontend::CastTo(call, x, DType::kInt64));
}

// a - b * floor(a / b)
absl::StatusOr<ValueRef> Remainder(OpCall& call, const ValueRef& a, const ValueRef& b) {
  ASSIGN_OR_RETURN(ValueRef y, call.Emit("Div", {a, b}));
  ASSIGN_OR_RETURN(y, call.Emit("Floor", {y}));
  ASSIGN_OR_RETURN(y, call.Emit("Mul", {y, b}));
  return call.Emit("Sub", {a, y});
}

// The evaluator's name of a comparison; "" of anything else.
absl::string_view ComparisonOf(absl::string_view op) {
  if (op == "eq") return "Equal";
  if (op == "ne") return "NotEqual";
  if (op == "lt") return "Less";
  if (op == "le") return "LessEqual";
  if (op == "gt") return "Greater";
  if (op == "ge") return "GreaterEqual";
  return "";
}

}  // namespace

absl::StatusOr<ValueRef> Truth(OpCall& call, const ValueRef& value) {
  if (value->constant.has_value()) {
    return call.MakeConstant(CastTensor(*value->constant, DType::kBool));
  }
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
  return frontend::CastTo(call, *value, DType::kFloat32);
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
  if (op == "floor") return frontend::ComputedUnary(call, "Floor", x);
  if (op == "ceil") return frontend::ComputedUnary(call, "Ceil", x);
  if (op == "round") return frontend::ComputedUnary(call, "Round", x);
  if (op == "trunc") return Truncated(call, x);
  if (op == "floor_divide") return frontend::ComputedBinary(call, "FloorDiv", x, y);
  if (op == "remainder") return Remainder(call, x, y);
  return ValueRef();
}

}  // namespace npuc::pt
