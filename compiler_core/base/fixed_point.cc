#include "compiler_core/base/fixed_point.h"

#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace npuc {
namespace {

int64_t Saturated(absl::int128 x) {
  constexpr int64_t kLow = std::numeric_limits<int64_t>::min();
  constexpr int64_t kHigh = std::numeric_limits<int64_t>::max();
  if (x < absl::int128(kLow)) return kLow;
  if (x > absl::int128(kHigh)) return kHigh;
  return static_cast<int64_t>(x);
}

// x * 2^exponent, exponent > 0, saturated to 32 bits.
int32_t ShiftLeftSaturating(int32_t x, int exponent) {
  const int64_t wide = int64_t{x} * (int64_t{1} << exponent);
  return static_cast<int32_t>(std::clamp<int64_t>(wide, INT32_MIN, INT32_MAX));
}

int32_t WrappingAdd(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}

// exp(x) for x of 31 fraction bits in [-1/4, 0): a Taylor series around -1/8.
int32_t ExpOnLastQuarter(int32_t a) {
  constexpr int32_t kExpOfMinusEighth = 1895147668;
  constexpr int32_t kOneThird = 715827883;
  const int32_t x = WrappingAdd(a, 1 << 28);
  const int32_t x2 = DoublingHighMultiply(x, x);
  const int32_t x3 = DoublingHighMultiply(x2, x);
  const int32_t x4 = DoublingHighMultiply(x2, x2);
  const int32_t high = DoublingHighMultiply(WrappingAdd(DivideByPowerOfTwo(x4, 2), x3), kOneThird);
  const int32_t series = WrappingAdd(x, DivideByPowerOfTwo(WrappingAdd(high, x2), 1));
  return WrappingAdd(kExpOfMinusEighth, DoublingHighMultiply(kExpOfMinusEighth, series));
}

}  // namespace

Factor MakeFactor(double value, int bits) {
  if (!(value > 0) || bits < 2 || bits > 31) return {};
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // value = fraction * 2^exponent
  const double scale = std::ldexp(1.0, bits);
  int64_t multiplier = RoundHalfAway(fraction * scale);
  if (multiplier == (int64_t{1} << bits)) {
    multiplier /= 2;
    ++exponent;
  }
  if (bits - exponent > Factor::kMaxShift) return {};
  if (exponent > bits) return {static_cast<int32_t>((int64_t{1} << bits) - 1), 0};
  return {static_cast<int32_t>(multiplier), bits - exponent};
}

double ValueOf(const Factor& factor) { return std::ldexp(factor.multiplier, -factor.shift); }

int64_t Multiply(int64_t x, const Factor& factor, Rounding rounding) {
  if (rounding == Rounding::kDouble) {
    return MultiplyRoundingTwice(static_cast<int32_t>(static_cast<uint32_t>(x)), factor);
  }
  if (x >= INT32_MIN && x <= INT32_MAX) {  // the same in 64 bits
    const int64_t product = x * factor.multiplier;
    if (factor.shift == 0) return product;
    const int64_t floor = product >> factor.shift;
    const int64_t rest = product - (floor << factor.shift);
    const int64_t half = int64_t{1} << (factor.shift - 1);
    const bool tie_up = rounding == Rounding::kUp || (floor & 1) != 0;
    return floor + (rest > half || (rest == half && tie_up) ? 1 : 0);
  }
  const absl::int128 product = absl::int128(x) * factor.multiplier;
  return Saturated(ShiftRightRounding(product, factor.shift, rounding == Rounding::kEven));
}

int64_t RoundHalfAway(double x) {
  if (std::isnan(x)) return 0;
  if (x >= 9223372036854775807.0) return std::numeric_limits<int64_t>::max();
  if (x <= -9223372036854775808.0) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(std::round(x));
}

void KeepHighBits(int bits, std::vector<int64_t>& numbers) {
  const absl::int128 most = (absl::int128(1) << (bits - 1)) - 1;
  int dropped = 0;
  for (const int64_t number : numbers) {
    const absl::int128 size = number < 0 ? -absl::int128(number) : absl::int128(number);
    while (ShiftRightRounding(size, dropped, true) > most) ++dropped;
  }
  for (int64_t& number : numbers) {
    number = Saturated(ShiftRightRounding(number, dropped, true) << dropped);
  }
}

int64_t RoundHalfEven(double x) {
  const double floor = std::floor(x);
  const double rest = x - floor;
  if (rest != 0.5) return RoundHalfAway(x);
  return RoundHalfAway(std::fmod(floor, 2.0) == 0 ? floor : floor + 1);
}

int32_t OneOverOnePlus(int32_t x) {
  constexpr int32_t k48Over17 = 1515870810;  // 29 fraction bits, as all below but the halves
  constexpr int32_t kMinus32Over17 = -1010580540;
  constexpr int32_t kOne = 1 << 29;
  const int64_t sum = int64_t{x} + INT32_MAX;
  const int32_t half_denominator = static_cast<int32_t>((sum + (sum >= 0 ? 1 : -1)) / 2);
  int32_t y = WrappingAdd(k48Over17, DoublingHighMultiply(half_denominator, kMinus32Over17));
  for (int i = 0; i < 3; ++i) {
    const int32_t product = DoublingHighMultiply(half_denominator, y);
    const int32_t error = WrappingAdd(kOne, -product);
    y = WrappingAdd(y, ShiftLeftSaturating(DoublingHighMultiply(y, error), 2));
  }
  return ShiftLeftSaturating(y, 1);
}

int32_t ExpOnNegative(int32_t x) {
  constexpr int kFractionBits = 26;
  constexpr int32_t kQuarter = 1 << (kFractionBits - 2);
  // exp(-2^exponent) in 31 fraction bits, exponents from -2 on.
  constexpr std::array<int32_t, 7> kPowers = {1672461947, 1302514674, 790015084, 290630308,
                                              39332535,   720401,     242};
  if (x == 0) return INT32_MAX;
  const int32_t last = (x & (kQuarter - 1)) - kQuarter;  // in [-1/4, 0)
  int32_t result = ExpOnLastQuarter(ShiftLeftSaturating(last, 5));
  const uint32_t rest = static_cast<uint32_t>(last) - static_cast<uint32_t>(x);
  for (size_t i = 0; i < kPowers.size(); ++i) {
    const uint32_t bit = uint32_t{1} << (kFractionBits - 2 + static_cast<int>(i));
    if ((rest & bit) != 0) result = DoublingHighMultiply(result, kPowers[i]);
  }
  return result;
}

}  // namespace npuc
