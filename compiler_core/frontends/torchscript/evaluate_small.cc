// Arithmetic on constants of a few elements: what traced archives compute shapes with.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "compiler_core/frontends/torchscript/op_call.h"

namespace npuc::pt {
namespace {

constexpr int64_t kMaxSmallElements = 64;

bool IsComparison(absl::string_view op) {
  return op == "eq" || op == "ne" || op == "lt" || op == "le" || op == "gt" || op == "ge";
}

bool Compare(absl::string_view op, double a, double b) {
  if (op == "eq") return a == b;
  if (op == "ne") return a != b;
  if (op == "lt") return a < b;
  if (op == "le") return a <= b;
  if (op == "gt") return a > b;
  return a >= b;
}

std::optional<double> EvalFloat(absl::string_view op, double a, double b) {
  if (op == "Add") return a + b;
  if (op == "Sub") return a - b;
  if (op == "Mul") return a * b;
  if (op == "Div") return a / b;
  if (op == "Pow") return std::pow(a, b);
  if (op == "Maximum") return std::isnan(a) || a > b ? a : b;
  if (op == "Minimum") return std::isnan(a) || a < b ? a : b;
  if (op == "floor_divide") return std::floor(a / b);
  if (op == "remainder") return b == 0 ? std::nan("") : a - b * std::floor(a / b);
  if (op == "Neg") return -a;
  if (op == "Abs") return std::fabs(a);
  if (op == "floor") return std::floor(a);
  if (op == "ceil") return std::ceil(a);
  if (op == "trunc") return std::trunc(a);
  if (op == "round") return std::nearbyint(a);
  if (op == "Sqrt") return std::sqrt(a);
  if (op == "Exp") return std::exp(a);
  if (op == "Log") return std::log(a);
  if (op == "Square") return a * a;
  if (op == "Reciprocal") return 1 / a;
  if (op == "Rsqrt") return 1 / std::sqrt(a);
  if (op == "sin") return std::sin(a);
  if (op == "cos") return std::cos(a);
  return std::nullopt;
}

// Wraps, as torch's integers do. nullopt: unknown, or a division by zero.
std::optional<int64_t> EvalInt(absl::string_view op, int64_t a, int64_t b) {
  const auto wrapped = [](uint64_t value) { return static_cast<int64_t>(value); };
  const auto x = static_cast<uint64_t>(a);
  const auto y = static_cast<uint64_t>(b);
  if (op == "Add") return wrapped(x + y);
  if (op == "Sub") return wrapped(x - y);
  if (op == "Mul") return wrapped(x * y);
  if (op == "Square") return wrapped(x * x);
  if (op == "Neg") return wrapped(0 - x);
  if (op == "Abs") return a < 0 ? wrapped(0 - x) : a;
  if (op == "Maximum") return std::max(a, b);
  if (op == "Minimum") return std::min(a, b);
  if (op == "floor" || op == "ceil" || op == "trunc" || op == "round") return a;
  if (op == "floor_divide" || op == "remainder") {
    if (b == 0 || (b == -1 && a == std::numeric_limits<int64_t>::min())) return std::nullopt;
    const int64_t quotient = a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
    return op == "remainder" ? a - quotient * b : quotient;
  }
  return std::nullopt;
}

Tensor MakeTensor(DType dtype, const Shape& shape, const std::vector<double>& reals) {
  std::vector<uint8_t> bytes(reals.size() * sizeof(double));
  std::memcpy(bytes.data(), reals.data(), bytes.size());
  const Tensor wide({DType::kFloat64, shape}, std::move(bytes));
  return dtype == DType::kFloat64 ? wide : CastTensor(wide, dtype);
}

}  // namespace

std::optional<Tensor> EvaluateSmall(absl::string_view op, const Tensor& a, const Tensor* b) {
  const int64_t b_count = b == nullptr ? 1 : b->element_count();
  const int64_t n = std::max(a.element_count(), b_count);
  const bool fits = b == nullptr || a.shape() == b->shape() ||
                    (b_count == 1 && b->shape().size() <= a.shape().size()) ||
                    (a.element_count() == 1 && a.shape().size() <= b->shape().size());
  if (!fits || n > kMaxSmallElements || a.element_count() == 0 || b_count == 0) return std::nullopt;
  const bool by_a = a.element_count() == n &&
                    (b == nullptr || b_count != n || a.shape().size() >= b->shape().size());
  const Shape& shape = by_a ? a.shape() : b->shape();
  const auto at = [&](const Tensor& t, int64_t i) { return t.element_count() == 1 ? 0 : i; };
  const bool has_float = IsFloat(a.dtype()) || (b != nullptr && IsFloat(b->dtype()));
  if (has_float || op == "Div" || op == "Pow" || IsComparison(op)) {
    std::vector<double> reals(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) {
      const double x = a.at(at(a, i));
      const double y = b == nullptr ? 0 : b->at(at(*b, i));
      if (IsComparison(op)) {
        reals[i] = Compare(op, x, y) ? 1 : 0;
        continue;
      }
      const std::optional<double> value = EvalFloat(op, x, y);
      if (!value.has_value()) return std::nullopt;
      reals[i] = *value;
    }
    if (IsComparison(op)) return MakeTensor(DType::kBool, shape, reals);
    if (op == "Pow" && !has_float) return MakeTensor(DType::kInt64, shape, reals);
    const bool wide = (a.dtype() == DType::kFloat64 || !IsFloat(a.dtype())) &&
                      (b == nullptr || b->dtype() == DType::kFloat64 || !IsFloat(b->dtype())) &&
                      has_float;
    return MakeTensor(wide ? DType::kFloat64 : DType::kFloat32, shape, reals);
  }
  std::vector<int64_t> integers(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    const std::optional<int64_t> value =
        EvalInt(op, a.int_at(at(a, i)), b == nullptr ? 0 : b->int_at(at(*b, i)));
    if (!value.has_value()) return std::nullopt;
    integers[i] = *value;
  }
  return Tensor::FromInts(shape, integers);
}

}  // namespace npuc::pt
