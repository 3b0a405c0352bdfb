#include "compiler_core/frontends/torchscript/op_call.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/find_nan.h"
#include "compiler_core/frontends/common/fold.h"
#include "compiler_core/frontends/torchscript/lexer.h"
#include "compiler_core/ops/op.h"

namespace npuc::pt {
namespace {

// The row of a core's list for PyTorch that an operator of the IR counts as.
absl::string_view RowOf(absl::string_view op) {
  constexpr std::pair<absl::string_view, absl::string_view> kOther[] = {
      {"AvgPool", "AvgPool2d"}, {"BatchNorm", "BatchNorm2d"},
      {"Conv2D", "Conv2d"},     {"DepthwiseConv2D", "DepthwiseConv2d"},
      {"MatMul", "Linear"},     {"MaxPool", "MaxPool2d"},
      {"Transpose", "Permute"}, {"SquaredDifference", "Square"},
  };
  for (const auto& [ir, row] : kOther) {
    if (ir == op) return row;
  }
  return op;
}

bool MovesOnly(Op op) {
  return op == Op::kReshape || op == Op::kTranspose || op == Op::kSlice || op == Op::kSplit;
}

bool AllConstant(absl::Span<const ValueRef> operands) {
  return std::all_of(operands.begin(), operands.end(),
                     [](const ValueRef& v) { return v->constant.has_value(); });
}

}  // namespace

void ImportState::Report(DiagnosticKind kind, const CodePlace& place, const NodeSource& source,
                         std::string message, std::string fix) {
  const absl::string_view line =
      place.line > 0 ? SourceLine(place.source, place.line) : absl::string_view();
  if (!line.empty()) absl::StrAppend(&message, "; the code is: ", Printable(line, 120));
  diagnostics->Add({.kind = kind,
                    .message = std::move(message),
                    .file = place.path.empty() ? file : absl::StrCat(file, ":", place.path),
                    .line = place.line,
                    .column = place.column,
                    .node = source.name,
                    .op = source.op,
                    .fix = std::move(fix)});
}

ScriptValue ImportState::NewPoison(std::vector<Diagnostic> problems, std::vector<int64_t> parents) {
  if (problems.empty() && parents.size() == 1) return ScriptValue::Poison(parents[0]);
  taints.push_back({std::move(problems), std::move(parents)});
  return ScriptValue::Poison(static_cast<int64_t>(taints.size()) - 1);
}

void ImportState::Flush(int64_t taint) {
  std::vector<int64_t> open = {taint};
  std::map<int64_t, std::vector<Diagnostic>> found;  // in the order of the run
  while (!open.empty()) {
    const int64_t index = open.back();
    open.pop_back();
    if (index < 0 || index >= static_cast<int64_t>(taints.size())) continue;
    Taint source = std::exchange(taints[static_cast<size_t>(index)], {});
    open.insert(open.end(), source.parents.begin(), source.parents.end());
    if (!source.problems.empty()) found[index] = std::move(source.problems);
  }
  for (const auto& [index, problems] : found) {
    for (const Diagnostic& problem : problems) AddOnce(problem);
  }
}

void ImportState::AddOnce(const Diagnostic& problem) {
  const bool once = problem.kind == DiagnosticKind::kUnsupportedOperator ||
                    problem.kind == DiagnosticKind::kUnsupportedOperatorMode ||
                    problem.kind == DiagnosticKind::kTorchQuantized ||
                    problem.kind == DiagnosticKind::kTorchDataDependent ||
                    problem.kind == DiagnosticKind::kModelLimitExceeded;
  const std::string message = problem.message.substr(0, problem.message.find("; the code is:"));
  if (once && !reported.insert(absl::StrCat(IdOf(problem.kind), problem.op, message)).second)
    return;
  diagnostics->Add(problem);
}

void ImportState::FlushAll() {
  for (size_t i = 0; i < taints.size(); ++i) Flush(static_cast<int64_t>(i));
}

bool OpCall::Bind(absl::string_view parameters, std::vector<ScriptValue> positional,
                  const std::vector<std::pair<absl::string_view, ScriptValue>>& named) {
  parameters_ = absl::StrSplit(parameters, ' ', absl::SkipEmpty());
  args_.assign(parameters_.size(), std::nullopt);
  if (positional.size() > parameters_.size()) {
    FailMode(absl::StrCat("it is called with ", positional.size(), " arguments; known are ",
                          parameters_.size(), ": ", parameters),
             "use an older form of the operator")
        .IgnoreError();
    return false;
  }
  for (size_t i = 0; i < positional.size(); ++i) args_[i] = positional[i];
  for (const auto& [name, value] : named) {
    const auto it = std::find(parameters_.begin(), parameters_.end(), name);
    if (it != parameters_.end()) {
      args_[it - parameters_.begin()] = value;
    } else if (!value.IsNone()) {
      FailMode(absl::StrCat("it is called with argument '", Printable(name), "'; known are ",
                            parameters),
               "leave the argument out")
          .IgnoreError();
      return false;
    }
  }
  return true;
}

absl::Status OpCall::Fail(DiagnosticKind kind, std::string message, std::string fix) {
  has_reported_ = true;
  absl::Status status(InfoOf(kind).code, message);
  state_->Report(kind, place_, source_, std::move(message), std::move(fix));
  return status;
}

absl::Status OpCall::FailMode(std::string message, std::string fix) {
  return Fail(DiagnosticKind::kUnsupportedOperatorMode, std::move(message), std::move(fix));
}

absl::Status OpCall::FailOnce(DiagnosticKind kind, std::string message, std::string fix) {
  // Taints are told apart by their messages, so that the first one is reported and no other.
  return Fail(kind, std::move(message), std::move(fix));
}

void OpCall::NoteRewritten(absl::string_view row, RuleKind kind, absl::string_view found,
                           std::string how) {
  if (state_->core == nullptr) return;
  const OpSupport* support = FindOp(*state_->core, Framework::kTorchScript, row);
  if (support == nullptr) return;
  for (const SupportRule& rule : support->rules) {
    if (rule.kind != kind) continue;
    state_->diagnostics->Add({.kind = DiagnosticKind::kRestrictionRewritten,
                              .message = absl::StrCat(Describe(rule), "; ", found),
                              .file = state_->file,
                              .node = source_.name,
                              .op = std::string(row),
                              .limit_source = absl::StrCat(rule.id, ", ", rule.source),
                              .fix = std::move(how)});
    return;
  }
}

absl::Status OpCall::Poisoned() {
  has_reported_ = true;
  return absl::FailedPreconditionError("an argument was refused");
}

const ScriptValue& OpCall::arg(int i) const {
  static const ScriptValue kNothing = ScriptValue::None();
  return i < arg_count() && args_[i].has_value() ? *args_[i] : kNothing;
}

absl::Status OpCall::ExpectKind(int i, absl::string_view wanted) {
  if (arg(i).Is(ScriptKind::kPoison)) return Poisoned();
  return absl::InvalidArgumentError(absl::StrCat("argument '", parameters_[i], "' is ",
                                                 NameOf(arg(i).kind), "; it must be ", wanted));
}

absl::StatusOr<ValueRef> OpCall::TensorArg(int i) {
  if (IsTensor(i)) return Read(arg(i).tensor);
  return ExpectKind(i, "a tensor");
}

absl::StatusOr<ValueRef> OpCall::TensorOrNumber(int i, const ValueRef& like) {
  if (!arg(i).IsNumber()) return TensorArg(i);
  const ScriptValue& number = arg(i);
  const bool is_float =
      number.Is(ScriptKind::kFloat) || like == nullptr || IsFloat(like->type.dtype);
  if (is_float) {
    const bool wide = like != nullptr && like->type.dtype == DType::kFloat64;
    Tensor value = Tensor::ScalarFloat(static_cast<float>(number.AsDouble()));
    if (wide) {
      const double real = number.AsDouble();
      std::vector<uint8_t> bytes(sizeof(real));
      std::copy_n(reinterpret_cast<const uint8_t*>(&real), sizeof(real), bytes.data());
      value = Tensor({DType::kFloat64, {}}, std::move(bytes));
    }
    return MakeConstant(std::move(value));
  }
  return MakeConstant(Tensor::FromInts({}, {number.integer}));
}

absl::StatusOr<ValueRef> OpCall::OptionalTensor(int i) {
  if (!Has(i)) return ValueRef();
  return TensorArg(i);
}

absl::StatusOr<std::vector<ValueRef>> OpCall::Tensors(int i) {
  if (!arg(i).IsSequence()) return ExpectKind(i, "a list of tensors");
  std::vector<ValueRef> values;
  for (const ScriptValue& item : arg(i).list->items) {
    if (item.Is(ScriptKind::kPoison)) return Poisoned();
    if (!item.Is(ScriptKind::kTensor)) return ExpectKind(i, "a list of tensors alone");
    ASSIGN_OR_RETURN(values.emplace_back(), Read(item.tensor));
  }
  return values;
}

absl::StatusOr<Tensor> OpCall::ConstantArg(int i) {
  ASSIGN_OR_RETURN(const ValueRef value, TensorArg(i));
  if (value->constant.has_value()) return *value->constant;
  return Fail(DiagnosticKind::kOperandNotConstant,
              absl::StrCat("argument '", parameters_[i],
                           "' depends on a model input; it must be known at compile time"),
              "compute it from shapes and constants, or move it out of the model");
}

absl::StatusOr<int64_t> OpCall::Int(int i) {
  if (arg(i).Is(ScriptKind::kInt) || arg(i).Is(ScriptKind::kBool)) return arg(i).integer;
  if (!IsTensor(i)) return ExpectKind(i, "an int");
  ASSIGN_OR_RETURN(const Tensor tensor, ConstantArg(i));
  if (tensor.element_count() != 1 || IsFloat(tensor.dtype())) return ExpectKind(i, "an int");
  return tensor.int_at(0);
}

absl::StatusOr<int64_t> OpCall::IntOr(int i, int64_t fallback) {
  if (!Has(i)) return fallback;
  return Int(i);
}

absl::StatusOr<double> OpCall::FloatOr(int i, double fallback) {
  if (!Has(i)) return fallback;
  if (arg(i).IsNumber()) return arg(i).AsDouble();
  if (!IsTensor(i)) return ExpectKind(i, "a number");
  ASSIGN_OR_RETURN(const Tensor tensor, ConstantArg(i));
  if (tensor.element_count() != 1) return ExpectKind(i, "a number");
  return tensor.at(0);
}

absl::StatusOr<bool> OpCall::BoolOr(int i, bool fallback) {
  if (!Has(i)) return fallback;
  if (arg(i).Is(ScriptKind::kBool) || arg(i).Is(ScriptKind::kInt)) return arg(i).integer != 0;
  return ExpectKind(i, "a bool");
}

absl::StatusOr<std::string> OpCall::StringOr(int i, absl::string_view fallback) {
  if (!Has(i)) return std::string(fallback);
  if (arg(i).Is(ScriptKind::kString)) return *arg(i).string;
  return ExpectKind(i, "a string");
}

absl::StatusOr<std::vector<int64_t>> OpCall::Ints(int i) {
  if (!arg(i).IsSequence()) {
    ASSIGN_OR_RETURN(const int64_t single, Int(i));
    return std::vector<int64_t>{single};
  }
  std::vector<int64_t> integers;
  if (arg(i).list->items.size() > 65536) return ExpectKind(i, "a short list of ints");
  for (const ScriptValue& item : arg(i).list->items) {
    if (item.Is(ScriptKind::kPoison)) return Poisoned();
    if (item.Is(ScriptKind::kInt) || item.Is(ScriptKind::kBool)) {
      integers.push_back(item.integer);
      continue;
    }
    if (!item.Is(ScriptKind::kTensor)) return ExpectKind(i, "a list of ints alone");
    ASSIGN_OR_RETURN(const ValueRef value, Read(item.tensor));
    if (!value->constant.has_value() || value->type.element_count() != 1) {
      return ExpectKind(i, "a list of ints that are known at compile time");
    }
    integers.push_back(value->constant->int_at(0));
  }
  return integers;
}

absl::StatusOr<std::vector<int64_t>> OpCall::IntsOr(int i, std::vector<int64_t> fallback) {
  if (!Has(i)) return fallback;
  return Ints(i);
}

absl::StatusOr<std::vector<int64_t>> OpCall::IntsOf(int i, size_t count,
                                                    std::vector<int64_t> fallback) {
  ASSIGN_OR_RETURN(std::vector<int64_t> integers, IntsOr(i, fallback));
  if (integers.empty()) integers = std::move(fallback);
  if (integers.size() == 1) integers.resize(count, integers[0]);
  if (integers.size() == count) return integers;
  return absl::InvalidArgumentError(absl::StrCat("argument '", parameters_[i], "' has ",
                                                 integers.size(), " items; it must have ", count));
}

absl::StatusOr<int64_t> OpCall::Axis(int64_t axis, int64_t rank) {
  const int64_t span = std::max<int64_t>(rank, 1);
  if (axis >= -span && axis < span) return axis < 0 ? axis + span : axis;
  return absl::InvalidArgumentError(
      absl::StrCat("dimension ", axis, " is outside a tensor of rank ", rank));
}

absl::StatusOr<std::vector<int64_t>> OpCall::Axes(std::vector<int64_t> axes, int64_t rank) {
  if (axes.empty()) {
    for (int64_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
    return axes;
  }
  for (int64_t& axis : axes) {
    ASSIGN_OR_RETURN(axis, Axis(axis, rank));
  }
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  if (rank == 0) axes.clear();
  return axes;
}

ValueRef OpCall::Scalar(double value) {
  return MakeConstant(Tensor::ScalarFloat(static_cast<float>(value)));
}

// Every value of the graph is f32: whatever else a constant is, it is converted here.
absl::StatusOr<ValueId> OpCall::Place(const ValueRef& value) {
  if (value->id.valid()) return value->id;
  NPUC_CHECK(value->constant.has_value());
  Tensor tensor = *value->constant;
  if (tensor.dtype() != DType::kFloat32) tensor = CastTensor(tensor, DType::kFloat32);
  const absl::Span<const float> floats = tensor.as<float>();
  const auto nan = frontend::FindNan(floats);
  if (nan != floats.end()) {
    return Fail(DiagnosticKind::kNanConstant,
                absl::StrCat("the constant '", Printable(value->source.name), "' holds NaN at ",
                             "element ", nan - floats.begin(), " of ", floats.size()),
                "train or export the model again");
  }
  value->id = state_->builder.Const(std::move(tensor), value->source);
  return value->id;
}

// Computes an operator on constants, within the limits on memory and work.
absl::StatusOr<std::vector<ValueRef>> OpCall::Fold(Op op, absl::Span<const ValueRef> operands,
                                                   AttrMap attrs) {
  const DType first = operands.empty() ? DType::kFloat32 : operands[0]->type.dtype;
  const bool mixed = std::any_of(operands.begin(), operands.end(), [&](const ValueRef& v) {
    return v->type.dtype != first ||
           ((!IsInteger(first) && first != DType::kFloat32) && !MovesOnly(op));
  });
  std::vector<Tensor> tensors;
  for (const ValueRef& operand : operands) {
    tensors.push_back(mixed ? CastTensor(*operand->constant, DType::kFloat32) : *operand->constant);
  }
  FoldLimits limits{state_->constant_bytes_left, kMaxFoldWork, state_->fold_work_left};
  absl::StatusOr<std::vector<Tensor>> values =
      FoldOperator(op, tensors, std::move(attrs), source_, limits);
  if (absl::IsResourceExhausted(values.status())) {
    return Fail(DiagnosticKind::kModelLimitExceeded, std::string(values.status().message()),
                "compute it before the model is exported");
  }
  const bool is_free = limits.work == state_->fold_work_left;
  state_->fold_work_left = limits.work;
  RETURN_IF_ERROR(values.status());
  std::vector<ValueRef> refs;
  for (Tensor& value : *values) {
    state_->constant_bytes_left -= is_free ? 0 : value.type().size_bytes();
    refs.push_back(MakeConstant(std::move(value)));
    // A weight that is only turned keeps the name that users know.
    if (MovesOnly(op)) refs.back()->source = operands[0]->source;
  }
  return refs;
}

absl::StatusOr<std::vector<ValueRef>> OpCall::EmitAll(absl::string_view name,
                                                      absl::Span<const ValueRef> operands,
                                                      AttrMap attrs, absl::string_view row) {
  const std::optional<Op> op = OpNamed(name);
  NPUC_CHECK(op.has_value());
  if (AllConstant(operands)) return Fold(*op, operands, std::move(attrs));
  state_->edges_left -= static_cast<int64_t>(operands.size());
  if (state_->builder.graph().node_count() >= kMaxNodes || state_->edges_left < 0) {
    state_->is_exhausted = true;
    return FailOnce(DiagnosticKind::kModelLimitExceeded,
                    absl::StrCat("the model becomes more than ", kMaxNodes, " nodes or ", kMaxEdges,
                                 " operands"),
                    "shorten the sequences that its loops and recurrent layers run over");
  }
  std::vector<ValueId> ids;
  for (const ValueRef& operand : operands) {
    ASSIGN_OR_RETURN(ids.emplace_back(), Place(operand));
  }
  NodeSource source = source_;
  if (row.empty()) row = row_.empty() ? RowOf(name) : row_;
  source.op = row == kNoRow ? "" : std::string(row);
  ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                   state_->builder.Add(*op, std::move(ids), std::move(attrs), source));
  return frontend::ResultValues(state_->builder, outputs, source_);
}

absl::StatusOr<ValueRef> OpCall::Emit(absl::string_view op, absl::Span<const ValueRef> operands,
                                      AttrMap attrs, absl::string_view row) {
  ASSIGN_OR_RETURN(std::vector<ValueRef> values, EmitAll(op, operands, std::move(attrs), row));
  NPUC_CHECK(values.size() == 1);
  return std::move(values[0]);
}

absl::StatusOr<ValueRef> OpCall::Reshaped(const ValueRef& value, Shape shape,
                                          absl::string_view row) {
  if (value->type.shape == shape) return value;
  return Emit("Reshape", {value}, {{"shape", std::move(shape)}}, row);
}

absl::StatusOr<ValueRef> OpCall::Transposed(const ValueRef& value, std::vector<int64_t> perm,
                                            absl::string_view row) {
  if (std::is_sorted(perm.begin(), perm.end())) return value;
  return Emit("Transpose", {value}, {{"perm", std::move(perm)}}, row);
}

absl::StatusOr<ValueRef> OpCall::Binary(absl::string_view op, ValueRef a, ValueRef b,
                                        absl::string_view row) {
  if (a->constant.has_value() && b->constant.has_value()) {
    std::optional<Tensor> small = EvaluateSmall(op, *a->constant, &*b->constant);
    if (small.has_value()) return MakeConstant(*std::move(small));
  }
  return Emit(op, {std::move(a), std::move(b)}, {}, row);
}

absl::StatusOr<ValueRef> OpCall::BinaryScalar(absl::string_view op, const ValueRef& a, double b,
                                              absl::string_view row) {
  return Binary(op, a, Scalar(b), row);
}

absl::StatusOr<ValueRef> OpCall::Unary(absl::string_view op, const ValueRef& a,
                                       absl::string_view row) {
  if (a->constant.has_value()) {
    std::optional<Tensor> small = EvaluateSmall(op, *a->constant, nullptr);
    if (small.has_value()) return MakeConstant(*std::move(small));
  }
  return Emit(op, {a}, {}, row);
}

absl::StatusOr<ValueRef> OpCall::Sliced(const ValueRef& value, int64_t axis, int64_t begin,
                                        int64_t size, int64_t step, absl::string_view row) {
  const Shape& shape = value->type.shape;
  if (begin == 0 && size == shape[axis] && step == 1) return value;
  std::vector<int64_t> begins(shape.size(), 0);
  std::vector<int64_t> sizes = shape;
  std::vector<int64_t> strides(shape.size(), 1);
  begins[axis] = begin;
  sizes[axis] = size;
  strides[axis] = step;
  return Emit(
      "Slice", {value},
      {{"begin", std::move(begins)}, {"size", std::move(sizes)}, {"strides", std::move(strides)}},
      row);
}

absl::StatusOr<ValueRef> OpCall::Joined(absl::Span<const ValueRef> values, int64_t axis,
                                        absl::string_view row) {
  if (values.size() == 1) return values[0];
  return Emit("Concat", values, {{"axis", axis}}, row);
}

absl::StatusOr<ValueRef> OpCall::Reduced(absl::string_view op, const ValueRef& value,
                                         std::vector<int64_t> axes, bool keep_dims,
                                         absl::string_view row) {
  return Emit(op, {value}, {{"axes", std::move(axes)}, {"keep_dims", keep_dims}}, row);
}

absl::StatusOr<ValueRef> OpCall::Expanded(const ValueRef& value, const Shape& shape) {
  const Shape& from = value->type.shape;
  if (shape.size() < from.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(TypeToString(value->type), " does not expand to ", ShapeToString(shape)));
  }
  Shape padded(shape.size() - from.size(), 1);
  padded.insert(padded.end(), from.begin(), from.end());
  ASSIGN_OR_RETURN(ValueRef result, Reshaped(value, padded));
  RETURN_IF_ERROR(CheckShape(shape));
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (padded[axis] == shape[axis]) continue;
    if (padded[axis] != 1 || shape[axis] < 1 || shape[axis] > kMaxNodes) {
      return absl::InvalidArgumentError(
          absl::StrCat(TypeToString(value->type), " does not expand to ", ShapeToString(shape)));
    }
    const std::vector<ValueRef> copies(static_cast<size_t>(shape[axis]), result);
    ASSIGN_OR_RETURN(result, Joined(copies, static_cast<int64_t>(axis)));
  }
  return result;
}

absl::StatusOr<ValueRef> OpCall::Read(TensorCell* cell) {
  if (cell->base == nullptr) return cell->value;
  ASSIGN_OR_RETURN(const ValueRef base, Read(cell->base));
  if (cell->base->version == cell->base_version) return cell->value;
  ASSIGN_OR_RETURN(cell->value, cell->view(*this, base));
  cell->base_version = cell->base->version;
  ++cell->version;
  return cell->value;
}

absl::Status OpCall::CheckNoAttribute(const TensorCell& cell) {
  if (cell.attribute.empty()) return absl::OkStatus();
  return Fail(DiagnosticKind::kTorchStateWritten,
              absl::StrCat("the model writes to its attribute '", Printable(cell.attribute),
                           "'; a compiled model keeps nothing between frames"),
              "make the state an input and an output of forward");
}

absl::Status OpCall::Become(TensorCell* cell, const TensorCell& view) {
  RETURN_IF_ERROR(CheckNoAttribute(*cell));
  TensorCell made = view;
  TensorCell* const memory = state_->heap.MoveOut(cell);
  made.version = cell->version + 1;
  if (made.base == cell) made.base = memory;
  if (made.may_share) memory->may_share = true;
  *cell = std::move(made);
  return absl::OkStatus();
}

absl::Status OpCall::Write(TensorCell* cell, ValueRef updated) {
  RETURN_IF_ERROR(CheckNoAttribute(*cell));
  if (cell->may_share) {
    return FailMode("it writes to a tensor that may or may not share its memory with another",
                    "write x = x.clone() before it, or use the form that is not in place");
  }
  if (updated->type.shape != cell->value->type.shape) {
    return absl::InvalidArgumentError(absl::StrCat("a result of ", TypeToString(updated->type),
                                                   " does not fit in place of ",
                                                   TypeToString(cell->value->type)));
  }
  if (cell->base != nullptr) {
    if (cell->write == nullptr) {
      return FailMode("it writes to a repeated view of a tensor", "write to a clone() of it");
    }
    ASSIGN_OR_RETURN(const ValueRef base, Read(cell->base));
    ASSIGN_OR_RETURN(ValueRef written, cell->write(*this, base, updated));
    RETURN_IF_ERROR(Write(cell->base, std::move(written)));
    cell->base_version = cell->base->version;
  }
  cell->value = std::move(updated);
  ++cell->version;
  return absl::OkStatus();
}

}  // namespace npuc::pt
