#include "compiler_core/ir/integer/parts.h"

#include <algorithm>
#include <optional>
#include <variant>

#include "compiler_core/base/rounding.h"
#include "compiler_core/ir/integer/access.h"
#include "compiler_core/ir/integer/pieces.h"

namespace npuc::integer {
namespace {

// A part's biases begin on a multiple of four bytes, whether they have four bytes or six.
constexpr int64_t kChannelBlock = 4;

// The number of units of kRows.
struct RowUnits {
  int64_t operator()(const Convolve& c) const { return c.n > 1 ? c.n : c.out_h; }
  int64_t operator()(const Pool& c) const { return c.n > 1 ? c.n : c.out_h; }
  int64_t operator()(const Combine& c) const { return c.extents[CutAxis(c.extents)]; }
  int64_t operator()(const Move& c) const { return c.extents[CutAxis(c.extents)]; }
  int64_t operator()(const Fill& c) const { return c.count; }
  int64_t operator()(const Lookup& c) const { return c.count; }
  int64_t operator()(const Softmax& c) const { return c.rows; }
  // The last extent is summed.
  int64_t operator()(const Product& c) const {
    const int axis = CutAxis(c.extents);
    return axis < kMaxExtents - 1 ? c.extents[axis] : 1;
  }
};

// Units [first, end) of kRows.
struct RowPart {
  int64_t first;
  int64_t end;

  template <typename Windowed>
  std::optional<Body> OfImages(Windowed c, int64_t in_c, int64_t image_elements) const {
    c.a.offset_bytes += first * CappedProduct({c.in_h, c.in_w, in_c, SizeOf(c.a_type)});
    c.result.d.offset_bytes += first * image_elements * SizeOf(c.result.type);
    c.n = static_cast<int32_t>(end - first);
    return c;
  }
  std::optional<Body> operator()(const Convolve& c) const {
    if (c.n == 1) return PieceOf(c, first, end);
    return OfImages(c, c.in_c, CappedProduct({c.out_h, c.out_w, PixelElements(c)}));
  }
  std::optional<Body> operator()(const Pool& c) const {
    if (c.n == 1) return PieceOf(c, first, end);
    return OfImages(c, c.c, CappedProduct({c.out_h, c.out_w, c.c}));
  }
  std::optional<Body> operator()(Fill c) const {
    c.result.d.offset_bytes += first * SizeOf(c.result.type);
    c.count = static_cast<int32_t>(end - first);
    return c;
  }
  std::optional<Body> operator()(Softmax c) const {
    c.a.offset_bytes += first * c.length * SizeOf(c.a_type);
    c.result.d.offset_bytes += first * c.length * SizeOf(c.result.type);
    c.rows = static_cast<int32_t>(end - first);
    return c;
  }
  std::optional<Body> operator()(Product c) const {
    const int axis = CutAxis(c.extents);
    int64_t elements = 1;
    for (int i = axis + 1; i < kMaxExtents - 1; ++i) elements *= c.extents[i];
    c.a.offset_bytes += first * c.a_strides[axis] * SizeOf(c.a_type);
    c.b.offset_bytes += first * c.b_strides[axis] * SizeOf(c.b_type);
    c.result.d.offset_bytes += first * elements * SizeOf(c.result.type);
    c.extents[axis] = static_cast<int32_t>(end - first);
    return c;
  }
  template <typename Other>
  std::optional<Body> operator()(const Other& c) const {
    return PieceOf(c, first, end);
  }
};

// Result channels [first, end).
Body ChannelPart(Convolve c, int64_t first, int64_t end) {
  const int64_t each = WeightCount(c) / c.out_c;
  c.weights.offset_bytes += first * each * SizeOf(c.weight_type);
  c.bias.offset_bytes += first * BiasBytes(c);
  if (c.factor_count > 1) {
    c.factors.offset_bytes += first * kFactorBytes;
    c.factor_count = static_cast<int32_t>(end - first);
  }
  c.result.d.offset_bytes += first * SizeOf(c.result.type);
  const bool has_pixels = CappedProduct({c.n, c.out_h, c.out_w}) > 1;
  if (has_pixels) c.d_pixel = static_cast<int32_t>(PixelElements(c));
  c.out_c = static_cast<int32_t>(end - first);
  return c;
}

}  // namespace

std::vector<Body> PartsOf(const Body& body, const Sharing& sharing) {
  const bool by_rows = sharing.axis == Sharing::Axis::kRows;
  const auto* convolve = std::get_if<Convolve>(&body);
  int64_t units = 0;
  if (by_rows) {
    units = std::visit(RowUnits{}, body);
  } else if (convolve != nullptr && convolve->groups == 1 && convolve->coded_bytes == 0) {
    units = DivideUp(int64_t{convolve->out_c}, kChannelBlock);
  }
  if (sharing.parts < 2 || units < sharing.parts) return {};
  std::vector<Body> parts;
  for (int64_t i = 0; i < sharing.parts; ++i) {
    const int64_t first = i * units / sharing.parts;
    const int64_t end = (i + 1) * units / sharing.parts;
    std::optional<Body> part;
    if (by_rows) {
      part = std::visit(RowPart{first, end}, body);
    } else {
      part = ChannelPart(*convolve, first * kChannelBlock,
                         std::min<int64_t>(end * kChannelBlock, convolve->out_c));
    }
    if (!part.has_value()) return {};
    parts.push_back(*std::move(part));
  }
  return parts;
}

}  // namespace npuc::integer
