#include "compiler_core/lowering/weights.h"

#include <algorithm>
#include <cmath>

#include "compiler_core/base/fp16.h"

namespace npuc {
namespace {

// Calls visit(k, n, first_of_word) for every position of the matrix in mask order.
template <typename Visit>
void ForEachInMaskOrder(int64_t rows, int64_t columns, int64_t block, const Visit& visit) {
  for (int64_t kb = 0; kb < rows; kb += block) {
    for (int64_t nb = 0; nb < columns; nb += block) {
      const int64_t k_end = std::min(kb + block, rows);
      const int64_t n_end = std::min(nb + block, columns);
      for (int64_t k = kb; k < k_end; ++k) {
        for (int64_t n = nb; n < n_end; ++n) visit(k, n);
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
  const int64_t word_bytes = block / 8;
  const int64_t block_bytes = block * word_bytes;
  const int64_t tap_bytes = k_blocks * n_blocks * block_bytes;
  EncodedMatrix encoded;
  encoded.mask.assign(matrix.taps * tap_bytes, 0);
  encoded.codes.reserve(matrix.values.size() + 1);
  const uint8_t zero_code = table.book().zero_code;
  for (int64_t tap = 0; tap < matrix.taps; ++tap) {
    const float* values = matrix.values.data() + tap * matrix.k * matrix.n;
    uint8_t* mask = encoded.mask.data() + tap * tap_bytes;
    ForEachInMaskOrder(matrix.k, matrix.n, block, [&](int64_t k, int64_t n) {
      const uint8_t code = table.CodeOf(values[k * matrix.n + n]);
      if (code == zero_code) return;
      const int64_t block_index = k / block * n_blocks + n / block;
      const int64_t byte = block_index * block_bytes + k % block * word_bytes + n % block / 8;
      mask[byte] |= static_cast<uint8_t>(0x80u >> (n % 8));
      encoded.codes.push_back(code);
    });
  }
  if (encoded.codes.size() % 2 != 0) encoded.codes.push_back(0);
  return encoded;
}

EncodedMatrix PlainMatrix(const WeightMatrix& matrix, int64_t block) {
  EncodedMatrix encoded;
  encoded.codes.reserve(2 * matrix.values.size());
  for (int64_t tap = 0; tap < matrix.taps; ++tap) {
    const float* values = matrix.values.data() + tap * matrix.k * matrix.n;
    ForEachInMaskOrder(matrix.k, matrix.n, block, [&](int64_t k, int64_t n) {
      const uint16_t half = FloatToHalf(values[k * matrix.n + n]);
      encoded.codes.push_back(static_cast<uint8_t>(half & 0xff));
      encoded.codes.push_back(static_cast<uint8_t>(half >> 8));
    });
  }
  return encoded;
}

}  // namespace npuc
