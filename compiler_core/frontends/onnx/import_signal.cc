// Fourier transforms of real numbers (common/spectrum.h). Source: onnx/docs/Operators.md.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/spectrum.h"
#include "compiler_core/frontends/onnx/node_import.h"

namespace npuc::onnx {
namespace {

constexpr char kRealFix[] = "give the model spectra by INPUT_OPS, or transform real numbers";

// The operand without its last dimension of one, the real part.
absl::StatusOr<ValueRef> RealPart(NodeImporter& node, int64_t rank) {
  const Shape& shape = node.shape(0);
  if (static_cast<int64_t>(shape.size()) == rank) return node.input(0);
  if (static_cast<int64_t>(shape.size()) != rank + 1 || shape.back() != 1) {
    return node.FailMode(
        absl::StrCat("the transform of complex numbers ", TypeToString(node.type(0))), kRealFix);
  }
  return node.Reshaped(node.input(0), Shape(shape.begin(), shape.end() - 1));
}

int64_t Bins(int64_t length, bool is_onesided) { return is_onesided ? length / 2 + 1 : length; }

absl::Status ImportStft(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 4));
  ASSIGN_OR_RETURN(const ValueRef x, RealPart(node, 2));
  ASSIGN_OR_RETURN(const int64_t step, node.ConstantInt(1, "frame_step"));
  frontend::Transform transform;
  if (node.has(2)) {
    ASSIGN_OR_RETURN(const Tensor window, node.Constant(2, "window"));
    for (int64_t i = 0; i < window.element_count(); ++i) transform.window.push_back(window.at(i));
    transform.length = window.element_count();
  }
  if (node.has(3)) {
    ASSIGN_OR_RETURN(transform.length, node.ConstantInt(3, "frame_length"));
  }
  if (node.has(2) && static_cast<int64_t>(transform.window.size()) != transform.length) {
    return absl::InvalidArgumentError(absl::StrCat("a window of ", transform.window.size(),
                                                   " elements for frames of ", transform.length));
  }
  ASSIGN_OR_RETURN(const bool is_onesided, node.BoolOr("onesided", true));
  transform.bins = Bins(transform.length, is_onesided);
  return node.SetOutput(TransformedFrames(node, x, step, transform));
}

absl::Status ImportDft(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 3));
  ASSIGN_OR_RETURN(const bool is_inverse, node.BoolOr("inverse", false));
  if (is_inverse) return node.FailMode("an inverse transform", kRealFix);
  const int64_t rank = node.rank(0);
  int64_t axis = -2;
  if (node.opset() < 20) {
    ASSIGN_OR_RETURN(axis, node.IntOr("axis", 1));
  } else if (node.has(2)) {
    ASSIGN_OR_RETURN(axis, node.ConstantInt(2, "axis"));
  }
  if (axis < 0) axis += rank;
  if (rank < 2 || axis < 0 || axis > rank - 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("a transform along axis ", axis, " of ", TypeToString(node.type(0))));
  }
  ASSIGN_OR_RETURN(ValueRef x, RealPart(node, rank - 1));
  std::vector<int64_t> swapped;  // the axis is the last one in the transform
  for (int64_t i = 0; i < rank - 1; ++i) swapped.push_back(i);
  std::swap(swapped[static_cast<size_t>(axis)], swapped.back());
  ASSIGN_OR_RETURN(x, node.Transposed(x, swapped));
  frontend::Transform transform{.length = x->type.shape.back()};
  if (node.has(1)) {
    ASSIGN_OR_RETURN(transform.length, node.ConstantInt(1, "dft_length"));
  }
  ASSIGN_OR_RETURN(const bool is_onesided, node.BoolOr("onesided", false));
  transform.bins = Bins(transform.length, is_onesided);
  ASSIGN_OR_RETURN(const ValueRef y, Transformed(node, x, transform));
  swapped.push_back(rank - 1);
  return node.SetOutput(node.Transposed(y, swapped));
}

constexpr ImportRule kSignalRules[] = {{"DFT", ImportDft}, {"STFT", ImportStft}};

}  // namespace

absl::Span<const ImportRule> SignalRules() { return kSignalRules; }

}  // namespace npuc::onnx
