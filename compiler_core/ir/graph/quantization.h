#ifndef NPUC_COMPILER_CORE_IR_GRAPH_QUANTIZATION_H_
#define NPUC_COMPILER_CORE_IR_GRAPH_QUANTIZATION_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compiler_core/base/fixed_point.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc {

// What the quantizer (quant/) decides about a float graph, and lowering for the integer cores
// reads. The graph itself stays float: its reference kernels are what the integers are judged by.

// One tensor as integers: x = (q - zero_point) * scale, and
// q = clamp(round_half_even(x / scale) + zero_point, qmin, qmax).
// This is TFLite's and ONNX's convention. Compass writes 1 / scale and -zero_point (shared
// spec/compass.md section 2); its files are converted where they are read and written.
struct QuantParams {
  DType dtype = DType::kInvalid;  // of the stored integers: i8, u8, i16, u16; biases i32
  int64_t qmin = 0;               // within dtype; fewer bits than it has: narrower
  int64_t qmax = 0;
  int axis = -1;              // scale and zero_point run along this dimension; -1: one of each
  std::vector<double> scale;  // finite, > 0
  std::vector<int64_t> zero_point;  // as many, each in [qmin, qmax]
  bool operator==(const QuantParams&) const = default;
};

// Nodes that an integer core computes as one: an operator with the bias and the activation behind
// it (ops/layers.h makes them). Only values at layers' borders exist as integers.
struct Layer {
  std::string name;           // what users call it; unique in the graph
  std::string type;           // as Compass names it: "Convolution", "FullyConnected", "Pooling" ...
  std::vector<NodeId> nodes;  // in graph order
  NodeId root;                // the one that gives the layer its type
  std::vector<ValueId> inputs;  // activations, in operand order; constants are not among them
  ValueId weight;  // a constant of root: of a convolution or matrix product, or the operand of an
                   // element-wise operator, but no divisor; invalid where there is none
  ValueId bias;    // a constant; invalid where there is none
  std::vector<ValueId> outputs;  // activations
};

// Of the settings below.
inline constexpr int kChosenLutBits = 0;  // lowering takes as many as the function's curve needs
inline constexpr int kMinLutBits = 4;
inline constexpr int kMaxLutBits = 16;
inline constexpr int kMinMultiplierBits = 2;
inline constexpr int kMaxMultiplierBits = 31;
inline constexpr int kMinBiasBits = 2;
inline constexpr int kMaxBiasBits = 48;

// The settings in force for one layer that lowering needs beside the tensors' parameters.
struct LayerQuant {
  bool in_float = false;  // left unquantized: its operands and results cross the border as float
  // A function of a 16-bit operand has a table of 2^lut_bits entries.
  int lut_bits = kChosenLutBits;
  int multiplier_bits = 15;      // of the requantization multiplier: 2..31
  int bias_effective_bits = 32;  // high bits of the bias that take part
  // Of a layer with weights: the requantization's factors, one or one a result channel, where the
  // model states others than those that follow from its scales. Empty: those.
  std::vector<Factor> factors = {};
  bool operator==(const LayerQuant&) const = default;
};

struct QuantPlan {
  std::vector<Layer> layers;         // in graph order
  std::vector<LayerQuant> settings;  // one a layer
  // Border activations and weights; biases where a model brought its own. A weight is symmetric
  // (zero point 0) where a convolution or a matrix product has it. A bias has the scale of its
  // layer's input times that of its weight, so lowering makes it where it is not given.
  std::map<ValueId, QuantParams> values;
  // Weights and biases as integers of values[id].dtype, where they are not just the rounded float
  // constants: those of a quantized model, or of a method that rounds otherwise.
  std::map<ValueId, Tensor> constants;
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_IR_GRAPH_QUANTIZATION_H_
