#include "compiler_core/frontends/common/resize.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/gather.h"

namespace npuc::frontend {
namespace {

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

// The pixel of result i as TensorFlow, TFLite, PaddlePaddle and PyTorch compute it: a product with
// the step, in float32. 9 * (14 / 18) is 7 so, and 9 / (18 / 14) in float64 is below 7. Sources:
// TensorFlow's image_resizer_state.h and resize_nearest_neighbor_op.cc, TFLite's
// reference/resize_nearest_neighbor.h, Paddle's interpolate_kernel.cc, PyTorch's UpSample.h.
int64_t NearestInFloat32(const ResizeMode& m, const ResizeAxis& a, int64_t i) {
  const bool corners = m.coordinates == "align_corners";
  const float step = corners && a.out > 1
                         ? static_cast<float>(a.in - 1) / static_cast<float>(a.out - 1)
                         : static_cast<float>(1 / a.scale);
  const float offset = m.coordinates == "tf_half_pixel_for_nn" ? 0.5F : 0.0F;
  const float x = (static_cast<float>(i) + offset) * step;
  const float source = corners ? std::round(x) : std::floor(x);
  // A wild scale may give infinity or NaN.
  return source < static_cast<float>(a.in - 1) ? static_cast<int64_t>(source) : a.in - 1;
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

absl::Status BadSizes(const ResizeAxis& a) {
  return absl::InvalidArgumentError(absl::StrCat("a dimension of ", a.in, " becomes ", a.out));
}

}  // namespace

absl::StatusOr<ResizeMatrix> MakeResizeMatrix(const ResizeMode& m, const ResizeAxis& a) {
  constexpr int64_t kMostWeights = int64_t{1} << 24;
  if (a.in < 1 || a.out < 1 || a.in > kMostWeights / a.out) return BadSizes(a);
  ResizeMatrix matrix;
  matrix.weights.assign(static_cast<size_t>(a.in * a.out), 0);
  matrix.outside.assign(static_cast<size_t>(a.out), 0);
  std::vector<double> row(static_cast<size_t>(a.in));
  for (int64_t i = 0; i < a.out; ++i) {
    const double at = SourceOf(m, a, i);
    if (m.coordinates == "tf_crop_and_resize" && (at < 0 || at > static_cast<double>(a.in - 1))) {
      matrix.outside[static_cast<size_t>(i)] = 1;
      continue;
    }
    std::fill(row.begin(), row.end(), 0);
    FillRow(m, a, i, row.data());
    for (int64_t k = 0; k < a.in; ++k) {
      matrix.weights[static_cast<size_t>(k * a.out + i)] = row[static_cast<size_t>(k)];
    }
  }
  return matrix;
}

ResizeMode ModeFor(Emitter& node, ResizeMode m) {
  if (m.mode == "nearest" || !node.state().degrades_resizes) return m;
  node.state().NoteDegradedResize(node.source(), m.mode);
  m.mode = "nearest";
  m.nearest = "round_prefer_floor";
  return m;
}

absl::StatusOr<std::vector<int64_t>> NearestSources(const ResizeMode& m, const ResizeAxis& a) {
  // Float32 has every whole number up to this one.
  constexpr int64_t kMost = int64_t{1} << 24;
  if (a.in < 1 || a.out < 1 || a.in > kMost || a.out > kMost) return BadSizes(a);
  std::vector<int64_t> sources;
  for (int64_t i = 0; i < a.out; ++i) {
    const int64_t source =
        m.in_float32 ? NearestInFloat32(m, a, i) : NearestOf(m, SourceOf(m, a, i));
    sources.push_back(std::clamp<int64_t>(source, 0, a.in - 1));
  }
  return sources;
}

absl::StatusOr<ValueRef> ResizeAlong(Emitter& node, ValueRef x, size_t axis,
                                     const ResizeMode& of_model, const ResizeAxis& a) {
  const ResizeMode m = ModeFor(node, of_model);
  if (m.mode == "nearest" && m.coordinates != "tf_crop_and_resize") {
    ASSIGN_OR_RETURN(const std::vector<int64_t> sources, NearestSources(m, a));
    return GatherAxis(node, x, static_cast<int64_t>(axis), sources);
  }
  if (!IsFloat(x->type.dtype)) {  // the weights are fractions
    return node.FailMode(
        absl::StrCat("a ", m.mode, " resize of values of type ", NameOf(x->type.dtype)),
        "cast them to float before the node");
  }
  ASSIGN_OR_RETURN(ResizeMatrix matrix, MakeResizeMatrix(m, a));
  std::vector<int64_t> perm;
  for (size_t i = 0; i < x->type.shape.size(); ++i) perm.push_back(static_cast<int64_t>(i));
  std::swap(perm[axis], perm.back());
  ASSIGN_OR_RETURN(x, node.Transposed(x, perm));
  Shape shape = x->type.shape;
  ASSIGN_OR_RETURN(x, node.Reshaped(x, {ElementCount(shape) / a.in, a.in}));
  ASSIGN_OR_RETURN(
      x, node.Emit("MatMul", {x, node.Floats({a.in, a.out}, matrix.weights, x->type.dtype)}));
  std::vector<double>& outside = matrix.outside;
  const bool has_outside =
      std::any_of(outside.begin(), outside.end(), [](double out) { return out != 0; });
  if (has_outside && m.extrapolation != 0) {
    for (double& value : outside) value *= m.extrapolation;
    ASSIGN_OR_RETURN(x, node.Emit("Add", {x, node.Floats({a.out}, outside, x->type.dtype)}));
  }
  shape.back() = a.out;
  ASSIGN_OR_RETURN(x, node.Reshaped(x, std::move(shape)));
  return node.Transposed(x, perm);
}

}  // namespace npuc::frontend
