#ifndef NPUC_COMPILER_CORE_QUANT_DATA_NPY_H_
#define NPUC_COMPILER_CORE_QUANT_DATA_NPY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/ir/graph/types.h"

namespace npuc {

// NumPy's .npy files, versions 1 and 2: little-endian arrays in C order of f2, f4, f8, i1, i2, i4,
// i8, u1 and u2. Source of the format: numpy.lib.format.
struct NpyArray {
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;  // up to kMaxNpyRank dimensions
  std::string bytes;           // row-major, little-endian

  int64_t element_count() const { return ElementCount(shape); }
};
inline constexpr size_t kMaxNpyRank = 32;

// Where an array lies in its file.
struct NpyHeader {
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  int64_t data_offset = 0;
};
// The dictionary literal at the start of a .npy file, and where the data begins. INVALID_ARGUMENT.
struct NpyStart {
  absl::string_view dictionary;
  size_t data_offset = 0;
};
absl::StatusOr<NpyStart> ReadNpyStart(absl::string_view file);

// Header of at most this many bytes are read, so this many from the start of a file suffice.
inline constexpr int64_t kMaxNpyHeaderBytes = 1 << 16;
// Reads the header alone from `start`, the first bytes of a file of file_bytes; the file must have
// exactly the length that the header says. INVALID_ARGUMENT saying what is wrong.
absl::StatusOr<NpyHeader> ReadNpyHeader(absl::string_view start, int64_t file_bytes);

// INVALID_ARGUMENT saying what is wrong; the data must have exactly the length that the header
// says, so nothing beyond the text's own size is allocated.
absl::StatusOr<NpyArray> ReadNpy(absl::string_view file);
// out.size() elements of a type that ReadNpyHeader gives, which begin at `bytes`, as f32.
void NpyElements(DType dtype, const char* bytes, std::vector<float>& out);
// Version 1. INVALID_ARGUMENT where dtype has no .npy form here, or bytes do not fit the shape.
absl::StatusOr<std::string> WriteNpy(const NpyArray& array);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_DATA_NPY_H_
