#include "compiler_core/boxes/box_plan.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/suggest.h"

namespace npuc {
namespace {

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
    plan_.outputs_.assign(outputs_.begin(), outputs_.end());
    BoxSettings& settings = plan_.settings_;
    if (settings.is_fixed) CheckTypes();
    if (settings.heads.empty() && !settings.preset.empty()) TakePreset();
    for (const BoxHead& head : settings.heads) {
      settings.kind == BoxKind::kRpn ? AddRegions(head) : AddHead(head);
    }
    if (settings.kind != BoxKind::kSsd && settings.kind != BoxKind::kRcnn) return;
    plan_.location_ = FindOutput(settings.location);
    plan_.confidence_ = FindOutput(settings.confidence);
    if (settings.kind == BoxKind::kRcnn) return CountRegions();
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

  void CheckTypes() {
    for (const PortTensor& output : outputs_) {
      if (BoxSourceOf(output).type >= 0) continue;
      Report(absl::StrCat("output '", Printable(output.name, 80), "' is stored as ",
                          NameOf(output.dtype),
                          "; arithmetic: fixed reads integers of 8 and 16 bits and floats"),
             "remove arithmetic: fixed");
    }
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

  void CountRegions() {
    if (plan_.location_ < 0 || plan_.confidence_ < 0) return;
    const int64_t classes = plan_.settings_.classes;
    const int64_t scores = ElementCount(outputs_[static_cast<size_t>(plan_.confidence_)].shape);
    plan_.region_count_ = scores / classes;
    ExpectElements(plan_.confidence_, plan_.region_count_ * classes);
    ExpectElements(plan_.location_, 4 * plan_.region_count_ * classes);
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

  // An output as an image: its size, and the steps between neighbours in elements.
  struct Image {
    int rows = 0;
    int columns = 0;
    int channel_step = 0;
    int row_step = 0;
    int column_step = 0;
  };
  // nullopt: it has another number of channels, or no rows and columns.
  std::optional<Image> ImageOf(int output, int64_t channels) const {
    const Shape& shape = outputs_[static_cast<size_t>(output)].shape;
    const bool is_image = shape.size() == 4 && shape[0] == 1;
    const bool is_first = is_image && shape[1] == channels;
    if (!is_image || (!is_first && shape[3] != channels) ||
        (is_first && shape[3] == channels && shape[1] != shape[2])) {
      return std::nullopt;
    }
    Image image;
    image.rows = static_cast<int>(shape[is_first ? 2 : 1]);
    image.columns = static_cast<int>(shape[is_first ? 3 : 2]);
    image.channel_step = is_first ? image.rows * image.columns : 1;
    image.column_step = is_first ? 1 : static_cast<int>(channels);
    image.row_step = image.columns * image.column_step;
    return image;
  }

  void ReportNoImage(int output, absl::string_view what, int64_t channels) {
    const PortTensor& port = outputs_[static_cast<size_t>(output)];
    Report(
        absl::StrCat("output '", Printable(port.name, 80), "' is ", ShapeToString(port.shape), "; ",
                     what, " make ", channels,
                     " channels, as [1, channels, rows, columns] or [1, rows, columns, channels]"),
        "write the anchors and classes of the model, and the output of its last convolution");
  }

  // The model's outputs as heads, from the one with the fewest cells on.
  void TakePreset() {
    BoxSettings& settings = plan_.settings_;
    std::vector<const PortTensor*> images;
    for (const PortTensor& output : outputs_) {
      if (output.shape.size() == 4) images.push_back(&output);
    }
    if (images.size() != settings.preset.size()) {
      return Report(absl::StrCat("the type has ", settings.preset.size(),
                                 " outputs that are images, and the model ", images.size()),
                    "end the model behind its last convolutions with OUTPUT_OPS, or write heads");
    }
    std::stable_sort(images.begin(), images.end(), [](const PortTensor* a, const PortTensor* b) {
      return ElementCount(a->shape) < ElementCount(b->shape);
    });
    for (size_t i = 0; i < images.size(); ++i) {
      settings.heads.push_back({.output = images[i]->name, .anchors = settings.preset[i]});
    }
    settings.preset.clear();
    if (settings.classes == 0) settings.classes = ClassesOf(images[0]->shape, settings.heads[0]);
  }

  // The number of classes that the channels of an output make; at least 1.
  static int64_t ClassesOf(const Shape& shape, const BoxHead& head) {
    const auto anchors = static_cast<int64_t>(head.anchors.size() / 2);
    // Channels first or last: the two of rows and columns are alike, or channels are the most.
    const int64_t channels = shape[2] == shape[3]   ? shape[1]
                             : shape[1] == shape[2] ? shape[3]
                                                    : std::max(shape[1], shape[3]);
    return std::max<int64_t>(channels / anchors - 5, 1);
  }

  static void Place(const Image& image, Head& to) {
    to.rows = image.rows;
    to.columns = image.columns;
    to.channel_step = image.channel_step;
    to.row_step = image.row_step;
    to.column_step = image.column_step;
  }

  void AddHead(const BoxHead& head) {
    const BoxSettings& settings = plan_.settings_;
    Head to;
    to.output = FindOutput(head.output);
    if (to.output < 0) return;
    const bool is_free = settings.kind == BoxKind::kYolo8;
    if (!is_free) to.anchors = static_cast<int>(head.anchors.size() / 2);
    const int64_t channels = to.anchors * (settings.classes + (is_free ? 4 * kBoxSideBins : 5));
    const std::optional<Image> image = ImageOf(to.output, channels);
    if (!image.has_value()) {
      return ReportNoImage(to.output,
                           absl::StrCat(to.anchors, " anchors and ", settings.classes, " classes"),
                           channels);
    }
    Place(*image, to);
    to.xy_scale = static_cast<float>(head.xy_scale > 0 ? head.xy_scale : settings.xy_scale);
    for (size_t i = 0; i < head.anchors.size(); ++i) to.sizes.push_back(Part(head, to, i));
    plan_.heads_.push_back(std::move(to));
  }

  void AddRegions(const BoxHead& head) {
    Head to;
    to.output = FindOutput(head.output);
    to.deltas = FindOutput(head.deltas);
    if (to.output < 0 || to.deltas < 0) return;
    to.anchors = static_cast<int>(head.anchors.size() / 2);
    const std::string what = absl::StrCat(to.anchors, " anchors");
    const std::optional<Image> scores = ImageOf(to.output, int64_t{2} * to.anchors);
    if (!scores.has_value()) return ReportNoImage(to.output, what, int64_t{2} * to.anchors);
    const std::optional<Image> deltas = ImageOf(to.deltas, int64_t{4} * to.anchors);
    if (!deltas.has_value() || deltas->rows != scores->rows || deltas->columns != scores->columns) {
      return ReportNoImage(to.deltas,
                           absl::StrCat("beside ", scores->rows, " rows and ", scores->columns,
                                        " columns of scores ", what),
                           int64_t{4} * to.anchors);
    }
    Place(*scores, to);
    to.delta_channel_step = deltas->channel_step;
    to.delta_row_step = deltas->row_step;
    to.delta_column_step = deltas->column_step;
    const auto height = static_cast<double>(plan_.settings_.image_size[0]);
    const auto width = static_cast<double>(plan_.settings_.image_size[1]);
    to.places = {static_cast<float>(head.offset / width), static_cast<float>(head.offset / height),
                 static_cast<float>(head.stride / width), static_cast<float>(head.stride / height)};
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

int FirstClass(const BoxSettings& settings) { return settings.background ? 1 : 0; }

int LabelShift(const BoxSettings& settings) {
  return static_cast<int>(settings.first_label) - FirstClass(settings);
}

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

}  // namespace npuc
