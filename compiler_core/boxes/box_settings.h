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
enum class BoxKind : uint8_t { kSsd, kYolo2, kYolo3, kYolo5, kYolo8, kRpn, kRcnn };

absl::string_view NameOf(BoxKind kind);  // "YOLO3"

// An output of a YOLO. anchors: width and height of each in turn, of YOLO2 in cells, else in pixels
// of the input; YOLO8 has none. Of an RPN the output has the probabilities, all of the background
// before those of objects, and `deltas` the offsets of each anchor; an anchor's centre lies
// cell * stride + offset pixels from the edge.
struct BoxHead {
  std::string output;
  std::vector<double> anchors = {};
  std::string deltas = {};
  double stride = 16;
  double offset = 8;
  double xy_scale = 0;  // 0: that of the settings
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
  // With the background for SSD and RCNN. 0: as many as the channels of a YOLO's outputs make.
  int64_t classes = 0;
  std::vector<int64_t> image_size = {};  // of the input: height, width
  double obj_threshold = 0.25;
  double iou_threshold = 0.45;
  int64_t max_box_num = 100;
  int64_t max_candidates = 1000;  // the best ones, that are compared with each other
  // The C code computes with integers, and reads the outputs as the model stores them.
  bool is_fixed = false;
  double xy_scale = 1;  // of YOLO5 without the key 2
  std::vector<BoxHead> heads = {};
  // In the place of heads: anchors of the model's outputs, from the one with the fewest cells on.
  std::vector<std::vector<double>> preset = {};
  std::string location = {};
  std::string confidence = {};
  std::vector<double> variances = {0.1, 0.1, 0.2, 0.2};  // of x, y, width, height
  std::vector<BoxPriors> priors = {};
  std::vector<float> prior_boxes = {};  // in the place of priors: as PriorsOf gives them
  bool rows_first = false;              // offsets are y, x, height, width
  bool background = true;               // class 0 is none
  int64_t first_label = 1;              // the number of the first class behind the background
  bool best_class_only = false;         // of a prior
  bool across_classes = false;          // a box also suppresses those of other classes
};

// Reads the file, which is YAML, over the settings that a model states, if it does. Strict: unknown
// keys and values are errors with line and nearest match, all at once. nullopt where there was one.
// Thread-safe.
std::optional<BoxSettings> ParseBoxSettings(absl::string_view text, absl::string_view file,
                                            Diagnostics& diagnostics,
                                            const std::optional<BoxSettings>& model = std::nullopt);
// The file of the settings, which reads back as the same.
std::string BoxSettingsText(const BoxSettings& settings);

// Centre and size of each prior of the settings, as parts of the picture, four numbers each.
std::vector<float> PriorsOf(const BoxSettings& settings);
// The number of these priors; bounded by kMaxBoxPriors in settings that were read.
int64_t PriorCount(const BoxSettings& settings);
inline constexpr int64_t kMaxBoxPriors = 1 << 16;

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BOXES_BOX_SETTINGS_H_
