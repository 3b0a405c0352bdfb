#include "compiler_core/lowering/weights.h"

#include <algorithm>
#include <cmath>

#include "compiler_core/base/fp16.h"

namespace npuc {
namespace {

// Calls visit(value, bit) for every weight, and every bias, in mask order; bit: its bit of the
// mask.
template <typename Visit>
void ForEachInMaskOrder(const WeightMatrix& matrix, int64_t block, const Visit& visit) {
  int64_t first_bit = 0;  // of a block
  for (int64_t tap = 0; tap < matrix.taps; ++tap) {
    const float* values = matrix.values.data() + tap * matrix.k * matrix.n;
    for (int64_t kb = 0; kb < matrix.k; kb += block) {
      for (int64_t nb = 0; nb < matrix.n; nb += block) {
        const int64_t k_end = std::min(kb + block, matrix.k);
        const int64_t n_end = std::min(nb + block, matrix.n);
        for (int64_t k = kb; k < k_end; ++k) {
          for (int64_t n = nb; n < n_end; ++n) {
            visit(values[k * matrix.n + n], first_bit + (k - kb) * block + n - nb);
          }
        }
        first_bit += block * block;
        if (matrix.bias.empty() || tap > 0 || kb > 0) continue;
        for (int64_t n = nb; n < n_end; ++n) visit(matrix.bias[n], first_bit + n - nb);
        first_bit += block;
      }
    }
  }
}

}  // namespace

CodeBook MakeCodeBook(double min, double max) {
  min = std::min(min, 0.0);
  max = std::max(max, 0.0);
  const double step = (max - min) / 255.0;
  CodeBook book;
  if (!(step > 0.0) || !std::isfinite(step)) return book;
  const double zero_point = std::round(-min / step);
  book.min = FloatToHalf(static_cast<float>(-zero_point * step));
  book.step = FloatToHalf(static_cast<float>(step));
  if ((book.step & 0x7c00) == 0x7c00 || (book.min & 0x7c00) == 0x7c00) book.step = 0;
  if (book.usable()) book.zero_code = EncodeWeight(book, 0.0f);
  return book;
}

uint8_t EncodeWeight(const CodeBook& book, float weight) {
  const float difference = RoundToHalf(RoundToHalf(weight) - HalfToFloat(book.min));
  const float quotient = RoundToHalf(difference / HalfToFloat(book.step));
  const float code = std::floor(RoundToHalf(quotient + 0.5f));
  if (!(code > 0.0f)) return 0;  // NaN as well
  return static_cast<uint8_t>(std::min(code, 255.0f));
}

float DecodeWeight(const CodeBook& book, uint8_t code) {
  if (code == book.zero_code) return 0.0f;
  const float offset = RoundToHalf(static_cast<float>(code) * HalfToFloat(book.step));
  return RoundToHalf(HalfToFloat(book.min) + offset);
}

EncodedMatrix CompressMatrix(const WeightMatrix& matrix, CodeTable& table, int64_t block) {
  const int64_t k_blocks = (matrix.k + block - 1) / block;
  const int64_t n_blocks = (matrix.n + block - 1) / block;
  int64_t bits = matrix.taps * k_blocks * n_blocks * block * block;
  if (!matrix.bias.empty()) bits += n_blocks * block;
  EncodedMatrix encoded;
  encoded.mask.assign(bits / 8, 0);
  encoded.codes.reserve(matrix.values.size() + matrix.bias.size() + 1);
  const uint8_t zero_code = table.book().zero_code;
  ForEachInMaskOrder(matrix, block, [&](float value, int64_t bit) {
    const uint8_t code = table.CodeOf(value);
    if (code == zero_code) return;
    encoded.mask[bit / 8] |= static_cast<uint8_t>(0x80u >> (bit % 8));
    encoded.codes.push_back(code);
  });
  if (encoded.codes.size() % 2 != 0) encoded.codes.push_back(0);
  return encoded;
}

EncodedMatrix PlainMatrix(const WeightMatrix& matrix, int64_t block) {
  EncodedMatrix encoded;
  encoded.codes.resize(2 * (matrix.values.size() + matrix.bias.size()));
  uint8_t* next = encoded.codes.data();
  ForEachInMaskOrder(matrix, block, [&](float value, int64_t) {
    const uint16_t half = FloatToHalf(value);
    next[0] = static_cast<uint8_t>(half & 0xff);
    next[1] = static_cast<uint8_t>(half >> 8);
    next += 2;
  });
  return encoded;
}

}  // namespace npuc
