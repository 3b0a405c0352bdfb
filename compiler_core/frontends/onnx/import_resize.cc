// Resizing: along each axis every result is a weighted sum of operand elements at known places, so
// it is a product with a constant matrix; with whole steps of nearest neighbours it is a
// repetition.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/onnx/gather.h"
#include "compiler_core/frontends/onnx/node_import.h"

namespace npuc::onnx {
namespace {

struct ResizeMode {
  std::string mode;  // nearest, linear, cubic
  std::string coordinates;
  std::string nearest;
  double cubic_a = -0.75;
  double extrapolation = 0;
  bool exclude_outside = false;
  bool antialias = false;
};

struct ResizeAxis {
  int64_t in = 0;
  int64_t out = 0;
  double scale = 1;
  double roi_start = 0;
  double roi_end = 1;
};

double SourceOf(const ResizeMode& m, const ResizeAxis& a, int64_t i) {
  const double x = static_cast<double>(i);
  const double in = static_cast<double>(a.in);
  const double length = a.scale * in;  // before it is cut to an integer
  if (m.coordinates == "align_corners") return length == 1 ? 0 : x * (in - 1) / (length - 1);
  if (m.coordinates == "asymmetric") return x / a.scale;
  if (m.coordinates == "pytorch_half_pixel") return length == 1 ? 0 : (x + 0.5) / a.scale - 0.5;
  if (m.coordinates == "half_pixel_symmetric") {
    const double adjustment = static_cast<double>(a.out) / length;
    return in / 2 * (1 - adjustment) + (x + 0.5) / a.scale - 0.5;
  }
  if (m.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / a.scale;
  if (m.coordinates == "tf_crop_and_resize") {
    if (length == 1) return 0.5 * (a.roi_start + a.roi_end) * (in - 1);
    return a.roi_start * (in - 1) + x * (a.roi_end - a.roi_start) * (in - 1) / (length - 1);
  }
  return (x + 0.5) / a.scale - 0.5;  // half_pixel
}

int64_t NearestOf(const ResizeMode& m, double x) {
  const double floor = std::floor(x);
  if (m.nearest == "floor") return static_cast<int64_t>(floor);
  if (m.nearest == "ceil") return static_cast<int64_t>(std::ceil(x));
  const bool is_half = x == floor + 0.5;
  if (m.nearest == "round_prefer_ceil") return static_cast<int64_t>(std::floor(x + 0.5));
  return static_cast<int64_t>(is_half ? floor : std::floor(x + 0.5));
}

// The weight of an element at that distance.
double Kernel(const ResizeMode& m, double distance) {
  const double d = std::fabs(distance);
  if (m.mode == "linear") return std::max(0.0, 1 - d);
  const double a = m.cubic_a;
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return 0;
}

// One row of the matrix: the weights of the operand's elements in result i.
void FillRow(const ResizeMode& m, const ResizeAxis& a, int64_t i, double* row) {
  const double x = SourceOf(m, a, i);
  if (m.mode == "nearest") {
    row[std::clamp<int64_t>(NearestOf(m, x), 0, a.in - 1)] = 1;
    return;
  }
  const double stretch = m.antialias ? std::max(1.0, 1 / a.scale) : 1.0;
  const double reach = (m.mode == "linear" ? 1 : 2) * stretch;
  const int64_t first = static_cast<int64_t>(std::ceil(x - reach));
  const int64_t last = static_cast<int64_t>(std::floor(x + reach));
  double sum = 0;
  std::vector<std::pair<int64_t, double>> taps;
  for (int64_t at = first; at <= last; ++at) {
    if (m.exclude_outside && (at < 0 || at >= a.in)) continue;
    const double weight = Kernel(m, (x - static_cast<double>(at)) / stretch);
    taps.emplace_back(std::clamp<int64_t>(at, 0, a.in - 1), weight);
    sum += weight;
  }
  const bool normalize = m.antialias || m.exclude_outside;
  for (const auto& [at, weight] : taps) row[at] += normalize && sum != 0 ? weight / sum : weight;
}

absl::StatusOr<ValueRef> ResizeAlong(NodeImporter& node, ValueRef x, size_t axis,
                                     const ResizeMode& m, const ResizeAxis& a) {
  if (a.in < 1 || a.out < 1 || a.in > (int64_t{1} << 24) / a.out) {
    return absl::InvalidArgumentError(absl::StrCat("a dimension of ", a.in, " becomes ", a.out));
  }
  if (m.mode == "nearest" && m.coordinates != "tf_crop_and_resize") {
    std::vector<int64_t> indices;
    for (int64_t i = 0; i < a.out; ++i) {
      indices.push_back(std::clamp<int64_t>(NearestOf(m, SourceOf(m, a, i)), 0, a.in - 1));
    }
    return GatherAxis(node, x, static_cast<int64_t>(axis), indices);
  }
  std::vector<double> matrix(static_cast<size_t>(a.in * a.out), 0);
  std::vector<double> outside(static_cast<size_t>(a.out), 0);
  std::vector<double> row(static_cast<size_t>(a.in));
  bool has_outside = false;
  for (int64_t i = 0; i < a.out; ++i) {
    const double at = SourceOf(m, a, i);
    if (m.coordinates == "tf_crop_and_resize" && (at < 0 || at > static_cast<double>(a.in - 1))) {
      outside[static_cast<size_t>(i)] = 1;
      has_outside = true;
      continue;
    }
    std::fill(row.begin(), row.end(), 0);
    FillRow(m, a, i, row.data());
    for (int64_t k = 0; k < a.in; ++k) {
      matrix[static_cast<size_t>(k * a.out + i)] = row[static_cast<size_t>(k)];
    }
  }
  std::vector<int64_t> perm;
  for (size_t i = 0; i < x->type.shape.size(); ++i) perm.push_back(static_cast<int64_t>(i));
  std::swap(perm[axis], perm.back());
  ASSIGN_OR_RETURN(x, node.Transposed(x, perm));
  Shape shape = x->type.shape;
  ASSIGN_OR_RETURN(x, node.Reshaped(x, {ElementCount(shape) / a.in, a.in}));
  ASSIGN_OR_RETURN(x, node.Emit("MatMul", {x, node.Floats({a.in, a.out}, matrix, x->type.dtype)}));
  if (has_outside && m.extrapolation != 0) {
    for (double& value : outside) value *= m.extrapolation;
    ASSIGN_OR_RETURN(x, node.Emit("Add", {x, node.Floats({a.out}, outside, x->type.dtype)}));
  }
  shape.back() = a.out;
  ASSIGN_OR_RETURN(x, node.Reshaped(x, std::move(shape)));
  return node.Transposed(x, perm);
}

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

constexpr ImportRule kRules[] = {{"Resize", ImportResize}, {"Upsample", ImportUpsample}};

}  // namespace

absl::Span<const ImportRule> ResizeRules() { return kRules; }

}  // namespace npuc::onnx
