#include "compiler_core/frontends/common/spectrum.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/windows.h"

namespace npuc::frontend {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 23;  // of a matrix

// [rows, bins * 2]: cosines, and sines with a minus.
absl::StatusOr<std::vector<double>> MatrixOf(Emitter& node, int64_t rows, const Transform& t) {
  if (t.length < 1 || t.bins < 1 || t.bins > t.length || t.length > kMostElements) {
    return absl::InvalidArgumentError(
        absl::StrCat("a Fourier transform of length ", t.length, " to ", t.bins, " frequencies"));
  }
  if (rows * t.bins * 2 > kMostElements) {
    return node.Fail(DiagnosticKind::kModelLimitExceeded,
                     absl::StrCat("the Fourier transform becomes a matrix of ", rows * t.bins * 2,
                                  " elements; allowed are ", kMostElements),
                     "take shorter frames, or give the model spectra by INPUT_OPS");
  }
  std::vector<double> matrix;
  matrix.reserve(static_cast<size_t>(rows * t.bins * 2));
  for (int64_t i = 0; i < rows; ++i) {
    const double factor = t.window.empty() ? 1 : t.window[static_cast<size_t>(i)];
    for (int64_t k = 0; k < t.bins; ++k) {
      const double turn = static_cast<double>(i * k % t.length) / static_cast<double>(t.length);
      matrix.push_back(factor * std::cos(2 * M_PI * turn));
      matrix.push_back(-factor * std::sin(2 * M_PI * turn));
    }
  }
  return matrix;
}

}  // namespace

absl::StatusOr<ValueRef> Transformed(Emitter& node, const ValueRef& x, const Transform& t) {
  const int64_t axis = static_cast<int64_t>(x->type.shape.size()) - 1;
  if (axis < 0) return absl::InvalidArgumentError("a number has no Fourier transform");
  const int64_t rows = std::min(x->type.shape.back(), t.length);
  ASSIGN_OR_RETURN(const std::vector<double> matrix, MatrixOf(node, rows, t));
  ASSIGN_OR_RETURN(ValueRef y, node.Sliced(x, axis, 0, rows));
  Shape shape(x->type.shape.begin(), x->type.shape.end() - 1);
  ASSIGN_OR_RETURN(y, node.Reshaped(y, {ElementCount(shape), rows}));
  ASSIGN_OR_RETURN(
      y, node.Emit("MatMul", {y, node.Floats({rows, t.bins * 2}, matrix, DType::kFloat32)}));
  shape.insert(shape.end(), {t.bins, 2});
  return node.Reshaped(y, std::move(shape));
}

absl::StatusOr<ValueRef> TransformedFrames(Emitter& node, const ValueRef& x, int64_t step,
                                           const Transform& t) {
  const Shape& shape = x->type.shape;
  if (shape.size() != 2 || step < 1 || step > kMostElements || t.length > shape[1]) {
    return absl::InvalidArgumentError(absl::StrCat("frames of ", t.length, " elements, ", step,
                                                   " apart, of ", TypeToString(x->type)));
  }
  ASSIGN_OR_RETURN(const std::vector<double> matrix, MatrixOf(node, t.length, t));
  ASSIGN_OR_RETURN(ValueRef y, node.Reshaped(x, {shape[0], shape[1], 1}));
  const ValueRef weight = node.Floats({t.length, 1, t.bins * 2}, matrix, DType::kFloat32);
  ASSIGN_OR_RETURN(y, Convolved(node, y, weight, nullptr,
                                {.kernel = {t.length},
                                 .strides = {step},
                                 .dilations = {1},
                                 .before = {0},
                                 .after = {0}}));
  return node.Reshaped(y, {shape[0], y->type.shape[1], t.bins, 2});
}

absl::StatusOr<ValueRef> SizesOfComplex(Emitter& node, const ValueRef& x) {
  const int64_t axis = static_cast<int64_t>(x->type.shape.size()) - 1;
  ASSIGN_OR_RETURN(ValueRef y, node.Emit("Square", {x}));
  ASSIGN_OR_RETURN(y, node.Reduced("ReduceSum", y, {axis}, /*keep_dims=*/false));
  return node.Emit("Sqrt", {y});
}

}  // namespace npuc::frontend
