#include "compiler_core/ops/interval.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace npuc {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Interval kNothing = {kInfinity, -kInfinity};

}  // namespace

double LargestSize(const Interval& interval) {
  return std::max(std::fabs(interval.least), std::fabs(interval.most));
}

Interval Hull(const Interval& a, const Interval& b) {
  return {std::min(a.least, b.least), std::max(a.most, b.most)};
}

Interval Product(const Interval& a, const Interval& b) {
  Interval product = kNothing;
  for (const double corner :
       {a.least * b.least, a.least * b.most, a.most * b.least, a.most * b.most}) {
    if (std::isnan(corner)) return {};
    product = Hull(product, {corner, corner});
  }
  return product;
}

Interval IntervalOf(const Tensor& constant) {
  if (constant.element_count() == 0) return {};
  Interval interval = kNothing;
  for (int64_t i = 0; i < constant.element_count(); ++i) {
    const double value = constant.at(i);
    if (std::isnan(value)) return {};
    interval = Hull(interval, {value, value});
  }
  return interval;
}

std::optional<Interval> IntervalOfResult(Op op, const Interval& x) {
  switch (op) {
    case Op::kNeg:
      return Interval{-x.most, -x.least};
    case Op::kAbs:
      return Interval{0, LargestSize(x)};
    case Op::kRelu:
      return Interval{std::max(x.least, 0.0), std::max(x.most, 0.0)};
    case Op::kRelu6:
      return Interval{std::clamp(x.least, 0.0, 6.0), std::clamp(x.most, 0.0, 6.0)};
    default:
      return std::nullopt;
  }
}

std::optional<Interval> IntervalOfResult(Op op, const Interval& a, const Interval& b) {
  switch (op) {
    case Op::kMaximum:
      return Interval{std::max(a.least, b.least), std::max(a.most, b.most)};
    case Op::kMinimum:
      return Interval{std::min(a.least, b.least), std::min(a.most, b.most)};
    case Op::kAdd:
      return Interval{a.least + b.least, a.most + b.most};
    case Op::kSub:
      return Interval{a.least - b.most, a.most - b.least};
    case Op::kMul:
      return Product(a, b);
    default:
      return std::nullopt;
  }
}

}  // namespace npuc
