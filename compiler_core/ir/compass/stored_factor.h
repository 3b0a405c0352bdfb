#ifndef NPUC_COMPILER_CORE_IR_COMPASS_STORED_FACTOR_H_
#define NPUC_COMPILER_CORE_IR_COMPASS_STORED_FACTOR_H_

#include "compiler_core/base/fixed_point.h"

namespace npuc::compass {

// The constants `scale` and `shift` of a layer: multipliers of 15 bits in uint16, right shifts.
inline constexpr int kStoredMultiplierBits = 15;
inline constexpr int kMostStoredShift = 31;

// What is stored of a factor: a longer right shift goes into the multiplier.
inline Factor AsStored(Factor factor) {
  if (factor.shift <= kMostStoredShift) return factor;
  const int drop = factor.shift - kMostStoredShift;
  return {drop > 30 ? 0 : factor.multiplier >> drop, kMostStoredShift};
}

}  // namespace npuc::compass

#endif  // NPUC_COMPILER_CORE_IR_COMPASS_STORED_FACTOR_H_
