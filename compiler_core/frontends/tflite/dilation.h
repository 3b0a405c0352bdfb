#ifndef NPUC_COMPILER_CORE_FRONTENDS_TFLITE_DILATION_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TFLITE_DILATION_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler_core/frontends/tflite/node_import.h"

namespace npuc::tflite {

// A convolution with dilation, written as SPACE_TO_BATCH_ND, a plain convolution and
// BATCH_TO_SPACE_ND (for one spatial dimension with EXPAND_DIMS or RESHAPE around the convolution).
// Each operator becomes what it says. The values between carry how they came about, and
// BATCH_TO_SPACE_ND, where it closes such a group, gives one convolution with dilations instead;
// the operators before it then serve nobody and are dropped.

// A convolution without its padding and strides, applied to another operand than its own.
struct PlainConv {
  std::string op;  // of the IR
  ValueRef weight;
  ValueRef bias;  // null: none
  int activation = 0;
};

// The convolution with its bias and activation.
absl::StatusOr<ValueRef> Convolved(NodeImporter& node, const ValueRef& image, const PlainConv& conv,
                                   AttrMap attrs);

// Sets the result of a convolution of operand 0, a part of a group where that is one.
absl::Status SetConvolved(NodeImporter& node, PlainConv conv, AttrMap attrs);

// Sets operand 0 under a new shape, still part of its group where only an image's height of one
// comes or goes.
absl::Status SetReshaped(NodeImporter& node, Shape shape);

absl::Span<const ImportRule> DilationRules();

}  // namespace npuc::tflite

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TFLITE_DILATION_H_
