#include "compiler_core/frontends/tflite/box_decoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "compiler_core/frontends/tflite/custom_options.h"

namespace npuc::tflite {
namespace {

constexpr absl::string_view kDecoder = "TFLite_Detection_PostProcess";
constexpr size_t kDecodedOperands = 2;     // boxes and scores; behind them stand the anchors
constexpr int64_t kMostCandidates = 2000;  // more never reach the first boxes

// The anchors [n, 4] as real numbers: centre y, centre x, height, width.
std::optional<std::vector<float>> AnchorsOf(const TensorView& anchors) {
  const Shape& shape = anchors.type.shape;
  if (shape.size() != 2 || shape[1] != 4 || shape[0] < 1 || shape[0] > kMaxBoxPriors) {
    return std::nullopt;
  }
  const auto count = static_cast<size_t>(shape[0]) * 4;
  std::vector<float> values(count);
  if (anchors.type.dtype == DType::kFloat32 && anchors.data.size() == count * sizeof(float)) {
    std::memcpy(values.data(), anchors.data.data(), anchors.data.size());
  } else if (anchors.type.dtype == DType::kUint8 && anchors.data.size() == count &&
             anchors.quant.has_value() && anchors.quant->scale.size() == 1) {
    for (size_t i = 0; i < count; ++i) {
      const int64_t stored = anchors.data[i] - anchors.quant->zero_point[0];
      values[i] = static_cast<float>(static_cast<double>(stored) * anchors.quant->scale[0]);
    }
  } else {
    return std::nullopt;
  }
  const auto is_wild = [](float value) { return !(std::fabs(value) <= 1000); };
  if (std::any_of(values.begin(), values.end(), is_wild)) return std::nullopt;
  return values;
}

// The divisors of an offset, in the order of BoxSettings::variances, and what limits the boxes.
bool ReadOptions(const CustomOptions& options, BoxSettings& settings) {
  settings.variances.clear();
  for (const char* name : {"x_scale", "y_scale", "w_scale", "h_scale"}) {
    const double scale = options.Float(name).value_or(0);
    if (!(scale >= 1e-3 && scale <= 1e6)) return false;
    settings.variances.push_back(1 / scale);
  }
  settings.obj_threshold = std::clamp(options.Float("nms_score_threshold").value_or(0), 1e-9, 1.0);
  settings.iou_threshold = options.Float("nms_iou_threshold").value_or(0);
  settings.max_box_num = options.Int("max_detections").value_or(0);
  if (!(settings.iou_threshold > 0 && settings.iou_threshold <= 1) || settings.max_box_num < 1 ||
      settings.max_box_num > 4096) {
    return false;
  }
  const bool is_by_class = options.Bool("use_regular_nms").value_or(false);
  settings.across_classes = !is_by_class;
  settings.best_class_only = !is_by_class;
  // Several classes of a box, and a limit on each class: forms of the operator that nobody exports.
  return is_by_class ? options.Int("detections_per_class").value_or(100) >= settings.max_box_num
                     : options.Int("max_classes_per_detection").value_or(1) == 1;
}

}  // namespace

std::optional<BoxSettings> BoxesOf(const ModelFile& file, const OperatorView& decoder) {
  const TensorView& boxes = file.tensor(decoder.inputs[0]);
  const TensorView& scores = file.tensor(decoder.inputs[1]);
  if (decoder.raw == nullptr || decoder.inputs[kDecodedOperands] < 0) return std::nullopt;
  const CustomOptions options(*decoder.raw);
  BoxSettings settings{.kind = BoxKind::kSsd, .location = boxes.name, .confidence = scores.name};
  if (!ReadOptions(options, settings)) return std::nullopt;
  const Shape& shape = scores.type.shape;
  const int64_t classes = options.Int("num_classes").value_or(0);
  if (shape.size() != 3 || shape[0] != 1 || classes < 1 || classes > 4095) return std::nullopt;
  settings.classes = shape[2];
  if (settings.classes != classes && settings.classes != classes + 1) return std::nullopt;
  settings.background = settings.classes == classes + 1;
  settings.first_label = 0;
  settings.rows_first = true;
  const std::optional<std::vector<float>> anchors =
      AnchorsOf(file.tensor(decoder.inputs[kDecodedOperands]));
  if (!anchors.has_value() || static_cast<int64_t>(anchors->size() / 4) != shape[1]) {
    return std::nullopt;
  }
  for (size_t i = 0; i < anchors->size(); i += 4) {
    const float* const a = anchors->data() + i;
    settings.prior_boxes.insert(settings.prior_boxes.end(), {a[1], a[0], a[3], a[2]});
  }
  settings.max_candidates = std::max(std::min(shape[1], kMostCandidates), settings.max_box_num);
  return settings;
}

CoreOutputs OutputsOfCores(const ModelFile& file) {
  CoreOutputs outputs;
  const auto add = [&](int tensor) {
    const auto& found = outputs.tensors;
    if (std::find(found.begin(), found.end(), tensor) == found.end()) {
      outputs.tensors.push_back(tensor);
    }
  };
  for (const int tensor : file.outputs()) {
    const auto& operators = file.operators();
    const auto decoder =
        std::find_if(operators.begin(), operators.end(), [&](const OperatorView& op) {
          return op.op == kDecoder && op.inputs.size() > kDecodedOperands && op.inputs[0] >= 0 &&
                 op.inputs[1] >= 0 &&
                 std::find(op.outputs.begin(), op.outputs.end(), tensor) != op.outputs.end();
        });
    if (decoder == operators.end()) {
      outputs.tensors.push_back(tensor);
      continue;
    }
    outputs.decoder = &*decoder;
    for (size_t i = 0; i < kDecodedOperands; ++i) add(decoder->inputs[i]);
  }
  return outputs;
}

}  // namespace npuc::tflite
