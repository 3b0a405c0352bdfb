// The C files of a plan.
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler_core/boxes/box_code.h"
#include "compiler_core/boxes/box_plan.h"

namespace npuc {
namespace {

// The constants of the C code, as floats or as so many 65536ths.
class Constants {
 public:
  explicit Constants(bool is_fixed) : is_fixed_(is_fixed) {}

  // It reads back to the same bits.
  std::string Number(double value) const {
    if (is_fixed_) return absl::StrCat(FixedNumber(value));
    std::string text = absl::StrFormat("%.9g", static_cast<float>(value));
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return text + "f";
  }

  // "static const boxes_number NAME[] = {...};", eight numbers a line.
  std::string Table(absl::string_view name, const std::vector<float>& values) const {
    std::string text = absl::StrCat("static const boxes_number ", name, "[] = {");
    for (size_t i = 0; i < values.size(); ++i) {
      absl::StrAppend(&text, i % 8 == 0 ? "\n    " : " ", Number(values[i]), ",");
    }
    return absl::StrCat(text, "\n};\n");
  }

 private:
  bool is_fixed_;
};

// The C type of an output's elements.
absl::string_view StoredType(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
      return "int8_t";
    case DType::kUint8:
      return "uint8_t";
    case DType::kInt16:
      return "int16_t";
    case DType::kUint16:
      return "uint16_t";
    case DType::kFloat32:
      return "float";
    default:
      return "fp16 bits";
  }
}

// Text that ends no comment.
std::string InComment(absl::string_view text) {
  std::string shown = Printable(text, 200);
  for (size_t at = 0; (at = shown.find("*/", at)) != std::string::npos;) shown[at] = '_';
  return shown;
}

}  // namespace

std::string BoxPlan::HeaderText(absl::string_view name) const {
  const bool is_fixed = settings_.is_fixed;
  const std::string upper = absl::AsciiStrToUpper(name);
  std::string outputs;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const PortTensor& output = outputs_[i];
    absl::StrAppend(&outputs, "     ", i, ": ", InComment(output.name), " ",
                    ShapeToString(output.shape),
                    is_fixed ? absl::StrCat(", ", StoredType(output.dtype)) : "", "\n");
  }
  if (region_count_ > 0) {
    absl::StrAppend(&outputs, "     ", outputs_.size(), ": ", region_count_,
                    " regions, x0, y0, x1, y1 as ", is_fixed ? "int32_t, 65536ths" : "parts",
                    " of the picture; of size 0: none\n");
  }
  const absl::string_view read = is_fixed ? "as it stores them" : "as floats";
  const absl::string_view hint =
      is_fixed ? "" : "   An integer output is (stored - zero point) * scale.";
  return absl::StrCat(
      "/* Decodes the boxes of a detector. Made by npuc. */\n#ifndef ", upper, "_BOXES_H\n#define ",
      upper, "_BOXES_H\n\n", is_fixed ? kFixedBoxType : kBoxType, "\n#define ", upper,
      "_BOXES_ROOM ", settings_.max_candidates, "\n#define ", upper, "_BOXES_MOST ",
      settings_.max_box_num, "\n\n/* outputs: the model's outputs ", read, ", in its order:\n",
      outputs, hint.empty() ? "  " : hint, " boxes: room for ", upper,
      "_BOXES_ROOM; the first ones\n   are the result, best first. Returns how many, at most ",
      upper, "_BOXES_MOST. */\n#ifdef __cplusplus\nextern \"C\"\n#endif\n", Signature(name),
      ";\n\n#endif\n");
}

std::string BoxPlan::Signature(absl::string_view name) const {
  return absl::StrCat("int ", name, "_boxes(const ", settings_.is_fixed ? "void" : "float",
                      " *const outputs[], struct ",
                      settings_.is_fixed ? "npuc_fixed_box" : "npuc_box", " *boxes)");
}

// The body of the function: with integers it says how each output is stored.
std::string BoxPlan::BodyText() const {
  if (!settings_.is_fixed) return "  return boxes_decode(&boxes_settings, outputs, boxes);\n";
  std::string sources;
  std::string fill;
  const auto add = [&](absl::string_view type, const BoxSource& source) {
    absl::StrAppend(&sources, "    {0, ", type, ", ", source.zero, ", ", source.factor, ", ",
                    source.shift, "},\n");
  };
  constexpr absl::string_view kTypes[] = {"kBoxesI8",  "kBoxesU8",   "kBoxesI16",
                                          "kBoxesU16", "kBoxesHalf", "kBoxesFloat"};
  for (const PortTensor& output : outputs_) {
    const BoxSource source = BoxSourceOf(output);
    add(kTypes[source.type], source);
  }
  if (region_count_ > 0) add("kBoxesNumber", BoxSource());
  return absl::StrCat("  boxes_source sources[] = {\n", sources,
                      "  };\n  int i;\n"
                      "  for (i = 0; i < (int)(sizeof(sources) / sizeof(sources[0])); ++i) {\n"
                      "    sources[i].data = outputs[i];\n  }\n"
                      "  return boxes_decode(&boxes_settings, sources, boxes);\n");
}

std::string BoxPlan::SourceText(absl::string_view name) const {
  std::string text =
      absl::StrCat("#include \"", name, "_boxes.h\"\n\n",
                   settings_.is_fixed ? kFixedNumbers : kFloatNumbers, "\n", kBoxDecoder, "\n");
  const Constants constants(settings_.is_fixed);
  const auto number = [&](double value) { return constants.Number(value); };
  std::vector<std::string> heads;
  for (size_t i = 0; i < heads_.size(); ++i) {
    const Head& head = heads_[i];
    std::string sizes = "0";
    if (!head.sizes.empty()) {
      sizes = absl::StrCat("boxes_sizes_", i);
      absl::StrAppend(&text, constants.Table(sizes, head.sizes));
    }
    heads.push_back(absl::StrCat("    {", head.output, ", ", head.anchors, ", ", head.rows, ", ",
                                 head.columns, ", ", head.channel_step, ", ", head.row_step, ", ",
                                 head.column_step, ", ", sizes, ", ", number(head.xy_scale), ", ",
                                 head.deltas, ", ", head.delta_channel_step, ", ",
                                 head.delta_row_step, ", ", head.delta_column_step, ", ",
                                 number(head.places[0]), ", ", number(head.places[1]), ", ",
                                 number(head.places[2]), ", ", number(head.places[3]), "},\n"));
  }
  if (!heads.empty()) {
    absl::StrAppend(&text, "static const struct boxes_head boxes_heads[] = {\n",
                    absl::StrJoin(heads, ""), "};\n");
  }
  if (!priors_.empty()) absl::StrAppend(&text, constants.Table("boxes_priors", priors_));
  std::vector<std::string> variances;
  for (const double variance : settings_.variances) variances.push_back(number(variance));
  absl::StrAppend(&text, "static const struct boxes_plan boxes_settings = {\n    ",
                  static_cast<int>(settings_.kind), ", ", settings_.classes, ", ", heads_.size(),
                  ", ", heads.empty() ? "0" : "boxes_heads", ",\n    ", location_, ", ",
                  confidence_, ", ",
                  region_count_ > 0 ? static_cast<size_t>(region_count_) : priors_.size() / 4, ", ",
                  priors_.empty() ? "0" : "boxes_priors", ", {", absl::StrJoin(variances, ", "),
                  "},\n    ", settings_.rows_first ? 1 : 0, ", ", FirstClass(settings_), ", ",
                  LabelShift(settings_), ", ", settings_.best_class_only ? 1 : 0, ", ",
                  settings_.across_classes ? 1 : 0, ", ", outputs_.size(), ",\n    ",
                  number(settings_.obj_threshold), ", ", number(settings_.iou_threshold), ", ",
                  settings_.max_candidates, ", ", settings_.max_box_num, "};\n");
  return absl::StrCat(text, "\n", Signature(name), " {\n", BodyText(), "}\n");
}

}  // namespace npuc
