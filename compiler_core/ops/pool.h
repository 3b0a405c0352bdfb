#ifndef NPUC_COMPILER_CORE_OPS_POOL_H_
#define NPUC_COMPILER_CORE_OPS_POOL_H_

#include <utility>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/ops/numeric.h"
#include "compiler_core/ops/window.h"

namespace npuc {

// Runs a pooling kernel over x [n,h,w,c]: for each result element, reduce(codec, count, load)
// where load(i), i < count, are the window's elements on the operand, and the value it returns is
// stored. Padding is never among them; count is at least 1.
template <typename Reduce>
absl::StatusOr<std::vector<Tensor>> RunPool(const Node& node, const Tensor& x, Reduce&& reduce) {
  ASSIGN_OR_RETURN(const WindowGeometry window, MakePoolWindow(node, x.shape()));
  TensorType type = x.type();
  type.shape[1] = window.output[0];
  type.shape[2] = window.output[1];
  std::vector<uint8_t> bytes(type.size_bytes());
  const int64_t channels = x.shape()[3];
  const int64_t row = x.shape()[2] * channels;
  RETURN_IF_ERROR(WithCodec(x.dtype(), [&](auto codec) {
    using C = decltype(codec);
    int64_t out = 0;
    for (int64_t n = 0; n < type.shape[0]; ++n) {
      for (int64_t oh = 0; oh < type.shape[1]; ++oh) {
        const WindowGeometry::Taps h = window.TapsInside(0, oh);
        for (int64_t ow = 0; ow < type.shape[2]; ++ow) {
          const WindowGeometry::Taps w = window.TapsInside(1, ow);
          const int64_t start = (n * window.input[0] + window.Start(0, oh) + h.first) * row +
                                (window.Start(1, ow) + w.first) * channels;
          const int64_t width = w.last - w.first;
          for (int64_t c = 0; c < channels; ++c) {
            const auto load = [&](int64_t i) {
              return C::Load(x.bytes().data(),
                             start + (i / width) * row + (i % width) * channels + c);
            };
            C::Store(bytes.data(), out++, reduce(codec, (h.last - h.first) * width, load));
          }
        }
      }
    }
    return absl::OkStatus();
  }));
  return std::vector<Tensor>{Tensor(std::move(type), std::move(bytes))};
}

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_OPS_POOL_H_
