#ifndef NPUC_COMPILER_CORE_QUANT_DATA_PICTURE_FORM_H_
#define NPUC_COMPILER_CORE_QUANT_DATA_PICTURE_FORM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace npuc {

// The way from the pixels of a picture file, 0 to 255, to the values of an input:
// (pixel - mean) * scale. By default the pixels stay as they are.
struct PictureForm {
  std::vector<double> mean = {};   // one for all channels, or one for each of the input's; empty: 0
  std::vector<double> scale = {};  // likewise; empty: 1
  bool bgr = false;                // the input's channels are blue, green, red
  bool resize = false;             // pictures of another size are resized, bilinear
  // Where the input has its channels. kByShape: where its shape has 1 or 3.
  enum class Layout : uint8_t { kByShape, kLast, kFirst };
  Layout layout = Layout::kByShape;
};

// The file of a folder or archive of samples that says what its pictures become.
inline constexpr absl::string_view kPictureFormFile = "pictures.yaml";

// "mean: [123.7, 116.3, 103.5]", "scale: 0.017" or "std: 58.4" (one number, or one for each
// channel), "channels: BGR", "layout: NCHW", "resize: true", each of which may be left out.
// INVALID_ARGUMENT saying where and what is wrong, and what is allowed.
absl::StatusOr<PictureForm> PictureFormFromYaml(absl::string_view text);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_DATA_PICTURE_FORM_H_
