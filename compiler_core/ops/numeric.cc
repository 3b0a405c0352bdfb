#include "compiler_core/ops/numeric.h"

namespace npuc {
namespace {

template <size_t kSize>
void CopyElements(absl::Span<const int64_t> shape, const uint8_t* from, const StridedBlock& source,
                  uint8_t* to, const StridedBlock& target) {
  constexpr int64_t kBytes = kSize;
  // The innermost dimension in a plain loop.
  const bool is_scalar = shape.empty();
  const size_t outer = is_scalar ? 0 : shape.size() - 1;
  const int64_t count = is_scalar ? 1 : shape[outer];
  const int64_t source_step = is_scalar ? 0 : source.strides[outer] * kBytes;
  const int64_t target_step = is_scalar ? 0 : target.strides[outer] * kBytes;
  WalkStrided<2>(shape.subspan(0, outer), {source.strides, target.strides},
                 {source.offset, target.offset}, [&](const std::array<int64_t, 2>& at) {
                   const uint8_t* next = from + at[0] * kBytes;
                   uint8_t* out = to + at[1] * kBytes;
                   for (int64_t i = 0; i < count; ++i) {
                     std::memcpy(out, next, kSize);
                     next += source_step;
                     out += target_step;
                   }
                 });
}

}  // namespace

void CopyStrided(absl::Span<const int64_t> shape, int64_t element_size, const uint8_t* from,
                 const StridedBlock& source, uint8_t* to, const StridedBlock& target) {
  if (ElementCount(shape) == 0) return;
  // Trailing dimensions that lie side by side in both are copied as one run.
  size_t outer = shape.size();
  int64_t run = 1;
  while (outer > 0 && source.strides[outer - 1] == run && target.strides[outer - 1] == run) {
    run *= shape[--outer];
  }
  if (run > 1) {
    const absl::Span<const int64_t> outer_shape = shape.subspan(0, outer);
    WalkStrided<2>(outer_shape, {source.strides, target.strides}, {source.offset, target.offset},
                   [&](const std::array<int64_t, 2>& at) {
                     std::memcpy(to + at[1] * element_size, from + at[0] * element_size,
                                 run * element_size);
                   });
    return;
  }
  switch (element_size) {
    case 1:
      return CopyElements<1>(shape, from, source, to, target);
    case 2:
      return CopyElements<2>(shape, from, source, to, target);
    case 4:
      return CopyElements<4>(shape, from, source, to, target);
    default:
      return CopyElements<8>(shape, from, source, to, target);
  }
}

}  // namespace npuc
