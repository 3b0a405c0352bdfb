#include "compiler_core/frontends/tensorflow/node_import.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/fold.h"
#include "compiler_core/ops/op.h"

namespace npuc::tf {

NodeImporter::NodeImporter(ImportState* state, const NodeView* node, std::vector<ValueRef> inputs)
    : state_(state),
      node_(node),
      source_{std::string(node->name()), std::string(node->op())},
      inputs_(std::move(inputs)) {}

absl::Status NodeImporter::Fail(DiagnosticKind kind, std::string message, std::string fix) {
  has_reported_ = true;
  absl::Status status(InfoOf(kind).code, message);
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
  if (input_count() >= lo && input_count() <= hi) return absl::OkStatus();
  return Fail(DiagnosticKind::kOperandCount,
              absl::StrCat("the node has ", input_count(), " operands; ", source_.op, " takes ",
                           lo == hi ? absl::StrCat(lo) : absl::StrCat(lo, " to ", hi)),
              "export the model again");
}

absl::Status NodeImporter::ReportAttr(const absl::Status& status) {
  return Fail(DiagnosticKind::kBadAttribute, std::string(status.message()),
              "export the model again");
}

namespace {

// absent -> fallback; wrong kind -> the error.
template <typename T>
absl::StatusOr<T> OrFallback(absl::StatusOr<T> value, T fallback) {
  if (absl::IsNotFound(value.status())) return fallback;
  return value;
}

}  // namespace

absl::StatusOr<bool> NodeImporter::BoolOr(absl::string_view name, bool fallback) {
  absl::StatusOr<bool> value = OrFallback(node_->Bool(name), fallback);
  if (!value.ok()) return ReportAttr(value.status());
  return value;
}
absl::StatusOr<int64_t> NodeImporter::IntOr(absl::string_view name, int64_t fallback) {
  absl::StatusOr<int64_t> value = OrFallback(node_->Int(name), fallback);
  if (!value.ok()) return ReportAttr(value.status());
  return value;
}
absl::StatusOr<double> NodeImporter::FloatOr(absl::string_view name, double fallback) {
  absl::StatusOr<double> value = OrFallback(node_->Float(name), fallback);
  if (!value.ok()) return ReportAttr(value.status());
  return value;
}
absl::StatusOr<std::string> NodeImporter::StringOr(absl::string_view name, std::string fallback) {
  absl::StatusOr<std::string> value = OrFallback(node_->String(name), std::move(fallback));
  if (!value.ok()) return ReportAttr(value.status());
  return value;
}
absl::StatusOr<std::vector<int64_t>> NodeImporter::IntsOr(absl::string_view name,
                                                          std::vector<int64_t> fallback) {
  absl::StatusOr<std::vector<int64_t>> value = OrFallback(node_->Ints(name), std::move(fallback));
  if (!value.ok()) return ReportAttr(value.status());
  return value;
}
absl::StatusOr<std::vector<int64_t>> NodeImporter::RequiredInts(absl::string_view name) {
  absl::StatusOr<std::vector<int64_t>> value = node_->Ints(name);
  if (!value.ok()) return ReportAttr(value.status());
  return value;
}
absl::StatusOr<int64_t> NodeImporter::RequiredInt(absl::string_view name) {
  absl::StatusOr<int64_t> value = node_->Int(name);
  if (!value.ok()) return ReportAttr(value.status());
  return value;
}
absl::StatusOr<int> NodeImporter::RequiredType(absl::string_view name) {
  absl::StatusOr<int> value = node_->Type(name);
  if (!value.ok()) return ReportAttr(value.status());
  return value;
}

absl::StatusOr<bool> NodeImporter::IsNhwc() {
  ASSIGN_OR_RETURN(const std::string format, StringOr("data_format", "NHWC"));
  if (format == "NHWC") return true;
  if (format == "NCHW") return false;
  return Fail(DiagnosticKind::kBadAttribute,
              absl::StrCat("data_format is '", Printable(format), "'; allowed are NHWC and NCHW"),
              "rebuild the model in NHWC");
}

absl::StatusOr<Tensor> NodeImporter::Constant(int i, absl::string_view what) {
  if (inputs_[i]->constant.has_value()) return *inputs_[i]->constant;
  return Fail(
      DiagnosticKind::kOperandNotConstant,
      absl::StrCat("the ", what, " (operand ", i, ", from node '",
                   Printable(inputs_[i]->source.name),
                   "') depends on a model input; it must be known at compile time"),
      "freeze it to a constant, or cut the graph after this node by naming it in INPUT_OPS");
}

absl::StatusOr<std::vector<int64_t>> NodeImporter::ConstantInts(int i, absl::string_view what) {
  ASSIGN_OR_RETURN(const Tensor tensor, Constant(i, what));
  if (!IsInteger(tensor.dtype()) || tensor.shape().size() > 1 || tensor.element_count() > 4096) {
    return Fail(DiagnosticKind::kOperandMismatch,
                absl::StrCat("the ", what, " (operand ", i, ") is ", TypeToString(tensor.type()),
                             "; it must be a short list of integers"),
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

bool NodeImporter::AllConstant() const {
  return std::all_of(inputs_.begin(), inputs_.end(),
                     [](const ValueRef& value) { return value->constant.has_value(); });
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

absl::StatusOr<ValueId> NodeImporter::Place(ImportValue& value) {
  if (value.id.valid()) return value.id;
  if (value.compute != nullptr) {
    absl::StatusOr<ValueRef> computed = value.compute();
    if (!computed.ok()) {
      has_reported_ = true;  // by the node that the value belongs to
      return computed.status();
    }
    ASSIGN_OR_RETURN(value.id, Place(**computed));
    return value.id;
  }
  NPUC_CHECK(value.constant.has_value());
  const Tensor& tensor = *value.constant;
  if (tensor.dtype() == DType::kFloat32) {
    const absl::Span<const float> floats = tensor.as<float>();
    const auto nan =
        std::find_if(floats.begin(), floats.end(), [](float v) { return std::isnan(v); });
    if (nan != floats.end()) {
      state_->diagnostics->Add(
          {.kind = DiagnosticKind::kNanConstant,
           .message =
               absl::StrCat("the constant holds NaN at element ", nan - floats.begin(), " of ",
                            floats.size(), "; it feeds node '", Printable(source_.name), "'"),
           .file = state_->file,
           .node = value.source.name,
           .op = value.source.op,
           .fix = "train or freeze the model again"});
      has_reported_ = true;
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
                "freeze the model with its constants folded");
  }
  RETURN_IF_ERROR(values.status());
  state_->fold_work_left = limits.work;
  std::vector<ValueRef> refs;
  for (Tensor& value : *values) refs.push_back(MakeConstant(std::move(value)));
  return refs;
}

absl::StatusOr<std::vector<ValueRef>> NodeImporter::EmitAll(absl::string_view op,
                                                            absl::Span<const ValueRef> operands,
                                                            AttrMap attrs) {
  if (FindOp(op) == nullptr) {
    return Fail(DiagnosticKind::kUnsupportedOperator,
                absl::StrCat("it needs the operator ", op, ", which this version of npuc lacks"),
                "cut the graph around the node with INPUT_OPS and OUTPUT_OPS");
  }
  absl::StatusOr<std::vector<ValueRef>> result;
  if (std::all_of(operands.begin(), operands.end(),
                  [](const ValueRef& v) { return v->constant.has_value(); })) {
    result = Fold(op, operands, std::move(attrs));
  } else {
    std::vector<ValueId> ids;
    for (const ValueRef& operand : operands) {
      ASSIGN_OR_RETURN(ids.emplace_back(), Place(*operand));
    }
    NodeSource source = source_;
    if (is_rewritten_) source.op = op == "Concat" ? "ConcatV2" : std::string(op);
    absl::StatusOr<std::vector<ValueId>> outputs =
        state_->builder.Add(op, std::move(ids), std::move(attrs), source);
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

absl::Status NodeImporter::EmitOutput(absl::string_view op, absl::Span<const ValueRef> operands,
                                      AttrMap attrs) {
  ASSIGN_OR_RETURN(ValueRef value, Emit(op, operands, std::move(attrs)));
  SetOutput(std::move(value));
  return absl::OkStatus();
}

absl::StatusOr<ValueRef> NodeImporter::Reshaped(const ValueRef& value, Shape shape) {
  if (value->type.shape == shape) return value;
  return Emit("Reshape", {value}, {{"shape", std::move(shape)}});
}

absl::StatusOr<ValueRef> NodeImporter::Transposed(const ValueRef& value,
                                                  std::vector<int64_t> perm) {
  return Emit("Transpose", {value}, {{"perm", std::move(perm)}});
}

}  // namespace npuc::tf
