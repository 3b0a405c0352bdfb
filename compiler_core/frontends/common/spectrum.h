#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_SPECTRUM_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_SPECTRUM_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler_core/frontends/common/emitter.h"

namespace npuc::frontend {

// Fourier transforms of real numbers as products with matrices of cosines and sines, since no core
// has complex numbers: a result has its real and imaginary parts along a last dimension of two.

// The rows of a discrete Fourier transform.
struct Transform {
  int64_t length = 0;               // of the transform; rows that are shorter end in zeros
  int64_t bins = 0;                 // the first frequencies of it
  std::vector<double> window = {};  // factors of the row's elements; empty: ones
};

// x [..., count], of which the first `length` elements count -> [..., bins, 2].
absl::StatusOr<ValueRef> Transformed(Emitter& node, const ValueRef& x, const Transform& transform);

// Frames of x [batch, count], `step` apart, each as long as the transform -> [batch, frames, bins,
// 2].
absl::StatusOr<ValueRef> TransformedFrames(Emitter& node, const ValueRef& x, int64_t step,
                                           const Transform& transform);

// The sizes of complex numbers [..., 2] -> [...].
absl::StatusOr<ValueRef> SizesOfComplex(Emitter& node, const ValueRef& x);

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_SPECTRUM_H_
