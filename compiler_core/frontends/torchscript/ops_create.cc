// New tensors.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/torchscript/op_call.h"

namespace npuc::pt {
namespace {

// torch's numbers of types.
constexpr int64_t kHalfType = 5;  // the first of floats
constexpr int64_t kBoolType = 11;
constexpr int64_t kMaxCreated = int64_t{1} << 24;

absl::StatusOr<ScriptValue> Filled(OpCall& call, const Shape& shape, double value,
                                   bool is_bool = false) {
  RETURN_IF_ERROR(CheckShape(shape));
  const int64_t count = ElementCount(shape);
  if (count > kMaxCreated || count * 4 > call.state().constant_bytes_left) {
    return absl::InvalidArgumentError(absl::StrCat("a tensor of ", count, " elements"));
  }
  call.state().constant_bytes_left -= count * 4;
  const std::vector<float> values(static_cast<size_t>(count), static_cast<float>(value));
  const Tensor floats = Tensor::FromFloats(shape, values);
  return call.Result(call.MakeConstant(is_bool ? CastTensor(floats, DType::kBool) : floats));
}

absl::StatusOr<ScriptValue> ImportFill(OpCall& call) {
  const absl::string_view name = call.name();
  const bool one = absl::StrContains(name, "ones");
  const bool full = absl::StrContains(name, "full");
  Shape shape;
  int value_arg = 1;
  if (absl::StartsWith(name, "new_")) {
    value_arg = 2;
    ASSIGN_OR_RETURN(shape, call.Ints(1));
  } else if (absl::EndsWith(name, "_like")) {
    ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
    shape = x->type.shape;
  } else {
    ASSIGN_OR_RETURN(shape, call.Ints(0));
  }
  double value = one ? 1 : 0;
  if (full) {
    ASSIGN_OR_RETURN(value, call.FloatOr(value_arg, 0));
  }
  const ScriptValue& type = call.arg(value_arg + (full ? 1 : 0));
  const bool is_bool = type.Is(ScriptKind::kInt)
                           ? type.integer == kBoolType
                           : full && call.arg(value_arg).Is(ScriptKind::kBool);
  return Filled(call, shape, value, is_bool);
}

// x.fill_(value), x.zero_()
absl::StatusOr<ScriptValue> ImportFillInPlace(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const double value, call.FloatOr(1, 0));
  return Filled(call, x->type.shape, value);
}

absl::StatusOr<ScriptValue> ImportArange(OpCall& call) {
  // arange(end), arange(start, end), arange(start, end, step): what follows is type and device.
  std::vector<ScriptValue> numbers;
  for (int i = 0; i < 3 && (call.arg(i).IsNumber() || call.IsTensor(i)); ++i) {
    if (call.arg(i).IsNumber()) {
      numbers.push_back(call.arg(i));
      continue;
    }
    ASSIGN_OR_RETURN(const Tensor number, call.ConstantArg(i));  // a traced size
    if (number.element_count() != 1) {
      return absl::InvalidArgumentError("arange of a tensor that is no number");
    }
    numbers.push_back(IsFloat(number.dtype()) ? ScriptValue::Float(number.at(0))
                                              : ScriptValue::Int(number.int_at(0)));
  }
  if (numbers.empty()) return absl::InvalidArgumentError("arange without a number");
  bool is_float = false;
  for (const ScriptValue& number : numbers) is_float |= number.Is(ScriptKind::kFloat);
  const double begin = numbers.size() > 1 ? numbers[0].AsDouble() : 0;
  const double end = numbers.size() > 1 ? numbers[1].AsDouble() : numbers[0].AsDouble();
  const double step = numbers.size() > 2 ? numbers[2].AsDouble() : 1;
  if (step == 0 || !((end - begin) / step <= 65536)) {
    return absl::InvalidArgumentError("arange of more than 65536 elements");
  }
  std::vector<double> values;
  for (int64_t i = 0;; ++i) {
    const double value = begin + static_cast<double>(i) * step;
    if (step > 0 ? value >= end : value <= end) break;
    values.push_back(value);
  }
  const Shape shape = {static_cast<int64_t>(values.size())};
  if (is_float) {
    return call.Result(call.MakeConstant(
        Tensor::FromFloats(shape, std::vector<float>(values.begin(), values.end()))));
  }
  return call.Result(call.MakeConstant(
      Tensor::FromInts(shape, std::vector<int64_t>(values.begin(), values.end()))));
}

// tensor([..]) of numbers, nested lists of equal lengths.
absl::StatusOr<ScriptValue> ImportTensor(OpCall& call) {
  Shape shape;
  std::vector<ScriptValue> level = {call.arg(0)};
  while (!level.empty() && level[0].IsSequence()) {
    shape.push_back(static_cast<int64_t>(level[0].list->items.size()));
    std::vector<ScriptValue> next;
    for (const ScriptValue& item : level) {
      if (!item.IsSequence() || static_cast<int64_t>(item.list->items.size()) != shape.back()) {
        return absl::InvalidArgumentError("tensor() of lists of unlike lengths");
      }
      next.insert(next.end(), item.list->items.begin(), item.list->items.end());
    }
    if (next.size() > 65536 || shape.size() > 8) {
      return absl::InvalidArgumentError("tensor() of more than 65536 numbers");
    }
    level = std::move(next);
  }
  bool is_float = false;
  bool is_bool = !level.empty();
  for (const ScriptValue& item : level) {
    if (!item.IsNumber()) return absl::InvalidArgumentError("tensor() of something but numbers");
    is_float |= item.Is(ScriptKind::kFloat);
    is_bool &= item.Is(ScriptKind::kBool);
  }
  if (call.arg(1).Is(ScriptKind::kInt)) {
    is_bool = call.arg(1).integer == kBoolType;
    is_float = call.arg(1).integer >= kHalfType && !is_bool;
  }
  if (is_float) {
    std::vector<float> values;
    for (const ScriptValue& item : level) values.push_back(static_cast<float>(item.AsDouble()));
    return call.Result(call.MakeConstant(Tensor::FromFloats(shape, values)));
  }
  std::vector<int64_t> values;
  for (const ScriptValue& item : level) values.push_back(item.integer);
  const Tensor integers = Tensor::FromInts(shape, values);
  return call.Result(call.MakeConstant(is_bool ? CastTensor(integers, DType::kBool) : integers));
}

constexpr absl::string_view kSizes = "size dtype layout device pin_memory memory_format";
constexpr absl::string_view kLike = "self dtype layout device pin_memory memory_format";
constexpr absl::string_view kNew = "self size dtype layout device pin_memory";

constexpr OpRule kCreateRules[] = {
    {"arange", "a b c d e f g dtype layout device pin_memory", ImportArange},
    {"empty", kSizes, ImportFill},
    {"empty_like", kLike, ImportFill},
    {"fill", "self value", ImportFillInPlace},
    {"full", "size fill_value dtype layout device pin_memory", ImportFill},
    {"full_like", "self fill_value dtype layout device pin_memory memory_format", ImportFill},
    {"new_empty", kNew, ImportFill},
    {"new_full", "self size fill_value dtype layout device pin_memory", ImportFill},
    {"new_ones", kNew, ImportFill},
    {"new_zeros", kNew, ImportFill},
    {"ones", kSizes, ImportFill},
    {"ones_like", kLike, ImportFill},
    {"tensor", "data dtype device requires_grad", ImportTensor},
    {"zero", "self", ImportFillInPlace},
    {"zeros", kSizes, ImportFill},
    {"zeros_like", kLike, ImportFill},
};

}  // namespace

absl::Span<const OpRule> CreateRules() { return kCreateRules; }

}  // namespace npuc::pt
