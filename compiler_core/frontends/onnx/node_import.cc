#include "compiler_core/frontends/onnx/node_import.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/fold.h"
#include "compiler_core/ops/op.h"

namespace npuc::onnx {

NodeImporter::NodeImporter(ImportState* state, const NodeView* node, std::vector<ValueRef> inputs)
    : state_(state),
      node_(node),
      source_{std::string(node->name()), std::string(node->op())},
      inputs_(std::move(inputs)) {}

absl::Status NodeImporter::Fail(DiagnosticKind kind, std::string message, std::string fix) {
  has_reported_ = true;
  absl::Status status(npuc::InfoOf(kind).code, message);
  state_->diagnostics->Add({.kind = kind,
                            .message = std::move(message),
                            .file = state_->file,
                            .node = source_.name,
                            .op = source_.op,
                            .fix = std::move(fix)});
  return status;
}

absl::Status NodeImporter::FailMode(std::string message, std::string fix) {
  return Fail(DiagnosticKind::kUnsupportedOperatorMode, std::move(message), std::move(fix));
}

absl::Status NodeImporter::ExpectInputs(int lo, int hi) {
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

absl::Status NodeImporter::BadAttribute(const absl::Status& status) {
  return Fail(DiagnosticKind::kBadAttribute, std::string(status.message()),
              "export the model again");
}

absl::StatusOr<bool> NodeImporter::BoolOr(absl::string_view name, bool fallback) {
  ASSIGN_OR_RETURN(const int64_t value, IntOr(name, fallback ? 1 : 0));
  return value != 0;
}

// One function for each kind: absent -> fallback; wrong kind -> a report.
#define NPUC_ATTRIBUTE_OR(Function, Type, Getter)                                      \
  absl::StatusOr<Type> NodeImporter::Function(absl::string_view name, Type fallback) { \
    absl::StatusOr<Type> value = node_->Getter(name);                                  \
    if (absl::IsNotFound(value.status())) return fallback;                             \
    if (!value.ok()) return BadAttribute(value.status());                              \
    return value;                                                                      \
  }
NPUC_ATTRIBUTE_OR(IntOr, int64_t, Int)
NPUC_ATTRIBUTE_OR(FloatOr, double, Float)
NPUC_ATTRIBUTE_OR(StringOr, std::string, String)
NPUC_ATTRIBUTE_OR(IntsOr, std::vector<int64_t>, Ints)
NPUC_ATTRIBUTE_OR(FloatsOr, std::vector<double>, Floats)
NPUC_ATTRIBUTE_OR(StringsOr, std::vector<std::string>, Strings)
#undef NPUC_ATTRIBUTE_OR

absl::StatusOr<int64_t> NodeImporter::RequiredInt(absl::string_view name) {
  absl::StatusOr<int64_t> value = node_->Int(name);
  if (!value.ok()) return BadAttribute(value.status());
  return value;
}
absl::StatusOr<std::vector<int64_t>> NodeImporter::RequiredInts(absl::string_view name) {
  absl::StatusOr<std::vector<int64_t>> value = node_->Ints(name);
  if (!value.ok()) return BadAttribute(value.status());
  return value;
}

absl::StatusOr<Tensor> NodeImporter::Constant(int i, absl::string_view what) {
  if (IsConstant(i)) return *input(i)->constant;
  return Fail(
      DiagnosticKind::kOperandNotConstant,
      absl::StrCat("the ", what, " (operand ", i, ", from '", Printable(input(i)->source.name),
                   "') depends on a model input; it must be known at compile time"),
      "make it an initializer, or cut the graph after this node by naming its result in "
      "INPUT_OPS");
}

absl::StatusOr<std::vector<int64_t>> NodeImporter::ConstantInts(int i, absl::string_view what) {
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

absl::StatusOr<int64_t> NodeImporter::ConstantInt(int i, absl::string_view what) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> values, ConstantInts(i, what));
  if (values.size() == 1) return values[0];
  return Fail(DiagnosticKind::kOperandMismatch,
              absl::StrCat("the ", what, " (operand ", i, ") has ", values.size(),
                           " values; it must be one"),
              "export the model again");
}

absl::StatusOr<std::vector<double>> NodeImporter::ConstantFloats(int i, absl::string_view what) {
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

absl::StatusOr<double> NodeImporter::ConstantFloat(int i, absl::string_view what) {
  ASSIGN_OR_RETURN(const std::vector<double> values, ConstantFloats(i, what));
  if (values.size() == 1) return values[0];
  return Fail(DiagnosticKind::kOperandMismatch,
              absl::StrCat("the ", what, " (operand ", i, ") has ", values.size(),
                           " values; it must be one"),
              "export the model again");
}

bool NodeImporter::AllConstant() const {
  return std::all_of(inputs_.begin(), inputs_.end(), [](const ValueRef& value) {
    return value == nullptr || value->constant.has_value();
  });
}

absl::StatusOr<std::optional<std::vector<int64_t>>> NodeImporter::IntsAt(int i,
                                                                         absl::string_view name) {
  if (has(i)) {
    ASSIGN_OR_RETURN(std::vector<int64_t> values, ConstantInts(i, name));
    return std::optional(std::move(values));
  }
  if (!node_->HasAttr(name)) return std::optional<std::vector<int64_t>>();
  ASSIGN_OR_RETURN(std::vector<int64_t> values, RequiredInts(name));
  return std::optional(std::move(values));
}

absl::StatusOr<int64_t> NodeImporter::Axis(int64_t axis, int64_t rank) {
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  return Fail(DiagnosticKind::kOperandMismatch,
              absl::StrCat("axis ", axis, " is outside a tensor of rank ", rank),
              "export the model again, or check the shapes in INPUT_OPS");
}

absl::StatusOr<std::vector<int64_t>> NodeImporter::Axes(std::vector<int64_t> axes, int64_t rank) {
  for (int64_t& axis : axes) {
    ASSIGN_OR_RETURN(axis, Axis(axis, rank));
  }
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

ValueRef NodeImporter::MakeConstant(Tensor tensor) {
  auto value = std::make_shared<ImportValue>();
  value->type = tensor.type();
  value->constant = std::move(tensor);
  value->source = source_;
  return value;
}

ValueRef NodeImporter::Scalar(double value, DType dtype) { return Floats({}, {value}, dtype); }

ValueRef NodeImporter::Floats(Shape shape, const std::vector<double>& values, DType dtype) {
  std::vector<uint8_t> bytes(values.size() * sizeof(double));
  if (!values.empty())
    std::copy_n(reinterpret_cast<const uint8_t*>(values.data()), bytes.size(), bytes.data());
  return MakeConstant(
      CastTensor(Tensor({DType::kFloat64, std::move(shape)}, std::move(bytes)), dtype));
}

absl::StatusOr<ValueId> NodeImporter::Place(ImportValue& value) {
  if (value.id.valid()) return value.id;
  NPUC_CHECK(value.constant.has_value());
  const Tensor& tensor = *value.constant;
  if (tensor.dtype() == DType::kFloat32) {
    const absl::Span<const float> floats = tensor.as<float>();
    const auto nan =
        std::find_if(floats.begin(), floats.end(), [](float v) { return std::isnan(v); });
    if (nan != floats.end()) {
      has_reported_ = true;
      state_->diagnostics->Add(
          {.kind = DiagnosticKind::kNanConstant,
           .message =
               absl::StrCat("the constant holds NaN at element ", nan - floats.begin(), " of ",
                            floats.size(), "; it feeds node '", Printable(source_.name), "'"),
           .file = state_->file,
           .node = value.source.name,
           .op = value.source.op,
           .fix = "train or export the model again"});
      return absl::InvalidArgumentError("a constant holds NaN");
    }
  }
  value.id = state_->builder.Const(tensor, value.source);
  return value.id;
}

// Computes an operator on constants, within the limits on memory and work.
absl::StatusOr<std::vector<ValueRef>> NodeImporter::Fold(absl::string_view op,
                                                         absl::Span<const ValueRef> operands,
                                                         AttrMap attrs) {
  std::vector<Tensor> tensors;
  for (const ValueRef& operand : operands) tensors.push_back(*operand->constant);
  FoldLimits limits{state_->constant_bytes_left, kMaxFoldWork, state_->fold_work_left};
  absl::StatusOr<std::vector<Tensor>> values =
      FoldOperator(op, tensors, std::move(attrs), source_, limits);
  if (absl::IsResourceExhausted(values.status())) {
    return Fail(DiagnosticKind::kModelLimitExceeded, std::string(values.status().message()),
                "export the model with its constants folded");
  }
  RETURN_IF_ERROR(values.status());
  state_->fold_work_left = limits.work;
  std::vector<ValueRef> refs;
  for (Tensor& value : *values) {
    // Whatever moves a weight's values only keeps its name.
    const bool moves = op == "Reshape" || op == "Transpose";
    state_->constant_bytes_left -= op == "Reshape" ? 0 : value.type().size_bytes();
    refs.push_back(MakeConstant(std::move(value)));
    if (moves) refs.back()->source = operands[0]->source;
  }
  return refs;
}

absl::StatusOr<std::vector<ValueRef>> NodeImporter::EmitAll(absl::string_view op,
                                                            absl::Span<const ValueRef> operands,
                                                            AttrMap attrs) {
  absl::StatusOr<std::vector<ValueRef>> result;
  if (std::all_of(operands.begin(), operands.end(),
                  [](const ValueRef& v) { return v->constant.has_value(); })) {
    result = Fold(op, operands, std::move(attrs));
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
        state_->builder.Add(op, std::move(ids), std::move(attrs), source_);
    if (outputs.ok()) {
      result = std::vector<ValueRef>();
      for (ValueId id : *outputs) {
        auto value = std::make_shared<ImportValue>();
        value->type = state_->builder.type(id);
        value->id = id;
        value->source = source_;
        result->push_back(std::move(value));
      }
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

absl::StatusOr<ValueRef> NodeImporter::Emit(absl::string_view op,
                                            absl::Span<const ValueRef> operands, AttrMap attrs) {
  ASSIGN_OR_RETURN(std::vector<ValueRef> values, EmitAll(op, operands, std::move(attrs)));
  NPUC_CHECK(values.size() == 1);
  return std::move(values[0]);
}

absl::Status NodeImporter::SetOutput(ValueRef value) {
  outputs_ = {std::move(value)};
  return absl::OkStatus();
}

absl::Status NodeImporter::SetOutput(absl::StatusOr<ValueRef> value) {
  RETURN_IF_ERROR(value.status());
  return SetOutput(*std::move(value));
}

absl::Status NodeImporter::SetOutputs(std::vector<ValueRef> values) {
  outputs_ = std::move(values);
  return absl::OkStatus();
}

absl::Status NodeImporter::EmitOutput(absl::string_view op, absl::Span<const ValueRef> operands,
                                      AttrMap attrs) {
  return SetOutput(Emit(op, operands, std::move(attrs)));
}

absl::StatusOr<ValueRef> NodeImporter::Reshaped(const ValueRef& value, Shape shape) {
  if (value->type.shape == shape) return value;
  return Emit("Reshape", {value}, {{"shape", std::move(shape)}});
}

absl::StatusOr<ValueRef> NodeImporter::Transposed(const ValueRef& value,
                                                  std::vector<int64_t> perm) {
  if (std::is_sorted(perm.begin(), perm.end()) && perm.size() == value->type.shape.size()) {
    return value;
  }
  return Emit("Transpose", {value}, {{"perm", std::move(perm)}});
}

absl::StatusOr<ValueRef> NodeImporter::Sliced(const ValueRef& value, int64_t axis, int64_t begin,
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

absl::StatusOr<ValueRef> NodeImporter::Padded(const ValueRef& value, std::vector<int64_t> paddings,
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

absl::StatusOr<ValueRef> NodeImporter::Joined(const std::vector<ValueRef>& values, int64_t axis) {
  if (values.size() == 1) return values[0];
  return Emit("Concat", values, {{"axis", axis}});
}

absl::StatusOr<ValueRef> NodeImporter::Reduced(absl::string_view op, const ValueRef& value,
                                               std::vector<int64_t> axes, bool keep_dims) {
  if (axes.empty()) return value;
  return Emit(op, {value}, {{"axes", std::move(axes)}, {"keep_dims", keep_dims}});
}

absl::StatusOr<ValueRef> NodeImporter::Converted(const ValueRef& value, DType dtype) {
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

}  // namespace npuc::onnx
