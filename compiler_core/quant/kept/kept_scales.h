#ifndef NPUC_COMPILER_CORE_QUANT_KEPT_KEPT_SCALES_H_
#define NPUC_COMPILER_CORE_QUANT_KEPT_KEPT_SCALES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/ir/graph/quantization.h"

namespace npuc {

// A quantized model as a float graph and the plan of its own integers.
struct KeptScales {
  Graph graph;
  QuantPlan plan;                  // values is empty where the model quantizes nothing
  std::vector<std::string> notes;  // what was not kept as it was, a line each
  // Float inputs that are quantized by several scales, and of which 16 bits hold the widest range
  // in no steps as fine as the finest scale asks for.
  struct CoarseInput {
    std::string name;
    double step = 0;    // of its 16 bits
    double finest = 0;  // the finest scale
  };
  std::vector<CoarseInput> coarse_inputs = {};
};

// Takes a graph in QDQ form (ops/quantize.h) apart: the parameters of each Quantize become those of
// its operand, integer constants behind a Dequantize become float constants beside their integers
// (through reshapes and transposes, too), and a value that is quantized a second time with other
// parameters, or read as a float beside its Quantize, is computed once more (inputs and what is
// stored already: an Identity). A float input that is quantized by several is stored so that each
// of them can be made of it, in 16 bits where no one of them does. Values between take the
// parameters that spread_params.h finds. Integers may be inputs and outputs, and move without a
// Dequantize; the new graph has floats in their places. An input that nothing reads has 8 bits.
// Weights keep their scales and their values: the integers of an asymmetric one, less its zero
// point, are stored as i8 where they fit, else as i16, with a note. Values of 32-bit integers that
// fit 16 bits have 16. Layers have the settings that their Quantize states, else multiplier_bits
// 31: the arithmetic that such models were made for. Errors: UNIMPLEMENTED where something else
// computes with the integers.
absl::StatusOr<KeptScales> KeepScales(const Graph& graph);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_KEPT_KEPT_SCALES_H_
