#include "compiler_core/frontends/common/formula_functions.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc::frontend {
namespace {

using ParameterKind = FormulaParameter::Kind;
using Runs = FormulaFunction::Runs;

constexpr FormulaParameter kAxis = {"axis", ParameterKind::kAxis};
constexpr FormulaParameter kLastAxis = {"axis", ParameterKind::kAxis, "-1"};
constexpr FormulaParameter kAxes = {"axes", ParameterKind::kAxes};
constexpr FormulaParameter kKeepDims = {"keep_dims", ParameterKind::kBool, "false"};
constexpr FormulaParameter kKernel = {"kernel", ParameterKind::kInts};
constexpr FormulaParameter kStrides = {"strides", ParameterKind::kInts};
constexpr FormulaParameter kPads = {"pads", ParameterKind::kInts};
constexpr FormulaParameter kDilations = {"dilations", ParameterKind::kInts, "[1, 1]"};
constexpr int kMaxJoined = 16;

// Images are [n, h, w, c], as in the IR; pads are top, bottom, left, right.
constexpr FormulaFunction kFunctions[] = {
    {"Abs"},
    {"Add", 2, 2},
    {"AvgPool", 1, 1, {kKernel, kStrides, kPads}},
    {"Concat", 1, kMaxJoined, {kAxis}},
    {"Conv2D", 2, 3, {kStrides, kPads, kDilations}},
    {"DepthwiseConv2D", 2, 3, {kStrides, kPads, kDilations}},
    {"Div", 2, 2},
    {"Equal", 2, 2},
    {"Exp"},
    {"Floor"},
    {"Greater", 2, 2},
    {"GreaterEqual", 2, 2},
    {"Log"},
    {"LogSoftmax", 1, 1, {kLastAxis}},
    {"MatMul",
     2,
     2,
     {{"transpose_a", ParameterKind::kBool, "false"},
      {"transpose_b", ParameterKind::kBool, "false"}}},
    {"MaxPool", 1, 1, {kKernel, kStrides, kPads}},
    {"Maximum", 2, 2},
    {"Minimum", 2, 2},
    {"Mul", 2, 2},
    {"Neg"},
    {"Pad",
     1,
     1,
     {{"paddings", ParameterKind::kInts}, {"value", ParameterKind::kFloat, "0"}},
     Runs::kPad},
    {"Pow", 2, 2},
    {"Reciprocal"},
    {"ReduceMax", 1, 1, {kAxes, kKeepDims}},
    {"ReduceMean", 1, 1, {kAxes, kKeepDims}},
    {"ReduceSum", 1, 1, {kAxes, kKeepDims}},
    {"Relu"},
    {"Relu6"},
    {"Reshape", 1, 1, {{"shape", ParameterKind::kInts}}, Runs::kReshape},
    {"Round"},
    {"Rsqrt"},
    {"Select", 3, 3},
    {"Selu"},
    {"Sigmoid"},
    {"Size", 1, 1, {kAxis}, Runs::kSize},
    {"Slice",
     1,
     1,
     {kAxis,
      {"begin", ParameterKind::kInt},
      {"size", ParameterKind::kInt},
      {"stride", ParameterKind::kInt, "1"}},
     Runs::kSlice},
    {"Softmax", 1, 1, {kLastAxis}},
    {"Split", 1, 1, {kAxis, {"parts", ParameterKind::kInt}}, Runs::kSplit},
    {"Sqrt"},
    {"Square"},
    {"SquaredDifference", 2, 2},
    {"Sub", 2, 2},
    {"Tanh"},
    {"Transpose", 1, 1, {{"perm", ParameterKind::kInts}}},
};

std::vector<int64_t> Whole(const FormulaNumbers& numbers) {
  return {numbers.numbers.begin(), numbers.numbers.end()};
}

Attr AttrOf(ParameterKind kind, const FormulaNumbers& value) {
  switch (kind) {
    case ParameterKind::kInts:
    case ParameterKind::kAxes:
      return Whole(value);
    case ParameterKind::kBool:
      return value.numbers[0] != 0;
    case ParameterKind::kFloat:
      return value.numbers[0];
    default:
      return static_cast<int64_t>(value.numbers[0]);
  }
}

absl::StatusOr<std::vector<ValueRef>> Reshape(Emitter& node, const FormulaCall& call) {
  Shape shape = Whole(*call.named[0]);
  const Shape& from = call.operands[0]->type.shape;
  int64_t known = 1;
  int64_t* open = nullptr;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && i < from.size()) shape[i] = from[i];
    if (shape[i] == -1 && open == nullptr) {
      open = &shape[i];
    } else if (shape[i] < 1 || known > kMaxElements / shape[i]) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", ShapeToString(shape), " of a Reshape: a dimension is ", shape[i]));
    } else {
      known *= shape[i];
    }
  }
  if (open != nullptr) *open = call.operands[0]->type.element_count() / known;
  ASSIGN_OR_RETURN(ValueRef value, node.Reshaped(call.operands[0], std::move(shape)));
  return std::vector<ValueRef>{std::move(value)};
}

absl::StatusOr<std::vector<ValueRef>> Slice(Emitter& node, const FormulaCall& call) {
  const int64_t axis = Whole(*call.named[0])[0];
  const int64_t begin = Whole(*call.named[1])[0];
  const int64_t size = Whole(*call.named[2])[0];
  const int64_t stride = call.named[3].has_value() ? Whole(*call.named[3])[0] : 1;
  const int64_t all = call.operands[0]->type.shape[static_cast<size_t>(axis)];
  if (begin < 0 || size < 1 || stride < 1 || begin + (size - 1) * stride >= all) {
    return absl::InvalidArgumentError(absl::StrCat("a Slice of ", size, " elements from ", begin,
                                                   ", ", stride, " apart; dimension ", axis,
                                                   " has ", all));
  }
  ASSIGN_OR_RETURN(ValueRef value, node.Sliced(call.operands[0], axis, begin, size, stride));
  return std::vector<ValueRef>{std::move(value)};
}

absl::StatusOr<std::vector<ValueRef>> Split(Emitter& node, const FormulaCall& call) {
  const int64_t axis = Whole(*call.named[0])[0];
  const int64_t parts = Whole(*call.named[1])[0];
  const int64_t all = call.operands[0]->type.shape[static_cast<size_t>(axis)];
  if (parts < 1 || all % parts != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a Split of dimension ", axis, ", which is ", all, ", into ", parts));
  }
  return node.EmitAll(
      "Split", call.operands,
      {{"axis", axis}, {"sizes", std::vector<int64_t>(static_cast<size_t>(parts), all / parts)}});
}

absl::StatusOr<std::vector<ValueRef>> Pad(Emitter& node, const FormulaCall& call) {
  std::vector<int64_t> paddings = Whole(*call.named[0]);
  const auto wanted = static_cast<size_t>(2 * RankOf(call.operands[0]));
  if (paddings.size() != wanted ||
      std::any_of(paddings.begin(), paddings.end(), [](int64_t p) { return p < 0; })) {
    return absl::InvalidArgumentError(
        absl::StrCat("paddings of a Pad are ", paddings.size(), " numbers; it takes ", wanted,
                     " of at least 0, before and after each dimension"));
  }
  const double fill = call.named[1].has_value() ? call.named[1]->numbers[0] : 0;
  ASSIGN_OR_RETURN(ValueRef value, node.Padded(call.operands[0], std::move(paddings), fill));
  return std::vector<ValueRef>{std::move(value)};
}

absl::StatusOr<std::vector<ValueRef>> EmitCall(Emitter& node, const FormulaCall& call) {
  AttrMap attrs;
  for (size_t i = 0; i < call.named.size(); ++i) {
    const FormulaParameter& parameter = call.function.parameters[i];
    if (!call.named[i].has_value()) continue;
    attrs.emplace(std::string(parameter.name), AttrOf(parameter.kind, *call.named[i]));
  }
  return node.EmitAll(call.function.name, call.operands, std::move(attrs));
}

}  // namespace

int FormulaFunction::parameter_count() const {
  int count = 0;
  while (count < kMaxParameters && parameters[count].kind != ParameterKind::kNone) ++count;
  return count;
}

int FormulaFunction::FindParameter(absl::string_view parameter) const {
  for (int i = 0; i < parameter_count(); ++i) {
    if (parameters[i].name == parameter) return i;
  }
  return -1;
}

absl::Span<const FormulaFunction> FormulaFunctions() { return kFunctions; }

const FormulaFunction* FindFormulaFunction(absl::string_view name) {
  for (const FormulaFunction& function : kFunctions) {
    if (function.name == name) return &function;
  }
  return nullptr;
}

std::vector<std::string> FormulaFunctionNames() {
  std::vector<std::string> names;
  for (const FormulaFunction& function : kFunctions) names.emplace_back(function.name);
  return names;
}

std::vector<std::string> FormulaFunctionUses() {
  constexpr absl::string_view kLetters[] = {"x", "y", "z"};
  std::vector<std::string> uses;
  for (const FormulaFunction& function : kFunctions) {
    std::string use = absl::StrCat(function.name, "(x");
    for (int i = 1; i < std::min(function.most_operands, 3); ++i) {
      absl::StrAppend(&use, ", ", kLetters[i]);
    }
    if (function.most_operands > 3) absl::StrAppend(&use, ", ...");
    for (int i = 0; i < function.parameter_count(); ++i) {
      const FormulaParameter& parameter = function.parameters[i];
      absl::StrAppend(&use, ", ", parameter.name);
      if (!parameter.default_value.empty()) absl::StrAppend(&use, "=", parameter.default_value);
    }
    uses.push_back(use + ")");
  }
  return uses;
}

absl::StatusOr<FormulaNumbers> CheckFormulaArgument(const FormulaParameter& parameter,
                                                    const FormulaNumbers& given, int64_t rank) {
  const bool takes_list =
      parameter.kind == ParameterKind::kInts || parameter.kind == ParameterKind::kAxes;
  if (takes_list != given.is_list) {
    return absl::InvalidArgumentError(absl::StrCat("argument ", parameter.name, " is ",
                                                   given.is_list ? "a list" : "a number",
                                                   "; it takes ", takes_list ? "a list" : "one"));
  }
  if (parameter.kind == ParameterKind::kFloat) return given;
  FormulaNumbers out = given;
  const bool is_axis =
      parameter.kind == ParameterKind::kAxis || parameter.kind == ParameterKind::kAxes;
  for (double& number : out.numbers) {
    if (number != std::floor(number) || std::fabs(number) > 0x1p31) {
      return absl::InvalidArgumentError(
          absl::StrCat("argument ", parameter.name, " holds ", number, ", no whole number"));
    }
    if (!is_axis) continue;
    if (number < -static_cast<double>(rank) || number >= static_cast<double>(rank)) {
      return absl::InvalidArgumentError(absl::StrCat("argument ", parameter.name, " is ", number,
                                                     "; the tensor has ", rank, " dimensions"));
    }
    if (number < 0) number += static_cast<double>(rank);
  }
  if (parameter.kind == ParameterKind::kAxes) {
    std::sort(out.numbers.begin(), out.numbers.end());
    if (std::adjacent_find(out.numbers.begin(), out.numbers.end()) != out.numbers.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("argument ", parameter.name, " names a dimension twice"));
    }
  }
  return out;
}

absl::StatusOr<double> RunFormulaSize(const FormulaCall& call) {
  const auto axis = static_cast<size_t>(Whole(*call.named[0])[0]);
  return static_cast<double>(call.operands[0]->type.shape[axis]);
}

absl::StatusOr<std::vector<ValueRef>> RunFormulaCall(Emitter& node, const FormulaCall& call) {
  switch (call.function.runs) {
    case Runs::kReshape:
      return Reshape(node, call);
    case Runs::kSlice:
      return Slice(node, call);
    case Runs::kPad:
      return Pad(node, call);
    case Runs::kSplit:
      return Split(node, call);
    default:
      return EmitCall(node, call);
  }
}

}  // namespace npuc::frontend
