#ifndef NPUC_COMPILER_CORE_BASE_FP16_H_
#define NPUC_COMPILER_CORE_BASE_FP16_H_

#include <bit>
#include <cstdint>

namespace npuc {

// IEEE 754 binary16 as a bit pattern, with conversions that give the same bits on every machine.
// Arithmetic is done by converting to float, computing, and rounding back: for + - * / and sqrt
// that equals a correctly rounded binary16 operation, since 24 >= 2*11 + 2 (Figueroa, 1995).

// The largest finite number; the lowest is its negative.
inline constexpr double kLargestHalf = 65504;

// Rounding: to nearest, ties to even. Overflow gives infinity; NaN keeps its sign and top payload
// bits and is made quiet.
constexpr uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x1ffu));
  }
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // >= 65520
  if (magnitude < 0x33000001u) return static_cast<uint16_t>(sign);             // <= 2^-25
  if (magnitude < 0x38800000u) {  // below 2^-14: subnormal
    const uint32_t shift = 126u - (magnitude >> 23);
    const uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    const uint32_t kept = mantissa >> shift;
    const uint32_t rest = mantissa & ((1u << shift) - 1u);
    const uint32_t halfway = 1u << (shift - 1u);
    const uint32_t up = (rest > halfway || (rest == halfway && (kept & 1u) != 0)) ? 1u : 0u;
    return static_cast<uint16_t>(sign | (kept + up));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

// Exact.
constexpr float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu;
  const uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) {
    return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  }
  const float subnormal = static_cast<float>(mantissa) * 0x1p-24f;
  return sign != 0 ? -subnormal : subnormal;
}

// value rounded to the nearest binary16, as a float.
constexpr float RoundToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  // Normal numbers that stay finite keep ten bits of their fraction.
  if (magnitude >= 0x38800000u && magnitude < 0x477ff000u) {
    return std::bit_cast<float>((bits + 0xfffu + ((bits >> 13) & 1u)) & ~0x1fffu);
  }
  return HalfToFloat(FloatToHalf(value));
}

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_FP16_H_
