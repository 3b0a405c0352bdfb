#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_RESIZE_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_RESIZE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler_core/frontends/common/emitter.h"

namespace npuc::frontend {

// Resizing: along each axis every result is a weighted sum of operand elements at known places, so
// it is a product with a constant matrix; with whole steps of nearest neighbours it is a
// repetition. Names are those of ONNX's Resize.
struct ResizeMode {
  std::string mode;  // nearest, linear, cubic
  std::string coordinates;
  std::string nearest;
  // A nearest mode steps as NearestInFloat32 in resize.cc does, and not by ONNX's formulas.
  bool in_float32 = false;
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

// The matrix [in, out] of one axis, row by row, by which its elements become the results; `m` is no
// nearest mode. Results outside of the operand (tf_crop_and_resize) are zero, and 1 in `outside`,
// which has `out` elements. INVALID_ARGUMENT where a dimension is out of bounds.
struct ResizeMatrix {
  std::vector<double> weights;
  std::vector<double> outside;
};
absl::StatusOr<ResizeMatrix> MakeResizeMatrix(const ResizeMode& m, const ResizeAxis& a);

// The mode by which a node resizes: that of the model, but with resize_degrade_to_nearest the
// nearest element, at the same coordinates and rounded as Compass's optimizer does; a note says so.
ResizeMode ModeFor(Emitter& node, ResizeMode m);
// The operand's element that each result of a nearest mode is. INVALID_ARGUMENT as above.
absl::StatusOr<std::vector<int64_t>> NearestSources(const ResizeMode& m, const ResizeAxis& a);

// Resizes one axis of x by ModeFor(of_model). INVALID_ARGUMENT where a dimension is out of bounds.
absl::StatusOr<ValueRef> ResizeAlong(Emitter& node, ValueRef x, size_t axis,
                                     const ResizeMode& of_model, const ResizeAxis& a);

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_RESIZE_H_
