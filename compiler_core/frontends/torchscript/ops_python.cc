// Operators on Python values: numbers, strings, lists and dicts.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/selection.h"
#include "compiler_core/frontends/torchscript/op_call.h"
#include "compiler_core/frontends/torchscript/torch_type.h"
#include "compiler_core/frontends/torchscript/truth.h"

namespace npuc::pt {
namespace {

constexpr size_t kMaxItems = 1 << 20;

absl::Status Overflow() { return absl::InvalidArgumentError("the integer result is out of range"); }

absl::Status Mismatch(OpCall& call) {
  if (call.arg(0).Is(ScriptKind::kPoison) || call.arg(1).Is(ScriptKind::kPoison)) {
    return call.Poisoned();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the operator does not take ", NameOf(call.arg(0).kind), " and ", NameOf(call.arg(1).kind)));
}

absl::Status ExpectNumbers(OpCall& call, int count) {
  for (int i = 0; i < count; ++i) {
    if (!call.arg(i).IsNumber()) return Mismatch(call);
  }
  return absl::OkStatus();
}

bool BothInts(const OpCall& call) {
  return !call.arg(0).Is(ScriptKind::kFloat) && !call.arg(1).Is(ScriptKind::kFloat);
}

absl::StatusOr<ScriptValue> Concatenated(OpCall& call, const ScriptValue& a, const ScriptValue& b) {
  std::vector<ScriptValue> items = a.list->items;
  if (items.size() + b.list->items.size() > kMaxItems) {
    return absl::InvalidArgumentError("the list has more than 2^20 items");
  }
  items.insert(items.end(), b.list->items.begin(), b.list->items.end());
  return call.state().heap.List(std::move(items), a.kind);
}

absl::StatusOr<ScriptValue> PyAdd(OpCall& call) {
  const ScriptValue& a = call.arg(0);
  const ScriptValue& b = call.arg(1);
  if (a.IsSequence() && b.IsSequence()) return Concatenated(call, a, b);
  if (a.Is(ScriptKind::kString) && b.Is(ScriptKind::kString)) {
    if (a.string->size() + b.string->size() > kMaxItems) {
      return absl::InvalidArgumentError("the string has more than 2^20 bytes");
    }
    return call.state().heap.String(absl::StrCat(*a.string, *b.string));
  }
  RETURN_IF_ERROR(ExpectNumbers(call, 2));
  if (!BothInts(call)) return ScriptValue::Float(a.AsDouble() + b.AsDouble());
  int64_t sum = 0;
  if (__builtin_add_overflow(a.integer, b.integer, &sum)) return Overflow();
  return ScriptValue::Int(sum);
}

absl::StatusOr<ScriptValue> PySub(OpCall& call) {
  RETURN_IF_ERROR(ExpectNumbers(call, 2));
  if (!BothInts(call)) {
    return ScriptValue::Float(call.arg(0).AsDouble() - call.arg(1).AsDouble());
  }
  int64_t difference = 0;
  if (__builtin_sub_overflow(call.arg(0).integer, call.arg(1).integer, &difference)) {
    return Overflow();
  }
  return ScriptValue::Int(difference);
}

absl::StatusOr<ScriptValue> PyMul(OpCall& call) {
  const ScriptValue& a = call.arg(0);
  const ScriptValue& b = call.arg(1);
  if (a.IsSequence() && b.Is(ScriptKind::kInt)) {
    const int64_t times = std::max<int64_t>(b.integer, 0);
    if (times * 1.0 * static_cast<double>(a.list->items.size()) > kMaxItems) return Overflow();
    std::vector<ScriptValue> items;
    for (int64_t i = 0; i < times && !a.list->items.empty(); ++i) {
      items.insert(items.end(), a.list->items.begin(), a.list->items.end());
    }
    return call.state().heap.List(std::move(items), a.kind);
  }
  RETURN_IF_ERROR(ExpectNumbers(call, 2));
  if (!BothInts(call)) return ScriptValue::Float(a.AsDouble() * b.AsDouble());
  int64_t product = 0;
  if (__builtin_mul_overflow(a.integer, b.integer, &product)) return Overflow();
  return ScriptValue::Int(product);
}

absl::StatusOr<ScriptValue> PyDiv(OpCall& call) {
  RETURN_IF_ERROR(ExpectNumbers(call, 2));
  if (call.arg(1).AsDouble() == 0) return absl::InvalidArgumentError("a division by zero");
  return ScriptValue::Float(call.arg(0).AsDouble() / call.arg(1).AsDouble());
}

// Division towards minus infinity, and what it leaves.
absl::StatusOr<ScriptValue> PyFloorDiv(OpCall& call) {
  RETURN_IF_ERROR(ExpectNumbers(call, 2));
  if (call.arg(1).AsDouble() == 0) return absl::InvalidArgumentError("a division by zero");
  if (!BothInts(call)) {
    return ScriptValue::Float(std::floor(call.arg(0).AsDouble() / call.arg(1).AsDouble()));
  }
  const int64_t a = call.arg(0).integer;
  const int64_t b = call.arg(1).integer;
  if (b == -1 && a == std::numeric_limits<int64_t>::min()) return Overflow();
  return ScriptValue::Int(a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0));
}

absl::StatusOr<ScriptValue> PyRemainder(OpCall& call) {
  ASSIGN_OR_RETURN(const ScriptValue quotient, PyFloorDiv(call));
  if (quotient.Is(ScriptKind::kFloat)) {
    const double b = call.arg(1).AsDouble();
    return ScriptValue::Float(call.arg(0).AsDouble() - quotient.real * b);
  }
  return ScriptValue::Int(call.arg(0).integer - quotient.integer * call.arg(1).integer);
}

absl::StatusOr<ScriptValue> PyPow(OpCall& call) {
  RETURN_IF_ERROR(ExpectNumbers(call, 2));
  const double power = std::pow(call.arg(0).AsDouble(), call.arg(1).AsDouble());
  if (!BothInts(call)) return ScriptValue::Float(power);
  if (!(std::fabs(power) < 0x1p53)) return Overflow();
  // torch gives an int for ints, a float where the exponent is negative.
  if (call.arg(1).integer < 0) return ScriptValue::Float(power);
  return ScriptValue::Int(static_cast<int64_t>(power));
}

absl::StatusOr<ScriptValue> PyNeg(OpCall& call) {
  RETURN_IF_ERROR(ExpectNumbers(call, 1));
  if (call.arg(0).Is(ScriptKind::kFloat)) return ScriptValue::Float(-call.arg(0).real);
  if (call.arg(0).integer == std::numeric_limits<int64_t>::min()) return Overflow();
  return ScriptValue::Int(-call.arg(0).integer);
}

absl::StatusOr<ScriptValue> PyEq(OpCall& call) {
  return ScriptValue::Bool(ScriptEqual(call.arg(0), call.arg(1)));
}
absl::StatusOr<ScriptValue> PyNe(OpCall& call) {
  return ScriptValue::Bool(!ScriptEqual(call.arg(0), call.arg(1)));
}
absl::StatusOr<ScriptValue> PyIs(OpCall& call) {
  if (call.arg(0).Is(ScriptKind::kTensor) || call.arg(1).Is(ScriptKind::kTensor)) {
    return ScriptValue::Bool(call.arg(0).kind == call.arg(1).kind &&
                             call.arg(0).tensor == call.arg(1).tensor);
  }
  return PyEq(call);
}
absl::StatusOr<ScriptValue> PyIsNot(OpCall& call) {
  ASSIGN_OR_RETURN(const ScriptValue same, PyIs(call));
  return ScriptValue::Bool(same.integer == 0);
}

// -1, 0, 1: less, equal, greater; 2: neither.
absl::StatusOr<int> Order(OpCall& call) {
  const ScriptValue& a = call.arg(0);
  const ScriptValue& b = call.arg(1);
  if (a.Is(ScriptKind::kString) && b.Is(ScriptKind::kString)) {
    const int order = a.string->compare(*b.string);
    return (order > 0) - (order < 0);
  }
  RETURN_IF_ERROR(ExpectNumbers(call, 2));
  if (BothInts(call)) return (a.integer > b.integer) - (a.integer < b.integer);
  const double x = a.AsDouble();
  const double y = b.AsDouble();
  return std::isnan(x) || std::isnan(y) ? 2 : (x > y) - (x < y);
}
absl::StatusOr<ScriptValue> PyLt(OpCall& call) {
  ASSIGN_OR_RETURN(const int order, Order(call));
  return ScriptValue::Bool(order == -1);
}
absl::StatusOr<ScriptValue> PyLe(OpCall& call) {
  ASSIGN_OR_RETURN(const int order, Order(call));
  return ScriptValue::Bool(order <= 0);
}
absl::StatusOr<ScriptValue> PyGt(OpCall& call) {
  ASSIGN_OR_RETURN(const int order, Order(call));
  return ScriptValue::Bool(order == 1);
}
absl::StatusOr<ScriptValue> PyGe(OpCall& call) {
  ASSIGN_OR_RETURN(const int order, Order(call));
  return ScriptValue::Bool(order == 0 || order == 1);
}

absl::StatusOr<ScriptValue> PyNot(OpCall& call) {
  RETURN_IF_ERROR(ExpectNumbers(call, 1));
  return ScriptValue::Bool(call.arg(0).AsDouble() == 0);
}
absl::StatusOr<ScriptValue> PyAnd(OpCall& call) {
  RETURN_IF_ERROR(ExpectNumbers(call, 2));
  const int64_t both = call.arg(0).integer & call.arg(1).integer;
  return call.arg(0).Is(ScriptKind::kBool) ? ScriptValue::Bool(both != 0) : ScriptValue::Int(both);
}
absl::StatusOr<ScriptValue> PyOr(OpCall& call) {
  RETURN_IF_ERROR(ExpectNumbers(call, 2));
  const int64_t either = call.arg(0).integer | call.arg(1).integer;
  return call.arg(0).Is(ScriptKind::kBool) ? ScriptValue::Bool(either != 0)
                                           : ScriptValue::Int(either);
}
absl::StatusOr<ScriptValue> PyXor(OpCall& call) {
  RETURN_IF_ERROR(ExpectNumbers(call, 2));
  const int64_t one = call.arg(0).integer ^ call.arg(1).integer;
  return call.arg(0).Is(ScriptKind::kBool) ? ScriptValue::Bool(one != 0) : ScriptValue::Int(one);
}

absl::StatusOr<ScriptValue> PyContains(OpCall& call) {
  const ScriptValue& container = call.arg(0);
  const ScriptValue& item = call.arg(1);
  if (container.IsSequence()) {
    return ScriptValue::Bool(
        std::any_of(container.list->items.begin(), container.list->items.end(),
                    [&](const ScriptValue& other) { return ScriptEqual(other, item); }));
  }
  if (container.Is(ScriptKind::kDict)) {
    return ScriptValue::Bool(
        std::any_of(container.dict->entries.begin(), container.dict->entries.end(),
                    [&](const auto& entry) { return ScriptEqual(entry.first, item); }));
  }
  if (container.Is(ScriptKind::kString) && item.Is(ScriptKind::kString)) {
    return ScriptValue::Bool(container.string->find(*item.string) != std::string::npos);
  }
  return Mismatch(call);
}

absl::StatusOr<ScriptValue> PyLen(OpCall& call) {
  const ScriptValue& value = call.arg(0);
  if (value.IsSequence()) return ScriptValue::Int(static_cast<int64_t>(value.list->items.size()));
  if (value.Is(ScriptKind::kString)) {
    return ScriptValue::Int(static_cast<int64_t>(value.string->size()));
  }
  if (value.Is(ScriptKind::kDict)) {
    return ScriptValue::Int(static_cast<int64_t>(value.dict->entries.size()));
  }
  if (!value.Is(ScriptKind::kTensor)) return Mismatch(call);
  ASSIGN_OR_RETURN(const ValueRef tensor, call.TensorArg(0));
  if (tensor->type.shape.empty()) return absl::InvalidArgumentError("len() of a single number");
  return ScriptValue::Int(tensor->type.shape[0]);
}

// Only messages are made with it.
absl::StatusOr<ScriptValue> PyFormat(OpCall& call) {
  ASSIGN_OR_RETURN(const std::string format, call.StringOr(0, ""));
  std::string text;
  int next = 1;
  for (size_t i = 0; i < format.size() && text.size() < 4096; ++i) {
    if (format[i] != '{') {
      text += format[i];
      continue;
    }
    const size_t end = format.find('}', i);
    if (end == std::string::npos) break;
    absl::StrAppend(&text, ScriptText(call.arg(next++)));
    i = end;
  }
  return call.state().heap.String(std::move(text));
}

// Before a list or dict is changed, which may be one that the module keeps.
absl::Status NoteChange(OpCall& call) {
  const ScriptValue& value = call.arg(0);
  const std::string* attribute = nullptr;
  if (value.Is(ScriptKind::kList)) attribute = &value.list->attribute;
  if (value.Is(ScriptKind::kDict)) attribute = &value.dict->attribute;
  if (attribute == nullptr) return Mismatch(call);
  if (!attribute->empty()) call.state().attributes.NoteChange(call, *attribute, value);
  return absl::OkStatus();
}

absl::StatusOr<ScriptValue> PyAppend(OpCall& call) {
  RETURN_IF_ERROR(NoteChange(call));
  if (!call.arg(0).Is(ScriptKind::kList)) return Mismatch(call);
  call.arg(0).list->items.push_back(call.arg(1));
  return call.arg(0).list->items.size() < 16 ? call.arg(0) : ScriptValue::None();
}

absl::StatusOr<ScriptValue> PyExtend(OpCall& call) {
  RETURN_IF_ERROR(NoteChange(call));
  if (!call.arg(0).Is(ScriptKind::kList) || !call.arg(1).IsSequence()) return Mismatch(call);
  ASSIGN_OR_RETURN(const ScriptValue joined, Concatenated(call, call.arg(0), call.arg(1)));
  call.arg(0).list->items = joined.list->items;
  return joined;
}

// Index i of a sequence, counted from the end where it is negative.
absl::StatusOr<size_t> IndexIn(OpCall& call, int i, size_t size, int64_t fallback) {
  ASSIGN_OR_RETURN(int64_t index, call.IntOr(i, fallback));
  if (index < 0) index += static_cast<int64_t>(size);
  if (index >= 0 && index < static_cast<int64_t>(size)) return static_cast<size_t>(index);
  return absl::InvalidArgumentError(absl::StrCat("index ", index, " is outside a list of ", size));
}

absl::StatusOr<ScriptValue> PyPop(OpCall& call) {
  RETURN_IF_ERROR(NoteChange(call));
  if (!call.arg(0).Is(ScriptKind::kList)) return Mismatch(call);
  std::vector<ScriptValue>& items = call.arg(0).list->items;
  ASSIGN_OR_RETURN(const size_t index, IndexIn(call, 1, items.size(), -1));
  const ScriptValue value = items[index];
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(index));
  return value;
}

absl::StatusOr<ScriptValue> PyInsert(OpCall& call) {
  RETURN_IF_ERROR(NoteChange(call));
  if (!call.arg(0).Is(ScriptKind::kList)) return Mismatch(call);
  std::vector<ScriptValue>& items = call.arg(0).list->items;
  ASSIGN_OR_RETURN(int64_t index, call.Int(1));
  const auto size = static_cast<int64_t>(items.size());
  index = std::clamp<int64_t>(index < 0 ? index + size : index, 0, size);
  items.insert(items.begin() + index, call.arg(2));
  return ScriptValue::None();
}

absl::StatusOr<ScriptValue> PyGetItem(OpCall& call) {
  if (call.arg(0).Is(ScriptKind::kDict)) {
    for (const auto& [key, item] : call.arg(0).dict->entries) {
      if (ScriptEqual(key, call.arg(1))) return item;
    }
    if (call.name() == "get") return call.arg(2);
    return absl::InvalidArgumentError(absl::StrCat("no key ", ScriptText(call.arg(1))));
  }
  if (!call.arg(0).IsSequence()) return Mismatch(call);
  ASSIGN_OR_RETURN(const size_t index, IndexIn(call, 1, call.arg(0).list->items.size(), 0));
  return call.arg(0).list->items[index];
}

absl::StatusOr<ScriptValue> PySetItem(OpCall& call) {
  RETURN_IF_ERROR(NoteChange(call));
  if (call.arg(0).Is(ScriptKind::kDict)) {
    for (auto& [key, item] : call.arg(0).dict->entries) {
      if (!ScriptEqual(key, call.arg(1))) continue;
      item = call.arg(2);
      return ScriptValue::None();
    }
    call.arg(0).dict->entries.emplace_back(call.arg(1), call.arg(2));
    return ScriptValue::None();
  }
  if (!call.arg(0).Is(ScriptKind::kList)) return Mismatch(call);
  std::vector<ScriptValue>& items = call.arg(0).list->items;
  ASSIGN_OR_RETURN(const size_t index, IndexIn(call, 1, items.size(), 0));
  items[index] = call.arg(2);
  return ScriptValue::None();
}

absl::StatusOr<ScriptValue> PyDictParts(OpCall& call) {
  if (!call.arg(0).Is(ScriptKind::kDict)) return Mismatch(call);
  std::vector<ScriptValue> parts;
  for (const auto& [key, item] : call.arg(0).dict->entries) {
    if (call.name() == "keys") {
      parts.push_back(key);
    } else if (call.name() == "values") {
      parts.push_back(item);
    } else {
      parts.push_back(call.state().heap.Tuple({key, item}));
    }
  }
  return call.state().heap.List(std::move(parts));
}

// The indices that a slice takes of `size` items, as Python counts them: from the end where they
// are negative, cut to what there is, backwards by a negative step.
absl::StatusOr<std::vector<size_t>> SliceIndices(OpCall& call, int64_t size) {
  ASSIGN_OR_RETURN(const int64_t given_step, call.IntOr(3, 1));
  if (given_step == 0) return absl::InvalidArgumentError("the step of a slice must not be 0");
  // A longer step takes one item as this does, and cannot overflow.
  const int64_t step = std::clamp(given_step, -size - 1, size + 1);
  const bool back = step < 0;
  const int64_t first = back ? -1 : 0;
  const auto within = [&](int64_t i) {
    return std::clamp(i < 0 ? i + size : i, first, first + size);
  };
  ASSIGN_OR_RETURN(const int64_t begin, call.IntOr(1, back ? size - 1 : 0));
  std::vector<size_t> indices;
  ASSIGN_OR_RETURN(const int64_t given_end, call.IntOr(2, 0));
  const int64_t end = call.Has(2) ? within(given_end) : back ? -1 : size;
  for (int64_t i = within(begin); back ? i > end : i < end; i += step) {
    indices.push_back(static_cast<size_t>(i));
  }
  return indices;
}

absl::StatusOr<ScriptValue> PySlice(OpCall& call) {
  if (call.arg(0).Is(ScriptKind::kString)) {
    // By bytes, as PyTorch does.
    const std::string& text = *call.arg(0).string;
    ASSIGN_OR_RETURN(const std::vector<size_t> indices,
                     SliceIndices(call, static_cast<int64_t>(text.size())));
    std::string part;
    for (const size_t i : indices) part += text[i];
    return call.state().heap.String(std::move(part));
  }
  if (!call.arg(0).IsSequence()) return Mismatch(call);
  const std::vector<ScriptValue>& items = call.arg(0).list->items;
  ASSIGN_OR_RETURN(const std::vector<size_t> indices,
                   SliceIndices(call, static_cast<int64_t>(items.size())));
  std::vector<ScriptValue> part;
  for (const size_t i : indices) part.push_back(items[i]);
  return call.state().heap.List(std::move(part), call.arg(0).kind);
}

absl::StatusOr<ScriptValue> PyList(OpCall& call) {
  if (call.arg(0).IsNone()) return call.state().heap.List({});
  if (call.arg(0).Is(ScriptKind::kDict)) return PyDictParts(call);
  if (!call.arg(0).IsSequence()) return Mismatch(call);
  return call.state().heap.List(call.arg(0).list->items);
}

absl::StatusOr<ScriptValue> PyReverse(OpCall& call) {
  RETURN_IF_ERROR(NoteChange(call));
  if (!call.arg(0).Is(ScriptKind::kList)) return Mismatch(call);
  std::reverse(call.arg(0).list->items.begin(), call.arg(0).list->items.end());
  return ScriptValue::None();
}

// Sorts a list of tensors of one element.
absl::StatusOr<ScriptValue> PySort(OpCall& call) {
  RETURN_IF_ERROR(NoteChange(call));
  if (!call.arg(0).Is(ScriptKind::kList)) return Mismatch(call);
  std::vector<ScriptValue>& items = call.arg(0).list->items;
  ASSIGN_OR_RETURN(const bool descends, call.BoolOr(1, false));
  std::vector<ValueRef> rows;
  for (const ScriptValue& item : items) {
    if (!item.Is(ScriptKind::kTensor)) return Mismatch(call);
    ASSIGN_OR_RETURN(const ValueRef value, call.Read(item.tensor));
    if (value->type.element_count() != 1) return Mismatch(call);
    ASSIGN_OR_RETURN(rows.emplace_back(), call.Reshaped(value, {1}));
  }
  if (rows.size() < 2) return ScriptValue::None();
  ASSIGN_OR_RETURN(const ValueRef row, call.Joined(rows, 0));
  const int64_t count = static_cast<int64_t>(rows.size());
  ASSIGN_OR_RETURN(const frontend::Extrema sorted,
                   frontend::ExtremaOf(call, row, 0, count, !descends));
  for (int64_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(ValueRef value, call.Sliced(sorted.values, 0, i, 1));
    ASSIGN_OR_RETURN(value, call.Reshaped(value, {}));
    items[static_cast<size_t>(i)] = call.Result(std::move(value));
  }
  return ScriptValue::None();
}

absl::StatusOr<ScriptValue> PyRange(OpCall& call) {
  ASSIGN_OR_RETURN(int64_t begin, call.Int(0));
  int64_t end = begin;
  if (call.Has(1)) {
    ASSIGN_OR_RETURN(end, call.Int(1));
  } else {
    begin = 0;
  }
  ASSIGN_OR_RETURN(const int64_t step, call.IntOr(2, 1));
  std::vector<ScriptValue> items;
  for (int64_t i = begin; step > 0 ? i < end : (step < 0 && i > end);) {
    items.push_back(ScriptValue::Int(i));
    if (items.size() > kMaxItems || __builtin_add_overflow(i, step, &i)) return Overflow();
  }
  return call.state().heap.List(std::move(items));
}

absl::StatusOr<ScriptValue> PyRangeLength(OpCall& call) {
  ASSIGN_OR_RETURN(const int64_t begin, call.Int(0));
  ASSIGN_OR_RETURN(const int64_t end, call.Int(1));
  ASSIGN_OR_RETURN(const int64_t step, call.Int(2));
  if (step == 0 || std::max({std::llabs(begin / 2), std::llabs(end / 2), std::llabs(step / 2)}) >
                       (int64_t{1} << 60)) {
    return Overflow();
  }
  if (step > 0) return ScriptValue::Int(begin < end ? (end - begin - 1) / step + 1 : 0);
  return ScriptValue::Int(begin > end ? (begin - end - 1) / -step + 1 : 0);
}

absl::StatusOr<ScriptValue> PyDeriveIndex(OpCall& call) {
  ASSIGN_OR_RETURN(const int64_t index, call.Int(0));
  ASSIGN_OR_RETURN(const int64_t begin, call.Int(1));
  ASSIGN_OR_RETURN(const int64_t step, call.Int(2));
  int64_t value = 0;
  if (__builtin_mul_overflow(index, step, &value) || __builtin_add_overflow(value, begin, &value)) {
    return Overflow();
  }
  return ScriptValue::Int(value);
}

absl::StatusOr<ScriptValue> Extreme(OpCall& call, bool greatest) {
  std::vector<ScriptValue> items;
  if (call.arg(0).IsSequence()) {
    items = call.arg(0).list->items;
    if (call.arg(1).IsSequence()) return Mismatch(call);
  } else {
    items = {call.arg(0), call.arg(1)};
  }
  if (items.empty()) return absl::InvalidArgumentError("the extreme of an empty list");
  ScriptValue best = items[0];
  for (const ScriptValue& item : items) {
    if (!item.IsNumber()) return Mismatch(call);
    if (greatest ? item.AsDouble() > best.AsDouble() : item.AsDouble() < best.AsDouble()) {
      best = item;
    }
  }
  return best;
}
absl::StatusOr<ScriptValue> PyMax(OpCall& call) { return Extreme(call, true); }
absl::StatusOr<ScriptValue> PyMin(OpCall& call) { return Extreme(call, false); }

// floor, ceil and round give ints in TorchScript.
absl::StatusOr<ScriptValue> PyRound(OpCall& call) {
  RETURN_IF_ERROR(ExpectNumbers(call, 1));
  if (!call.arg(0).Is(ScriptKind::kFloat)) return call.arg(0);
  double value = call.arg(0).real;
  if (call.name() == "floor") value = std::floor(value);
  if (call.name() == "ceil") value = std::ceil(value);
  if (call.name() == "trunc") value = std::trunc(value);
  if (call.name() == "round") return ScriptValue::Float(std::nearbyint(value));
  if (!(std::fabs(value) < 0x1p62)) return Overflow();
  return ScriptValue::Int(static_cast<int64_t>(value));
}

absl::StatusOr<ScriptValue> PyMath(OpCall& call) {
  RETURN_IF_ERROR(ExpectNumbers(call, 1));
  const double x = call.arg(0).AsDouble();
  const absl::string_view name = call.name();
  if (name == "sqrt") return ScriptValue::Float(std::sqrt(x));
  if (name == "exp") return ScriptValue::Float(std::exp(x));
  if (name == "log2") return ScriptValue::Float(std::log2(x));
  if (name == "sin") return ScriptValue::Float(std::sin(x));
  if (name == "cos") return ScriptValue::Float(std::cos(x));
  return ScriptValue::Float(std::log(x));
}

absl::StatusOr<ScriptValue> PyAbs(OpCall& call) {
  RETURN_IF_ERROR(ExpectNumbers(call, 1));
  if (call.arg(0).Is(ScriptKind::kFloat)) return ScriptValue::Float(std::fabs(call.arg(0).real));
  return call.arg(0).integer < 0 ? PyNeg(call) : absl::StatusOr<ScriptValue>(call.arg(0));
}

// Of ints an int, else a float.
absl::StatusOr<ScriptValue> PySum(OpCall& call) {
  if (!call.arg(0).IsSequence()) return Mismatch(call);
  int64_t integer = 0;
  double real = 0;
  bool has_float = false;
  for (const ScriptValue& item : call.arg(0).list->items) {
    if (!item.IsNumber()) return Mismatch(call);
    has_float |= item.Is(ScriptKind::kFloat);
    real += item.AsDouble();
    if (!item.Is(ScriptKind::kFloat) && __builtin_add_overflow(integer, item.integer, &integer)) {
      return Overflow();
    }
  }
  return has_float ? ScriptValue::Float(real) : ScriptValue::Int(integer);
}

absl::StatusOr<ScriptValue> PyAnyAll(OpCall& call) {
  if (!call.arg(0).IsSequence()) return Mismatch(call);
  const bool wants_any = call.name() == "any";
  for (const ScriptValue& item : call.arg(0).list->items) {
    if (!item.IsNumber()) return Mismatch(call);
    if ((item.AsDouble() != 0) == wants_any) return ScriptValue::Bool(wants_any);
  }
  return ScriptValue::Bool(!wants_any);
}

absl::StatusOr<ScriptValue> PyNothing(OpCall&) { return ScriptValue::None(); }
absl::StatusOr<ScriptValue> PyFalse(OpCall&) { return ScriptValue::Bool(false); }
absl::StatusOr<ScriptValue> PyTrue(OpCall&) { return ScriptValue::Bool(true); }
absl::StatusOr<ScriptValue> PyFirst(OpCall& call) { return call.arg(0); }
absl::StatusOr<ScriptValue> PyDevice(OpCall&) { return ScriptValue::Of(ScriptKind::kDevice); }

absl::StatusOr<ScriptValue> PyNumToTensor(OpCall& call) {
  RETURN_IF_ERROR(ExpectNumbers(call, 1));
  const ScriptValue& number = call.arg(0);
  ASSIGN_OR_RETURN(ValueRef value, call.TensorOrNumber(0, nullptr));
  if (!number.Is(ScriptKind::kFloat)) {
    value = call.MakeConstant(Tensor::FromInts({}, {number.integer}));
  }
  if (call.name() == "NumToTensor") return call.Result(std::move(value));
  ASSIGN_OR_RETURN(const int64_t type, call.IntOr(1, kTorchFloat));
  return call.Result(ConvertedTo(call, value, type));
}

// find(text, part, begin, end): where part begins in that range of text, or -1.
absl::StatusOr<ScriptValue> PyFind(OpCall& call) {
  if (!call.arg(0).Is(ScriptKind::kString) || !call.arg(1).Is(ScriptKind::kString)) {
    return Mismatch(call);
  }
  const absl::string_view text = *call.arg(0).string;
  const auto size = static_cast<int64_t>(text.size());
  ASSIGN_OR_RETURN(int64_t begin, call.IntOr(2, 0));
  ASSIGN_OR_RETURN(int64_t end, call.IntOr(3, size));
  begin = std::clamp<int64_t>(begin < 0 ? begin + size : begin, 0, size);
  end = std::clamp<int64_t>(end < 0 ? end + size : end, begin, size);
  const size_t at = text.substr(0, static_cast<size_t>(end))
                        .find(*call.arg(1).string, static_cast<size_t>(begin));
  return ScriptValue::Int(at == absl::string_view::npos ? -1 : static_cast<int64_t>(at));
}

constexpr OpRule kPythonRules[] = {
    {"add", "a b", PyAdd},
    {"add_", "a b", PyExtend},
    {"sub", "a b", PySub},
    {"mul", "a b", PyMul},
    {"div", "a b", PyDiv},
    {"truediv", "a b", PyDiv},
    {"floordiv", "a b", PyFloorDiv},
    {"floor_divide", "a b", PyFloorDiv},
    {"remainder", "a b", PyRemainder},
    {"pow", "a b", PyPow},
    {"neg", "a", PyNeg},
    {"eq", "a b", PyEq},
    {"ne", "a b", PyNe},
    {"lt", "a b", PyLt},
    {"le", "a b", PyLe},
    {"gt", "a b", PyGt},
    {"ge", "a b", PyGe},
    {"__is__", "a b", PyIs},
    {"__isnot__", "a b", PyIsNot},
    {"__not__", "a", PyNot},
    {"__and__", "a b", PyAnd},
    {"__or__", "a b", PyOr},
    {"__xor__", "a b", PyXor},
    {"__contains__", "a b", PyContains},
    {"len", "a", PyLen},
    {"format", "a b c d e f g h i j k l", PyFormat},
    {"append", "a b", PyAppend},
    {"extend", "a b", PyExtend},
    {"insert", "a b c", PyInsert},
    {"pop", "a b", PyPop},
    {"reverse", "a", PyReverse},
    {"sort", "a reverse", PySort},
    {"__getitem__", "a b", PyGetItem},
    {"get", "a b c", PyGetItem},
    {"_set_item", "a b c", PySetItem},
    {"keys", "a", PyDictParts},
    {"values", "a", PyDictParts},
    {"items", "a", PyDictParts},
    {"slice", "a begin end step", PySlice},
    {"find", "a b begin end", PyFind},
    {"list", "a", PyList},
    {"copy", "a", PyList},
    {"range", "a b c", PyRange},
    {"__range_length", "a b c", PyRangeLength},
    {"__derive_index", "a b c", PyDeriveIndex},
    {"max", "a b", PyMax},
    {"min", "a b", PyMin},
    {"floor", "a", PyRound},
    {"ceil", "a", PyRound},
    {"trunc", "a", PyRound},
    {"round", "a", PyRound},
    {"sqrt", "a", PyMath},
    {"exp", "a", PyMath},
    {"log", "a", PyMath},
    {"log2", "a", PyMath},
    {"sin", "a", PyMath},
    {"cos", "a", PyMath},
    {"abs", "a", PyAbs},
    {"sum", "a", PySum},
    {"any", "a", PyAnyAll},
    {"all", "a", PyAnyAll},
    {"warn", "a b c", PyNothing},
    {"warnings", "a b c", PyNothing},
    {"manual_seed", "a", PyNothing},
    {"is_grad_enabled", "", PyFalse},
    {"_set_grad_enabled", "a", PyNothing},
    {"set_grad_enabled", "a", PyNothing},
    {"is_autocast_enabled", "", PyFalse},
    {"is_scripting", "", PyTrue},
    {"device", "a b", PyDevice},
    {"IntImplicit", "a", PyFirst},
    {"FloatImplicit", "a", PyFirst},
    {"ScalarImplicit", "a", PyFirst},
    {"unchecked_unwrap_optional", "a", PyFirst},
    {"unchecked_cast", "a", PyFirst},
    {"_unwrap_optional", "a", PyFirst},
    {"NumToTensor", "a", PyNumToTensor},
    {"scalar_tensor", "a dtype layout device pin_memory", PyNumToTensor},
};

}  // namespace

absl::Span<const OpRule> PythonRules() { return kPythonRules; }

}  // namespace npuc::pt
