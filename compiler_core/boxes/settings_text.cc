// The file of settings.
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler_core/boxes/box_settings.h"

namespace npuc {
namespace {

std::string ShortNumber(double value) {
  // The shortest form that reads back as the same.
  for (int digits = 6; digits < 17; ++digits) {
    std::string text = absl::StrFormat("%.*g", digits, value);
    double back = 0;
    if (absl::SimpleAtod(text, &back) && back == value) return text;
  }
  return absl::StrFormat("%.17g", value);
}

template <typename T>
std::string List(const std::vector<T>& values) {
  return absl::StrCat("[",
                      absl::StrJoin(values, ", ",
                                    [](std::string* out, const T& value) {
                                      absl::StrAppend(out, ShortNumber(static_cast<double>(value)));
                                    }),
                      "]");
}

// A name in double quotes, with which YAML takes every character.
std::string Quoted(absl::string_view name) {
  std::string text = "\"";
  for (const char c : name) {
    if (c == '"' || c == '\\') text += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&text, "\\x%02x", static_cast<unsigned char>(c));
    } else {
      text += c;
    }
  }
  return text + "\"";
}

const char* Flag(bool value) { return value ? "true" : "false"; }

std::string HeadsText(const BoxSettings& settings) {
  std::string text = "heads:\n";
  for (const BoxHead& head : settings.heads) {
    if (settings.kind == BoxKind::kRpn) {
      absl::StrAppend(&text, "  - {scores: ", Quoted(head.output),
                      ", deltas: ", Quoted(head.deltas), ", stride: ", ShortNumber(head.stride),
                      ", offset: ", ShortNumber(head.offset));
    } else {
      absl::StrAppend(&text, "  - {output: ", Quoted(head.output));
      if (head.xy_scale > 0) absl::StrAppend(&text, ", xy_scale: ", ShortNumber(head.xy_scale));
    }
    if (!head.anchors.empty()) absl::StrAppend(&text, ", anchors: ", List(head.anchors));
    absl::StrAppend(&text, "}\n");
  }
  return text;
}

std::string PriorsText(const BoxSettings& settings) {
  std::string text;
  if (!settings.prior_boxes.empty()) {
    text = "prior_boxes: >\n";
    for (size_t i = 0; i < settings.prior_boxes.size(); i += 4) {
      const float* const box = &settings.prior_boxes[i];
      absl::StrAppendFormat(&text, "  %.9g %.9g %.9g %.9g\n", box[0], box[1], box[2], box[3]);
    }
    return text;
  }
  absl::StrAppend(&text, "image_size: ", List(settings.image_size), "\npriors:\n");
  for (const BoxPriors& one : settings.priors) {
    absl::StrAppend(&text, "  - {feature: ", List(one.feature),
                    ", min_sizes: ", List(one.min_sizes), ", max_sizes: ", List(one.max_sizes),
                    ", aspect_ratios: ", List(one.aspect_ratios), ",\n     flip: ", Flag(one.flip),
                    ", clip: ", Flag(one.clip));
    if (!one.step.empty()) absl::StrAppend(&text, ", step: ", List(one.step));
    absl::StrAppend(&text, ", offset: ", ShortNumber(one.offset), "}\n");
  }
  return text;
}

}  // namespace

std::string BoxSettingsText(const BoxSettings& settings) {
  std::string text = absl::StrCat("type: ", NameOf(settings.kind), "\n");
  if (settings.kind != BoxKind::kRpn) {
    absl::StrAppend(&text, "classes: ", settings.classes, "\n");
  }
  absl::StrAppend(&text, "obj_threshold: ", ShortNumber(settings.obj_threshold),
                  "\niou_threshold: ", ShortNumber(settings.iou_threshold),
                  "\nmax_box_num: ", settings.max_box_num,
                  "\nmax_candidates: ", settings.max_candidates, "\n");
  if (settings.is_fixed) absl::StrAppend(&text, "arithmetic: fixed\n");
  if (settings.kind == BoxKind::kRcnn) {
    return absl::StrCat(text, "location: ", Quoted(settings.location),
                        "\nconfidence: ", Quoted(settings.confidence),
                        "\nvariances: ", List(settings.variances), "\n");
  }
  if (settings.kind != BoxKind::kSsd) {
    if (settings.kind != BoxKind::kYolo8 && settings.kind != BoxKind::kRpn) {
      absl::StrAppend(&text, "xy_scale: ", ShortNumber(settings.xy_scale), "\n");
    }
    if (!settings.image_size.empty()) {
      absl::StrAppend(&text, "image_size: ", List(settings.image_size), "\n");
    }
    return absl::StrCat(text, HeadsText(settings));
  }
  return absl::StrCat(
      text, "location: ", Quoted(settings.location), "\nconfidence: ", Quoted(settings.confidence),
      "\nvariances: ", List(settings.variances), "\nrows_first: ", Flag(settings.rows_first),
      "\nbackground: ", Flag(settings.background), "\nfirst_label: ", settings.first_label,
      "\nbest_class_only: ", Flag(settings.best_class_only),
      "\nacross_classes: ", Flag(settings.across_classes), "\n", PriorsText(settings));
}

}  // namespace npuc
