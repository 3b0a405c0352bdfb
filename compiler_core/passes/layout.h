#ifndef NPUC_COMPILER_CORE_PASSES_LAYOUT_H_
#define NPUC_COMPILER_CORE_PASSES_LAYOUT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "compiler_core/ir/graph/types.h"

namespace npuc {

// In which order the elements of a value are stored. The value's own row-major order is cut into
// factors, slowest first; storage walks the factors in another order. No factor is 1, so dimensions
// of 1 do not matter, and neighbours that stay neighbours are one factor, so equal layouts compare
// equal. A layout speaks about elements alone: it outlives any Reshape.
struct Layout {
  // Few: kept in place, since passes make layouts by the thousand.
  template <typename T>
  using Factors = absl::InlinedVector<T, 6>;
  Factors<int64_t> sizes;  // in the value's own order
  Factors<int> order;      // storage position j (slowest first) walks factor order[j]

  bool natural() const { return order.size() <= 1; }
  bool operator==(const Layout&) const = default;
};

// Stored as the value's own order says.
Layout NaturalLayout(int64_t elements);
// Factors that stay together become one.
Layout Canonical(const Layout& layout);
// The same layout with factors split so that each dimension of `shape` is a product of whole
// factors; null where a factor would be cut otherwise than in two whole parts. Not canonical.
std::optional<Layout> Refined(const Layout& layout, absl::Span<const int64_t> shape);
// By factor of a layout that is refined by `shape`: the dimension that it belongs to.
Layout::Factors<int> DimensionsOf(const Layout& refined, absl::Span<const int64_t> shape);

// y = Transpose(x, perm): how y is stored where x is stored by `layout` and nothing is moved; null
// where the layout does not fit x's dimensions.
std::optional<Layout> ThroughTranspose(const Layout& layout, absl::Span<const int64_t> x_shape,
                                       absl::Span<const int64_t> perm);
std::vector<int64_t> InversePermutation(absl::Span<const int64_t> perm);

// The dense shape that a value of `shape` has where it is stored by the layout: its dimensions,
// those of 1 in their places and the others in storage order, or, where the layout cuts dimensions,
// the factors. Null where those are more than kMaxRank.
std::optional<Shape> StorageShape(const Layout& layout, const Shape& shape);

// How storage by one layout becomes storage by another one of the same value: read as `shape`, the
// elements are permuted by `perm`. Neighbours that move together are one dimension; so without any
// move perm has at most one entry.
struct Conversion {
  Shape shape;
  std::vector<int64_t> perm;
  bool moves() const { return perm.size() > 1; }
};
// Null where the layouts do not fit each other, or the permutation would have more than kMaxRank
// dimensions.
std::optional<Conversion> ConversionOf(const Layout& from, const Layout& to);

// Copy commands that the conversion takes, about: one for the transpose of a matrix.
int64_t CommandsOf(const Conversion& conversion);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PASSES_LAYOUT_H_
