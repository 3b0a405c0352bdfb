#ifndef NPUC_COMPILER_CORE_LOWERING_WEIGHTS_H_
#define NPUC_COMPILER_CORE_LOWERING_WEIGHTS_H_

#include <bit>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "compiler_core/base/fp16.h"

namespace npuc {

// Weight matrices in the form that the fully connected unit reads. Source of every formula and
// order here: shared/spec/grus-encoding.md, "Fully connected weight compression", re-derived on the
// vendor's published example (8948 of 8948 bytes).

// A matrix [k,n] of stored values, row-major; for a convolution [taps,k,n], one matrix a kernel
// position. Stored: codes (uint8_t) or fp16 (uint16_t).
template <typename Stored>
struct WeightMatrix {
  absl::Span<const Stored> values;
  int64_t k = 0;
  int64_t n = 0;
  int64_t taps = 1;
  absl::Span<const Stored> bias = {};  // of a convolution: empty, or n values
};

// How a weight's values become codes. GRUS: 8 bits, value = min + code * step, all in fp16. LEO: 4
// to 8 bits, which pick one of `values`.
struct CodeBook {
  uint16_t min = 0;   // fp16
  uint16_t step = 0;  // fp16; 0: the weight cannot be compressed (no spread, or not finite)
  uint8_t zero_code = 0;
  std::vector<uint16_t> values;  // fp16, in ascending order, 2^bits with 0 among them; GRUS: empty
  bool usable() const { return step != 0; }
  int bits() const { return values.empty() ? 8 : std::countr_zero(values.size()); }
};

// The code book for the range [min, max], which is widened to hold 0: a masked-out weight means 0,
// so 0 must have a code of its own.
CodeBook MakeCodeBook(double min, double max);
// Spacing of the values of a book over the range [min, max], widened to hold 0 (ISA.md, "LEO").
inline constexpr int kLeastBookBits = 4;
inline constexpr int kMostBookBits = 8;
enum class BookSpacing : uint8_t { kLinear, kGaussian };
CodeBook MakeValueBook(BookSpacing spacing, int bits, double min, double max);
// Without `values`: q = clamp(floor(fp16(fp16(fp16(w) - min) / step) + 0.5), 0, 255)
// With: the code of the nearest value, of two the lesser; 0 for NaN.
uint8_t EncodeWeight(const CodeBook& book, float weight);
std::vector<uint8_t> EncodeWeights(const CodeBook& book, absl::Span<const float> weights);
// What the unit makes of a code: 0 for the zero code, else fp16(min + fp16(code * step)).
float DecodeWeight(const CodeBook& book, uint8_t code);

struct EncodedMatrix {
  std::vector<uint8_t> mask;   // empty where not compressed
  std::vector<uint8_t> codes;  // codes, or fp16 weights; even length
};

// Kernel positions outermost; blocks of `block` x `block` (32), K blocks outer; within a block one
// row per k and one bit per n, the most significant bit of the first byte being column 0; padding
// bits 0. With bias, each N block of the first K block of the first position is followed by one row
// more, the bias of its columns. Codes: one byte for each set mask bit, in mask order, padded with
// 0 to an even length. `block` is a multiple of 8.
EncodedMatrix CompressMatrix(const WeightMatrix<uint8_t>& matrix, uint8_t zero_code, int64_t block);
// The bytes that a command with a book reads: the book's values, then the codes of the set mask
// bits, bits() each, the most significant bit first; even length.
std::vector<uint8_t> WithBook(const CodeBook& book, const EncodedMatrix& encoded);
// Uncompressed: fp16 weights in the order of the mask bits, without padding (our choice where the
// public record is silent; ISA.md).
EncodedMatrix PlainMatrix(const WeightMatrix<uint16_t>& matrix, int64_t block);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_LOWERING_WEIGHTS_H_
