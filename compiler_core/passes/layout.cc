#include "compiler_core/passes/layout.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace npuc {
namespace {

// By factor: where it is stored.
Layout::Factors<int> PositionsOf(const Layout::Factors<int>& order) {
  Layout::Factors<int> positions(order.size());
  for (size_t j = 0; j < order.size(); ++j) positions[order[j]] = static_cast<int>(j);
  return positions;
}

}  // namespace

Layout NaturalLayout(int64_t elements) {
  if (elements <= 1) return {};
  return {{elements}, {0}};
}

Layout Canonical(const Layout& layout) {
  const Layout::Factors<int> positions = PositionsOf(layout.order);
  Layout result;
  Layout::Factors<int> merged(layout.sizes.size());  // by old factor: the new one
  for (size_t i = 0; i < layout.sizes.size(); ++i) {
    if (i > 0 && positions[i] == positions[i - 1] + 1) {
      result.sizes.back() *= layout.sizes[i];
    } else {
      result.sizes.push_back(layout.sizes[i]);
    }
    merged[i] = static_cast<int>(result.sizes.size()) - 1;
  }
  for (const int factor : layout.order) {
    if (result.order.empty() || result.order.back() != merged[factor]) {
      result.order.push_back(merged[factor]);
    }
  }
  return result;
}

std::optional<Layout> Refined(const Layout& layout, absl::Span<const int64_t> shape) {
  Layout result;
  Layout::Factors<int> begins;  // by old factor: the first of the new ones; they follow each other
  size_t factor = 0;
  int64_t left = 1;  // of the factor
  for (int64_t dim : shape) {
    while (dim > 1) {
      if (left == 1) {
        if (factor == layout.sizes.size()) return std::nullopt;
        left = layout.sizes[factor++];
        begins.push_back(static_cast<int>(result.sizes.size()));
      }
      const int64_t part = std::min(left, dim);
      if (left % part != 0 || dim % part != 0) return std::nullopt;
      result.sizes.push_back(part);
      left /= part;
      dim /= part;
    }
    if (dim != 1) return std::nullopt;
  }
  if (left != 1 || factor != layout.sizes.size()) return std::nullopt;
  begins.push_back(static_cast<int>(result.sizes.size()));
  for (const int old : layout.order) {
    for (int part = begins[old]; part < begins[old + 1]; ++part) result.order.push_back(part);
  }
  return result;
}

Layout::Factors<int> DimensionsOf(const Layout& refined, absl::Span<const int64_t> shape) {
  Layout::Factors<int> dimensions;
  size_t factor = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    for (int64_t left = shape[d]; left > 1; left /= refined.sizes[factor++]) {
      dimensions.push_back(static_cast<int>(d));
    }
  }
  return dimensions;
}

std::optional<Layout> ThroughTranspose(const Layout& layout, absl::Span<const int64_t> x_shape,
                                       absl::Span<const int64_t> perm) {
  const std::optional<Layout> x = Refined(layout, x_shape);
  if (!x.has_value()) return std::nullopt;
  const Layout::Factors<int> dimensions = DimensionsOf(*x, x_shape);
  Layout y;
  Layout::Factors<int> renamed(x->sizes.size());
  for (const int64_t axis : perm) {
    for (size_t f = 0; f < dimensions.size(); ++f) {
      if (dimensions[f] != axis) continue;
      renamed[f] = static_cast<int>(y.sizes.size());
      y.sizes.push_back(x->sizes[f]);
    }
  }
  for (const int factor : x->order) y.order.push_back(renamed[factor]);
  return Canonical(y);
}

std::vector<int64_t> InversePermutation(absl::Span<const int64_t> perm) {
  std::vector<int64_t> inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) inverse[perm[i]] = static_cast<int64_t>(i);
  return inverse;
}

std::optional<Shape> StorageShape(const Layout& layout, const Shape& shape) {
  if (layout.natural()) return shape;
  const std::optional<Layout> refined = Refined(layout, shape);
  if (!refined.has_value()) return std::nullopt;
  Shape factors;
  for (const int factor : refined->order) factors.push_back(refined->sizes[factor]);
  const int64_t wide =
      std::count_if(shape.begin(), shape.end(), [](int64_t dim) { return dim != 1; });
  if (wide == static_cast<int64_t>(factors.size())) {
    Shape result = shape;
    size_t next = 0;
    for (int64_t& dim : result) {
      if (dim != 1) dim = factors[next++];
    }
    return result;
  }
  if (factors.size() > static_cast<size_t>(kMaxRank)) return std::nullopt;
  return factors;
}

std::optional<Conversion> ConversionOf(const Layout& from, const Layout& to) {
  std::optional<Layout> a = Refined(from, to.sizes);
  if (!a.has_value()) return std::nullopt;
  const std::optional<Layout> b = Refined(to, a->sizes);
  if (!b.has_value()) return std::nullopt;
  const Layout::Factors<int> positions = PositionsOf(a->order);
  // The permutation as a layout of what is stored, so that what moves together becomes one.
  Layout moved;
  for (const int factor : a->order) moved.sizes.push_back(a->sizes[factor]);
  for (const int factor : b->order) moved.order.push_back(positions[factor]);
  moved = Canonical(moved);
  if (moved.sizes.size() > static_cast<size_t>(kMaxRank)) return std::nullopt;
  return Conversion{{moved.sizes.begin(), moved.sizes.end()},
                    {moved.order.begin(), moved.order.end()}};
}

int64_t CommandsOf(const Conversion& conversion) {
  if (conversion.perm.size() <= 2) return 1;
  // Each command walks the longest dimension, and the last one where it stays the last.
  const Shape& shape = conversion.shape;
  const size_t last = shape.size() - 1;
  const bool runs = conversion.perm.back() == static_cast<int64_t>(last);
  int64_t longest = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!runs || i != last) longest = std::max(longest, shape[i]);
  }
  return ElementCount(shape) / longest / (runs ? shape[last] : 1);
}

}  // namespace npuc
