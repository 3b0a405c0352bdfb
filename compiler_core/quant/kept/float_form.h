#ifndef NPUC_COMPILER_CORE_QUANT_KEPT_FLOAT_FORM_H_
#define NPUC_COMPILER_CORE_QUANT_KEPT_FLOAT_FORM_H_

#include <map>

#include "absl/status/statusor.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/quant/ranges.h"

namespace npuc {

// A quantized model that computes in float.
struct FloatForm {
  Graph graph;
  // What the integers of each value could stand for; of values of `graph`.
  std::map<ValueId, ValueRange> ranges;
};

// Takes a graph in QDQ form (ops/quantize.h) back to float. Rounding goes; saturation stays, since
// a model may have its ReLU there and nowhere else: each Quantize becomes a Maximum and a Minimum
// of the least and the greatest number that its integers stand for, and where coarse_steps.h finds
// that its rounding says what the model computes, a product with a Round and a product back. One of
// them is left out where the operand provably lies on the bound's inner side, and both inside of an
// operator. Integer constants become float ones, also behind reshapes and transposes. Integers that
// are read by another scale or zero point than they were written by become a product and a sum.
// Errors: UNIMPLEMENTED where an operator computes with the integers otherwise; those of the
// operators' references.
absl::StatusOr<FloatForm> MakeFloatForm(const Graph& graph);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_KEPT_FLOAT_FORM_H_
