#include "compiler_core/ir/integer/pieces.h"

#include <algorithm>
#include <variant>

#include "compiler_core/ir/integer/access.h"

namespace npuc::integer {
namespace {

// Elements of one place of an axis, where a result's elements follow each other without gaps; null
// where they do not.
std::optional<int64_t> DenseElements(const Extents& extents, const Extents& strides, int axis) {
  int64_t elements = 1;
  for (int i = kMaxExtents - 1; i >= axis; --i) {
    if (extents[i] > 1 && strides[i] != elements) return std::nullopt;
    if (i > axis) elements *= extents[i];
  }
  return elements;
}

struct UnitsVisitor {
  template <typename Windowed>
  static std::optional<Units> OfRows(const Windowed& c, int64_t channels) {
    if (c.n != 1) return std::nullopt;
    return Units{c.out_h, c.out_w * channels * SizeOf(c.result.type)};
  }
  template <typename Walked>
  static std::optional<Units> OfWalk(const Walked& c) {
    const int axis = CutAxis(c.extents);
    const std::optional<int64_t> elements = DenseElements(c.extents, c.d_strides, axis);
    if (!elements.has_value()) return std::nullopt;
    return Units{c.extents[axis], *elements * SizeOf(c.result.type)};
  }

  std::optional<Units> operator()(const Convolve& c) const {
    return c.d_pixel > 0 ? std::nullopt : OfRows(c, c.out_c);
  }
  std::optional<Units> operator()(const Pool& c) const { return OfRows(c, c.c); }
  std::optional<Units> operator()(const Combine& c) const { return OfWalk(c); }
  std::optional<Units> operator()(const Move& c) const { return OfWalk(c); }
  std::optional<Units> operator()(const Lookup& c) const {
    return Units{c.count, SizeOf(c.result.type)};
  }
  template <typename Other>
  std::optional<Units> operator()(const Other&) const {
    return std::nullopt;
  }
};

struct PieceVisitor {
  int64_t first;
  int64_t end;

  // Rows of the operand that no window covers are left out, so that padding stays padding.
  template <typename Windowed>
  std::optional<Body> OfRows(Windowed c, int64_t in_channels, int64_t out_channels) const {
    const Window& window = c.window;
    const int64_t top = first * window.stride_h - window.pad_top;
    const int64_t bottom = (end - 1) * window.stride_h - window.pad_top +
                           int64_t{window.kernel_h - 1} * window.dilation_h + 1;
    const int64_t begin_row = std::max<int64_t>(top, 0);
    const int64_t end_row = std::min<int64_t>(bottom, c.in_h);
    if (begin_row >= end_row) return std::nullopt;
    c.a.offset_bytes += begin_row * c.in_w * in_channels * SizeOf(c.a_type);
    c.in_h = static_cast<int32_t>(end_row - begin_row);
    c.result.d.offset_bytes += first * c.out_w * out_channels * SizeOf(c.result.type);
    c.out_h = static_cast<int32_t>(end - first);
    c.window.pad_top = static_cast<int32_t>(begin_row - top);
    return c;
  }

  static void Advance(const Extents& strides, int axis, DType type, int64_t places, Operand& at) {
    at.offset_bytes += places * strides[axis] * SizeOf(type);
  }

  std::optional<Body> operator()(const Convolve& c) const {
    return OfRows(c, c.in_c, PixelElements(c));
  }
  std::optional<Body> operator()(const Pool& c) const { return OfRows(c, c.c, c.c); }
  std::optional<Body> operator()(Combine c) const {
    const int axis = CutAxis(c.extents);
    Advance(c.a_strides, axis, c.a_type, first, c.a);
    Advance(c.b_strides, axis, c.b_type, first, c.b);
    Advance(c.d_strides, axis, c.result.type, first, c.result.d);
    c.extents[axis] = static_cast<int32_t>(end - first);
    return c;
  }
  std::optional<Body> operator()(Move c) const {
    const int axis = CutAxis(c.extents);
    Advance(c.a_strides, axis, c.a_type, first, c.a);
    Advance(c.d_strides, axis, c.result.type, first, c.result.d);
    c.extents[axis] = static_cast<int32_t>(end - first);
    return c;
  }
  std::optional<Body> operator()(Lookup c) const {
    c.a.offset_bytes += first * SizeOf(c.a_type);
    c.result.d.offset_bytes += first * SizeOf(c.result.type);
    c.count = static_cast<int32_t>(end - first);
    return c;
  }
  template <typename Other>
  std::optional<Body> operator()(const Other&) const {
    return std::nullopt;
  }
};

}  // namespace

int CutAxis(const Extents& extents) {
  int axis = 0;
  while (axis < kMaxExtents - 1 && extents[axis] == 1) ++axis;
  return axis;
}

std::optional<Units> UnitsOf(const Body& body) { return std::visit(UnitsVisitor{}, body); }

std::optional<Body> PieceOf(const Body& body, int64_t first, int64_t end) {
  return std::visit(PieceVisitor{first, end}, body);
}

}  // namespace npuc::integer
