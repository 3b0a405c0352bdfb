#ifndef NPUC_COMPILER_CORE_QUANT_KEPT_QUANTIZED_FORM_H_
#define NPUC_COMPILER_CORE_QUANT_KEPT_QUANTIZED_FORM_H_

#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/ir/graph/quantization.h"

namespace npuc {

// What KeepScales undoes: the graph in QDQ form (ops/quantize.h), every value and constant that the
// plan quantizes through Quantize and Dequantize, the rest in float. Run by the operators'
// references it is the fake-quantized forward pass: layers compute in float on what the integers
// stand for. Same inputs and outputs.
Graph QuantizedForm(const Graph& graph, const QuantPlan& plan);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_KEPT_QUANTIZED_FORM_H_
