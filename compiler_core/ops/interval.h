#ifndef NPUC_COMPILER_CORE_OPS_INTERVAL_H_
#define NPUC_COMPILER_CORE_OPS_INTERVAL_H_

#include <limits>
#include <optional>

#include "compiler_core/ir/graph/op_kind.h"
#include "compiler_core/ir/graph/types.h"

namespace npuc {

// Numbers between which all elements of a value lie; infinite on a side where nothing is known.
struct Interval {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
};

// The larger size of the two ends.
double LargestSize(const Interval& interval);

// The least interval that holds both.
Interval Hull(const Interval& a, const Interval& b);

// Holds the product of each number of `a` and each of `b`; unknown for 0 times an infinite end.
Interval Product(const Interval& a, const Interval& b);

// Unknown for a constant without elements, and for one with a NaN.
Interval IntervalOf(const Tensor& constant);

// The results of Neg, Abs, Relu and Relu6; nullopt: another operator.
std::optional<Interval> IntervalOfResult(Op op, const Interval& x);

// The results of Add, Sub, Mul, Maximum and Minimum, in exact arithmetic; nullopt: another
// operator.
std::optional<Interval> IntervalOfResult(Op op, const Interval& a, const Interval& b);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_OPS_INTERVAL_H_
