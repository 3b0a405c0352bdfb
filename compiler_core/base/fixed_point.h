#ifndef NPUC_COMPILER_CORE_BASE_FIXED_POINT_H_
#define NPUC_COMPILER_CORE_BASE_FIXED_POINT_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/numeric/int128.h"

namespace npuc {

// Integer arithmetic with stated roundings, of which the integer cores and their simulator are
// made. All functions are total: every argument in the stated range has a defined result.

// How a product by a factor is rounded to an integer. kDouble is TFLite's published arithmetic for
// 8-bit models (two roundings), kUp the one for 16-bit models.
enum class Rounding : uint8_t {
  kEven = 0,    // once, to nearest, ties to even
  kDouble = 1,  // in two steps: see MultiplyRoundingTwice
  kUp = 2,      // once, to nearest, ties upwards
};

// A factor as the cores hold it: multiplier * 2^-shift.
struct Factor {
  static constexpr int32_t kMinShift = 0;
  static constexpr int32_t kMaxShift = 62;
  int32_t multiplier = 0;  // >= 0
  int32_t shift = 0;       // kMinShift..kMaxShift
  bool operator==(const Factor&) const = default;
};

// The factor nearest to `value` (finite, >= 0; values of 2^bits and more give the largest factor)
// with a multiplier of `bits` bits, 2..31, ties away from zero. Values below 2^(bits - 63), which
// need a larger shift than there is, give zero; of 31 bits that is what TFLite's
// QuantizeMultiplier does. 15 bits reach down to 2^-48.
Factor MakeFactor(double value, int bits);
double ValueOf(const Factor& factor);

// x * 2^-shift, shift >= 0, rounded to nearest; ties to even, or upwards.
inline absl::int128 ShiftRightRounding(absl::int128 x, int shift, bool ties_to_even) {
  if (shift == 0) return x;
  const absl::int128 half = absl::int128(1) << (shift - 1);
  const absl::int128 floor = x >> shift;
  const absl::int128 rest = x - (floor << shift);
  const bool up = rest > half || (rest == half && (!ties_to_even || (floor & 1) != 0));
  return up ? floor + 1 : floor;
}

// Leaves `bits` significant bits, 2..64, of the largest number, and as many places of the
// others: each is rounded at the least place at which the largest, rounded, fits into so many bits
// with its sign, ties to even. A second time changes nothing.
void KeepHighBits(int bits, std::vector<int64_t>& numbers);

// The high half of 2ab, rounded to nearest, ties upwards; the largest int32 where a and b
// are both the lowest. Source: gemmlowp's SaturatingRoundingDoublingHighMul.
inline int32_t DoublingHighMultiply(int32_t a, int32_t b) {
  if (a == INT32_MIN && b == INT32_MIN) return INT32_MAX;
  const int64_t product = int64_t{a} * b;
  const int64_t nudge = product >= 0 ? (int64_t{1} << 30) : 1 - (int64_t{1} << 30);
  return static_cast<int32_t>((product + nudge) / (int64_t{1} << 31));
}

// x * 2^-exponent, exponent 0..62, rounded to nearest, ties away from zero. Source: gemmlowp's
// RoundingDivideByPOT, which ends at 31.
inline int32_t DivideByPowerOfTwo(int32_t x, int exponent) {
  const int64_t mask = (int64_t{1} << exponent) - 1;
  const int64_t rest = x & mask;
  const int64_t threshold = (mask >> 1) + (x < 0 ? 1 : 0);
  return static_cast<int32_t>((int64_t{x} >> exponent) + (rest > threshold ? 1 : 0));
}

// x times the factor as TFLite's MultiplyByQuantizedMultiplier has it: shifted left where the
// factor is above one (modulo 2^32), multiplied with one rounding, shifted right with another.
inline int32_t MultiplyRoundingTwice(int32_t x, const Factor& factor) {
  const int left = std::max(0, 31 - factor.shift);
  const int right = std::max(0, factor.shift - 31);
  const int32_t shifted = static_cast<int32_t>(static_cast<uint32_t>(x) << left);
  return DivideByPowerOfTwo(DoublingHighMultiply(shifted, factor.multiplier), right);
}

// x, of at most 64 bits, times the factor; saturated to 64 bits. kDouble takes x modulo 2^32.
int64_t Multiply(int64_t x, const Factor& factor, Rounding rounding);

// round(x) to the nearest integer, ties to even; saturated to int64, NaN gives 0.
int64_t RoundHalfEven(double x);
// The same, ties away from zero, as C's round does.
int64_t RoundHalfAway(double x);

// Between two entries of a table that are 2^shift places apart (shift 0..16), `rest` places behind
// the first: linear, to nearest, ties upwards.
inline int64_t Interpolate(int64_t low, int64_t high, int64_t rest, int shift) {
  if (shift == 0) return low;
  return low + (((high - low) * rest + (int64_t{1} << (shift - 1))) >> shift);
}

// 1 / (1 + x) for x of 31 fraction bits in (0, 1), in 31 fraction bits. Source: gemmlowp's
// one_over_one_plus_x_for_x_in_0_1, three Newton-Raphson steps.
int32_t OneOverOnePlus(int32_t x);
// exp(x) for x <= 0 of 26 fraction bits, in 31 fraction bits. Source: gemmlowp's
// exp_on_negative_values for 5 integer bits.
int32_t ExpOnNegative(int32_t x);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_FIXED_POINT_H_
