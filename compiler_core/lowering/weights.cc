#include "compiler_core/lowering/weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>

#include "compiler_core/base/fp16.h"
#include "compiler_core/base/fp16_span.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace npuc {
namespace {

// Calls visit(row, length, bit) for the rows of every block, and every row of bias, in mask order;
// bit: of the mask, the row's first.
template <typename Stored, typename Visit>
void ForEachInMaskOrder(const WeightMatrix<Stored>& matrix, int64_t block, const Visit& visit) {
  int64_t first_bit = 0;  // of a block
  for (int64_t tap = 0; tap < matrix.taps; ++tap) {
    const Stored* values = matrix.values.data() + tap * matrix.k * matrix.n;
    for (int64_t kb = 0; kb < matrix.k; kb += block) {
      for (int64_t nb = 0; nb < matrix.n; nb += block) {
        const int64_t k_end = std::min(kb + block, matrix.k);
        const int64_t length = std::min(block, matrix.n - nb);
        for (int64_t k = kb; k < k_end; ++k) {
          visit(values + k * matrix.n + nb, length, first_bit + (k - kb) * block);
        }
        first_bit += block * block;
        if (matrix.bias.empty() || tap > 0 || kb > 0) continue;
        visit(matrix.bias.data() + nb, length, first_bit);
        first_bit += block;
      }
    }
  }
}

// Whether none of eight codes is the zero code: so it is nearly everywhere in dense weights.
bool KeepsAll(const uint8_t* codes, uint8_t zero_code) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  uint64_t differences = 0;
  std::memcpy(&differences, codes, sizeof(differences));
  differences ^= kOnes * zero_code;
  // The high bit of each zero byte, and perhaps of bytes above one.
  return ((differences - kOnes) & ~differences & (kOnes << 7)) == 0;
}

#if defined(__x86_64__)

__attribute__((target("avx,f16c"))) inline __m256 RoundedToHalves(__m256 values) {
  return _mm256_cvtph_ps(_mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

// The steps of EncodeWeight for all but the weights after the last full register; how many that
// are.
__attribute__((target("avx,f16c"))) size_t EncodeByRegister(float min, float step,
                                                            absl::Span<const float> weights,
                                                            absl::Span<uint8_t> codes) {
  constexpr size_t kLanes = 8;
  const __m256 mins = _mm256_set1_ps(min);
  const __m256 steps = _mm256_set1_ps(step);
  const __m256 half = _mm256_set1_ps(0.5f);
  const __m256 most = _mm256_set1_ps(255.0f);
  size_t i = 0;
  for (; i + kLanes <= weights.size(); i += kLanes) {
    __m256 at = RoundedToHalves(_mm256_loadu_ps(weights.data() + i));
    at = RoundedToHalves(_mm256_sub_ps(at, mins));
    at = RoundedToHalves(_mm256_div_ps(at, steps));
    at = RoundedToHalves(_mm256_add_ps(at, half));
    at = _mm256_max_ps(at, _mm256_setzero_ps());  // the second of the two for NaN
    at = _mm256_min_ps(at, most);
    // Of what is not negative, the conversion is floor.
    const __m256i integers = _mm256_cvttps_epi32(at);
    const __m128i words =
        _mm_packs_epi32(_mm256_castsi256_si128(integers), _mm256_extractf128_si256(integers, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(codes.data() + i), _mm_packus_epi16(words, words));
  }
  return i;
}

#else

size_t EncodeByRegister(float, float, absl::Span<const float>, absl::Span<uint8_t>) { return 0; }

#endif

}  // namespace

namespace {

// Codes 0 to last_code, evenly over the range.
CodeBook EvenBook(double min, double max, int last_code) {
  min = std::min(min, 0.0);
  max = std::max(max, 0.0);
  const double step = (max - min) / last_code;
  CodeBook book;
  if (!(step > 0.0) || !std::isfinite(step)) return book;
  const double zero_point = std::round(-min / step);
  book.min = FloatToHalf(static_cast<float>(-zero_point * step));
  book.step = FloatToHalf(static_cast<float>(step));
  if ((book.step & 0x7c00) == 0x7c00 || (book.min & 0x7c00) == 0x7c00) book.step = 0;
  return book;
}

double NormalProbability(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

// The x below which a standard normal value lies with probability p, 0 < p < 1.
double NormalQuantile(double p) {
  double low = -10;
  double high = 10;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (NormalProbability(middle) < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

// 2^bits - 1 values from min to max, equally probable in a normal distribution that ends at kEnd of
// its standard deviations, and 0. Levels are best as dense as the cube root of what they stand for
// (Panter and Dite, 1951), which of normal weights is a normal distribution of sqrt(3) times the
// width: weights whose range is +-3.5 standard deviations, as of some thousand, end there.
std::vector<uint16_t> GaussianValues(int bits, double min, double max) {
  constexpr double kEnd = 2;
  const int count = (1 << bits) - 1;
  const double first = NormalProbability(-kEnd);
  std::vector<float> values = {0.0f};
  for (int i = 0; i < count; ++i) {
    const double at = NormalQuantile(first + i * (1 - 2 * first) / (count - 1)) / kEnd;  // -1 to 1
    values.push_back(RoundToHalf(static_cast<float>((min + max) / 2 + at * (max - min) / 2)));
  }
  std::sort(values.begin(), values.end());
  return FloatsToHalves(values);
}

uint8_t NearestCode(absl::Span<const uint16_t> values, float weight) {
  if (std::isnan(weight)) return 0;
  const auto* const above =
      std::lower_bound(values.begin(), values.end(), weight,
                       [](uint16_t value, float at) { return HalfToFloat(value) < at; });
  if (above == values.begin()) return 0;
  const size_t code = static_cast<size_t>(above - values.begin());
  if (above == values.end()) return static_cast<uint8_t>(code - 1);
  const double from_below = double{weight} - HalfToFloat(values[code - 1]);
  const double to_above = double{HalfToFloat(*above)} - weight;
  return static_cast<uint8_t>(from_below <= to_above ? code - 1 : code);
}

}  // namespace

CodeBook MakeCodeBook(double min, double max) {
  CodeBook book = EvenBook(min, max, 255);
  if (book.usable()) book.zero_code = EncodeWeight(book, 0.0f);
  return book;
}

CodeBook MakeValueBook(BookSpacing spacing, int bits, double min, double max) {
  const int last_code = (1 << bits) - 1;
  CodeBook book = EvenBook(min, max, last_code);
  if (!book.usable()) return book;
  if (spacing == BookSpacing::kGaussian) {
    book.values = GaussianValues(bits, std::min(min, 0.0), std::max(max, 0.0));
  } else {
    for (int code = 0; code <= last_code; ++code) {
      const float offset = RoundToHalf(static_cast<float>(code) * HalfToFloat(book.step));
      book.values.push_back(FloatToHalf(HalfToFloat(book.min) + offset));
    }
    // The value nearest to 0, which rounding may have left beside it.
    const auto zero =
        std::min_element(book.values.begin(), book.values.end(), [](uint16_t a, uint16_t b) {
          return std::fabs(HalfToFloat(a)) < std::fabs(HalfToFloat(b));
        });
    *zero = 0;
  }
  book.zero_code = NearestCode(book.values, 0.0f);
  return book;
}

uint8_t EncodeWeight(const CodeBook& book, float weight) {
  if (!book.values.empty()) return NearestCode(book.values, weight);
  const float difference = RoundToHalf(RoundToHalf(weight) - HalfToFloat(book.min));
  const float quotient = RoundToHalf(difference / HalfToFloat(book.step));
  const float code = std::floor(RoundToHalf(quotient + 0.5f));
  if (!(code > 0.0f)) return 0;  // NaN as well
  return static_cast<uint8_t>(std::min(code, 255.0f));
}

std::vector<uint8_t> EncodeWeights(const CodeBook& book, absl::Span<const float> weights) {
  if (!book.values.empty()) {
    std::vector<uint8_t> codes(weights.size());
    std::transform(weights.begin(), weights.end(), codes.begin(),
                   [&](float weight) { return NearestCode(book.values, weight); });
    return codes;
  }
  const float min = HalfToFloat(book.min);
  const float step = HalfToFloat(book.step);
  std::vector<uint8_t> codes(weights.size());
  constexpr size_t kChunk = 512;
  std::array<float, kChunk> chunk{};
  const size_t done =
      HasHalfInstructions() ? EncodeByRegister(min, step, weights, absl::MakeSpan(codes)) : 0;
  for (size_t begin = done; begin < weights.size(); begin += kChunk) {
    // The steps of EncodeWeight, each for all of the chunk.
    const absl::Span<const float> from = weights.subspan(begin, kChunk);
    const absl::Span<float> at(chunk.data(), from.size());
    std::copy(from.begin(), from.end(), at.begin());
    RoundToHalves(at);
    for (float& value : at) value -= min;
    RoundToHalves(at);
    for (float& value : at) value /= step;
    RoundToHalves(at);
    for (float& value : at) value += 0.5f;
    RoundToHalves(at);
    for (float& value : at) value = value > 0.0f ? value : 0.0f;  // 0 for NaN as well
    for (float& value : at) value = value < 255.0f ? value : 255.0f;
    // Of what is not negative, the conversion is floor.
    std::transform(at.begin(), at.end(), codes.begin() + begin,
                   [](float value) { return static_cast<uint8_t>(static_cast<int32_t>(value)); });
  }
  return codes;
}

float DecodeWeight(const CodeBook& book, uint8_t code) {
  if (!book.values.empty()) {
    return code < book.values.size() ? HalfToFloat(book.values[code]) : 0.0f;
  }
  if (code == book.zero_code) return 0.0f;
  const float offset = RoundToHalf(static_cast<float>(code) * HalfToFloat(book.step));
  return RoundToHalf(HalfToFloat(book.min) + offset);
}

EncodedMatrix CompressMatrix(const WeightMatrix<uint8_t>& matrix, uint8_t zero_code,
                             int64_t block) {
  const int64_t k_blocks = (matrix.k + block - 1) / block;
  const int64_t n_blocks = (matrix.n + block - 1) / block;
  int64_t bits = matrix.taps * k_blocks * n_blocks * block * block;
  if (!matrix.bias.empty()) bits += n_blocks * block;
  EncodedMatrix encoded;
  encoded.mask.assign(bits / 8, 0);
  // One more for padding, and one that is written to and not kept.
  encoded.codes.resize(matrix.values.size() + matrix.bias.size() + 2);
  uint8_t* next = encoded.codes.data();
  ForEachInMaskOrder(matrix, block, [&](const uint8_t* row, int64_t length, int64_t bit) {
    uint8_t* mask = encoded.mask.data() + bit / 8;
    for (int64_t i = 0; i < length; i += 8) {
      const int64_t columns = std::min<int64_t>(length - i, 8);
      if (columns == 8 && KeepsAll(row + i, zero_code)) {
        std::memcpy(next, row + i, 8);
        next += 8;
        *mask++ = 0xff;
        continue;
      }
      unsigned byte = 0;
      for (int64_t j = i; j < i + columns; ++j) {
        const unsigned is_kept = row[j] != zero_code ? 1 : 0;
        byte = byte << 1 | is_kept;
        *next = row[j];
        next += is_kept;
      }
      *mask++ = static_cast<uint8_t>(byte << (8 - columns));
    }
  });
  size_t count = static_cast<size_t>(next - encoded.codes.data());
  if (count % 2 != 0) encoded.codes[count++] = 0;
  encoded.codes.resize(count);
  return encoded;
}

std::vector<uint8_t> WithBook(const CodeBook& book, const EncodedMatrix& encoded) {
  std::vector<uint8_t> bytes;
  for (const uint16_t value : book.values) {
    bytes.push_back(static_cast<uint8_t>(value & 0xff));
    bytes.push_back(static_cast<uint8_t>(value >> 8));
  }
  int64_t count = 0;
  for (const uint8_t byte : encoded.mask) count += std::popcount(byte);
  uint32_t pending = 0;  // its last `pending_bits` bits are not stored yet
  int pending_bits = 0;
  for (int64_t i = 0; i < count; ++i) {
    pending = pending << book.bits() | encoded.codes[static_cast<size_t>(i)];
    pending_bits += book.bits();
    if (pending_bits < 8) continue;
    pending_bits -= 8;
    bytes.push_back(static_cast<uint8_t>(pending >> pending_bits));
  }
  if (pending_bits > 0) bytes.push_back(static_cast<uint8_t>(pending << (8 - pending_bits)));
  if (bytes.size() % 2 != 0) bytes.push_back(0);
  return bytes;
}

EncodedMatrix PlainMatrix(const WeightMatrix<uint16_t>& matrix, int64_t block) {
  EncodedMatrix encoded;
  encoded.codes.resize(2 * (matrix.values.size() + matrix.bias.size()));
  uint8_t* next = encoded.codes.data();
  ForEachInMaskOrder(matrix, block, [&](const uint16_t* row, int64_t length, int64_t) {
    for (int64_t i = 0; i < length; ++i) {
      next[2 * i] = static_cast<uint8_t>(row[i] & 0xff);
      next[2 * i + 1] = static_cast<uint8_t>(row[i] >> 8);
    }
    next += 2 * length;
  });
  return encoded;
}

}  // namespace npuc
