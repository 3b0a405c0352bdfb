// The C files of a plan.
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler_core/boxes/box_code.h"
#include "compiler_core/boxes/box_plan.h"

namespace npuc {
namespace {

// A float as a constant of C that reads back to the same bits.
std::string Number(double value) {
  std::string text = absl::StrFormat("%.9g", static_cast<float>(value));
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text + "f";
}

// "static const float NAME[] = {...};", eight numbers a line.
std::string Table(absl::string_view name, const std::vector<float>& values) {
  std::string text = absl::StrCat("static const float ", name, "[] = {");
  for (size_t i = 0; i < values.size(); ++i) {
    absl::StrAppend(&text, i % 8 == 0 ? "\n    " : " ", Number(values[i]), ",");
  }
  return absl::StrCat(text, "\n};\n");
}

// Text that ends no comment.
std::string InComment(absl::string_view text) {
  std::string shown = Printable(text, 200);
  for (size_t at = 0; (at = shown.find("*/", at)) != std::string::npos;) shown[at] = '_';
  return shown;
}

}  // namespace

std::string BoxPlan::HeaderText(absl::string_view name) const {
  const std::string upper = absl::AsciiStrToUpper(name);
  std::string outputs;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    absl::StrAppend(&outputs, "     ", i, ": ", InComment(outputs_[i].first), " ",
                    ShapeToString(outputs_[i].second), "\n");
  }
  if (region_count_ > 0) {
    absl::StrAppend(&outputs, "     ", outputs_.size(), ": ", region_count_,
                    " regions, x0, y0, x1, y1 as parts of the picture; of size 0: none\n");
  }
  return absl::StrCat(
      "/* Decodes the boxes of a detector. Made by npuc. */\n#ifndef ", upper, "_BOXES_H\n#define ",
      upper, "_BOXES_H\n\n", kBoxType, "\n#define ", upper, "_BOXES_ROOM ",
      settings_.max_candidates, "\n#define ", upper, "_BOXES_MOST ", settings_.max_box_num,
      "\n\n/* outputs: the model's outputs as floats, in its order:\n", outputs,
      "   An integer output is (stored - zero point) * scale. boxes: room for ", upper,
      "_BOXES_ROOM; the first ones\n   are the result, best first. Returns how many, at most ",
      upper, "_BOXES_MOST. */\n#ifdef __cplusplus\nextern \"C\"\n#endif\nint ", name,
      "_boxes(const float *const outputs[], struct npuc_box *boxes);\n\n#endif\n");
}

std::string BoxPlan::SourceText(absl::string_view name) const {
  std::string text = absl::StrCat("#include \"", name, "_boxes.h\"\n\n", kBoxDecoder, "\n");
  std::vector<std::string> heads;
  for (size_t i = 0; i < heads_.size(); ++i) {
    const Head& head = heads_[i];
    std::string sizes = "0";
    if (!head.sizes.empty()) {
      sizes = absl::StrCat("boxes_sizes_", i);
      absl::StrAppend(&text, Table(sizes, head.sizes));
    }
    heads.push_back(absl::StrCat("    {", head.output, ", ", head.anchors, ", ", head.rows, ", ",
                                 head.columns, ", ", head.channel_step, ", ", head.row_step, ", ",
                                 head.column_step, ", ", sizes, ", ", Number(head.xy_scale), ", ",
                                 head.deltas, ", ", head.delta_channel_step, ", ",
                                 head.delta_row_step, ", ", head.delta_column_step, ", ",
                                 Number(head.places[0]), ", ", Number(head.places[1]), ", ",
                                 Number(head.places[2]), ", ", Number(head.places[3]), "},\n"));
  }
  if (!heads.empty()) {
    absl::StrAppend(&text, "static const struct boxes_head boxes_heads[] = {\n",
                    absl::StrJoin(heads, ""), "};\n");
  }
  if (!priors_.empty()) absl::StrAppend(&text, Table("boxes_priors", priors_));
  std::vector<std::string> variances;
  for (const double variance : settings_.variances) variances.push_back(Number(variance));
  absl::StrAppend(&text, "static const struct boxes_plan boxes_settings = {\n    ",
                  static_cast<int>(settings_.kind), ", ", settings_.classes, ", ", heads_.size(),
                  ", ", heads.empty() ? "0" : "boxes_heads", ",\n    ", location_, ", ",
                  confidence_, ", ",
                  region_count_ > 0 ? static_cast<size_t>(region_count_) : priors_.size() / 4, ", ",
                  priors_.empty() ? "0" : "boxes_priors", ", {", absl::StrJoin(variances, ", "),
                  "},\n    ", settings_.rows_first ? 1 : 0, ", ", FirstClass(settings_), ", ",
                  LabelShift(settings_), ", ", settings_.best_class_only ? 1 : 0, ", ",
                  settings_.across_classes ? 1 : 0, ", ", outputs_.size(), ",\n    ",
                  Number(settings_.obj_threshold), ", ", Number(settings_.iou_threshold), ", ",
                  settings_.max_candidates, ", ", settings_.max_box_num, "};\n");
  return absl::StrCat(text, "\nint ", name,
                      "_boxes(const float *const outputs[], struct npuc_box *boxes) {\n"
                      "  return boxes_decode(&boxes_settings, outputs, boxes);\n}\n");
}

}  // namespace npuc
