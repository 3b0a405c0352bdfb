#include "compiler_core/ops/numeric.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace npuc {
namespace {

template <size_t kSize>
void CopyElements(const Shape& shape, const uint8_t* from, const StridedBlock& source, uint8_t* to,
                  const StridedBlock& target) {
  constexpr int64_t kBytes = kSize;
  // A dimension in a plain loop.
  struct Loop {
    int64_t count = 1;
    int64_t source_step = 0;
    int64_t target_step = 0;
  };
  Shape outer = shape;
  const auto take = [&](size_t i) {
    outer[i] = 1;
    return Loop{shape[i], source.strides[i] * kBytes, target.strides[i] * kBytes};
  };
  Loop inner;  // the innermost
  Loop rows;   // the one whose elements lie side by side in the source, where there is another
  if (!shape.empty()) inner = take(shape.size() - 1);
  for (size_t i = 0; i + 1 < shape.size() && rows.count == 1; ++i) {
    if (source.strides[i] == 1) rows = take(i);
  }
  // As many rows at once as a line of the cache has elements, as a rule.
  constexpr int64_t kRows = 16;
  const auto copy = [&](const std::array<int64_t, 2>& at) {
    for (int64_t row = 0; row < rows.count; row += kRows) {
      const int64_t count = std::min(rows.count - row, kRows);
      const uint8_t* next = from + at[0] * kBytes + row * rows.source_step;
      uint8_t* out = to + at[1] * kBytes + row * rows.target_step;
      for (int64_t i = 0; i < inner.count; ++i) {
        for (int64_t k = 0; k < count; ++k) {
          std::memcpy(out + k * rows.target_step, next + k * rows.source_step, kSize);
        }
        next += inner.source_step;
        out += inner.target_step;
      }
    }
  };
  WalkStrided<2>(outer, {source.strides, target.strides}, {source.offset, target.offset}, copy);
}

}  // namespace

void CopyStrided(absl::Span<const int64_t> shape, int64_t element_size, const uint8_t* from,
                 const StridedBlock& source_block, uint8_t* to, const StridedBlock& target_block) {
  if (ElementCount(shape) == 0) return;
  // Dimensions of 1 would only cut the loops short.
  Shape dims;
  StridedBlock source{{}, source_block.offset};
  StridedBlock target{{}, target_block.offset};
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    dims.push_back(shape[i]);
    source.strides.push_back(source_block.strides[i]);
    target.strides.push_back(target_block.strides[i]);
  }
  // Trailing dimensions that lie side by side in both are copied as one run.
  size_t outer = dims.size();
  int64_t run = 1;
  while (outer > 0 && source.strides[outer - 1] == run && target.strides[outer - 1] == run) {
    run *= dims[--outer];
  }
  if (run > 1) {
    const absl::Span<const int64_t> outer_dims = absl::MakeConstSpan(dims).subspan(0, outer);
    WalkStrided<2>(outer_dims, {source.strides, target.strides}, {source.offset, target.offset},
                   [&](const std::array<int64_t, 2>& at) {
                     std::memcpy(to + at[1] * element_size, from + at[0] * element_size,
                                 run * element_size);
                   });
    return;
  }
  switch (element_size) {
    case 1:
      return CopyElements<1>(dims, from, source, to, target);
    case 2:
      return CopyElements<2>(dims, from, source, to, target);
    case 4:
      return CopyElements<4>(dims, from, source, to, target);
    default:
      return CopyElements<8>(dims, from, source, to, target);
  }
}

}  // namespace npuc
