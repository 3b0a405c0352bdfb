#ifndef NPUC_COMPILER_CORE_QUANT_KEPT_SPREAD_PARAMS_H_
#define NPUC_COMPILER_CORE_QUANT_KEPT_SPREAD_PARAMS_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/ir/graph/quantization.h"

namespace npuc {

// A quantized model states parameters for the tensors of its file. Our rewriting makes others:
// channels-last convolutions between transposes, formulas for one operator. These functions give
// such tensors the parameters that make the stored results those of the model.

// Backwards: an operand that only moves (keeps_parameters, Concat, Pad) or is cut to a range
// (ClampOf), and that nothing else reads, gets the parameters of the result. That is exact:
// rounding and saturation commute with moves and clamps.
void SpreadBackwards(const Graph& graph, std::map<ValueId, QuantParams>& params);

// Forwards, layer by layer:
// - a result that only moves its operand's stored integers gets the operand's parameters;
// - a constant that a sum, product, convolution or matrix product reads as it is gets 16 bits and a
//   power of two as scale;
// - a float result of Softmax, LogSoftmax, Sigmoid or Tanh, which have bounds, gets 16 bits for
// them;
// - a result that goes from one node to another of the same operator of the model, where both are
//   sums and products, gets 16 bits: the operand's scale divided by the largest power of two at
//   which every value fits that the operator can give. So does one of `also_float`, which are
//   values that the model quantizes for some of their readers alone;
// - a bias of another scale than that of its layer's sums loses its integers: they are made anew
//   from its real values.
// `notes`: a line for each weight.
void SpreadForwards(const Graph& graph, const std::set<ValueId>& also_float, QuantPlan& plan,
                    std::vector<std::string>& notes);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_KEPT_SPREAD_PARAMS_H_
