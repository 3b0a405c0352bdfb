#ifndef NPUC_COMPILER_CORE_BASE_TABLE_BITS_H_
#define NPUC_COMPILER_CORE_BASE_TABLE_BITS_H_

namespace npuc {

// A fixed-point core's tables have at least 2^12 entries: fewer would cost more than the rounding
// to 16 bits. lut_items_in_bits asks for more.
inline constexpr int kLeastFixedPointTableBits = 12;

// Compass's default of lut_items_in_bits, which its files state for every layer.
inline constexpr int kCompassTableBits = 8;

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_TABLE_BITS_H_
