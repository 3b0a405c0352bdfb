#ifndef NPUC_COMPILER_CORE_BASE_PREPROCESS_H_
#define NPUC_COMPILER_CORE_BASE_PREPROCESS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace npuc {

// A step that the NPU computes on a model's only input, before the model. Source: preprocess_type
// and preprocess_params of shared/guides/compass-guide.txt, section 4.2.
struct PreprocessStep {
  enum class Kind : uint8_t {
    kResize,       // RESIZE {bilinear,[1,448,448,3]}: of an image of that shape to the model's
    kRgb2Bgr,      // the channels in reverse
    kBgr2Rgb,      // the same
    kRgb2Gray,     // 0.3 R + 0.59 G + 0.11 B, in each channel of the model's input, 1 or 3
    kBgr2Gray,     // the same of channels in reverse
    kStandardize,  // STANDARDIZATION {[1,2]}: mean 0 and variance 1 over these axes; {}: all
  };
  Kind kind = Kind::kResize;
  bool is_linear = false;      // kResize: else the nearest pixel
  std::vector<int64_t> shape;  // kResize: the image's, the input's from then on
  std::vector<int64_t> axes;   // kStandardize; empty: all
  bool operator==(const PreprocessStep&) const = default;
};

inline constexpr size_t kMaxPreprocessSteps = 16;

// "RESIZE {bilinear,[1,448,448,3]}, RGB2BGR": steps in the order in which they are computed; what
// has no parameters may have {}. INVALID_ARGUMENT saying what is wrong, and what is allowed.
absl::StatusOr<std::vector<PreprocessStep>> PreprocessFromText(absl::string_view text);
std::string TextOf(const std::vector<PreprocessStep>& steps);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_PREPROCESS_H_
