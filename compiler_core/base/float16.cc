#include "compiler_core/base/float16.h"

#include <algorithm>
#include <cmath>

namespace npuc {
namespace {

constexpr int kWidth = 16;

int FractionBitsOf(int exponent_bits) { return kWidth - 1 - exponent_bits; }
int BiasOf(int exponent_bits) { return (1 << (exponent_bits - 1)) - 1; }
// The exponent of infinities and NaN, in place.
int SpecialOf(int exponent_bits) {
  return ((1 << exponent_bits) - 1) << FractionBitsOf(exponent_bits);
}

}  // namespace

uint16_t FloatToFloat16(float value, int exponent_bits) {
  const int fraction_bits = FractionBitsOf(exponent_bits);
  const int sign = std::signbit(value) ? 1 << (kWidth - 1) : 0;
  const int special = SpecialOf(exponent_bits);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | special | 1 << (fraction_bits - 1));
  if (std::isinf(value)) return static_cast<uint16_t>(sign | special);
  if (value == 0) return static_cast<uint16_t>(sign);
  const double magnitude = std::fabs(static_cast<double>(value));
  int exponent = 0;  // magnitude = [0.5, 1) x 2^exponent
  (void)std::frexp(magnitude, &exponent);
  // The exponent field of numbers of this size; subnormals share the least.
  const int biased = std::max(exponent - 1 + BiasOf(exponent_bits), 1);
  const int unit = biased - BiasOf(exponent_bits) - fraction_bits;
  const double units = std::nearbyint(std::ldexp(magnitude, -unit));  // at most 2^(fraction + 1)
  // A carry out of the fraction goes into the exponent, as it should.
  const double bits = units + std::ldexp(biased - 1, fraction_bits);
  return static_cast<uint16_t>(sign | static_cast<int>(std::min<double>(bits, special - 1)));
}

float Float16ToFloat(uint16_t bits, int exponent_bits) {
  const int fraction_bits = FractionBitsOf(exponent_bits);
  const int magnitude = bits & 0x7fff;
  const int biased = magnitude >> fraction_bits;
  const int fraction = magnitude & ((1 << fraction_bits) - 1);
  float value = 0;
  if (magnitude >= SpecialOf(exponent_bits)) {
    value = fraction == 0 ? INFINITY : NAN;
  } else {
    const int whole = biased == 0 ? fraction : fraction | 1 << fraction_bits;
    value = std::ldexp(static_cast<float>(whole),
                       std::max(biased, 1) - BiasOf(exponent_bits) - fraction_bits);
  }
  return magnitude == bits ? value : -value;
}

float LargestFloat16(int exponent_bits) {
  return Float16ToFloat(static_cast<uint16_t>(SpecialOf(exponent_bits) - 1), exponent_bits);
}

float SmallestFloat16(int exponent_bits) { return Float16ToFloat(1, exponent_bits); }

}  // namespace npuc
