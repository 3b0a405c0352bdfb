#ifndef NPUC_COMPILER_CORE_QUANT_EXECUTOR_GEMM_H_
#define NPUC_COMPILER_CORE_QUANT_EXECUTOR_GEMM_H_

#include <cstdint>
#include <functional>
#include <vector>

namespace npuc {

// The one loop behind convolution and matrix product. A result row (a pixel) is the sum over `runs`
// of contiguous stretches of the operand: run r of the row that begins at x + base is
// x[base + run_offsets[r], + run_length). Sums start at 0 and add one product after the other in
// that order, so that they are the same on every compiler and machine; the bias comes last.
struct GatherGemm {
  std::vector<int64_t> run_offsets;
  int64_t run_length = 0;
  int64_t columns = 0;
  std::vector<float> packed;  // [ceil(columns / 8)][runs * run_length][8], zero-padded
  std::vector<float> bias;    // [columns], or empty

  int64_t inner() const { return static_cast<int64_t>(run_offsets.size()) * run_length; }
  // Packs a weight whose element (inner index i, column j) is weight(i, j).
  void Pack(const std::function<float(int64_t, int64_t)>& weight);
  // out row i is at out + i * out_stride, i < bases.size(); its operand begins at x + bases[i].
  void Run(const float* x, const std::vector<int64_t>& bases, float* out, int64_t out_stride) const;
};

// out[c] = sum over taps of x[base + tap_offsets[t] + c] * weight[t * channels + c], + bias[c].
struct DepthwiseRows {
  std::vector<int64_t> tap_offsets;
  int64_t channels = 0;
  std::vector<float> weight;  // [taps][channels]
  std::vector<float> bias;    // [channels], or empty

  void Run(const float* x, const std::vector<int64_t>& bases, float* out) const;
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_EXECUTOR_GEMM_H_
