#ifndef NPUC_COMPILER_CORE_BOXES_BOX_PLAN_H_
#define NPUC_COMPILER_CORE_BOXES_BOX_PLAN_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/boxes/box_settings.h"
#include "compiler_core/boxes/npuc_box.h"
#include "compiler_core/ir/cmd/command.h"

namespace npuc {

using DetectedBox = npuc_box;

// The settings of boxes on the outputs of one model: decodes them here, and writes the C code that
// decodes them in firmware. Both are decode_boxes.c on the same numbers. Immutable, thread-safe.
class BoxPlan {
 public:
  // nullopt: an output is missing or its shape does not fit the settings; all of that is in
  // `diagnostics`, with `file`, which names the settings. A YOLO's outputs are [1, channels, rows,
  // columns] or [1, rows, columns, channels], an SSD's have four offsets, and a probability for
  // each class, of each prior.
  static std::optional<BoxPlan> Make(BoxSettings settings, absl::Span<const PortTensor> outputs,
                                     absl::string_view file, Diagnostics& diagnostics);

  // The boxes of one item, best first. outputs: floats of each output of the model, in its order,
  // as many as its shape says. Of RCNN one array more: the corners of region_count() regions, as
  // parts of the picture, four numbers each; a region without an area is none. With fixed
  // arithmetic the floats become what the model stores, of which they are the values.
  std::vector<DetectedBox> Decode(absl::Span<const float* const> outputs) const;

  int64_t region_count() const { return region_count_; }
  // The settings, with all that was found out of the outputs.
  const BoxSettings& settings() const { return settings_; }

  // The two files. `name` begins with a letter and is a C identifier: they are NAME_boxes.h and
  // NAME_boxes.c.
  std::string HeaderText(absl::string_view name) const;
  std::string SourceText(absl::string_view name) const;

 private:
  // Steps in elements; what boxes_head of decode_boxes.c has.
  struct Head {
    int output = 0;
    int anchors = 1;
    int rows = 0;
    int columns = 0;
    int channel_step = 0;
    int row_step = 0;
    int column_step = 0;
    std::vector<float> sizes = {};
    float xy_scale = 1;
    int deltas = 0;
    int delta_channel_step = 0;
    int delta_row_step = 0;
    int delta_column_step = 0;
    std::array<float, 4> places = {0, 0, 0, 0};  // first_x, first_y, step_x, step_y
  };

  class Maker;

  std::string Signature(absl::string_view name) const;
  std::string BodyText() const;

  // The settings and tables as a form of decode_boxes.c has them (box_decode.cc).
  template <typename Form>
  struct Tables;

  BoxSettings settings_;
  std::vector<PortTensor> outputs_;
  std::vector<Head> heads_;
  int location_ = 0;
  int confidence_ = 0;
  std::vector<float> priors_;
  int64_t region_count_ = 0;
};

// The way from an output to the integers of fixed_numbers.c: boxes_source without its data.
struct BoxSource {
  int type = 0;
  int32_t zero = 0;
  int32_t factor = 0;
  int shift = 0;
};
BoxSource BoxSourceOf(const PortTensor& output);
// A number in 65536ths, the nearest one.
int32_t FixedNumber(double value);
inline constexpr int kBoxSideBins = 16;  // kBoxesBins

// The first of an SSD's scores that is no background's, and the way from a class's place among them
// to its number.
int FirstClass(const BoxSettings& settings);
int LabelShift(const BoxSettings& settings);

// The name of a plan's files for a model of such a name: a C identifier.
std::string BoxCodeName(absl::string_view model);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BOXES_BOX_PLAN_H_
