#ifndef NPUC_COMPILER_CORE_QUANT_DATA_NPZ_H_
#define NPUC_COMPILER_CORE_QUANT_DATA_NPZ_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace npuc {

// An array of an .npz file, by numpy.savez or savez_compressed: a zip archive of NAME.npy files.
struct NpzEntry {
  std::string name;  // without ".npy"
  std::string npy;   // the file's bytes, its checksum checked
};

inline constexpr int64_t kMaxNpzEntries = 64;

bool LooksLikeZip(absl::string_view start);

// INVALID_ARGUMENT saying what is wrong; RESOURCE_EXHAUSTED above kMaxNpzEntries, or max_bytes of
// data, or 1100 times the compressed size (deflate gives no more). Nothing is allocated beyond.
absl::StatusOr<std::vector<NpzEntry>> ReadNpz(absl::string_view file, int64_t max_bytes);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_DATA_NPZ_H_
