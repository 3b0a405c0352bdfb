#ifndef NPUC_COMPILER_CORE_FRONTENDS_TFLITE_SPARSE_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TFLITE_SPARSE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler_core/ir/graph/types.h"

namespace npuc::fe::tflite {
struct Sparsity;
}  // namespace npuc::fe::tflite

namespace npuc::tflite {

// What the sparse constants of one model may take together once they are dense.
inline constexpr int64_t kMaxUnpackedBytes = int64_t{1} << 28;

// The elements of a sparse constant in dense row-major order. A sparse tensor has its dimensions,
// those of its blocks behind them, in an order of its own; each is dense or a list of the places
// that hold something (CSR). INVALID_ARGUMENT where the lists do not fit each other or the type,
// RESOURCE_EXHAUSTED beyond `most_bytes`.
absl::StatusOr<std::vector<uint8_t>> UnpackSparse(const fe::tflite::Sparsity& sparsity,
                                                  absl::Span<const uint8_t> packed,
                                                  const TensorType& type, int64_t most_bytes);

}  // namespace npuc::tflite

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TFLITE_SPARSE_H_
