#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMPASS_TENSORS_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMPASS_TENSORS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler_core/ir/compass/check.h"
#include "compiler_core/ir/graph/quantization.h"

namespace npuc::compass {

// A layer's result as the text states it.
struct Top {
  std::string name;
  TensorType type;  // as stored: integers where it is quantized
  std::optional<QuantParams> quant = {};
};

// The results of a layer that the checker found sound. Reports scales, zero points and ranges that
// cannot be, and types that hold neither reals nor integers. Integers without a scale are whole
// numbers, such as indices.
std::vector<Top> ReadTops(const LayerView& layer, LayerReporter& reporter);

// Our scale of a file's, which is its reciprocal. Texts: of at least 18 digits, as the writer
// gives, the exact double that was written. Doubles: of those whose reciprocal rounds to it the one
// with the shortest mantissa, so that a scale that was a float is that float again. 0 where there
// is none that is finite and above 0.
double ScaleFromText(absl::string_view text);
double ScaleFromReciprocal(double reciprocal);

}  // namespace npuc::compass

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMPASS_TENSORS_H_
