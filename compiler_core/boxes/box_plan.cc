#include "compiler_core/boxes/box_plan.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/suggest.h"

namespace npuc {
namespace {

// The code that firmware gets, compiled here as well.
#include "compiler_core/boxes/decode_boxes.c"

// A name as a C header writes it.
std::string AsIdentifier(absl::string_view name) {
  std::string text(name);
  for (char& c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return text;
}

}  // namespace

// Fills a plan and reports what does not fit.
class BoxPlan::Maker {
 public:
  Maker(BoxPlan& plan, absl::Span<const PortTensor> outputs, absl::string_view file,
        Diagnostics& diagnostics)
      : plan_(plan), outputs_(outputs), file_(file), diagnostics_(diagnostics) {}

  void Fill() {
    for (const PortTensor& output : outputs_) {
      plan_.outputs_.emplace_back(output.name, output.shape);
    }
    const BoxSettings& settings = plan_.settings_;
    for (const BoxHead& head : settings.heads) AddHead(head);
    if (settings.kind != BoxKind::kSsd) return;
    plan_.location_ = FindOutput(settings.location);
    plan_.confidence_ = FindOutput(settings.confidence);
    plan_.priors_ = PriorsOf(settings);
    const int64_t priors = PriorCount(settings);
    ExpectElements(plan_.location_, 4 * priors);
    ExpectElements(plan_.confidence_, settings.classes * priors);
  }

 private:
  void Report(std::string message, std::string fix) {
    diagnostics_.Add({.kind = DiagnosticKind::kConfigConflict,
                      .message = std::move(message),
                      .file = std::string(file_),
                      .fix = std::move(fix)});
  }

  // The number of an output; -1: reported.
  int FindOutput(const std::string& name) {
    std::vector<absl::string_view> known;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      known.emplace_back(outputs_[i].name);
      if (outputs_[i].name == name || outputs_[i].name == AsIdentifier(name)) {
        return static_cast<int>(i);
      }
    }
    Suggester suggester;
    Report(absl::StrCat("the model has no output '", Printable(name, 80), "'; it has ",
                        absl::StrJoin(known, ", ")),
           suggester.DidYouMean(name, known, "name an output of the model"));
    return -1;
  }

  void ExpectElements(int output, int64_t count) {
    if (output < 0) return;
    const PortTensor& port = outputs_[static_cast<size_t>(output)];
    if (ElementCount(port.shape) == count) return;
    Report(
        absl::StrCat("output '", Printable(port.name, 80), "' is ", ShapeToString(port.shape), ", ",
                     ElementCount(port.shape), " numbers; priors and classes make ", count),
        "write the priors and classes of the model, and the output behind its reshapes");
  }

  void AddHead(const BoxHead& head) {
    const BoxSettings& settings = plan_.settings_;
    Head to;
    to.output = FindOutput(head.output);
    if (to.output < 0) return;
    const bool is_free = settings.kind == BoxKind::kYolo8;
    if (!is_free) to.anchors = static_cast<int>(head.anchors.size() / 2);
    const int64_t channels = to.anchors * (settings.classes + (is_free ? 4 * kBoxesBins : 5));
    const Shape& shape = outputs_[static_cast<size_t>(to.output)].shape;
    const bool is_image = shape.size() == 4 && shape[0] == 1;
    const bool is_first = is_image && shape[1] == channels;
    if (!is_image || (!is_first && shape[3] != channels) ||
        (is_first && shape[3] == channels && shape[1] != shape[2])) {
      return Report(
          absl::StrCat(
              "output '", Printable(head.output, 80), "' is ", ShapeToString(shape), "; ",
              to.anchors, " anchors and ", settings.classes, " classes make ", channels,
              " channels, as [1, channels, rows, columns] or [1, rows, columns, channels]"),
          "write the anchors and classes of the model, and the output of its last convolution");
    }
    to.rows = static_cast<int>(shape[is_first ? 2 : 1]);
    to.columns = static_cast<int>(shape[is_first ? 3 : 2]);
    to.channel_step = is_first ? to.rows * to.columns : 1;
    to.column_step = is_first ? 1 : static_cast<int>(channels);
    to.row_step = to.columns * to.column_step;
    for (size_t i = 0; i < head.anchors.size(); ++i) to.sizes.push_back(Part(head, to, i));
    plan_.heads_.push_back(std::move(to));
  }

  // Number i of the anchors as a part of the picture.
  float Part(const BoxHead& head, const Head& to, size_t i) const {
    const bool is_width = i % 2 == 0;
    double whole = is_width ? to.columns : to.rows;
    if (plan_.settings_.kind != BoxKind::kYolo2) {
      whole = static_cast<double>(plan_.settings_.image_size[is_width ? 1 : 0]);
    }
    return static_cast<float>(head.anchors[i] / whole);
  }

  BoxPlan& plan_;
  absl::Span<const PortTensor> outputs_;
  absl::string_view file_;
  Diagnostics& diagnostics_;
};

std::string BoxCodeName(absl::string_view model) {
  const std::string name = AsIdentifier(model);
  const bool is_plain = !name.empty() && std::isalpha(static_cast<unsigned char>(name[0])) != 0;
  return is_plain ? name : absl::StrCat("m_", name);
}

std::optional<BoxPlan> BoxPlan::Make(BoxSettings settings, absl::Span<const PortTensor> outputs,
                                     absl::string_view file, Diagnostics& diagnostics) {
  Diagnostics found;
  BoxPlan plan;
  plan.settings_ = std::move(settings);
  Maker(plan, outputs, file, found).Fill();
  diagnostics.Append(found);
  if (found.has_errors()) return std::nullopt;
  return plan;
}

std::vector<DetectedBox> BoxPlan::Decode(absl::Span<const float* const> outputs) const {
  std::vector<boxes_head> heads;
  for (const Head& head : heads_) {
    heads.push_back({head.output, head.anchors, head.rows, head.columns, head.channel_step,
                     head.row_step, head.column_step, head.sizes.data()});
  }
  const auto number = [](int64_t value) { return static_cast<int>(value); };
  boxes_plan plan = {number(static_cast<int64_t>(settings_.kind)),
                     number(settings_.classes),
                     number(static_cast<int64_t>(heads.size())),
                     heads.data(),
                     location_,
                     confidence_,
                     number(static_cast<int64_t>(priors_.size() / 4)),
                     priors_.data(),
                     {},
                     static_cast<float>(settings_.xy_scale),
                     static_cast<float>(settings_.obj_threshold),
                     static_cast<float>(settings_.iou_threshold),
                     number(settings_.max_candidates),
                     number(settings_.max_box_num)};
  for (size_t i = 0; i < 4; ++i) plan.variance[i] = static_cast<float>(settings_.variances[i]);
  std::vector<DetectedBox> boxes(static_cast<size_t>(settings_.max_candidates));
  boxes.resize(static_cast<size_t>(boxes_decode(&plan, outputs.data(), boxes.data())));
  return boxes;
}

}  // namespace npuc
