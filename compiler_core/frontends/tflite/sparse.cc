#include "compiler_core/frontends/tflite/sparse.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "npuc/fe/tflite/npuc_tflite_generated.h"

namespace npuc::tflite {
namespace {

namespace fb = ::npuc::fe::tflite;

// One dimension in the order of traversal.
struct Level {
  bool is_dense = true;
  int64_t size = 0;
  std::vector<int64_t> segments;  // of parent i: indices segments[i] to segments[i + 1]
  std::vector<int64_t> indices;
  size_t dimension = 0;  // of the tensor
  int64_t step = 1;      // how far one index moves along that dimension
};

template <typename T>
std::vector<int64_t> Widened(const T* table) {
  if (table == nullptr || table->values() == nullptr) return {};
  return {table->values()->begin(), table->values()->end()};
}

std::vector<int64_t> Values(fb::IndexValues kind, const void* table) {
  switch (kind) {
    case fb::IndexValues_Int32Values:
      return Widened(static_cast<const fb::Int32Values*>(table));
    case fb::IndexValues_Uint16Values:
      return Widened(static_cast<const fb::Uint16Values*>(table));
    case fb::IndexValues_Uint8Values:
      return Widened(static_cast<const fb::Uint8Values*>(table));
    default:
      return {};
  }
}

// The lists of a CSR dimension below `parents` places: ascending segments over all indices, each
// index within the dimension. How many places it has.
absl::StatusOr<int64_t> CheckCsr(const Level& level, int64_t parents) {
  const auto& segments = level.segments;
  if (static_cast<int64_t>(segments.size()) != parents + 1 || segments.front() != 0 ||
      segments.back() != static_cast<int64_t>(level.indices.size()) ||
      !std::is_sorted(segments.begin(), segments.end())) {
    return absl::InvalidArgumentError("the segments of a sparse dimension do not fit its indices");
  }
  for (const int64_t index : level.indices) {
    if (index < 0 || index >= level.size) {
      return absl::InvalidArgumentError(
          absl::StrCat("index ", index, " of a sparse dimension of ", level.size));
    }
  }
  return segments.back();
}

// The levels as the file states them, with the size that each has; checks them against the type.
absl::StatusOr<std::vector<Level>> ReadLevels(const fb::Sparsity& sparsity, const Shape& shape) {
  const size_t rank = shape.size();
  const size_t blocks = sparsity.block_map() == nullptr ? 0 : sparsity.block_map()->size();
  const size_t count = rank + blocks;
  if (blocks > rank || sparsity.traversal_order() == nullptr ||
      sparsity.traversal_order()->size() != count || sparsity.dimensions() == nullptr ||
      sparsity.dimensions()->size() != count) {
    return absl::InvalidArgumentError("its sparsity does not describe each dimension once");
  }
  Shape block(rank, 1);
  std::vector<Level> levels(count);
  std::vector<bool> seen(count, false);
  for (uint32_t i = 0; i < count; ++i) {
    const fb::SparseDimension& d = *sparsity.dimensions()->Get(i);
    const int64_t order = sparsity.traversal_order()->Get(i);
    if (order < 0 || order >= static_cast<int64_t>(count) || seen[static_cast<size_t>(order)]) {
      return absl::InvalidArgumentError("its order of traversal names no dimension, or one twice");
    }
    seen[static_cast<size_t>(order)] = true;
    Level& level = levels[i];
    level.is_dense = d.kind() == fb::DimensionKind_DENSE;
    level.size = d.dense_size();
    level.segments = Values(d.segments_type(), d.segments());
    level.indices = Values(d.indices_type(), d.indices());
    level.dimension = static_cast<size_t>(order);
    if (level.dimension < rank) continue;
    const int64_t mapped = sparsity.block_map()->Get(static_cast<uint32_t>(level.dimension - rank));
    if (mapped < 0 || mapped >= static_cast<int64_t>(rank) || level.size < 1 || !level.is_dense ||
        block[static_cast<size_t>(mapped)] != 1) {
      return absl::InvalidArgumentError("its blocks do not belong to one dimension each");
    }
    level.dimension = static_cast<size_t>(mapped);
    block[level.dimension] = level.size;
    level.step = 0;  // of a block; told from the tensor's own dimensions below
  }
  for (Level& level : levels) {
    const int64_t inside = block[level.dimension];
    const bool is_block = level.step == 0;
    level.step = is_block ? 1 : inside;
    // A CSR dimension need not state its size.
    if (!is_block && !level.is_dense) level.size = shape[level.dimension] / inside;
    if (!is_block && level.size * inside != shape[level.dimension]) {
      return absl::InvalidArgumentError(
          absl::StrCat("dimension ", level.dimension, " has ", level.size, " blocks of ", inside));
    }
  }
  return levels;
}

// Where each packed element lies in the dense tensor, in elements.
absl::StatusOr<std::vector<int64_t>> Places(const std::vector<Level>& levels, const Shape& shape,
                                            int64_t most) {
  Shape strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  std::vector<int64_t> places = {0};
  for (const Level& level : levels) {
    const int64_t stride = strides[level.dimension] * level.step;
    std::vector<int64_t> next;
    const int64_t parents = static_cast<int64_t>(places.size());
    if (level.is_dense) {
      if (level.size < 0 || (parents > 0 && level.size > most / parents)) {
        return absl::InvalidArgumentError("its sparse form has more elements than its dense one");
      }
      for (const int64_t place : places) {
        for (int64_t i = 0; i < level.size; ++i) next.push_back(place + i * stride);
      }
    } else {
      RETURN_IF_ERROR(CheckCsr(level, parents).status());
      if (static_cast<int64_t>(level.indices.size()) > most) {
        return absl::InvalidArgumentError("its sparse form has more elements than its dense one");
      }
      for (size_t p = 0; p < places.size(); ++p) {
        for (int64_t k = level.segments[p]; k < level.segments[p + 1]; ++k) {
          next.push_back(places[p] + level.indices[static_cast<size_t>(k)] * stride);
        }
      }
    }
    places = std::move(next);
  }
  return places;
}

}  // namespace

absl::StatusOr<std::vector<uint8_t>> UnpackSparse(const fb::Sparsity& sparsity,
                                                  absl::Span<const uint8_t> packed,
                                                  const TensorType& type, int64_t most_bytes) {
  if (type.size_bytes() > most_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("the model's sparse constants take more than ",
                                                     kMaxUnpackedBytes,
                                                     " bytes once they are dense"));
  }
  ASSIGN_OR_RETURN(const std::vector<Level> levels, ReadLevels(sparsity, type.shape));
  ASSIGN_OR_RETURN(const std::vector<int64_t> places,
                   Places(levels, type.shape, type.element_count()));
  const size_t width = static_cast<size_t>(SizeOf(type.dtype));
  if (packed.size() != places.size() * width) {
    return absl::InvalidArgumentError(absl::StrCat("its data has ", packed.size(), " bytes; ",
                                                   places.size(), " elements are not zero"));
  }
  std::vector<uint8_t> dense(static_cast<size_t>(type.size_bytes()), 0);
  for (size_t i = 0; i < places.size(); ++i) {
    std::copy_n(
        packed.begin() + static_cast<std::ptrdiff_t>(i * width), width,
        dense.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(places[i]) * width));
  }
  return dense;
}

}  // namespace npuc::tflite
