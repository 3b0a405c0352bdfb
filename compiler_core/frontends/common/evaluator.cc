#include "compiler_core/frontends/common/evaluator.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc {
namespace {

// One element-wise operator: on floats, on integers (bool counts as integer), and whether the
// result is a bool rather than of the operands' type. A null function: not defined there.
struct UnaryEntry {
  absl::string_view op;
  double (*on_float)(double);
  int64_t (*on_int)(int64_t);
  bool to_bool;
};
struct BinaryEntry {
  absl::string_view op;
  double (*on_float)(double, double);
  int64_t (*on_int)(int64_t, int64_t);  // of division: the divisor is not 0, nor -1
  bool to_bool;
  bool divides;
};

double RoundHalfToEven(double x) {
  const double floor = std::floor(x);
  const double rest = x - floor;
  if (rest < 0.5) return floor;
  if (rest > 0.5) return floor + 1;
  return std::fmod(floor, 2.0) == 0 ? floor : floor + 1;
}
double Sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
int64_t FloorDivInt(int64_t a, int64_t b) { return a / b - ((a % b != 0 && (a < 0) != (b < 0))); }
int64_t FloorModInt(int64_t a, int64_t b) {
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
// Shifts of unsigned numbers: by as many bits as a word has, or more, nothing is left.
int64_t ShiftLeft(int64_t a, int64_t b) {
  return b < 0 || b > 63 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << b);
}
int64_t ShiftRight(int64_t a, int64_t b) {
  return b < 0 || b > 63 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) >> b);
}
double FloorModFloat(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

constexpr UnaryEntry kUnary[] = {
    {"Acos", [](double x) { return std::acos(x); }, nullptr, false},
    {"Acosh", [](double x) { return std::acosh(x); }, nullptr, false},
    {"Asin", [](double x) { return std::asin(x); }, nullptr, false},
    {"Asinh", [](double x) { return std::asinh(x); }, nullptr, false},
    {"Atan", [](double x) { return std::atan(x); }, nullptr, false},
    {"Atanh", [](double x) { return std::atanh(x); }, nullptr, false},
    {"BitwiseNot", nullptr, [](int64_t x) { return ~x; }, false},
    {"Ceil", [](double x) { return std::ceil(x); }, nullptr, false},
    {"Cos", [](double x) { return std::cos(x); }, nullptr, false},
    {"Cosh", [](double x) { return std::cosh(x); }, nullptr, false},
    {"Erf", [](double x) { return std::erf(x); }, nullptr, false},
    {"Erfc", [](double x) { return std::erfc(x); }, nullptr, false},
    {"Floor", [](double x) { return std::floor(x); }, nullptr, false},
    {"IsFinite", [](double x) { return std::isfinite(x) ? 1.0 : 0.0; }, nullptr, true},
    {"IsInf", [](double x) { return std::isinf(x) ? 1.0 : 0.0; }, nullptr, true},
    {"IsNan", [](double x) { return std::isnan(x) ? 1.0 : 0.0; }, nullptr, true},
    {"LogicalNot", nullptr, [](int64_t x) -> int64_t { return x == 0; }, true},
    {"Rint", RoundHalfToEven, nullptr, false},
    {"Round", RoundHalfToEven, [](int64_t x) { return x; }, false},
    {"Sign", Sign, [](int64_t x) -> int64_t { return (x > 0) - (x < 0); }, false},
    {"Sin", [](double x) { return std::sin(x); }, nullptr, false},
    {"Sinh", [](double x) { return std::sinh(x); }, nullptr, false},
    {"Tan", [](double x) { return std::tan(x); }, nullptr, false},
};

constexpr BinaryEntry kBinary[] = {
    {"BitwiseAnd", nullptr, [](int64_t a, int64_t b) { return a & b; }, false, false},
    {"BitwiseOr", nullptr, [](int64_t a, int64_t b) { return a | b; }, false, false},
    {"BitwiseXor", nullptr, [](int64_t a, int64_t b) { return a ^ b; }, false, false},
    {"Equal", [](double a, double b) { return a == b ? 1.0 : 0.0; },
     [](int64_t a, int64_t b) -> int64_t { return a == b; }, true, false},
    {"FloorDiv", [](double a, double b) { return std::floor(a / b); }, FloorDivInt, false, true},
    {"FloorMod", FloorModFloat, FloorModInt, false, true},
    {"Greater", [](double a, double b) { return a > b ? 1.0 : 0.0; },
     [](int64_t a, int64_t b) -> int64_t { return a > b; }, true, false},
    {"GreaterEqual", [](double a, double b) { return a >= b ? 1.0 : 0.0; },
     [](int64_t a, int64_t b) -> int64_t { return a >= b; }, true, false},
    {"Less", [](double a, double b) { return a < b ? 1.0 : 0.0; },
     [](int64_t a, int64_t b) -> int64_t { return a < b; }, true, false},
    {"LessEqual", [](double a, double b) { return a <= b ? 1.0 : 0.0; },
     [](int64_t a, int64_t b) -> int64_t { return a <= b; }, true, false},
    {"LogicalAnd", nullptr, [](int64_t a, int64_t b) -> int64_t { return a != 0 && b != 0; }, true,
     false},
    {"LogicalOr", nullptr, [](int64_t a, int64_t b) -> int64_t { return a != 0 || b != 0; }, true,
     false},
    {"LogicalXor", nullptr, [](int64_t a, int64_t b) -> int64_t { return (a != 0) != (b != 0); },
     true, false},
    {"NotEqual", [](double a, double b) { return a != b ? 1.0 : 0.0; },
     [](int64_t a, int64_t b) -> int64_t { return a != b; }, true, false},
    {"ShiftLeft", nullptr, ShiftLeft, false, false},
    {"ShiftRight", nullptr, ShiftRight, false, false},
    {"TruncateDiv", [](double a, double b) { return std::trunc(a / b); },
     [](int64_t a, int64_t b) { return a / b; }, false, true},
    {"TruncateMod", [](double a, double b) { return std::fmod(a, b); },
     [](int64_t a, int64_t b) { return a % b; }, false, true},
};

template <typename Entry, size_t kCount>
const Entry* FindEntry(const Entry (&entries)[kCount], absl::string_view op) {
  for (const Entry& entry : entries) {
    if (entry.op == op) return &entry;
  }
  return nullptr;
}

absl::Status CheckCount(const Shape& shape) {
  RETURN_IF_ERROR(CheckShape(shape));
  if (ElementCount(shape) <= kMaxEvaluatedElements) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("a compile-time value of shape ",
                                                   ShapeToString(shape), " has more than ",
                                                   kMaxEvaluatedElements, " elements"));
}

absl::Status NoSuchOperand(absl::string_view op, DType dtype) {
  return absl::InvalidArgumentError(absl::StrCat(op, " is not defined on ", NameOf(dtype)));
}

// Row-major strides of `shape` seen in `out`, 0 along stretched dimensions.
std::vector<int64_t> StridesIn(const Shape& shape, const Shape& out) {
  std::vector<int64_t> strides(out.size(), 0);
  int64_t stride = 1;
  for (size_t k = 0; k < shape.size(); ++k) {
    const size_t i = shape.size() - 1 - k;
    strides[out.size() - 1 - k] = shape[i] == 1 ? 0 : stride;
    stride *= shape[i];
  }
  return strides;
}

// The flat index into an operand for the flat index of the broadcast result.
int64_t SourceIndex(int64_t flat, const Shape& out, const std::vector<int64_t>& strides) {
  int64_t source = 0;
  for (size_t k = out.size(); k-- > 0;) {
    source += flat % out[k] * strides[k];
    flat /= out[k];
  }
  return source;
}

Tensor FromDoubles(DType dtype, Shape shape, const std::vector<double>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(double));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return CastTensor(Tensor({DType::kFloat64, std::move(shape)}, std::move(bytes)), dtype);
}

bool IsDiscrete(DType dtype) { return IsInteger(dtype) || dtype == DType::kBool; }

int64_t IntAt(const Tensor& tensor, int64_t i) {
  return tensor.dtype() == DType::kBool ? (tensor.bytes()[static_cast<size_t>(i)] != 0 ? 1 : 0)
                                        : tensor.int_at(i);
}

// Copies elements of `from` at `sources` into a new tensor.
Tensor Pick(const Tensor& from, Shape shape, const std::function<int64_t(int64_t)>& source) {
  const size_t size = static_cast<size_t>(SizeOf(from.dtype()));
  const int64_t count = ElementCount(shape);
  std::vector<uint8_t> bytes(static_cast<size_t>(count) * size);
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(bytes.data() + static_cast<size_t>(i) * size,
                from.bytes().data() + static_cast<size_t>(source(i)) * size, size);
  }
  return Tensor({from.dtype(), std::move(shape)}, std::move(bytes));
}

}  // namespace

Tensor IntTensor(DType dtype, Shape shape, absl::Span<const int64_t> values) {
  return CastTensor(Tensor::FromInts(std::move(shape), values), dtype);
}

absl::StatusOr<Shape> BroadcastShape(absl::Span<const int64_t> a, absl::Span<const int64_t> b) {
  Shape out(std::max(a.size(), b.size()));
  for (size_t k = 0; k < out.size(); ++k) {
    const int64_t x = k < a.size() ? a[a.size() - 1 - k] : 1;
    const int64_t y = k < b.size() ? b[b.size() - 1 - k] : 1;
    if (x != y && x != 1 && y != 1) {
      return absl::InvalidArgumentError(absl::StrCat("shapes ", ShapeToString(a), " and ",
                                                     ShapeToString(b), " do not broadcast"));
    }
    out[out.size() - 1 - k] = x == 1 ? y : x;
  }
  return out;
}

bool IsEvaluatedUnary(absl::string_view op) { return FindEntry(kUnary, op) != nullptr; }
bool IsEvaluatedBinary(absl::string_view op) { return FindEntry(kBinary, op) != nullptr; }

absl::StatusOr<Tensor> EvaluateUnary(absl::string_view op, const Tensor& x) {
  const UnaryEntry* entry = FindEntry(kUnary, op);
  NPUC_CHECK(entry != nullptr);
  RETURN_IF_ERROR(CheckCount(x.shape()));
  const DType dtype = entry->to_bool ? DType::kBool : x.dtype();
  const int64_t count = x.element_count();
  if (IsDiscrete(x.dtype())) {
    if (entry->on_int == nullptr) return NoSuchOperand(op, x.dtype());
    std::vector<int64_t> values(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      values[static_cast<size_t>(i)] = entry->on_int(IntAt(x, i));
    }
    return IntTensor(dtype, x.shape(), values);
  }
  if (entry->on_float == nullptr) return NoSuchOperand(op, x.dtype());
  std::vector<double> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] = entry->on_float(x.at(i));
  return FromDoubles(dtype, x.shape(), values);
}

absl::StatusOr<Tensor> EvaluateBinary(absl::string_view op, const Tensor& a, const Tensor& b) {
  const BinaryEntry* entry = FindEntry(kBinary, op);
  NPUC_CHECK(entry != nullptr);
  if (a.dtype() != b.dtype()) {
    return absl::InvalidArgumentError(absl::StrCat("operands are ", TypeToString(a.type()), " and ",
                                                   TypeToString(b.type()),
                                                   "; they must be of one type"));
  }
  ASSIGN_OR_RETURN(Shape shape, BroadcastShape(a.shape(), b.shape()));
  RETURN_IF_ERROR(CheckCount(shape));
  const std::vector<int64_t> in_a = StridesIn(a.shape(), shape);
  const std::vector<int64_t> in_b = StridesIn(b.shape(), shape);
  const DType dtype = entry->to_bool ? DType::kBool : a.dtype();
  const int64_t count = ElementCount(shape);
  if (IsDiscrete(a.dtype())) {
    if (entry->on_int == nullptr) return NoSuchOperand(op, a.dtype());
    std::vector<int64_t> values(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t x = IntAt(a, SourceIndex(i, shape, in_a));
      const int64_t y = IntAt(b, SourceIndex(i, shape, in_b));
      if (entry->divides && y == 0) {
        return absl::InvalidArgumentError(absl::StrCat(op, " of ", x, " by zero"));
      }
      if (entry->divides && y == -1) {  // the least integer has no positive twin
        const bool is_quotient = op == "FloorDiv" || op == "TruncateDiv";
        if (is_quotient && x == std::numeric_limits<int64_t>::min()) {
          return absl::InvalidArgumentError(absl::StrCat(op, " of ", x, " by -1 overflows"));
        }
        values[static_cast<size_t>(i)] = is_quotient ? -x : 0;
        continue;
      }
      values[static_cast<size_t>(i)] = entry->on_int(x, y);
    }
    return IntTensor(dtype, std::move(shape), values);
  }
  if (entry->on_float == nullptr) return NoSuchOperand(op, a.dtype());
  std::vector<double> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    values[static_cast<size_t>(i)] =
        entry->on_float(a.at(SourceIndex(i, shape, in_a)), b.at(SourceIndex(i, shape, in_b)));
  }
  return FromDoubles(dtype, std::move(shape), values);
}

absl::StatusOr<Tensor> EvaluateReduction(absl::string_view op, const Tensor& x,
                                         absl::Span<const int64_t> axes, bool keep_dims) {
  RETURN_IF_ERROR(CheckCount(x.shape()));
  Shape kept = x.shape();
  Shape squeezed;
  for (size_t i = 0; i < kept.size(); ++i) {
    if (std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(i))) {
      kept[i] = 1;
    } else {
      squeezed.push_back(kept[i]);
    }
  }
  RETURN_IF_ERROR(CheckCount(kept));
  const std::vector<int64_t> strides = StridesIn(kept, x.shape());
  const bool is_any = op == "Any";
  const size_t count = static_cast<size_t>(ElementCount(kept));
  std::vector<double> floats(count, is_any ? 0.0 : 1.0);
  std::vector<int64_t> ints(count, is_any ? 0 : 1);
  for (int64_t i = 0; i < x.element_count(); ++i) {
    const size_t to = static_cast<size_t>(SourceIndex(i, x.shape(), strides));
    if (IsDiscrete(x.dtype())) {
      const uint64_t value = static_cast<uint64_t>(IntAt(x, i));
      ints[to] = is_any ? (ints[to] | static_cast<int64_t>(value != 0))
                        : static_cast<int64_t>(static_cast<uint64_t>(ints[to]) * value);
    } else {
      floats[to] *= x.at(i);
    }
  }
  Shape shape = keep_dims ? kept : squeezed;
  if (IsDiscrete(x.dtype())) return IntTensor(x.dtype(), std::move(shape), ints);
  if (op != "Prod") return NoSuchOperand(op, x.dtype());
  return FromDoubles(x.dtype(), std::move(shape), floats);
}

absl::StatusOr<Tensor> EvaluateSelect(const Tensor& condition, const Tensor& a, const Tensor& b) {
  if (condition.dtype() != DType::kBool || a.dtype() != b.dtype()) {
    return absl::InvalidArgumentError(
        absl::StrCat("operands are ", TypeToString(condition.type()), ", ", TypeToString(a.type()),
                     " and ", TypeToString(b.type()), "; allowed are a bool and two of one type"));
  }
  ASSIGN_OR_RETURN(Shape shape, BroadcastShape(a.shape(), b.shape()));
  ASSIGN_OR_RETURN(shape, BroadcastShape(shape, condition.shape()));
  RETURN_IF_ERROR(CheckCount(shape));
  const std::vector<int64_t> in_condition = StridesIn(condition.shape(), shape);
  ASSIGN_OR_RETURN(const Tensor all_a, EvaluateBroadcast(a, shape));
  ASSIGN_OR_RETURN(const Tensor all_b, EvaluateBroadcast(b, shape));
  std::vector<uint8_t> bytes(all_b.bytes().begin(), all_b.bytes().end());
  const size_t size = static_cast<size_t>(SizeOf(a.dtype()));
  for (int64_t i = 0; i < ElementCount(shape); ++i) {
    if (IntAt(condition, SourceIndex(i, shape, in_condition)) == 0) continue;
    const size_t at = static_cast<size_t>(i) * size;
    std::memcpy(bytes.data() + at, all_a.bytes().data() + at, size);
  }
  return Tensor({a.dtype(), std::move(shape)}, std::move(bytes));
}

absl::StatusOr<Tensor> EvaluateBroadcast(const Tensor& x, const Shape& shape) {
  ASSIGN_OR_RETURN(const Shape joint, BroadcastShape(x.shape(), shape));
  if (joint != shape) {
    return absl::InvalidArgumentError(absl::StrCat(
        "shape ", ShapeToString(x.shape()), " does not broadcast to ", ShapeToString(shape)));
  }
  RETURN_IF_ERROR(CheckCount(shape));
  const std::vector<int64_t> strides = StridesIn(x.shape(), shape);
  return Pick(x, shape, [&](int64_t i) { return SourceIndex(i, shape, strides); });
}

absl::StatusOr<Tensor> EvaluateRange(const Tensor& start, const Tensor& limit,
                                     const Tensor& delta) {
  if (start.element_count() != 1 || limit.element_count() != 1 || delta.element_count() != 1 ||
      start.dtype() != limit.dtype() || start.dtype() != delta.dtype() ||
      start.dtype() == DType::kBool) {
    return absl::InvalidArgumentError(absl::StrCat(
        "operands are ", TypeToString(start.type()), ", ", TypeToString(limit.type()), " and ",
        TypeToString(delta.type()), "; allowed are three scalars of one numeric type"));
  }
  const double from = start.at(0);
  const double step = delta.at(0);
  const double count = step == 0 ? -1 : std::ceil((limit.at(0) - from) / step);
  if (!(count <= static_cast<double>(kMaxEvaluatedElements)) || step == 0) {
    return absl::InvalidArgumentError(absl::StrCat("a range from ", from, " to ", limit.at(0),
                                                   " in steps of ", step, " has no end or more ",
                                                   "than ", kMaxEvaluatedElements, " elements"));
  }
  std::vector<double> values(static_cast<size_t>(std::max(count, 0.0)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = from + static_cast<double>(i) * step;
  return FromDoubles(start.dtype(), {static_cast<int64_t>(values.size())}, values);
}

absl::StatusOr<Tensor> EvaluateGather(const Tensor& x, const Tensor& indices, int64_t axis) {
  if (!IsInteger(indices.dtype())) {
    return absl::InvalidArgumentError(
        absl::StrCat("indices are ", TypeToString(indices.type()), "; they must be integers"));
  }
  const size_t at = static_cast<size_t>(axis);
  Shape shape(x.shape().begin(), x.shape().begin() + axis);
  shape.insert(shape.end(), indices.shape().begin(), indices.shape().end());
  shape.insert(shape.end(), x.shape().begin() + axis + 1, x.shape().end());
  RETURN_IF_ERROR(CheckCount(shape));
  RETURN_IF_ERROR(CheckCount(indices.shape()));
  for (int64_t i = 0; i < indices.element_count(); ++i) {
    if (indices.int_at(i) < 0 || indices.int_at(i) >= x.shape()[at]) {
      return absl::InvalidArgumentError(
          absl::StrCat("index ", indices.int_at(i), " is outside a dimension of ", x.shape()[at]));
    }
  }
  const Shape tail(x.shape().begin() + axis + 1, x.shape().end());
  const int64_t inner = ElementCount(tail);
  const int64_t count = indices.element_count();
  return Pick(x, shape, [&](int64_t i) {
    const int64_t index = indices.int_at(i / inner % count);
    return (i / inner / count * x.shape()[at] + index) * inner + i % inner;
  });
}

}  // namespace npuc
