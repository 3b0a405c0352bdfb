#include "compiler_core/frontends/common/node_emitter.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/find_nan.h"
#include "compiler_core/frontends/common/fold.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/ops/quantize.h"

namespace npuc::frontend {

ValueRef ConstantValue(Tensor tensor, NodeSource source) {
  auto value = std::make_shared<ImportValue>();
  value->type = tensor.type();
  value->constant = std::move(tensor);
  value->source = std::move(source);
  return value;
}

bool IsKnown(const ValueRef& value) {
  return value->constant.has_value() || value->stored.has_value();
}

std::vector<ValueRef> ResultValues(const GraphBuilder& builder, absl::Span<const ValueId> ids,
                                   const NodeSource& source) {
  std::vector<ValueRef> values;
  for (const ValueId id : ids) {
    auto value = std::make_shared<ImportValue>();
    value->type = builder.type(id);
    value->id = id;
    value->source = source;
    values.push_back(std::move(value));
  }
  return values;
}

ValueRef WrittenAsFloat(ValueRef value) {
  if (!value->constant.has_value() || IsFloat(value->type.dtype)) return value;
  auto written = std::make_shared<ImportValue>(*value);
  written->constant = CastTensor(*value->constant, DType::kFloat32);
  written->type = written->constant->type();
  written->id = ValueId();
  return written;
}

void ImportState::AddError(DiagnosticKind kind, NodeSource source, std::string message,
                           std::string fix) {
  diagnostics->Add({.kind = kind,
                    .message = std::move(message),
                    .file = file,
                    .node = std::move(source.name),
                    .op = std::move(source.op),
                    .fix = std::move(fix)});
}

ValueRef ImportState::AddInput(const std::string& name, const TensorType& type, std::string op) {
  auto value = std::make_shared<ImportValue>();
  value->type = type;
  value->id = builder.graph().AddInput(name, type);
  value->source = {name, std::move(op)};
  return value;
}

void ImportState::AddOutput(std::string name, ValueRef value, bool fp16) {
  value = WrittenAsFloat(std::move(value));
  const absl::StatusOr<ValueId> id = NodeEmitter(this, value->source, {}).Place(*value);
  if (id.ok()) builder.graph().AddOutput({std::move(name), *id, fp16});
}

bool ImportState::ConstantsFit(NodeSource source) {
  if (constant_bytes_left >= 0) return true;
  AddError(DiagnosticKind::kModelLimitExceeded, std::move(source),
           absl::StrCat("the constants of the model take more than ", kMaxConstantBytes, " bytes"),
           "compile a smaller model");
  constant_bytes_left = 0;
  return false;
}

NodeEmitter::NodeEmitter(ImportState* state, NodeSource source, std::vector<ValueRef> inputs)
    : state_(state), source_(std::move(source)), inputs_(std::move(inputs)) {}

absl::Status NodeEmitter::Fail(DiagnosticKind kind, std::string message, std::string fix) {
  has_reported_ = true;
  absl::Status status(npuc::InfoOf(kind).code, message);
  state_->AddError(kind, source_, std::move(message), std::move(fix));
  return status;
}

absl::Status NodeEmitter::FailMode(std::string message, std::string fix) {
  return Fail(DiagnosticKind::kUnsupportedOperatorMode, std::move(message), std::move(fix));
}

void NodeEmitter::ReportMismatch(const absl::Status& status, std::string fix) {
  if (has_reported_) return;
  (void)Fail(DiagnosticKind::kOperandMismatch, std::string(status.message()), std::move(fix));
}

absl::Status NodeEmitter::ExpectInputs(int lo, int hi) {
  int missing = -1;
  for (int i = lo - 1; i >= 0; --i) {
    if (!has(i)) missing = i;
  }
  if (missing < 0 && input_count() <= hi) return absl::OkStatus();
  return Fail(DiagnosticKind::kOperandCount,
              absl::StrCat("the node has ", input_count(), " operands",
                           missing >= 0 ? absl::StrCat(" and lacks operand ", missing) : "", "; ",
                           source_.op, " takes ",
                           lo == hi ? absl::StrCat(lo) : absl::StrCat(lo, " to ", hi)),
              "export the model again");
}

absl::StatusOr<Tensor> NodeEmitter::Constant(int i, absl::string_view what) {
  if (input(i)->stored.has_value()) return FloatsOf(*input(i)->stored);
  if (IsConstant(i)) return *input(i)->constant;
  return Fail(
      DiagnosticKind::kOperandNotConstant,
      absl::StrCat("the ", what, " (operand ", i, ", from '", Printable(input(i)->source.name),
                   "') depends on a model input; it must be known at compile time"),
      state_->constant_fix);
}

absl::StatusOr<std::vector<int64_t>> NodeEmitter::ConstantInts(int i, absl::string_view what) {
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

absl::StatusOr<int64_t> NodeEmitter::ConstantInt(int i, absl::string_view what) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> values, ConstantInts(i, what));
  if (values.size() == 1) return values[0];
  return Fail(DiagnosticKind::kOperandMismatch,
              absl::StrCat("the ", what, " (operand ", i, ") has ", values.size(),
                           " values; it must be one"),
              "export the model again");
}

absl::StatusOr<std::vector<double>> NodeEmitter::ConstantFloats(int i, absl::string_view what) {
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

absl::StatusOr<double> NodeEmitter::ConstantFloat(int i, absl::string_view what) {
  ASSIGN_OR_RETURN(const std::vector<double> values, ConstantFloats(i, what));
  if (values.size() == 1) return values[0];
  return Fail(DiagnosticKind::kOperandMismatch,
              absl::StrCat("the ", what, " (operand ", i, ") has ", values.size(),
                           " values; it must be one"),
              "export the model again");
}

bool NodeEmitter::AllConstant() const {
  return std::all_of(inputs_.begin(), inputs_.end(), [](const ValueRef& value) {
    return value == nullptr || value->constant.has_value();
  });
}

absl::StatusOr<int64_t> NodeEmitter::Axis(int64_t axis, int64_t rank) {
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  return Fail(DiagnosticKind::kOperandMismatch,
              absl::StrCat("axis ", axis, " is outside a tensor of rank ", rank),
              "export the model again, or check the shapes in INPUT_OPS");
}

absl::StatusOr<std::vector<int64_t>> NodeEmitter::Axes(std::vector<int64_t> axes, int64_t rank) {
  for (int64_t& axis : axes) {
    ASSIGN_OR_RETURN(axis, Axis(axis, rank));
  }
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

ValueRef NodeEmitter::Scalar(double value, DType dtype) { return Floats({}, {value}, dtype); }

ValueRef NodeEmitter::Floats(Shape shape, const std::vector<double>& values, DType dtype) {
  std::vector<uint8_t> bytes(values.size() * sizeof(double));
  if (!values.empty())
    std::copy_n(reinterpret_cast<const uint8_t*>(values.data()), bytes.size(), bytes.data());
  return MakeConstant(
      CastTensor(Tensor({DType::kFloat64, std::move(shape)}, std::move(bytes)), dtype));
}

ValueRef NodeEmitter::MakeStored(StoredIntegers stored, NodeSource source) {
  auto value = std::make_shared<ImportValue>();
  value->type = {DType::kFloat32, stored.integers.shape()};
  value->stored = std::move(stored);
  value->source = std::move(source);
  return value;
}

absl::StatusOr<ValueRef> NodeEmitter::Quantized(const ValueRef& value, const QuantParams& params) {
  return Emit("Quantize", {value}, QuantizeAttrs(params));
}

absl::StatusOr<ValueRef> NodeEmitter::Requantized(const ValueRef& value,
                                                  const QuantParams& params) {
  ASSIGN_OR_RETURN(const ValueRef integers, Quantized(value, params));
  if (integers->constant.has_value()) return MakeStored({*integers->constant, params}, source_);
  return Emit("Dequantize", {integers}, DequantizeAttrs(params));
}

absl::StatusOr<ValueId> NodeEmitter::Place(ImportValue& value) {
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
  const Tensor& tensor = *value.constant;
  if (tensor.dtype() == DType::kFloat32) {
    const absl::Span<const float> floats = tensor.as<float>();
    const auto nan = FindNan(floats);
    if (nan != floats.end()) {
      has_reported_ = true;
      state_->AddError(
          DiagnosticKind::kNanConstant, value.source,
          absl::StrCat("the constant holds NaN at element ", nan - floats.begin(), " of ",
                       floats.size(), "; it feeds node '", Printable(source_.name), "'"),
          "train or export the model again");
      return absl::InvalidArgumentError("a constant holds NaN");
    }
  }
  value.id = state_->builder.Const(tensor, value.source);
  return value.id;
}

absl::StatusOr<Shape> NodeEmitter::SqueezedShape(const std::vector<int64_t>& axes, bool all) {
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

absl::StatusOr<std::vector<Tensor>> NodeEmitter::FoldTensors(const Node& node,
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

absl::StatusOr<Tensor> NodeEmitter::FloatsOf(const StoredIntegers& stored) {
  const Node dequantize{Op::kDequantize, {}, {}, DequantizeAttrs(stored.params), source_};
  ASSIGN_OR_RETURN(std::vector<Tensor> floats, FoldTensors(dequantize, {stored.integers}));
  return std::move(floats[0]);
}

absl::StatusOr<std::vector<ValueRef>> NodeEmitter::Fold(Op op, absl::Span<const ValueRef> operands,
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

absl::StatusOr<std::vector<ValueRef>> NodeEmitter::EmitAll(absl::string_view name,
                                                           absl::Span<const ValueRef> operands,
                                                           AttrMap attrs) {
  const std::optional<Op> op = OpNamed(name);
  NPUC_CHECK(op.has_value());
  absl::StatusOr<std::vector<ValueRef>> result;
  if (DefOf(*op).folds && std::all_of(operands.begin(), operands.end(), &IsKnown)) {
    result = Fold(*op, operands, std::move(attrs));
  } else {
    if (state_->builder.graph().node_count() >= kMaxGraphNodes) {
      return Fail(DiagnosticKind::kModelLimitExceeded,
                  absl::StrCat("the model becomes more than ", kMaxGraphNodes, " operators"),
                  "compile a smaller model");
    }
    std::vector<ValueId> ids;
    for (const ValueRef& operand : operands) {
      ASSIGN_OR_RETURN(ids.emplace_back(), Place(*operand));
    }
    absl::StatusOr<std::vector<ValueId>> outputs =
        state_->builder.Add(*op, std::move(ids), std::move(attrs), SourceFor(name));
    if (outputs.ok()) {
      result = ResultValues(state_->builder, *outputs, source_);
    } else {
      result = outputs.status();
    }
  }
  if (!result.ok() && !has_reported_) {
    return Fail(DiagnosticKind::kOperandMismatch, std::string(result.status().message()),
                "check the shapes in INPUT_OPS against those that the model was trained with");
  }
  return result;
}

absl::StatusOr<ValueRef> NodeEmitter::Emit(absl::string_view op,
                                           absl::Span<const ValueRef> operands, AttrMap attrs) {
  ASSIGN_OR_RETURN(std::vector<ValueRef> values, EmitAll(op, operands, std::move(attrs)));
  NPUC_CHECK(values.size() == 1);
  return std::move(values[0]);
}

absl::Status NodeEmitter::SetOutput(ValueRef value) {
  outputs_ = {std::move(value)};
  return absl::OkStatus();
}

absl::Status NodeEmitter::SetOutput(absl::StatusOr<ValueRef> value) {
  RETURN_IF_ERROR(value.status());
  return SetOutput(*std::move(value));
}

absl::Status NodeEmitter::SetConstant(absl::StatusOr<Tensor> value) {
  RETURN_IF_ERROR(value.status());
  return SetOutput(MakeConstant(*std::move(value)));
}

absl::Status NodeEmitter::SetOutputs(std::vector<ValueRef> values) {
  outputs_ = std::move(values);
  return absl::OkStatus();
}

absl::Status NodeEmitter::EmitOutput(absl::string_view op, absl::Span<const ValueRef> operands,
                                     AttrMap attrs) {
  return SetOutput(Emit(op, operands, std::move(attrs)));
}

absl::StatusOr<ValueRef> NodeEmitter::Reshaped(const ValueRef& value, Shape shape) {
  if (value->type.shape == shape) return value;
  return Emit("Reshape", {value}, {{"shape", std::move(shape)}});
}

absl::StatusOr<ValueRef> NodeEmitter::Transposed(const ValueRef& value, std::vector<int64_t> perm) {
  if (std::is_sorted(perm.begin(), perm.end()) && perm.size() == value->type.shape.size()) {
    return value;
  }
  return Emit("Transpose", {value}, {{"perm", std::move(perm)}});
}

absl::StatusOr<ValueRef> NodeEmitter::Sliced(const ValueRef& value, int64_t axis, int64_t begin,
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

absl::StatusOr<ValueRef> NodeEmitter::Padded(const ValueRef& value, std::vector<int64_t> paddings,
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

absl::StatusOr<ValueRef> NodeEmitter::Joined(const std::vector<ValueRef>& values, int64_t axis) {
  if (values.size() == 1) return values[0];
  return Emit("Concat", values, {{"axis", axis}});
}

absl::StatusOr<ValueRef> NodeEmitter::Reduced(absl::string_view op, const ValueRef& value,
                                              std::vector<int64_t> axes, bool keep_dims) {
  if (axes.empty()) return value;
  return Emit(op, {value}, {{"axes", std::move(axes)}, {"keep_dims", keep_dims}});
}

absl::StatusOr<ValueRef> NodeEmitter::Converted(const ValueRef& value, DType dtype) {
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
