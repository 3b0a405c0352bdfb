// Layers that a program for an NPU does not have: those that decode boxes, and losses.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler_core/frontends/darknet/heads.h"
#include "compiler_core/frontends/darknet/layer_import.h"

namespace npuc::darknet {
namespace {

// Boxes at each place, each with its coordinates, an objectness and a number for each class.
void PlanBoxes(LayerPlanner& planner) {
  const Head head = ReadHead(planner.options());
  const Size& in = planner.in();
  planner.SetOut(in);
  if (in.is_image() && in.c == head.boxes * head.values()) return;
  planner.FailSize(absl::StrCat("the layer takes ", head.boxes, " boxes of ", head.values(),
                                " values at each place, and gets ", ShapeToString(in.Dims())));
}

// [detection], the first YOLO's, reads a row.
void PlanDetection(LayerPlanner& planner) { planner.SetOut(planner.in()); }

void PlanNothing(LayerPlanner& planner) { planner.SetOut(planner.in()); }

constexpr LayerType kEndTypes[] = {
    {"Gaussian_yolo", PlanBoxes, nullptr, LayerRole::kDecodesBoxes},
    {"contrastive", PlanNothing, nullptr, LayerRole::kEndsTraining},
    {"cost", PlanNothing, nullptr, LayerRole::kEndsTraining},
    {"detection", PlanDetection, nullptr, LayerRole::kDecodesBoxes},
    {"region", PlanBoxes, nullptr, LayerRole::kDecodesBoxes},
    {"yolo", PlanBoxes, nullptr, LayerRole::kDecodesBoxes},
};

}  // namespace

Head ReadHead(LayerOptions& options) {
  const std::string& type = options.section().type;
  Head head;
  head.classes = options.Int("classes", type == "detection" ? 1 : 20);
  head.boxes = options.Int("num", 1, 1);
  head.coords = type == "region" ? options.Int("coords", 4, 0, 1024) : 4;
  // Each coordinate with its variance.
  if (type == "Gaussian_yolo") head.coords = 8;
  const std::vector<int64_t> mask = options.Ints("mask");
  if (!mask.empty() && type != "region") head.boxes = static_cast<int64_t>(mask.size());
  head.mask = options.Text("mask", "");
  head.anchors = options.Text("anchors", "");
  return head;
}

namespace {

// The numbers of a list as written. nullopt: one is none, or not positive.
std::optional<std::vector<double>> AnchorsOf(const Head& head) {
  std::vector<double> anchors;
  for (const absl::string_view part : absl::StrSplit(head.anchors, ',', absl::SkipWhitespace())) {
    double& number = anchors.emplace_back();
    if (!absl::SimpleAtod(absl::StripAsciiWhitespace(part), &number)) return std::nullopt;
    if (!(number > 0 && number <= 65536)) return std::nullopt;
  }
  return anchors;
}

}  // namespace

bool AddHeadTo(LayerOptions& options, const std::string& output, bool is_first,
               BoxSettings& settings) {
  const std::string& type = options.section().type;
  const Head head = ReadHead(options);
  const bool is_region = type == "region";
  if ((!is_region && type != "yolo") || head.coords != 4 || options.Flag("new_coords"))
    return false;
  // [region] with a tree of classes, or with scores that no softmax makes.
  if (is_region &&
      (options.Has("tree") || options.Flag("background") || !options.Flag("softmax"))) {
    return false;
  }
  const BoxKind kind = is_region ? BoxKind::kYolo2 : BoxKind::kYolo3;
  if (!is_first && (settings.kind != kind || settings.classes != head.classes)) return false;
  settings.kind = kind;
  settings.classes = head.classes;
  const std::optional<std::vector<double>> all = AnchorsOf(head);
  if (!all.has_value()) return false;
  std::vector<int64_t> mask = options.Ints("mask");
  if (mask.empty() || is_region) {
    mask.clear();
    for (int64_t i = 0; i < head.boxes; ++i) mask.push_back(i);
  }
  BoxHead& to = settings.heads.emplace_back(BoxHead{.output = output});
  if (!is_region) to.xy_scale = options.Float("scale_x_y", 1);
  if (!is_region && !(to.xy_scale > 0 && to.xy_scale <= 4)) return false;
  for (const int64_t anchor : mask) {
    const auto at = static_cast<size_t>(anchor) * 2;
    if (anchor < 0 || at + 1 >= all->size()) return false;
    to.anchors.insert(to.anchors.end(), {(*all)[at], (*all)[at + 1]});
  }
  return head.classes >= 1 && head.classes <= 4096 && settings.heads.size() <= 16;
}

bool IsHead(absl::string_view type) {
  return std::any_of(std::begin(kEndTypes), std::end(kEndTypes), [&](const LayerType& row) {
    return row.role == LayerRole::kDecodesBoxes && row.op == type;
  });
}

std::string DescribeHead(LayerOptions& options, const Layer& layer, absl::string_view output) {
  const std::string& type = options.section().type;
  const Head head = ReadHead(options);
  std::string text = absl::StrCat(
      "[", type, "] decodes boxes, which no core does: the program gives what it decodes, '",
      output, "' ", ShapeToString(layer.in.Dims()));
  if (type == "detection") return text;
  absl::StrAppend(&text, ", at each place ", head.boxes, head.boxes == 1 ? " box" : " boxes",
                  " of x, y, w, h", type == "Gaussian_yolo" ? " with a variance each" : "",
                  ", objectness and ", head.classes, " classes");
  if (!head.anchors.empty()) {
    absl::StrAppend(&text, "; anchors ", Printable(head.anchors, 400), " in ",
                    type == "region" ? "places" : "pixels of the input");
  }
  if (!head.mask.empty() && type != "region") {
    absl::StrAppend(&text, ", of which mask ", Printable(head.mask, 100));
  }
  for (const absl::string_view key : {"scale_x_y", "new_coords", "softmax", "background"}) {
    if (options.Has(key))
      absl::StrAppend(&text, ", ", key, " ", Printable(options.Text(key, ""), 20));
  }
  return text;
}

absl::Span<const LayerType> EndTypes() { return kEndTypes; }

}  // namespace npuc::darknet
