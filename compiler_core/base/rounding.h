#ifndef NPUC_COMPILER_CORE_BASE_ROUNDING_H_
#define NPUC_COMPILER_CORE_BASE_ROUNDING_H_

#include <cstdint>

namespace npuc {

// value / by, rounded up. value >= 0, by > 0, and their sum fits.
constexpr int64_t DivideUp(int64_t value, int64_t by) { return (value + by - 1) / by; }

// The least multiple of `to` that is not below `value`. As DivideUp.
constexpr int64_t RoundUp(int64_t value, int64_t to) { return DivideUp(value, to) * to; }

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_ROUNDING_H_
