#ifndef NPUC_COMPILER_CORE_IR_INTEGER_WEIGHT_CODE_H_
#define NPUC_COMPILER_CORE_IR_INTEGER_WEIGHT_CODE_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace npuc::integer {

// The lossless code of i8 weights: a range variant of asymmetric numeral systems over the weights'
// values; a table in slot weight has their probabilities. Format: target/INTEGER_ISA.md. Sources:
// J. Duda, arXiv:1311.2540; F. Giesen's public-domain rANS coder.

// A table has a nibble for each value from -128 up, the lower one of a byte first: the place of the
// value's share in this list.
inline constexpr int64_t kCodeTableBytes = 128;
inline constexpr std::array<int32_t, 16> kCodeShares = {0,  1,  2,  3,   5,   8,   13,  21,
                                                        34, 55, 89, 144, 233, 377, 610, 987};
using CodeTable = std::array<uint8_t, kCodeTableBytes>;

// The occurrences of each value, from -128 up.
using Counts = std::array<int64_t, 256>;
Counts CountsOf(absl::Span<const uint8_t> weights);

// The table that fits counts best; each value that occurs has a share.
CodeTable TableFor(const Counts& counts);

// The bytes that weights with these counts take in a table's code; -1 where a value has no share.
// An estimate, off by a few bytes.
int64_t CodedBytes(const Counts& counts, const CodeTable& table);

// INVALID_ARGUMENT where the table has no share for a weight.
absl::StatusOr<std::vector<uint8_t>> EncodeWeights(absl::Span<const uint8_t> weights,
                                                   const CodeTable& table);

// `count` weights; the caller bounds it, since few bytes may stand for many weights.
// INVALID_ARGUMENT where `coded` is not what EncodeWeights makes of them, to the last byte.
absl::StatusOr<std::vector<uint8_t>> DecodeWeights(absl::Span<const uint8_t> coded, int64_t count,
                                                   absl::Span<const uint8_t> table);

}  // namespace npuc::integer

#endif  // NPUC_COMPILER_CORE_IR_INTEGER_WEIGHT_CODE_H_
