#ifndef NPUC_COMPILER_CORE_QUANT_KEPT_WHOLE_NUMBERS_H_
#define NPUC_COMPILER_CORE_QUANT_KEPT_WHOLE_NUMBERS_H_

#include "compiler_core/ir/graph/graph.h"

namespace npuc {

// A model of whole numbers in floats, as DORY and NEMO write quantized nets.
struct WholeNumbersForm {
  Graph graph;
  int steps = 0;  // that were replaced; 0: graph is the model as it was
};

// The number of requantizing steps in a model.
int CountWholeNumberSteps(const Graph& graph);

// Brings the requantizing steps of such a model into floats: x * kappa + lambda is cast to
// integers, multiplied, divided and cast back, so that one of 2^24 becomes one of 2^8. Each step
// becomes a product and a sum with constants, and the product goes into the weight of the
// convolution or matrix product before it: no value between has more bits than the results.
// Division drops the fraction; here it stays, less the half that this takes away on average, where
// negative results are cut off behind the step. Everything else stays as it is: casts without a
// division, and those of values that no weight of whole numbers gives, which a model has to drop
// fractions.
WholeNumbersForm FloatWholeNumbers(Graph graph);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_KEPT_WHOLE_NUMBERS_H_
