#include "compiler_core/ops/quantize.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/shape_util.h"

namespace npuc {
namespace {

template <typename T>
std::pair<int64_t, int64_t> RangeOf() {
  return {std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
}

std::pair<int64_t, int64_t> RangeOf(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
      return RangeOf<int8_t>();
    case DType::kInt16:
      return RangeOf<int16_t>();
    case DType::kInt32:
      return RangeOf<int32_t>();
    case DType::kInt64:
      return RangeOf<int64_t>();
    case DType::kUint8:
      return RangeOf<uint8_t>();
    case DType::kUint16:
      return RangeOf<uint16_t>();
    case DType::kUint32:
      return RangeOf<uint32_t>();
    default:
      NPUC_CHECK(false);
  }
}

absl::StatusOr<std::vector<double>> ScalesOf(const Node& node) {
  const auto it = node.attrs.find("scale");
  if (it == node.attrs.end()) return absl::InvalidArgumentError("attribute 'scale' is missing");
  if (const auto* list = std::get_if<std::vector<double>>(&it->second)) return *list;
  return absl::InvalidArgumentError("attribute 'scale' is no list of floats");
}

absl::Status CheckRange(const QuantParams& params) {
  if (params.qmin < params.qmax && params.qmin >= LowestOf(params.dtype) &&
      params.qmax <= HighestOf(params.dtype)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("range ", params.qmin, "..", params.qmax,
                                                 " is empty or not within ", NameOf(params.dtype)));
}

absl::Status CheckCount(const QuantParams& params, const Shape& shape) {
  const int64_t rank = static_cast<int64_t>(shape.size());
  if (params.axis < -1 || params.axis >= rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("axis ", params.axis, " is out of range for rank ", rank));
  }
  const int64_t count = params.axis < 0 ? 1 : shape[static_cast<size_t>(params.axis)];
  if (static_cast<int64_t>(params.scale.size()) == count &&
      static_cast<int64_t>(params.zero_point.size()) == count) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(params.scale.size(), " scales and ",
                                                 params.zero_point.size(), " zero points; ", count,
                                                 " of each are needed"));
}

AttrMap CommonAttrs(const QuantParams& params) {
  return {{"scale", params.scale},
          {"zero_point", params.zero_point},
          {"axis", static_cast<int64_t>(params.axis)}};
}

}  // namespace

int64_t LowestOf(DType dtype) { return RangeOf(dtype).first; }
int64_t HighestOf(DType dtype) { return RangeOf(dtype).second; }

absl::StatusOr<QuantParams> QuantParamsOf(const Node& node, const TensorType& integers) {
  if (!IsInteger(integers.dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(node.op), " has ", NameOf(integers.dtype), " where integers belong"));
  }
  QuantParams params;
  params.dtype = integers.dtype;
  ASSIGN_OR_RETURN(params.scale, ScalesOf(node));
  ASSIGN_OR_RETURN(params.zero_point, IntsAttr(node, "zero_point"));
  params.qmin = IntAttrOr(node, "qmin", LowestOf(params.dtype));
  params.qmax = IntAttrOr(node, "qmax", HighestOf(params.dtype));
  RETURN_IF_ERROR(CheckRange(params));
  const int64_t axis = IntAttrOr(node, "axis", -1);
  params.axis = axis >= -1 && axis < kMaxRank ? static_cast<int>(axis) : kMaxRank;
  RETURN_IF_ERROR(CheckCount(params, integers.shape));
  for (const double scale : params.scale) {
    if (std::isfinite(scale) && scale > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("scale ", scale, " is not finite and > 0"));
  }
  for (const int64_t zero_point : params.zero_point) {
    if (zero_point >= params.qmin && zero_point <= params.qmax) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("zero point ", zero_point, " is not in ", params.qmin, "..", params.qmax));
  }
  return params;
}

absl::Status CheckQuantParams(const QuantParams& params, const TensorType& integers) {
  Node node;
  node.op = Op::kQuantize;
  node.attrs = QuantizeAttrs(params);
  return QuantParamsOf(node, integers).status();
}

bool AreInverse(const Node& quantize, const Node& dequantize, const TensorType& integers) {
  const absl::StatusOr<QuantParams> to = QuantParamsOf(quantize, integers);
  const absl::StatusOr<QuantParams> from = QuantParamsOf(dequantize, integers);
  return to.ok() && from.ok() && to->axis == from->axis && to->scale == from->scale &&
         to->zero_point == from->zero_point;
}

AttrMap QuantizeAttrs(const QuantParams& params) {
  AttrMap attrs = CommonAttrs(params);
  attrs["dtype"] = std::string(NameOf(params.dtype));
  if (params.qmin != LowestOf(params.dtype)) attrs["qmin"] = params.qmin;
  if (params.qmax != HighestOf(params.dtype)) attrs["qmax"] = params.qmax;
  return attrs;
}

void AddLayerQuantAttrs(const LayerQuant& settings, AttrMap& attrs) {
  attrs["multiplier_bits"] = static_cast<int64_t>(settings.multiplier_bits);
  attrs["lut_bits"] = static_cast<int64_t>(settings.lut_bits);
  attrs["bias_effective_bits"] = static_cast<int64_t>(settings.bias_effective_bits);
  if (settings.factors.empty()) return;
  std::vector<int64_t> multipliers;
  std::vector<int64_t> shifts;
  for (const Factor& factor : settings.factors) {
    multipliers.push_back(factor.multiplier);
    shifts.push_back(factor.shift);
  }
  attrs["multipliers"] = std::move(multipliers);
  attrs["shifts"] = std::move(shifts);
}

absl::StatusOr<std::optional<LayerQuant>> LayerQuantOf(const Node& node) {
  if (!node.attrs.contains("multiplier_bits")) return std::nullopt;
  LayerQuant settings;
  const auto take = [&](absl::string_view name, int lowest, int highest, int& to) {
    const int64_t value = IntAttrOr(node, name, lowest - 1);
    if (value < lowest || value > highest) return false;
    to = static_cast<int>(value);
    return true;
  };
  if (!take("multiplier_bits", kMinMultiplierBits, kMaxMultiplierBits, settings.multiplier_bits) ||
      (IntAttrOr(node, "lut_bits", kMinLutBits) != kChosenLutBits &&
       !take("lut_bits", kMinLutBits, kMaxLutBits, settings.lut_bits)) ||
      !take("bias_effective_bits", kMinBiasBits, kMaxBiasBits, settings.bias_effective_bits)) {
    return absl::InvalidArgumentError("settings of a layer that are out of range");
  }
  if (!node.attrs.contains("multipliers")) return settings;
  ASSIGN_OR_RETURN(const std::vector<int64_t> multipliers, IntsAttr(node, "multipliers"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> shifts, IntsAttr(node, "shifts"));
  if (multipliers.size() != shifts.size()) {
    return absl::InvalidArgumentError("not as many shifts as multipliers");
  }
  for (size_t i = 0; i < multipliers.size(); ++i) {
    if (multipliers[i] < 0 || multipliers[i] > INT32_MAX || shifts[i] < Factor::kMinShift ||
        shifts[i] > Factor::kMaxShift) {
      return absl::InvalidArgumentError("a factor that is out of range");
    }
    settings.factors.push_back(
        {static_cast<int32_t>(multipliers[i]), static_cast<int32_t>(shifts[i])});
  }
  return settings;
}

AttrMap DequantizeAttrs(const QuantParams& params, DType float_dtype) {
  AttrMap attrs = CommonAttrs(params);
  attrs["dtype"] = std::string(NameOf(float_dtype));
  return attrs;
}

}  // namespace npuc
