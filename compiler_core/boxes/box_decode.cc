// Decodes boxes here by the code that firmware gets, in both kinds of numbers.
#include <stdint.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "compiler_core/base/fp16.h"
#include "compiler_core/boxes/box_plan.h"
#include "compiler_core/boxes/npuc_fixed_box.h"
#include "compiler_core/ir/integer/port_values.h"

namespace npuc {
namespace {

namespace in_floats {
#include "compiler_core/boxes/float_numbers.c"
// The decoder, in the numbers above.
#include "compiler_core/boxes/decode_boxes.c"
#undef BOXES_ONE
#undef BOXES_HALF
}  // namespace in_floats

namespace in_integers {
#include "compiler_core/boxes/fixed_numbers.c"
// The decoder, in the numbers above.
#include "compiler_core/boxes/decode_boxes.c"
}  // namespace in_integers

static_assert(kBoxSideBins == in_floats::kBoxesBins);

struct FloatForm {
  using Number = in_floats::boxes_number;
  using Head = in_floats::boxes_head;
  using Plan = in_floats::boxes_plan;
  static Number Of(double value) { return static_cast<float>(value); }
};

struct FixedForm {
  using Number = in_integers::boxes_number;
  using Head = in_integers::boxes_head;
  using Plan = in_integers::boxes_plan;
  static Number Of(double value) { return FixedNumber(value); }
};

template <typename Form>
std::vector<typename Form::Number> NumbersOf(const std::vector<float>& values) {
  std::vector<typename Form::Number> numbers;
  for (const float value : values) numbers.push_back(Form::Of(value));
  return numbers;
}

template <typename T>
void Append(T value, std::vector<uint8_t>& bytes) {
  const size_t at = bytes.size();
  bytes.resize(at + sizeof(T));
  std::memcpy(&bytes[at], &value, sizeof(T));
}

// Values of an output as the model stores them.
std::vector<uint8_t> StoredOf(const PortTensor& output, const float* values) {
  std::vector<uint8_t> bytes;
  for (int64_t i = 0; i < ElementCount(output.shape); ++i) {
    const float value = values[i];
    if (output.dtype == DType::kFloat32) {
      Append(value, bytes);
    } else if (output.dtype == DType::kFloat16) {
      Append(FloatToHalf(value), bytes);
    } else {
      const size_t size = SizeOf(output.dtype);
      bytes.resize(bytes.size() + size);
      integer::StoreInteger(output.dtype, integer::StoredValue(output, value), bytes.data(), i);
    }
  }
  return bytes;
}

std::vector<uint8_t> StoredRegions(int64_t count, const float* corners) {
  std::vector<uint8_t> bytes;
  for (int64_t i = 0; i < 4 * count; ++i) Append(FixedNumber(corners[i]), bytes);
  return bytes;
}

}  // namespace

template <typename Form>
struct BoxPlan::Tables {
  explicit Tables(const BoxPlan& plan) : priors(NumbersOf<Form>(plan.priors_)) {
    for (const BoxPlan::Head& head : plan.heads_) sizes.push_back(NumbersOf<Form>(head.sizes));
    for (size_t i = 0; i < plan.heads_.size(); ++i) {
      const BoxPlan::Head& head = plan.heads_[i];
      heads.push_back({head.output, head.anchors, head.rows, head.columns, head.channel_step,
                       head.row_step, head.column_step, sizes[i].data(), Form::Of(head.xy_scale),
                       head.deltas, head.delta_channel_step, head.delta_row_step,
                       head.delta_column_step, Form::Of(head.places[0]), Form::Of(head.places[1]),
                       Form::Of(head.places[2]), Form::Of(head.places[3])});
    }
    const BoxSettings& settings = plan.settings_;
    const auto number = [](int64_t value) { return static_cast<int>(value); };
    decoded = {number(static_cast<int64_t>(settings.kind)),
               number(settings.classes),
               number(static_cast<int64_t>(heads.size())),
               heads.data(),
               plan.location_,
               plan.confidence_,
               number(plan.region_count_ > 0 ? plan.region_count_
                                             : static_cast<int64_t>(priors.size() / 4)),
               priors.data(),
               {},
               settings.rows_first ? 1 : 0,
               FirstClass(settings),
               LabelShift(settings),
               settings.best_class_only ? 1 : 0,
               settings.across_classes ? 1 : 0,
               number(static_cast<int64_t>(plan.outputs_.size())),
               Form::Of(settings.obj_threshold),
               Form::Of(settings.iou_threshold),
               number(settings.max_candidates),
               number(settings.max_box_num)};
    for (size_t i = 0; i < 4; ++i) decoded.variance[i] = Form::Of(settings.variances[i]);
  }

  std::vector<std::vector<typename Form::Number>> sizes;
  std::vector<typename Form::Number> priors;
  std::vector<typename Form::Head> heads;
  typename Form::Plan decoded;
};

int32_t FixedNumber(double value) {
  const double most = BOXES_MOST;
  return static_cast<int32_t>(std::clamp(std::nearbyint(value * BOXES_ONE), -most, most));
}

BoxSource BoxSourceOf(const PortTensor& output) {
  BoxSource source;
  switch (output.dtype) {
    case DType::kFloat16:
      source.type = in_integers::kBoxesHalf;
      return source;
    case DType::kFloat32:
      source.type = in_integers::kBoxesFloat;
      return source;
    case DType::kInt8:
      source.type = in_integers::kBoxesI8;
      break;
    case DType::kUint8:
      source.type = in_integers::kBoxesU8;
      break;
    case DType::kInt16:
      source.type = in_integers::kBoxesI16;
      break;
    case DType::kUint16:
      source.type = in_integers::kBoxesU16;
      break;
    default:
      source.type = -1;
      return source;
  }
  source.zero = static_cast<int32_t>(output.zero_point);
  int exponent = 0;
  const double part = std::frexp(output.scale * BOXES_ONE, &exponent);  // 0.5 to 1
  source.factor = static_cast<int32_t>(std::min(std::ldexp(part, 31), 2147483647.0));
  source.shift = 31 - exponent;
  if (source.shift < 0) source.shift = 0;                   // each step lies beyond the bound
  if (source.shift > 62) source.factor = source.shift = 0;  // no value reaches half a 65536th
  return source;
}

std::vector<DetectedBox> BoxPlan::Decode(absl::Span<const float* const> outputs) const {
  const auto room = static_cast<size_t>(settings_.max_candidates);
  if (!settings_.is_fixed) {
    const Tables<FloatForm> tables(*this);
    std::vector<DetectedBox> boxes(room);
    boxes.resize(static_cast<size_t>(
        in_floats::boxes_decode(&tables.decoded, outputs.data(), boxes.data())));
    return boxes;
  }
  std::vector<std::vector<uint8_t>> stored;
  std::vector<in_integers::boxes_source> sources;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    stored.push_back(StoredOf(outputs_[i], outputs[i]));
    const BoxSource source = BoxSourceOf(outputs_[i]);
    sources.push_back({nullptr, source.type, source.zero, source.factor, source.shift});
  }
  if (region_count_ > 0) {
    stored.push_back(StoredRegions(region_count_, outputs[outputs_.size()]));
    sources.push_back({nullptr, in_integers::kBoxesNumber, 0, 0, 0});
  }
  for (size_t i = 0; i < sources.size(); ++i) sources[i].data = stored[i].data();
  const Tables<FixedForm> tables(*this);
  std::vector<npuc_fixed_box> fixed(room);
  fixed.resize(static_cast<size_t>(
      in_integers::boxes_decode(&tables.decoded, sources.data(), fixed.data())));
  const auto real = [](int number) {
    return static_cast<float>(static_cast<double>(number) / BOXES_ONE);
  };
  std::vector<DetectedBox> boxes;
  for (const npuc_fixed_box& box : fixed) {
    boxes.push_back(
        {real(box.x0), real(box.y0), real(box.x1), real(box.y1), real(box.score), box.class_id});
  }
  return boxes;
}

}  // namespace npuc
