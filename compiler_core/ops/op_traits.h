#ifndef NPUC_COMPILER_CORE_OPS_OP_TRAITS_H_
#define NPUC_COMPILER_CORE_OPS_OP_TRAITS_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace npuc {

// A node's way to compute in another layout of its operands (passes/layout_rules.cc).
enum class LayoutRule : uint8_t {
  kFixed,        // it does not: transposes stay before and behind it
  kElementwise,  // each element from the operand's element in the same place
  kConversion,   // the same, but that parameters may run along the attribute "axis"
  kBroadcast,    // two operands whose shapes broadcast
  kReduction,    // over the attribute "axes"
  kAxis,         // counts along the attribute "axis"
  kJoin,         // the same, and the result is larger than each operand
  kPad,
  kSlice,
  kReshape,
  kBatchNorm,
  kProduct,
};

// The lowering of a layer on the integer cores (lowering/integer/lower_integer.cc).
enum class IntegerRule : uint8_t {
  kNone,        // nothing: the model is refused
  kFunction,    // one operand, or one and a number: a table of the function or a multiplication
  kActivation,  // a function that Compass lists as an Activation
  kCombine,     // two operands, element by element; clamps behind it join the layer
  kWeighted,    // a product with a constant weight; a bias and clamps join
  kPool,        // clamps join
  kConcat,
  kPad,
  kReduction,
  kReshape,
  kSlice,
  kSoftmax,
  kSplit,
  kTranspose,
};

// The distance that commands in fp16 may have from exact results (pipeline/lowering_sweep_test.cc).
struct Fp16Error {
  double roundings = 1.01;  // that may add up in a result, each relative to its size
  double floor = 0x1p-24;   // of results near zero, where roundings before it are not
  bool of_terms = false;    // relative to the sum of the terms' sizes, since terms may cancel
};

// Properties of an operator that passes, quantization and reports ask for. Families (elementwise.h,
// reduce.h, softmax.h) state it for their members; every other operator states its own as kTraits.
struct OpTraits {
  LayoutRule layout;
  IntegerRule integer;
  // Compass's names of the layer type and of its `method`; "": the operator's own name, and none.
  absl::string_view layer_type = "";
  absl::string_view method = "";
  // TensorFlow's name, by which a core's list judges the operator where the list of the model's
  // own framework lacks it; "": the operator's own name. GRUS refuses an operator whose name no
  // list has.
  absl::string_view listed_as = "";
  // Each element comes from the elements in the same place, by a function that the reference knows.
  // Several such nodes may become one function of an integer core.
  bool is_pointwise = false;
  // Results are some of the operand's stored integers, so they keep the operand's parameters.
  bool keeps_parameters = false;
  Fp16Error fp16_error = {};
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_OPS_OP_TRAITS_H_
