// Fourier transforms of real rows; a complex tensor is one of floats here, with its real and
// imaginary parts along a last dimension of two (common/spectrum.h).
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/spectrum.h"
#include "compiler_core/frontends/tflite/node_import.h"

namespace npuc::tflite {
namespace {

absl::Status ImportRfft2d(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, node.ConstantInts(1, "fft_length"));
  if (lengths.size() != 2 || node.rank(0) < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(lengths.size(), " lengths for ", TypeToString(node.type(0))));
  }
  if (lengths[0] != 1 || node.shape(0)[static_cast<size_t>(node.rank(0) - 2)] != 1) {
    return node.FailMode(
        absl::StrCat("a transform of two dimensions, ", lengths[0], " and ", lengths[1]),
        "transform rows (tf.signal.rfft), or give the model spectra by INPUT_OPS");
  }
  return node.SetOutput(
      Transformed(node, node.input(0), {.length = lengths[1], .bins = lengths[1] / 2 + 1}));
}

absl::Status ImportComplexAbs(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  return node.SetOutput(SizesOfComplex(node, node.input(0)));
}

absl::Status ImportPart(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  const int64_t last = node.rank(0) - 1;
  ASSIGN_OR_RETURN(const ValueRef part,
                   node.Sliced(node.input(0), last, node.op() == "IMAG" ? 1 : 0, 1));
  const Shape& shape = node.shape(0);
  return node.SetOutput(node.Reshaped(part, Shape(shape.begin(), shape.end() - 1)));
}

constexpr ImportRule kSpectrumRules[] = {{"COMPLEX_ABS", ImportComplexAbs},
                                         {"IMAG", ImportPart},
                                         {"REAL", ImportPart},
                                         {"RFFT2D", ImportRfft2d}};

}  // namespace

absl::Span<const ImportRule> SpectrumRules() { return kSpectrumRules; }

bool TakesComplex(absl::string_view op) {
  return op == "COMPLEX_ABS" || op == "IMAG" || op == "REAL";
}

bool ReshapesComplex(absl::string_view op) {
  return op == "RESHAPE" || op == "SQUEEZE" || op == "EXPAND_DIMS";
}

absl::Status ReshapeComplex(NodeImporter& node) {
  Shape shape = node.output(0).type.shape;
  shape.push_back(2);
  return node.SetOutput(node.Reshaped(node.input(0), std::move(shape)));
}

}  // namespace npuc::tflite
