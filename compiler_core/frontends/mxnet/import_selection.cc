// Comparisons, choices, positions and lookups of values that are computed at run time. MXNet has no
// booleans: what holds is 1 in the operands' type, and indices are floats.
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/selection.h"
#include "compiler_core/frontends/mxnet/node_import.h"

namespace npuc::mxnet {
namespace {

absl::StatusOr<ValueRef> AsFloat(NodeImporter& node, absl::StatusOr<ValueRef> value) {
  RETURN_IF_ERROR(value.status());
  return frontend::CastTo(node, *value, DType::kFloat32);
}

// True where the operand is not 0.
absl::StatusOr<ValueRef> Truth(NodeImporter& node, const ValueRef& x) {
  if (x->type.dtype == DType::kBool) return x;
  return frontend::ComputedBinary(node, "NotEqual", x, node.ScalarLike(x, 0));
}

// A node's operator without what it broadcasts by and what its second operand is.
absl::string_view Word(absl::string_view op) {
  for (const absl::string_view prefix : {"broadcast_", "_"}) {
    if (absl::StartsWith(op, prefix)) op.remove_prefix(prefix.size());
  }
  if (absl::EndsWith(op, "_scalar")) op.remove_suffix(absl::string_view("_scalar").size());
  return op;
}

absl::StatusOr<ValueRef> Second(NodeImporter& node) {
  if (!absl::EndsWith(node.op(), "_scalar")) {
    RETURN_IF_ERROR(node.ExpectInputs(2, 2));
    return node.input(1);
  }
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const double scalar, node.FloatOr("scalar", 0));
  return node.ScalarLike(node.input(0), scalar);
}

absl::Status ImportComparison(NodeImporter& node) {
  constexpr std::pair<absl::string_view, absl::string_view> kWords[] = {
      {"equal", "Equal"}, {"greater", "Greater"},        {"greater_equal", "GreaterEqual"},
      {"lesser", "Less"}, {"lesser_equal", "LessEqual"}, {"not_equal", "NotEqual"}};
  ASSIGN_OR_RETURN(const ValueRef second, Second(node));
  const absl::string_view word = Word(node.op());
  for (const auto& [name, evaluated] : kWords) {
    if (name != word) continue;
    ASSIGN_OR_RETURN(const ValueRef holds,
                     frontend::ComputedBinary(node, evaluated, node.input(0), second));
    if (holds == nullptr) return absl::InvalidArgumentError("operands of unlike types");
    return node.SetOutput(AsFloat(node, holds));
  }
  return absl::InternalError(absl::StrCat("no comparison ", word));
}

absl::Status ImportLogic(NodeImporter& node) {
  constexpr std::pair<absl::string_view, absl::string_view> kWords[] = {
      {"logical_and", "LogicalAnd"}, {"logical_or", "LogicalOr"}, {"logical_xor", "LogicalXor"}};
  ASSIGN_OR_RETURN(const ValueRef second, Second(node));
  ASSIGN_OR_RETURN(const ValueRef a, Truth(node, node.input(0)));
  ASSIGN_OR_RETURN(const ValueRef b, Truth(node, second));
  const absl::string_view word = Word(node.op());
  for (const auto& [name, evaluated] : kWords) {
    if (name != word) continue;
    return node.SetOutput(AsFloat(node, frontend::ComputedBinary(node, evaluated, a, b)));
  }
  return absl::InternalError(absl::StrCat("no logic ", word));
}

absl::Status ImportNot(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  const ValueRef& x = node.input(0);
  return node.SetOutput(
      AsFloat(node, frontend::ComputedBinary(node, "Equal", x, node.ScalarLike(x, 0))));
}

absl::Status Rounded(NodeImporter& node, absl::string_view how) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  return node.SetOutput(frontend::ComputedUnary(node, how, node.input(0)));
}
absl::Status ImportCeil(NodeImporter& node) { return Rounded(node, "Ceil"); }
absl::Status ImportErf(NodeImporter& node) { return Rounded(node, "Erf"); }
absl::Status ImportFloor(NodeImporter& node) { return Rounded(node, "Floor"); }
absl::Status ImportSign(NodeImporter& node) { return Rounded(node, "Sign"); }

// Halves go down: MXNet takes the floor where the ceiling is not nearer (mshadow_op.h). Round takes
// them to even numbers; where that is up it is 0.5 above x, exactly.
absl::Status ImportRint(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  const Term x(node, node.input(0));
  const Term even = Apply("Round", x);
  const Term down = Apply("Floor", Relu(even - x) * 2);
  return node.SetOutput((even - down).value);
}

// Halves go away from 0: C's round(), as mshadow_op.h has it. Round takes a size to an even number;
// where that is down from a half it is 0.5 below, exactly.
absl::Status ImportRound(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  const Term x(node, node.input(0));
  const Term size = Apply("Abs", x);
  const Term even = Apply("Round", size);
  const Term up = Apply("Floor", Relu(size - even) * 2);
  const Term sign(node, frontend::ComputedUnary(node, "Sign", node.input(0)));
  return node.SetOutput((sign * (even + up)).value);
}

absl::Status ImportWhere(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(3, 3));
  ASSIGN_OR_RETURN(ValueRef holds, Truth(node, node.input(0)));
  const Shape& shape = node.shape(1);
  if (node.rank(0) == 1 && shape.size() > 1) {  // one a row
    Shape rows(shape.size(), 1);
    rows[0] = holds->type.shape[0];
    ASSIGN_OR_RETURN(holds, node.Reshaped(holds, rows));
  }
  return node.SetOutput(frontend::Selected(node, holds, node.input(1), node.input(2)));
}

absl::Status ImportArg(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  const bool of_channels = node.op() == "argmax_channel";
  ValueRef x = node.input(0);
  int64_t axis = 1;
  if (!of_channels && !node.node().HasAttr("axis")) {
    ASSIGN_OR_RETURN(x, node.Reshaped(x, {node.type(0).element_count()}));
    axis = 0;
  } else {
    ASSIGN_OR_RETURN(axis, node.AxisOr("axis", 1));
  }
  const auto rank = static_cast<int64_t>(x->type.shape.size());
  ASSIGN_OR_RETURN(const bool keeps, node.BoolOr("keepdims", false));
  frontend::ArgOptions options;
  options.axis = axis;
  options.keep_dims = keeps || rank == 1;  // MXNet has no scalars
  options.is_min = node.op() == "argmin";
  return node.SetOutput(AsFloat(node, frontend::ArgOf(node, x, options)));
}

// Rows of an axis; beyond it the nearest one, which costs nothing where indices are in range.
absl::Status ImportTake(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const int64_t axis, node.AxisOr("axis", 0));
  ASSIGN_OR_RETURN(const std::string mode, node.StringOr("mode", "clip"));
  if (mode != "clip") return node.BadChoice("mode", mode, "clip");
  const double last = static_cast<double>(node.shape(0)[static_cast<size_t>(axis)] - 1);
  const Term bounded = Min(Max(Term(node, node.input(1)), 0.0), last);
  RETURN_IF_ERROR(bounded.value.status());
  ASSIGN_OR_RETURN(const ValueRef indices, frontend::CastTo(node, *bounded.value, DType::kInt32));
  return node.SetOutput(
      frontend::LookedUp(node, node.input(0), indices, axis, /*may_be_negative=*/false));
}

absl::Status ImportOneHot(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const int64_t depth, node.IntOr("depth", 0));
  ASSIGN_OR_RETURN(const double on, node.FloatOr("on_value", 1));
  ASSIGN_OR_RETURN(const double off, node.FloatOr("off_value", 0));
  ASSIGN_OR_RETURN(const ValueRef indices, frontend::CastTo(node, node.input(0), DType::kInt32));
  return node.SetOutput(frontend::OneHotOf(node, indices, depth, node.Scalar(off), node.Scalar(on),
                                           node.rank(0), /*may_be_negative=*/false));
}

constexpr ImportRule kSelectionRules[] = {
    {"_equal", ImportComparison},
    {"_equal_scalar", ImportComparison},
    {"_greater", ImportComparison},
    {"_greater_equal", ImportComparison},
    {"_greater_equal_scalar", ImportComparison},
    {"_greater_scalar", ImportComparison},
    {"_lesser", ImportComparison},
    {"_lesser_equal", ImportComparison},
    {"_lesser_equal_scalar", ImportComparison},
    {"_lesser_scalar", ImportComparison},
    {"_logical_and", ImportLogic},
    {"_logical_and_scalar", ImportLogic},
    {"_logical_or", ImportLogic},
    {"_logical_or_scalar", ImportLogic},
    {"_logical_xor", ImportLogic},
    {"_logical_xor_scalar", ImportLogic},
    {"_not_equal", ImportComparison},
    {"_not_equal_scalar", ImportComparison},
    {"argmax", ImportArg},
    {"argmax_channel", ImportArg},
    {"argmin", ImportArg},
    {"broadcast_equal", ImportComparison},
    {"broadcast_greater", ImportComparison},
    {"broadcast_greater_equal", ImportComparison},
    {"broadcast_lesser", ImportComparison},
    {"broadcast_lesser_equal", ImportComparison},
    {"broadcast_logical_and", ImportLogic},
    {"broadcast_logical_or", ImportLogic},
    {"broadcast_logical_xor", ImportLogic},
    {"broadcast_not_equal", ImportComparison},
    {"ceil", ImportCeil},
    {"erf", ImportErf},
    {"floor", ImportFloor},
    {"logical_not", ImportNot},
    {"one_hot", ImportOneHot},
    {"rint", ImportRint},
    {"round", ImportRound},
    {"sign", ImportSign},
    {"take", ImportTake},
    {"where", ImportWhere},
};

}  // namespace

absl::Span<const ImportRule> SelectionRules() { return kSelectionRules; }

}  // namespace npuc::mxnet
