#include "compiler_core/frontends/torchscript/op_call.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/torchscript/lexer.h"
#include "compiler_core/frontends/torchscript/torch_type.h"

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

// Operators that torch computes in floats, of integers too.
bool IsOfFloats(Op op) {
  constexpr Op kOps[] = {Op::kDiv,   Op::kExp,     Op::kLog,  Op::kReciprocal, Op::kReduceMean,
                         Op::kRsqrt, Op::kSigmoid, Op::kSqrt, Op::kTanh};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
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

void OpCall::Report(DiagnosticKind kind, const NodeSource& source, std::string message,
                    std::string fix) {
  state().Report(kind, place_, source, std::move(message), std::move(fix));
}

void OpCall::NoteRewritten(absl::string_view row, RuleKind kind, absl::string_view found,
                           std::string how) {
  if (torch_state_->core == nullptr) return;
  const OpSupport* support = FindOp(*torch_state_->core, Framework::kTorchScript, row);
  if (support == nullptr) return;
  for (const SupportRule& rule : support->rules) {
    if (rule.kind != kind) continue;
    torch_state_->diagnostics->Add({.kind = DiagnosticKind::kRestrictionRewritten,
                                    .message = absl::StrCat(Describe(rule), "; ", found),
                                    .file = torch_state_->file,
                                    .node = source().name,
                                    .op = std::string(row),
                                    .limit_source = absl::StrCat(rule.id, ", ", rule.source),
                                    .fix = std::move(how)});
    return;
  }
}

absl::Status OpCall::Poisoned() {
  return AlreadyReported(absl::FailedPreconditionError("an argument was refused"));
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
      number.Is(ScriptKind::kFloat) || like == nullptr || IsTorchFloat(TorchTypeOf(like));
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
  const Tensor integer = Tensor::FromInts({}, {number.integer});
  const bool is_truth = number.Is(ScriptKind::kBool) && IsTruth(like);
  return MakeConstant(is_truth ? CastTensor(integer, DType::kBool) : integer);
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
              state().constant_fix);
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

Tensor OpCall::Placed(const Tensor& constant) const {
  return constant.dtype() == DType::kFloat32 ? constant : CastTensor(constant, DType::kFloat32);
}

absl::StatusOr<std::vector<ValueRef>> OpCall::Fold(Op op, absl::Span<const ValueRef> operands,
                                                   AttrMap attrs) {
  if (attrs.empty() && (operands.size() == 1 || operands.size() == 2)) {
    const Tensor* const second = operands.size() == 2 ? &*operands[1]->constant : nullptr;
    std::optional<Tensor> small = EvaluateSmall(npuc::NameOf(op), *operands[0]->constant, second);
    if (small.has_value()) return std::vector<ValueRef>{MakeConstant(*std::move(small))};
  }
  if (op == Op::kSelect || op == Op::kGather) return Emitter::Fold(op, operands, std::move(attrs));
  const DType first = operands.empty() ? DType::kFloat32 : operands[0]->type.dtype;
  const bool keeps_type = IsInteger(first)        ? !IsOfFloats(op)
                          : first == DType::kBool ? MovesOnly(op) || op == Op::kConcat
                                                  : first == DType::kFloat32 || MovesOnly(op);
  const bool mixed =
      !keeps_type || std::any_of(operands.begin(), operands.end(),
                                 [&](const ValueRef& v) { return v->type.dtype != first; });
  std::vector<ValueRef> known(operands.begin(), operands.end());
  if (mixed) {
    for (ValueRef& value : known) {
      value = frontend::ConstantValue(Placed(*value->constant), value->source);
    }
  }
  ASSIGN_OR_RETURN(std::vector<ValueRef> results, Emitter::Fold(op, known, std::move(attrs)));
  // A weight that is only turned or cut keeps the name that users know.
  for (const ValueRef& result : results) {
    if (MovesOnly(op)) result->source = operands[0]->source;
  }
  return results;
}

void OpCall::NoteFacts(Op op, absl::Span<const ValueRef> operands,
                       std::vector<ValueRef>& results) const {
  for (ValueRef& result : results) {
    if (frontend::IsKnown(result) || result->type.dtype != DType::kFloat32) continue;
    result = WithTorchType(result, ResultType(op, operands));
  }
}

NodeSource OpCall::UnderRow(absl::string_view row) const {
  return {source().name, row == kNoRow ? "" : std::string(row)};
}

NodeSource OpCall::SourceFor(absl::string_view op) const {
  // How a result is stored is no operator of the list.
  if (op == "Quantize" || op == "Dequantize") return UnderRow(kNoRow);
  return UnderRow(row_.empty() ? RowOf(op) : row_);
}

NodeSource OpCall::LayoutSourceFor(absl::string_view /*op*/) const { return UnderRow(kNoRow); }

absl::StatusOr<ValueRef> OpCall::EmitUnder(absl::string_view row, absl::string_view op,
                                           absl::Span<const ValueRef> operands, AttrMap attrs) {
  return EmitAs(row.empty() ? SourceFor(op) : UnderRow(row), op, operands, std::move(attrs));
}

absl::StatusOr<ValueRef> OpCall::ReshapedUnder(absl::string_view row, const ValueRef& value,
                                               Shape shape) {
  if (value->type.shape == shape) return value;
  return EmitUnder(row, "Reshape", {value}, {{"shape", std::move(shape)}});
}

absl::StatusOr<ValueRef> OpCall::TransposedUnder(absl::string_view row, const ValueRef& value,
                                                 std::vector<int64_t> perm) {
  if (std::is_sorted(perm.begin(), perm.end())) return value;
  return EmitUnder(row, "Transpose", {value}, {{"perm", std::move(perm)}});
}

absl::StatusOr<ValueRef> OpCall::SlicedUnder(absl::string_view row, const ValueRef& value,
                                             int64_t axis, int64_t begin, int64_t size,
                                             int64_t step) {
  const absl::string_view before = std::exchange(row_, row);
  absl::StatusOr<ValueRef> part = Sliced(value, axis, begin, size, step);
  row_ = before;
  return part;
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
    if (padded[axis] != 1 || shape[axis] < 1 || shape[axis] > frontend::kMaxGraphNodes) {
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

void OpCall::NoteChange(TensorCell* cell) {
  if (cell->attribute.empty()) return;
  ScriptValue value = ScriptValue::Of(ScriptKind::kTensor);
  value.tensor = cell;
  torch_state_->attributes.NoteChange(*this, cell->attribute, value);
}

absl::Status OpCall::Become(TensorCell* cell, const TensorCell& view) {
  NoteChange(cell);
  TensorCell made = view;
  TensorCell* const memory = torch_state_->heap.MoveOut(cell);
  made.version = cell->version + 1;
  if (made.base == cell) made.base = memory;
  if (made.may_share) memory->may_share = true;
  *cell = std::move(made);
  return absl::OkStatus();
}

absl::Status OpCall::Write(TensorCell* cell, ValueRef updated) {
  NoteChange(cell);
  if (cell->may_share) {
    return FailMode("it writes to a tensor that may or may not share its memory with another",
                    "write x = x.clone() before it, or use the form that is not in place");
  }
  if (updated->type.shape != cell->value->type.shape) {
    return absl::InvalidArgumentError(absl::StrCat("a result of ", TypeToString(updated->type),
                                                   " does not fit in place of ",
                                                   TypeToString(cell->value->type)));
  }
  // The tensor keeps its own type.
  const int64_t type = TorchTypeOf(cell->value);
  if (!frontend::IsKnown(updated) && IsTorchFloat(type)) updated = WithTorchType(updated, type);
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
