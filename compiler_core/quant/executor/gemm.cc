#include "compiler_core/quant/executor/gemm.h"

#include <algorithm>
#include <cstring>

namespace npuc {
namespace {

constexpr int64_t kTile = 8;  // columns of a packed block: two vectors of four
constexpr int64_t kRows = 4;  // rows that share the loads of a block

// Four floats that g++ and clang keep in one register on every target: element-wise operations
// alone, so that the rounding is that of scalar code.
typedef float Vec __attribute__((vector_size(16)));

Vec LoadVec(const float* from) {
  Vec v;
  std::memcpy(&v, from, sizeof(v));
  return v;
}

void StoreVec(float* to, Vec v) { std::memcpy(to, &v, sizeof(v)); }

Vec Splat(float x) { return Vec{x, x, x, x}; }

// One block of columns for kCount rows: sums in registers.
template <int kCount>
void Block(const GatherGemm& gemm, const float* const* rows, const float* packed,
           float (*sums)[kTile]) {
  Vec low[kCount];
  Vec high[kCount];
  for (int r = 0; r < kCount; ++r) low[r] = high[r] = Splat(0);
  for (const int64_t offset : gemm.run_offsets) {
    const float* x[kCount];
    for (int r = 0; r < kCount; ++r) x[r] = rows[r] + offset;
    for (int64_t i = 0; i < gemm.run_length; ++i, packed += kTile) {
      const Vec w0 = LoadVec(packed);
      const Vec w1 = LoadVec(packed + 4);
      for (int r = 0; r < kCount; ++r) {
        const Vec value = Splat(x[r][i]);
        low[r] += value * w0;
        high[r] += value * w1;
      }
    }
  }
  for (int r = 0; r < kCount; ++r) {
    StoreVec(sums[r], low[r]);
    StoreVec(sums[r] + 4, high[r]);
  }
}

void AddBias(const std::vector<float>& bias, int64_t first, int64_t count, const float* sums,
             float* out) {
  if (bias.empty()) {
    std::copy_n(sums, count, out);
    return;
  }
  for (int64_t j = 0; j < count; ++j) out[j] = sums[j] + bias[first + j];
}

}  // namespace

void GatherGemm::Pack(const std::function<float(int64_t, int64_t)>& weight) {
  const int64_t blocks = (columns + kTile - 1) / kTile;
  packed.assign(blocks * inner() * kTile, 0.0f);
  if (packed.empty()) return;  // sums over nothing
  for (int64_t j = 0; j < columns; ++j) {
    float* const block = packed.data() + (j / kTile) * inner() * kTile + j % kTile;
    for (int64_t i = 0; i < inner(); ++i) block[i * kTile] = weight(i, j);
  }
}

void GatherGemm::Run(const float* x, const std::vector<int64_t>& bases, float* out,
                     int64_t out_stride) const {
  const int64_t count = static_cast<int64_t>(bases.size());
  float sums[kRows][kTile];
  for (int64_t i = 0; i < count; i += kRows) {
    const int64_t rows_here = std::min(kRows, count - i);
    const float* rows[kRows];
    for (int64_t r = 0; r < rows_here; ++r) rows[r] = x + bases[i + r];
    for (int64_t first = 0; first < columns; first += kTile) {
      const float* block = packed.data() + first * inner();
      if (rows_here == kRows) {
        Block<kRows>(*this, rows, block, sums);
      } else {
        for (int64_t r = 0; r < rows_here; ++r) Block<1>(*this, rows + r, block, sums + r);
      }
      const int64_t columns_here = std::min(kTile, columns - first);
      for (int64_t r = 0; r < rows_here; ++r) {
        AddBias(bias, first, columns_here, sums[r], out + (i + r) * out_stride + first);
      }
    }
  }
}

void DepthwiseRows::Run(const float* x, const std::vector<int64_t>& bases, float* out) const {
  const size_t taps = tap_offsets.size();
  for (const int64_t base : bases) {
    int64_t c = 0;
    for (; c + kTile <= channels; c += kTile) {
      Vec low = Splat(0);
      Vec high = Splat(0);
      for (size_t t = 0; t < taps; ++t) {
        const float* from = x + base + tap_offsets[t] + c;
        const float* w = weight.data() + static_cast<int64_t>(t) * channels + c;
        low += LoadVec(from) * LoadVec(w);
        high += LoadVec(from + 4) * LoadVec(w + 4);
      }
      float sums[kTile];
      StoreVec(sums, low);
      StoreVec(sums + 4, high);
      AddBias(bias, c, kTile, sums, out + c);
    }
    for (; c < channels; ++c) {
      float sum = 0;
      for (size_t t = 0; t < taps; ++t) {
        sum += x[base + tap_offsets[t] + c] * weight[static_cast<int64_t>(t) * channels + c];
      }
      out[c] = bias.empty() ? sum : sum + bias[c];
    }
    out += channels;
  }
}

}  // namespace npuc
