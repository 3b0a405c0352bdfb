#ifndef NPUC_COMPILER_CORE_QUANT_DATA_PICTURE_FILE_H_
#define NPUC_COMPILER_CORE_QUANT_DATA_PICTURE_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace npuc {

// A picture's pixels: rows from the top, the channels of a pixel together.
struct Pixels {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;  // 1: grey; 3: red, green, blue
  std::string bytes;
};

inline constexpr int64_t kMaxPictureSide = 16384;
inline constexpr int64_t kMaxPicturePixels = int64_t{1} << 26;

// True for the beginning of a PNG or JPEG file.
bool LooksLikePicture(absl::string_view start);

// A PNG or JPEG file. Of 16 bits the upper 8 are taken; transparency is left out. INVALID_ARGUMENT
// saying what is wrong; nothing is allocated above the limits, nor above what the file can hold.
absl::StatusOr<Pixels> ReadPicture(absl::string_view file);

// The two that it chooses from. Source of PNG: ISO/IEC 15948; interlaced files are refused.
absl::StatusOr<Pixels> ReadPng(absl::string_view file);
absl::StatusOr<Pixels> ReadJpeg(absl::string_view file);
bool LooksLikePng(absl::string_view start);
bool LooksLikeJpeg(absl::string_view start);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_DATA_PICTURE_FILE_H_
