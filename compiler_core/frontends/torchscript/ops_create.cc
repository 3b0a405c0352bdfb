// New tensors.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/torchscript/op_call.h"
#include "compiler_core/frontends/torchscript/torch_type.h"

namespace npuc::pt {
namespace {

constexpr int64_t kMaxCreated = int64_t{1} << 24;
constexpr int kArangeType = 7;  // among its parameters

// Numbers as a tensor of torch's type of that number. Integers of any size are i64.
absl::StatusOr<ScriptValue> Created(OpCall& call, const Shape& shape,
                                    const std::vector<double>& numbers, int64_t type) {
  if (ElementTypeOf(type) == DType::kInvalid) {
    return call.FailMode(absl::StrCat("a tensor of type ", type), "use float32");
  }
  if (IsTorchFloat(type)) {
    const std::vector<float> floats(numbers.begin(), numbers.end());
    return call.Result(WithTorchType(call.MakeConstant(Tensor::FromFloats(shape, floats)), type));
  }
  std::vector<int64_t> integers;
  for (const double number : numbers) {
    if (type != kTorchBool && !(std::fabs(number) < 0x1p63)) {
      return absl::InvalidArgumentError(absl::StrCat(number, " is no integer"));
    }
    integers.push_back(type == kTorchBool ? (number != 0 ? 1 : 0) : static_cast<int64_t>(number));
  }
  const Tensor tensor = Tensor::FromInts(shape, integers);
  return call.Result(
      call.MakeConstant(type == kTorchBool ? CastTensor(tensor, DType::kBool) : tensor));
}

absl::StatusOr<ScriptValue> Filled(OpCall& call, const Shape& shape, double value, int64_t type) {
  RETURN_IF_ERROR(CheckShape(shape));
  const int64_t count = ElementCount(shape);
  if (count > kMaxCreated || count * 4 > call.state().constant_bytes_left) {
    return absl::InvalidArgumentError(absl::StrCat("a tensor of ", count, " elements"));
  }
  call.state().constant_bytes_left -= count * 4;
  return Created(call, shape, std::vector<double>(static_cast<size_t>(count), value), type);
}

// The type that a number or a constant gives a tensor that is filled with it.
absl::StatusOr<int64_t> TypeOfNumber(OpCall& call, int arg) {
  if (call.arg(arg).Is(ScriptKind::kBool)) return kTorchBool;
  if (call.arg(arg).Is(ScriptKind::kInt)) return kTorchLong;
  if (!call.IsTensor(arg)) return kTorchFloat;
  ASSIGN_OR_RETURN(const ValueRef number, call.TensorArg(arg));
  return TorchTypeOf(number);
}

absl::StatusOr<ScriptValue> ImportFill(OpCall& call) {
  const absl::string_view name = call.name();
  const bool one = absl::StrContains(name, "ones");
  const bool full = absl::StrContains(name, "full");
  const bool is_new = absl::StartsWith(name, "new_");
  const bool is_like = absl::EndsWith(name, "_like");
  const int value_arg = is_new ? 2 : 1;
  Shape shape;
  int64_t type = kTorchFloat;
  if (is_new || is_like) {
    ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
    shape = x->type.shape;
    type = TorchTypeOf(x);
  } else if (full) {
    ASSIGN_OR_RETURN(type, TypeOfNumber(call, value_arg));
  }
  if (!is_like) {
    ASSIGN_OR_RETURN(shape, call.Ints(is_new ? 1 : 0));
  }
  double value = one ? 1 : 0;
  if (full) {
    ASSIGN_OR_RETURN(value, call.FloatOr(value_arg, 0));
  }
  const ScriptValue& stated = call.arg(value_arg + (full ? 1 : 0));
  if (stated.Is(ScriptKind::kInt)) type = stated.integer;
  return Filled(call, shape, value, type);
}

// x.fill_(value), x.zero_()
absl::StatusOr<ScriptValue> ImportFillInPlace(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const double value, call.FloatOr(1, 0));
  return Filled(call, x->type.shape, value, TorchTypeOf(x));
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
  int64_t type = kTorchLong;
  for (const ScriptValue& number : numbers) {
    if (number.Is(ScriptKind::kFloat)) type = kTorchFloat;
  }
  if (call.arg(kArangeType).Is(ScriptKind::kInt)) type = call.arg(kArangeType).integer;
  const bool is_float = IsTorchFloat(type);
  // An integer tensor begins and steps by whole numbers.
  const auto number = [&](size_t i) {
    return is_float ? numbers[i].AsDouble() : std::trunc(numbers[i].AsDouble());
  };
  const double begin = numbers.size() > 1 ? number(0) : 0;
  const double end = numbers.size() > 1 ? numbers[1].AsDouble() : numbers[0].AsDouble();
  const double step = numbers.size() > 2 ? number(2) : 1;
  if (step == 0 || !((end - begin) / step <= 65536)) {
    return absl::InvalidArgumentError("arange of more than 65536 elements");
  }
  std::vector<double> values;
  for (int64_t i = 0;; ++i) {
    const double value = begin + static_cast<double>(i) * step;
    if (step > 0 ? value >= end : value <= end) break;
    values.push_back(value);
  }
  return Created(call, {static_cast<int64_t>(values.size())}, values, type);
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
  bool is_float = level.empty();
  bool is_bool = !level.empty();
  for (const ScriptValue& item : level) {
    if (!item.IsNumber()) return absl::InvalidArgumentError("tensor() of something but numbers");
    is_float |= item.Is(ScriptKind::kFloat);
    is_bool &= item.Is(ScriptKind::kBool);
  }
  int64_t type = is_float ? kTorchFloat : is_bool ? kTorchBool : kTorchLong;
  if (call.arg(1).Is(ScriptKind::kInt)) type = call.arg(1).integer;
  if (!is_float && !is_bool && type == kTorchLong) {  // as they are: doubles do not hold all
    std::vector<int64_t> integers;
    for (const ScriptValue& item : level) integers.push_back(item.integer);
    return call.Result(call.MakeConstant(Tensor::FromInts(shape, integers)));
  }
  std::vector<double> numbers;
  for (const ScriptValue& item : level) numbers.push_back(item.AsDouble());
  return Created(call, shape, numbers, type);
}

constexpr absl::string_view kArange = "a b c d e f g dtype layout device pin_memory";
constexpr absl::string_view kSizes = "size dtype layout device pin_memory memory_format";
constexpr absl::string_view kLike = "self dtype layout device pin_memory memory_format";
constexpr absl::string_view kNew = "self size dtype layout device pin_memory";

constexpr OpRule kCreateRules[] = {
    {"arange", kArange, ImportArange},
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
