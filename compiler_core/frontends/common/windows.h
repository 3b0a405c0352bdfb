#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_WINDOWS_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_WINDOWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler_core/frontends/common/emitter.h"

namespace npuc::frontend {

// Convolutions and pooling in one to three spatial dimensions for formats that are channels first,
// as operators of the IR. Callers check numbers: windows, strides and dilations in 1..2^20, pads in
// 0..2^20. All return INVALID_ARGUMENT where shapes do not fit.

// Where the windows of a node lie, an entry for each spatial dimension.
struct WindowAttrs {
  std::vector<int64_t> kernel;
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  std::vector<int64_t> before;
  std::vector<int64_t> after;
  int64_t Extent(size_t i) const { return (kernel[i] - 1) * dilations[i] + 1; }
};

// [N,C,spatial...] -> [N,spatial...,C], with a note, and back.
absl::StatusOr<ValueRef> ChannelsLast(Emitter& node, const ValueRef& value);
absl::StatusOr<ValueRef> ChannelsFirst(Emitter& node, const ValueRef& value);

// A convolution's weight: [O,C/groups,kernel...] -> [kernel...,C/groups,O].
absl::StatusOr<ValueRef> WeightLast(Emitter& node, const ValueRef& weight);
// x [N,spatial...,C], weight [kernel...,C/groups,O], bias [O] or null.
absl::StatusOr<ValueRef> Convolved(Emitter& node, ValueRef x, ValueRef weight, const ValueRef& bias,
                                   WindowAttrs w);
// The transposed convolution of x [N,spatial...,C] by weight [C,O/groups,kernel...], bias [O] or
// null. before and after are what the forward convolution would pad, so the result has
// stride * (size - 1) + extent - before - after places; a negative `after` adds places.
absl::StatusOr<ValueRef> ConvolvedBack(Emitter& node, ValueRef x, const ValueRef& weight,
                                       const ValueRef& bias, int64_t groups, WindowAttrs w);

// Maxima of x [N,spatial...,C]; padding is below everything.
absl::StatusOr<ValueRef> MaxPooled(Emitter& node, ValueRef x, WindowAttrs w);
// The part of the padding that counts as zeros in the averages; the rest is left out of them.
struct CountedPads {
  std::vector<int64_t> before;
  std::vector<int64_t> after;
};
absl::StatusOr<ValueRef> AveragePooled(Emitter& node, ValueRef x, WindowAttrs w,
                                       const CountedPads& counted);
// Sums of windows, of zeros beyond the operand.
absl::StatusOr<ValueRef> SumPooled(Emitter& node, ValueRef x, WindowAttrs w);

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_WINDOWS_H_
