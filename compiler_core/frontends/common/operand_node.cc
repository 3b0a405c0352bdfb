#include "compiler_core/frontends/common/operand_node.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc::frontend {

absl::Status OperandNode::ExpectInputs(int lo, int hi) {
  int missing = -1;
  for (int i = lo - 1; i >= 0; --i) {
    if (!has(i)) missing = i;
  }
  if (missing < 0 && input_count() <= hi) return absl::OkStatus();
  return Fail(DiagnosticKind::kOperandCount,
              absl::StrCat("the node has ", input_count(), " operands",
                           missing >= 0 ? absl::StrCat(" and lacks operand ", missing) : "", "; ",
                           source().op, " takes ",
                           lo == hi ? absl::StrCat(lo) : absl::StrCat(lo, " to ", hi)),
              "export the model again");
}

absl::StatusOr<Tensor> OperandNode::Constant(int i, absl::string_view what) {
  if (input(i)->stored.has_value()) return FloatsOf(*input(i)->stored);
  if (IsConstant(i)) return *input(i)->constant;
  return Fail(
      DiagnosticKind::kOperandNotConstant,
      absl::StrCat("the ", what, " (operand ", i, ", from '", Printable(input(i)->source.name),
                   "') depends on a model input; it must be known at compile time"),
      state().constant_fix);
}

absl::StatusOr<Tensor> OperandNode::KnownOperand(int i) {
  if (input(i)->stored.has_value() || IsConstant(i)) return Constant(i, "operand");
  return Fail(DiagnosticKind::kOperandNotConstant,
              absl::StrCat("the operand (operand ", i, ", from '", Printable(input(i)->source.name),
                           "') depends on a model input; npuc computes ", source().op,
                           " of constants alone"),
              "compute it outside of the model: begin the model behind this operator with "
              "INPUT_OPS, or end the model before it with OUTPUT_OPS");
}

absl::StatusOr<std::vector<int64_t>> OperandNode::ConstantInts(int i, absl::string_view what) {
  ASSIGN_OR_RETURN(const Tensor tensor, Constant(i, what));
  if (!IsInteger(tensor.dtype()) || tensor.shape().size() > 1 ||
      tensor.element_count() > kMaxListEntries) {
    return Fail(DiagnosticKind::kOperandMismatch,
                absl::StrCat("the ", what, " (operand ", i, ") is ", TypeToString(tensor.type()),
                             "; it must be a list of at most ", kMaxListEntries, " integers"),
                "export the model again");
  }
  std::vector<int64_t> values(static_cast<size_t>(tensor.element_count()));
  for (size_t k = 0; k < values.size(); ++k) values[k] = tensor.int_at(static_cast<int64_t>(k));
  return values;
}

absl::StatusOr<int64_t> OperandNode::ConstantInt(int i, absl::string_view what) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> values, ConstantInts(i, what));
  if (values.size() == 1) return values[0];
  return Fail(DiagnosticKind::kOperandMismatch,
              absl::StrCat("the ", what, " (operand ", i, ") has ", values.size(),
                           " values; it must be one"),
              "export the model again");
}

absl::StatusOr<std::vector<double>> OperandNode::ConstantFloats(int i, absl::string_view what) {
  ASSIGN_OR_RETURN(const Tensor tensor, Constant(i, what));
  if (!IsFloat(tensor.dtype()) || tensor.element_count() > kMaxListEntries) {
    return Fail(DiagnosticKind::kOperandMismatch,
                absl::StrCat("the ", what, " (operand ", i, ") is ", TypeToString(tensor.type()),
                             "; it must be at most ", kMaxListEntries, " floats"),
                "export the model again");
  }
  std::vector<double> values(static_cast<size_t>(tensor.element_count()));
  for (size_t k = 0; k < values.size(); ++k) values[k] = tensor.at(static_cast<int64_t>(k));
  return values;
}

absl::StatusOr<double> OperandNode::ConstantFloat(int i, absl::string_view what) {
  ASSIGN_OR_RETURN(const std::vector<double> values, ConstantFloats(i, what));
  if (values.size() == 1) return values[0];
  return Fail(DiagnosticKind::kOperandMismatch,
              absl::StrCat("the ", what, " (operand ", i, ") has ", values.size(),
                           " values; it must be one"),
              "export the model again");
}

bool OperandNode::AllConstant() const {
  return std::all_of(inputs_.begin(), inputs_.end(), [](const ValueRef& value) {
    return value == nullptr || value->constant.has_value();
  });
}

absl::StatusOr<int64_t> OperandNode::Axis(int64_t axis, int64_t rank) {
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  return Fail(DiagnosticKind::kOperandMismatch,
              absl::StrCat("axis ", axis, " is outside a tensor of rank ", rank),
              "export the model again, or check the shapes in INPUT_OPS");
}

absl::StatusOr<std::vector<int64_t>> OperandNode::Axes(std::vector<int64_t> axes, int64_t rank) {
  for (int64_t& axis : axes) {
    ASSIGN_OR_RETURN(axis, Axis(axis, rank));
  }
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

absl::StatusOr<Shape> OperandNode::SqueezedShape(const std::vector<int64_t>& axes, bool all) {
  Shape squeezed;
  for (int64_t i = 0; i < rank(0); ++i) {
    const int64_t dim = shape(0)[static_cast<size_t>(i)];
    const bool named = std::binary_search(axes.begin(), axes.end(), i);
    if (named && dim != 1) {
      return absl::InvalidArgumentError(absl::StrCat("dimension ", i, " of ", TypeToString(type(0)),
                                                     " is squeezed, and is not 1"));
    }
    if (!named && !(all && dim == 1)) squeezed.push_back(dim);
  }
  return squeezed;
}

absl::Status OperandNode::SetOutput(ValueRef value) {
  outputs_ = {std::move(value)};
  return absl::OkStatus();
}

absl::Status OperandNode::SetOutput(absl::StatusOr<ValueRef> value) {
  RETURN_IF_ERROR(value.status());
  return SetOutput(*std::move(value));
}

absl::Status OperandNode::SetConstant(absl::StatusOr<Tensor> value) {
  RETURN_IF_ERROR(value.status());
  return SetOutput(MakeConstant(*std::move(value)));
}

absl::Status OperandNode::SetOutputs(std::vector<ValueRef> values) {
  outputs_ = std::move(values);
  return absl::OkStatus();
}

absl::Status OperandNode::EmitOutput(absl::string_view op, absl::Span<const ValueRef> operands,
                                     AttrMap attrs) {
  return SetOutput(Emit(op, operands, std::move(attrs)));
}

}  // namespace npuc::frontend
