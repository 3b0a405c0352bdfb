// Resize and Upsample: common/resize.h does the work.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/resize.h"
#include "compiler_core/frontends/onnx/node_import.h"

namespace npuc::onnx {
namespace {

using frontend::ResizeAlong;
using frontend::ResizeAxis;
using frontend::ResizeMode;

absl::StatusOr<ResizeMode> ReadMode(NodeImporter& node) {
  ResizeMode m;
  ASSIGN_OR_RETURN(m.mode, node.StringOr("mode", "nearest"));
  const bool is_old = node.opset() < 11 || node.op() == "Upsample";
  ASSIGN_OR_RETURN(m.coordinates, node.StringOr("coordinate_transformation_mode",
                                                is_old ? "asymmetric" : "half_pixel"));
  ASSIGN_OR_RETURN(m.nearest,
                   node.StringOr("nearest_mode", is_old ? "floor" : "round_prefer_floor"));
  ASSIGN_OR_RETURN(m.cubic_a, node.FloatOr("cubic_coeff_a", -0.75));
  ASSIGN_OR_RETURN(m.extrapolation, node.FloatOr("extrapolation_value", 0));
  ASSIGN_OR_RETURN(m.exclude_outside, node.BoolOr("exclude_outside", false));
  ASSIGN_OR_RETURN(m.antialias, node.BoolOr("antialias", false));
  if (m.mode != "nearest" && m.mode != "linear" && m.mode != "cubic") {
    return node.BadAttribute(absl::InvalidArgumentError(absl::StrCat(
        "attribute 'mode' is '", Printable(m.mode), "'; allowed are nearest, linear and cubic")));
  }
  return m;
}

// Result dimension and scale of each named axis.
absl::Status ReadSizes(NodeImporter& node, int operand, const std::vector<int64_t>& axes,
                       std::vector<ResizeAxis>& all) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, node.ConstantInts(operand, "sizes"));
  if (sizes.size() != axes.size()) return absl::InvalidArgumentError("sizes and axes differ");
  ASSIGN_OR_RETURN(const std::string policy, node.StringOr("keep_aspect_ratio_policy", "stretch"));
  double joint = policy == "not_larger" ? HUGE_VAL : 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    ResizeAxis& axis = all[static_cast<size_t>(axes[i])];
    if (sizes[i] < 1 || sizes[i] > kMaxElements || axis.in < 1) {
      return absl::InvalidArgumentError(absl::StrCat("a size of ", sizes[i]));
    }
    axis.out = sizes[i];
    axis.scale = static_cast<double>(sizes[i]) / static_cast<double>(axis.in);
    joint = policy == "not_larger" ? std::min(joint, axis.scale) : std::max(joint, axis.scale);
  }
  if (policy == "stretch") return absl::OkStatus();
  for (const int64_t at : axes) {
    ResizeAxis& axis = all[static_cast<size_t>(at)];
    axis.scale = joint;
    axis.out = static_cast<int64_t>(std::floor(joint * static_cast<double>(axis.in) + 0.5));
  }
  return absl::OkStatus();
}

absl::Status ReadScales(NodeImporter& node, const std::vector<double>& scales,
                        const std::vector<int64_t>& axes, std::vector<ResizeAxis>& all) {
  if (scales.size() != axes.size()) return absl::InvalidArgumentError("scales and axes differ");
  for (size_t i = 0; i < axes.size(); ++i) {
    ResizeAxis& axis = all[static_cast<size_t>(axes[i])];
    const double out = std::floor(scales[i] * static_cast<double>(axis.in));
    if (!(scales[i] > 0) || !(out >= 0) || out > static_cast<double>(kMaxElements)) {
      return absl::InvalidArgumentError(absl::StrCat("a scale of ", scales[i]));
    }
    axis.scale = scales[i];
    axis.out = static_cast<int64_t>(out);
  }
  return absl::OkStatus();
}

absl::Status ResizeAll(NodeImporter& node, const std::vector<ResizeAxis>& all) {
  ASSIGN_OR_RETURN(const ResizeMode m, ReadMode(node));
  ValueRef x = node.input(0);
  for (size_t i = 0; i < all.size(); ++i) {
    const bool is_region =
        m.coordinates == "tf_crop_and_resize" && (all[i].roi_start != 0 || all[i].roi_end != 1);
    if (all[i].in == all[i].out && all[i].scale == 1 && !is_region) continue;
    ASSIGN_OR_RETURN(x, ResizeAlong(node, std::move(x), i, m, all[i]));
  }
  return node.SetOutput(std::move(x));
}

std::vector<ResizeAxis> UnchangedAxes(const NodeImporter& node) {
  std::vector<ResizeAxis> all;
  for (const int64_t dim : node.shape(0)) all.push_back({.in = dim, .out = dim});
  return all;
}

std::vector<int64_t> EveryAxis(const NodeImporter& node) {
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < node.rank(0); ++i) axes.push_back(i);
  return axes;
}

absl::Status ImportResize(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 4));
  std::vector<ResizeAxis> all = UnchangedAxes(node);
  ASSIGN_OR_RETURN(std::vector<int64_t> axes, node.IntsOr("axes", EveryAxis(node)));
  for (int64_t& axis : axes) {
    ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0)));
  }
  const int scales_at = node.opset() < 11 ? 1 : 2;
  ASSIGN_OR_RETURN(const std::string coordinates,
                   node.StringOr("coordinate_transformation_mode", ""));
  if (coordinates == "tf_crop_and_resize" && node.has(1)) {
    ASSIGN_OR_RETURN(const std::vector<double> roi, node.ConstantFloats(1, "region"));
    if (roi.size() != 2 * axes.size()) return absl::InvalidArgumentError("roi and axes differ");
    for (size_t i = 0; i < axes.size(); ++i) {
      all[static_cast<size_t>(axes[i])].roi_start = roi[i];
      all[static_cast<size_t>(axes[i])].roi_end = roi[i + axes.size()];
    }
  }
  if (node.has(3) && node.type(3).element_count() > 0) {
    RETURN_IF_ERROR(ReadSizes(node, 3, axes, all));
    return ResizeAll(node, all);
  }
  if (!node.has(scales_at)) return node.ExpectInputs(scales_at + 1, 4);
  ASSIGN_OR_RETURN(const std::vector<double> scales, node.ConstantFloats(scales_at, "scales"));
  RETURN_IF_ERROR(ReadScales(node, scales, axes, all));
  return ResizeAll(node, all);
}

absl::Status ImportUpsample(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 2));
  std::vector<double> scales;
  if (node.has(1)) {
    ASSIGN_OR_RETURN(scales, node.ConstantFloats(1, "scales"));
  } else {
    ASSIGN_OR_RETURN(scales, node.FloatsOr("scales", {}));
  }
  std::vector<ResizeAxis> all = UnchangedAxes(node);
  RETURN_IF_ERROR(ReadScales(node, scales, EveryAxis(node), all));
  return ResizeAll(node, all);
}

constexpr ImportRule kResizeRules[] = {{"Resize", ImportResize}, {"Upsample", ImportUpsample}};

}  // namespace

absl::Span<const ImportRule> ResizeRules() { return kResizeRules; }

}  // namespace npuc::onnx
