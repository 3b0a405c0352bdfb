#ifndef NPUC_COMPILER_CORE_BASE_FLOAT16_H_
#define NPUC_COMPILER_CORE_BASE_FLOAT16_H_

#include <cstdint>

namespace npuc {

// Floats of 16 bits with 3 to 6 exponent bits, laid out as IEEE 754 formats are: a sign, the
// exponent with a bias of 2^(bits - 1) - 1, and 15 - bits bits of fraction; subnormals, infinities
// and NaN as there. With 5 exponent bits this is fp16 (fp16.h). Pure; exponent_bits is 3..6.

inline constexpr int kHalfExponentBits = 5;

// To nearest, ties to even. Finite values beyond the largest become the largest.
uint16_t FloatToFloat16(float value, int exponent_bits);
// Exact.
float Float16ToFloat(uint16_t bits, int exponent_bits);
// The largest finite value, and the smallest above 0.
float LargestFloat16(int exponent_bits);
float SmallestFloat16(int exponent_bits);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_FLOAT16_H_
