#ifndef NPUC_COMPILER_CORE_BOXES_BOX_SETTINGS_H_
#define NPUC_COMPILER_CORE_BOXES_BOX_SETTINGS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"

namespace npuc {

// In the order of decode_boxes.c.
enum class BoxKind : uint8_t { kSsd, kYolo2, kYolo3, kYolo5, kYolo8 };

// An output of a YOLO. anchors: width and height of each in turn, of YOLO2 in cells, else in pixels
// of the input; YOLO8 has none.
struct BoxHead {
  std::string output;
  std::vector<double> anchors = {};
};

// The priors of one layer of an SSD, as Caffe's PriorBox makes them. Sizes in pixels of the input.
struct BoxPriors {
  std::vector<int64_t> feature = {};  // rows, columns
  std::vector<double> min_sizes = {};
  std::vector<double> max_sizes = {};      // none, or one for each of min_sizes
  std::vector<double> aspect_ratios = {};  // besides 1
  bool flip = true;                        // and their reciprocals
  bool clip = false;                       // to the picture
  std::vector<double> step = {};           // down, across; none: the picture's parts
  double offset = 0.5;
};

// The settings by which boxes are decoded: the file that DETECTION_POSTPROCESS names.
struct BoxSettings {
  BoxKind kind = BoxKind::kSsd;
  int64_t classes = 0;                   // of SSD with the background, which is class 0
  std::vector<int64_t> image_size = {};  // of the input: height, width
  double obj_threshold = 0.25;
  double iou_threshold = 0.45;
  int64_t max_box_num = 100;
  int64_t max_candidates = 1000;  // the best ones, that are compared with each other
  double xy_scale = 1;            // of YOLO5 without the key 2
  std::vector<BoxHead> heads = {};
  std::string location = {};
  std::string confidence = {};
  std::vector<double> variances = {0.1, 0.1, 0.2, 0.2};
  std::vector<BoxPriors> priors = {};
};

// Reads the file, which is YAML. Strict: unknown keys and values are errors with line and nearest
// match, all at once. nullopt where there was one. Thread-safe.
std::optional<BoxSettings> ParseBoxSettings(absl::string_view text, absl::string_view file,
                                            Diagnostics& diagnostics);

// Centre and size of each prior of the settings, as parts of the picture, four numbers each.
std::vector<float> PriorsOf(const BoxSettings& settings);
// The number of these priors; bounded by kMaxBoxPriors in settings that were read.
int64_t PriorCount(const BoxSettings& settings);
inline constexpr int64_t kMaxBoxPriors = 1 << 16;

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BOXES_BOX_SETTINGS_H_
