#include "compiler_core/frontends/common/emitter.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/find_nan.h"
#include "compiler_core/frontends/common/fold.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/ops/quantize.h"

namespace npuc::frontend {

absl::Status Emitter::Fail(DiagnosticKind kind, std::string message, std::string fix) {
  has_reported_ = true;
  absl::Status status(npuc::InfoOf(kind).code, message);
  Report(kind, source_, std::move(message), std::move(fix));
  return status;
}

void Emitter::Report(DiagnosticKind kind, const NodeSource& source, std::string message,
                     std::string fix) {
  state_->AddError(kind, source, std::move(message), std::move(fix));
}

absl::Status Emitter::FailMode(std::string message, std::string fix) {
  return Fail(DiagnosticKind::kUnsupportedOperatorMode, std::move(message), std::move(fix));
}

void Emitter::ReportMismatch(const absl::Status& status, std::string fix) {
  if (has_reported_) return;
  (void)Fail(DiagnosticKind::kOperandMismatch, std::string(status.message()), std::move(fix));
}

ValueRef Emitter::Scalar(double value, DType dtype) { return Floats({}, {value}, dtype); }

ValueRef Emitter::ScalarLike(const ValueRef& other, double value) {
  return Scalar(value, other->type.dtype);
}

ValueRef Emitter::Floats(Shape shape, const std::vector<double>& values, DType dtype) {
  std::vector<uint8_t> bytes(values.size() * sizeof(double));
  if (!values.empty())
    std::copy_n(reinterpret_cast<const uint8_t*>(values.data()), bytes.size(), bytes.data());
  return MakeConstant(
      CastTensor(Tensor({DType::kFloat64, std::move(shape)}, std::move(bytes)), dtype));
}

ValueRef Emitter::MakeStored(StoredIntegers stored, NodeSource source) {
  auto value = std::make_shared<ImportValue>();
  value->type = {DType::kFloat32, stored.integers.shape()};
  value->stored = std::move(stored);
  value->source = std::move(source);
  return value;
}

absl::StatusOr<ValueRef> Emitter::Quantized(const ValueRef& value, const QuantParams& params) {
  return Emit("Quantize", {value}, QuantizeAttrs(params));
}

absl::StatusOr<ValueRef> Emitter::Requantized(const ValueRef& value, const QuantParams& params) {
  ASSIGN_OR_RETURN(const ValueRef integers, Quantized(value, params));
  if (integers->constant.has_value()) return MakeStored({*integers->constant, params}, source_);
  return Emit("Dequantize", {integers}, DequantizeAttrs(params));
}

absl::StatusOr<ValueRef> Emitter::RequantizedInside(const ValueRef& value,
                                                    const QuantParams& params) {
  AttrMap attrs = QuantizeAttrs(params);
  attrs[kInsideOperator] = true;
  ASSIGN_OR_RETURN(const ValueRef integers, Emit("Quantize", {value}, std::move(attrs)));
  return Emit("Dequantize", {integers}, DequantizeAttrs(params));
}

absl::StatusOr<ValueId> Emitter::Place(ImportValue& value, bool as_it_is) {
  if (value.id.valid()) return value.id;
  if (value.compute != nullptr) {
    absl::StatusOr<ValueRef> computed = value.compute();
    if (!computed.ok()) return AlreadyReported(computed.status());
    ASSIGN_OR_RETURN(value.id, Place(**computed));
    return value.id;
  }
  if (value.stored.has_value()) {
    const ValueId integers = state_->builder.Const(value.stored->integers, value.source);
    ASSIGN_OR_RETURN(value.id,
                     state_->builder.AddOne(Op::kDequantize, {integers},
                                            DequantizeAttrs(value.stored->params), value.source));
    return value.id;
  }
  NPUC_CHECK(value.constant.has_value());
  Tensor tensor = as_it_is ? *value.constant : Placed(*value.constant);
  if (tensor.dtype() == DType::kFloat32) {
    const absl::Span<const float> floats = tensor.as<float>();
    const auto nan = FindNan(floats);
    if (nan != floats.end()) {
      has_reported_ = true;
      Report(DiagnosticKind::kNanConstant, value.source,
             absl::StrCat("the constant holds NaN at element ", nan - floats.begin(), " of ",
                          floats.size(), "; it feeds node '", Printable(source_.name), "'"),
             "train or export the model again");
      return absl::InvalidArgumentError("a constant holds NaN");
    }
  }
  value.id = state_->builder.Const(std::move(tensor), value.source);
  return value.id;
}

absl::StatusOr<std::vector<Tensor>> Emitter::FoldTensors(const Node& node,
                                                         const std::vector<Tensor>& operands) {
  FoldLimits limits{state_->constant_bytes_left, kMaxFoldWork, state_->fold_work_left};
  absl::StatusOr<std::vector<Tensor>> values =
      FoldOperator(node.op, operands, node.attrs, node.source, limits);
  if (absl::IsResourceExhausted(values.status())) {
    return Fail(DiagnosticKind::kModelLimitExceeded, std::string(values.status().message()),
                "export the model with its constants folded");
  }
  state_->fold_work_left = limits.work;
  return values;
}

absl::StatusOr<Tensor> Emitter::FloatsOf(const StoredIntegers& stored) {
  const Node dequantize{Op::kDequantize, {}, {}, DequantizeAttrs(stored.params), source_};
  ASSIGN_OR_RETURN(std::vector<Tensor> floats, FoldTensors(dequantize, {stored.integers}));
  return std::move(floats[0]);
}

absl::StatusOr<std::vector<ValueRef>> Emitter::Fold(Op op, absl::Span<const ValueRef> operands,
                                                    AttrMap attrs) {
  Node node{op, {}, {}, std::move(attrs), source_};
  std::vector<const StoredIntegers*> stored;
  for (const ValueRef& operand : operands) {
    if (operand->stored.has_value()) stored.push_back(&*operand->stored);
  }
  std::optional<StoredMove> move;
  if (!operands.empty() && stored.size() == operands.size()) move = MoveStored(node, stored);
  std::vector<Tensor> tensors;
  for (const ValueRef& operand : operands) {
    if (!operand->stored.has_value()) {
      tensors.push_back(*operand->constant);
    } else if (move.has_value()) {
      tensors.push_back(operand->stored->integers);
    } else {
      ASSIGN_OR_RETURN(tensors.emplace_back(), FloatsOf(*operand->stored));
    }
  }
  if (move.has_value()) node.attrs = std::move(move->attrs);
  ASSIGN_OR_RETURN(std::vector<Tensor> values, FoldTensors(node, tensors));
  std::vector<ValueRef> refs;
  for (size_t i = 0; i < values.size(); ++i) {
    // Whatever moves a weight's values only keeps its name.
    const bool moves = op == Op::kReshape || op == Op::kTranspose;
    const NodeSource& source = moves ? operands[0]->source : source_;
    state_->constant_bytes_left -= op == Op::kReshape ? 0 : values[i].type().size_bytes();
    refs.push_back(move.has_value() ? MakeStored({std::move(values[i]), move->params[i]}, source)
                                    : ConstantValue(std::move(values[i]), source));
  }
  return refs;
}

absl::StatusOr<std::vector<ValueRef>> Emitter::AddNode(NodeSource source, Op op,
                                                       absl::Span<const ValueRef> operands,
                                                       AttrMap attrs) {
  if (!state_->TakeNode(operands.size())) {
    return Fail(DiagnosticKind::kModelLimitExceeded,
                absl::StrCat("the model becomes more than ", kMaxGraphNodes, " operators or ",
                             kMaxGraphOperands, " operands"),
                "compile a smaller model, or shorten the sequences that its loops and recurrent "
                "layers run over");
  }
  const bool beside_whole = std::any_of(
      operands.begin(), operands.end(),
      [](const ValueRef& operand) { return !IsKnown(operand) && !IsFloat(operand->type.dtype); });
  std::vector<ValueId> ids;
  for (const ValueRef& operand : operands) {
    ASSIGN_OR_RETURN(ids.emplace_back(), Place(*operand, beside_whole));
  }
  ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                   state_->builder.Add(op, std::move(ids), std::move(attrs), std::move(source)));
  return ResultValues(state_->builder, outputs, source_);
}

absl::StatusOr<std::vector<ValueRef>> Emitter::EmitAllAs(NodeSource source, absl::string_view name,
                                                         absl::Span<const ValueRef> operands,
                                                         AttrMap attrs) {
  const std::optional<Op> op = OpNamed(name);
  NPUC_CHECK(op.has_value());
  const bool folds = DefOf(*op).folds && std::all_of(operands.begin(), operands.end(), &IsKnown);
  absl::StatusOr<std::vector<ValueRef>> result =
      folds ? Fold(*op, operands, std::move(attrs))
            : AddNode(std::move(source), *op, operands, std::move(attrs));
  if (!result.ok() && !has_reported_) {
    return Fail(DiagnosticKind::kOperandMismatch, std::string(result.status().message()),
                "check the shapes in INPUT_OPS against those that the model was trained with");
  }
  if (result.ok()) NoteFacts(*op, operands, *result);
  return result;
}

absl::StatusOr<ValueRef> Emitter::EmitAs(NodeSource source, absl::string_view op,
                                         absl::Span<const ValueRef> operands, AttrMap attrs) {
  ASSIGN_OR_RETURN(std::vector<ValueRef> values,
                   EmitAllAs(std::move(source), op, operands, std::move(attrs)));
  NPUC_CHECK(values.size() == 1);
  return std::move(values[0]);
}

absl::StatusOr<std::vector<ValueRef>> Emitter::EmitAll(absl::string_view op,
                                                       absl::Span<const ValueRef> operands,
                                                       AttrMap attrs) {
  return EmitAllAs(SourceFor(op), op, operands, std::move(attrs));
}

absl::StatusOr<ValueRef> Emitter::Emit(absl::string_view op, absl::Span<const ValueRef> operands,
                                       AttrMap attrs) {
  return EmitAs(SourceFor(op), op, operands, std::move(attrs));
}

absl::StatusOr<ValueRef> Emitter::Reshaped(const ValueRef& value, Shape shape) {
  if (value->type.shape == shape) return value;
  return EmitAs(LayoutSourceFor("Reshape"), "Reshape", {value}, {{"shape", std::move(shape)}});
}

absl::StatusOr<ValueRef> Emitter::Transposed(const ValueRef& value, std::vector<int64_t> perm) {
  if (std::is_sorted(perm.begin(), perm.end()) && perm.size() == value->type.shape.size()) {
    return value;
  }
  return EmitAs(LayoutSourceFor("Transpose"), "Transpose", {value}, {{"perm", std::move(perm)}});
}

absl::StatusOr<ValueRef> Emitter::Sliced(const ValueRef& value, int64_t axis, int64_t begin,
                                         int64_t size, int64_t stride) {
  Shape sizes = value->type.shape;
  const size_t at = static_cast<size_t>(axis);
  if (begin == 0 && size == sizes[at] && stride == 1) return value;
  Shape begins(sizes.size(), 0);
  Shape strides(sizes.size(), 1);
  begins[at] = begin;
  sizes[at] = size;
  strides[at] = stride;
  return Emit(
      "Slice", {value},
      {{"begin", std::move(begins)}, {"size", std::move(sizes)}, {"strides", std::move(strides)}});
}

absl::StatusOr<ValueRef> Emitter::Padded(const ValueRef& value, std::vector<int64_t> paddings,
                                         double fill) {
  ValueRef cut = value;
  for (size_t axis = 0; axis < value->type.shape.size(); ++axis) {
    const int64_t before = std::min<int64_t>(paddings[2 * axis], 0);
    const int64_t after = std::min<int64_t>(paddings[2 * axis + 1], 0);
    if (before == 0 && after == 0) continue;
    const int64_t size = value->type.shape[axis] + before + after;
    if (size < 0) return absl::InvalidArgumentError("negative pads cut more than there is");
    ASSIGN_OR_RETURN(cut, Sliced(cut, static_cast<int64_t>(axis), size == 0 ? 0 : -before, size));
  }
  for (int64_t& padding : paddings) padding = std::max<int64_t>(padding, 0);
  if (std::all_of(paddings.begin(), paddings.end(), [](int64_t p) { return p == 0; })) return cut;
  return Emit("Pad", {cut}, {{"paddings", std::move(paddings)}, {"value", fill}});
}

absl::StatusOr<ValueRef> Emitter::Joined(absl::Span<const ValueRef> values, int64_t axis) {
  if (values.size() == 1) return values[0];
  return Emit("Concat", values, {{"axis", axis}});
}

absl::StatusOr<ValueRef> Emitter::Reduced(absl::string_view op, const ValueRef& value,
                                          std::vector<int64_t> axes, bool keep_dims) {
  if (axes.empty()) return value;
  return Emit(op, {value}, {{"axes", std::move(axes)}, {"keep_dims", keep_dims}});
}

absl::StatusOr<ValueRef> Emitter::Converted(const ValueRef& value, DType dtype) {
  if (value->type.dtype == dtype) return value;
  if (value->constant.has_value()) {
    ValueRef converted = MakeConstant(CastTensor(*value->constant, dtype));
    converted->source = value->source;
    return converted;
  }
  return FailMode(absl::StrCat("a conversion of ", NameOf(value->type.dtype),
                               " values, which "
                               "depend on a model input, to ",
                               NameOf(dtype)),
                  "keep the values in one floating-point type, or cut the graph at this node");
}

}  // namespace npuc::frontend
