// Boxes that a detector's results are relative to.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/caffe/node_import.h"
#include "compiler_core/frontends/common/evaluator.h"

namespace npuc::caffe {
namespace {

constexpr float kSameRatio = 1e-6F;

// The parameters of a PriorBox layer. Lists are not empty, but for the largest sizes.
struct PriorBoxes {
  std::vector<double> min_sizes;
  std::vector<double> max_sizes;
  std::vector<double> ratios;  // other than 1
  std::vector<double> variances;
  bool clips = false;
  double offset = 0.5;
  std::array<double, 2> image = {0, 0};  // height, width
  std::array<double, 2> step = {0, 0};
};

absl::Status BadPriors(LayerImporter& node, absl::string_view message) {
  return node.BadAttribute(absl::InvalidArgumentError(message));
}

absl::Status ReadRatios(LayerImporter& node, PriorBoxes* priors) {
  ASSIGN_OR_RETURN(const std::vector<double> ratios, node.FloatsOr("aspect_ratio", {}));
  ASSIGN_OR_RETURN(const bool flips, node.BoolOr("flip", true));
  for (const double ratio : ratios) {
    if (!(ratio > 0)) return BadPriors(node, "parameter 'aspect_ratio' must be positive");
    const bool is_known =
        std::fabs(ratio - 1) < kSameRatio ||
        std::any_of(priors->ratios.begin(), priors->ratios.end(),
                    [&](double known) { return std::fabs(ratio - known) < kSameRatio; });
    if (is_known) continue;
    priors->ratios.push_back(ratio);
    if (flips) priors->ratios.push_back(1 / ratio);
  }
  return absl::OkStatus();
}

// A height and a width: of one key, or of two; 0 where none is given.
absl::Status ReadPair(LayerImporter& node, absl::string_view name, absl::string_view height,
                      absl::string_view width, std::array<double, 2>* pair) {
  ASSIGN_OR_RETURN(const double both, node.FloatOr(name, 0));
  ASSIGN_OR_RETURN((*pair)[0], node.FloatOr(height, both));
  ASSIGN_OR_RETURN((*pair)[1], node.FloatOr(width, both));
  if ((*pair)[0] >= 0 && (*pair)[1] >= 0) return absl::OkStatus();
  return BadPriors(node, absl::StrCat("parameter '", name, "' must not be negative"));
}

absl::StatusOr<PriorBoxes> ReadPriors(LayerImporter& node) {
  PriorBoxes priors;
  ASSIGN_OR_RETURN(priors.min_sizes, node.FloatsOr("min_size", {}));
  ASSIGN_OR_RETURN(priors.max_sizes, node.FloatsOr("max_size", {}));
  RETURN_IF_ERROR(ReadRatios(node, &priors));
  ASSIGN_OR_RETURN(priors.variances, node.FloatsOr("variance", {0.1F}));
  ASSIGN_OR_RETURN(priors.clips, node.BoolOr("clip", false));
  ASSIGN_OR_RETURN(priors.offset, node.FloatOr("offset", 0.5));
  RETURN_IF_ERROR(ReadPair(node, "img_size", "img_h", "img_w", &priors.image));
  RETURN_IF_ERROR(ReadPair(node, "step", "step_h", "step_w", &priors.step));
  // Caffe holds the sizes as integers.
  for (auto* sizes : {&priors.min_sizes, &priors.max_sizes}) {
    for (double& size : *sizes) size = std::trunc(size);
  }
  const bool has_max = !priors.max_sizes.empty();
  if (priors.min_sizes.empty() || (has_max && priors.max_sizes.size() != priors.min_sizes.size())) {
    return BadPriors(node, "parameter 'min_size' must be given, and 'max_size' as often or never");
  }
  for (size_t i = 0; i < priors.min_sizes.size(); ++i) {
    if (!(priors.min_sizes[i] > 0) || (has_max && !(priors.max_sizes[i] > priors.min_sizes[i]))) {
      return BadPriors(node, "parameter 'min_size' must be positive, 'max_size' above it");
    }
  }
  if (priors.variances.size() == 1) priors.variances.assign(4, priors.variances[0]);
  if (priors.variances.size() != 4) {
    return BadPriors(node, "parameter 'variance' must have one value or four");
  }
  return priors;
}

// Widths and heights of the boxes around one pixel.
std::vector<std::pair<double, double>> SizesOf(const PriorBoxes& priors) {
  std::vector<std::pair<double, double>> sizes;
  for (size_t i = 0; i < priors.min_sizes.size(); ++i) {
    const double size = priors.min_sizes[i];
    sizes.emplace_back(size, size);
    if (!priors.max_sizes.empty()) {
      const double middle = std::sqrt(size * priors.max_sizes[i]);
      sizes.emplace_back(middle, middle);
    }
    for (const double ratio : priors.ratios) {
      sizes.emplace_back(size * std::sqrt(ratio), size / std::sqrt(ratio));
    }
  }
  return sizes;
}

// Boxes around each pixel of bottom 0 in the image that is bottom 1: a constant [1,2,4 * boxes] of
// corners and of variances. Source: prior_box_layer.cpp of SSD.
absl::Status ImportPriorBox(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  if (node.rank(0) != 4 || node.rank(1) != 4) {
    return absl::InvalidArgumentError("both bottoms must be images");
  }
  ASSIGN_OR_RETURN(PriorBoxes priors, ReadPriors(node));
  const std::vector<std::pair<double, double>> sizes = SizesOf(priors);
  const std::array<int64_t, 2> grid = {node.shape(0)[2], node.shape(0)[3]};
  const int64_t most = kMaxEvaluatedElements / 8 / static_cast<int64_t>(sizes.size());
  if (grid[0] < 1 || grid[1] < 1 || grid[0] > most / grid[1]) {
    return node.Fail(DiagnosticKind::kModelLimitExceeded,
                     absl::StrCat("its boxes around ", TypeToString(node.type(0)),
                                  " take more than ", kMaxEvaluatedElements, " numbers"),
                     "compile a smaller model");
  }
  if (priors.image[0] == 0 || priors.image[1] == 0) {
    priors.image = {static_cast<double>(node.shape(1)[2]), static_cast<double>(node.shape(1)[3])};
  }
  if (priors.image[0] < 1 || priors.image[1] < 1) return BadPriors(node, "the image is empty");
  if (priors.step[0] == 0 || priors.step[1] == 0) {
    for (size_t i = 0; i < 2; ++i) priors.step[i] = priors.image[i] / static_cast<double>(grid[i]);
  }
  std::vector<double> numbers;
  const auto add = [&](double pixels, double of) {
    numbers.push_back(priors.clips ? std::clamp(pixels / of, 0.0, 1.0) : pixels / of);
  };
  for (int64_t y = 0; y < grid[0]; ++y) {
    for (int64_t x = 0; x < grid[1]; ++x) {
      const double centre_x = (static_cast<double>(x) + priors.offset) * priors.step[1];
      const double centre_y = (static_cast<double>(y) + priors.offset) * priors.step[0];
      for (const auto& [width, height] : sizes) {
        add(centre_x - width / 2, priors.image[1]);
        add(centre_y - height / 2, priors.image[0]);
        add(centre_x + width / 2, priors.image[1]);
        add(centre_y + height / 2, priors.image[0]);
      }
    }
  }
  const size_t count = numbers.size();
  for (size_t i = 0; i < count; ++i) numbers.push_back(priors.variances[i % 4]);
  return node.SetOutput(node.Floats({1, 2, static_cast<int64_t>(count)}, numbers, DType::kFloat32));
}

constexpr absl::string_view kCodeTypes[] = {"CORNER", "CENTER_SIZE", "CORNER_SIZE"};
constexpr int64_t kCentreSize = 2;

constexpr ImportRule kDetectionRules[] = {{"PriorBox", ImportPriorBox}};

}  // namespace

std::optional<BoxSettings> BoxesOfDetectionOutput(const LayerView& layer) {
  BoxSettings settings{.kind = BoxKind::kSsd, .variances = {}};
  settings.classes = layer.Int("num_classes").value_or(0);
  settings.iou_threshold = 0.3;
  int64_t top_k = -1;
  double eta = 1;
  for (const Message* const nms : layer.layer().params->Messages("nms_param")) {
    Layer inner;
    inner.params = nms;
    const LayerView view(&inner);
    settings.iou_threshold = view.Float("nms_threshold").value_or(0.3);
    top_k = view.Int("top_k").value_or(-1);
    eta = view.Float("eta").value_or(1);
  }
  settings.obj_threshold = std::max(layer.Float("confidence_threshold").value_or(1e-9), 1e-9);
  const int64_t kept = layer.Int("keep_top_k").value_or(-1);
  settings.max_box_num = kept > 0 ? std::min<int64_t>(kept, 4096) : 200;
  settings.max_candidates = std::clamp<int64_t>(top_k, settings.max_box_num, 1 << 16);
  if (top_k <= 0) settings.max_candidates = std::max<int64_t>(settings.max_box_num, 1000);
  if (layer.Bool("variance_encoded_in_target").value_or(false)) settings.variances = {1, 1, 1, 1};
  const bool is_decoded = layer.Choice("code_type", kCodeTypes, 1).value_or(1) == kCentreSize &&
                          layer.Bool("share_location").value_or(true) && eta == 1 &&
                          layer.Int("background_label_id").value_or(0) == 0 &&
                          settings.classes >= 2 && settings.classes <= 4096 &&
                          settings.iou_threshold > 0 && settings.iou_threshold <= 1 &&
                          settings.obj_threshold < 1;
  if (!is_decoded) return std::nullopt;
  return settings;
}

bool AddPriors(LayerImporter& node, bool has_variances, BoxSettings& settings) {
  constexpr size_t kMostLayers = 16;
  constexpr int64_t kMostSide = 4096;
  if (node.rank(0) != 4 || node.rank(1) != 4 || settings.priors.size() == kMostLayers) return false;
  const absl::StatusOr<PriorBoxes> priors = ReadPriors(node);
  if (!priors.ok()) return false;  // reported
  std::vector<int64_t> image = {static_cast<int64_t>(priors->image[0]),
                                static_cast<int64_t>(priors->image[1])};
  if (image[0] == 0 || image[1] == 0) image = {node.shape(1)[2], node.shape(1)[3]};
  const bool is_first = settings.priors.empty();
  if (is_first) {
    settings.image_size = image;
    if (has_variances) settings.variances = priors->variances;
  }
  const std::vector<int64_t> grid = {node.shape(0)[2], node.shape(0)[3]};
  if (image != settings.image_size || (has_variances && settings.variances != priors->variances) ||
      node.shape(0)[0] != 1 || std::max(grid[0], grid[1]) > kMostSide ||
      std::max(image[0], image[1]) > 1 << 16) {
    return false;
  }
  BoxPriors& to = settings.priors.emplace_back();
  to.feature = grid;
  to.min_sizes = priors->min_sizes;
  to.max_sizes = priors->max_sizes;
  to.aspect_ratios = priors->ratios;
  to.flip = false;  // the ratios hold their reciprocals
  to.clip = priors->clips;
  to.offset = priors->offset;
  if (priors->step[0] > 0 && priors->step[1] > 0) to.step = {priors->step[0], priors->step[1]};
  return PriorCount(settings) <= kMaxBoxPriors;
}

absl::Span<const ImportRule> DetectionRules() { return kDetectionRules; }

}  // namespace npuc::caffe
