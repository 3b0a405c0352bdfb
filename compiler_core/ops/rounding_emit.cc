#include "compiler_core/ops/rounding_emit.h"

#include "compiler_core/ops/vector_emit.h"

namespace npuc {
namespace {

// d = a to the nearest whole number, for a >= 0. Numbers from 1024 to 2048 are whole in fp16, so
// that a sum with 1024 rounds; what is above 1024 is whole already and stays out of the sum.
void EmitRoundPositive(LowerContext& context, Operand a, Operand d, int64_t n) {
  constexpr float kWhole = 1024;
  const Operand above = context.Temp(n);
  EmitScalar(context, Arithmetic::kSub, a, kWhole, above, n);
  EmitActivation(context, Activation::kRelu, above, above, n);
  EmitTensor(context, Arithmetic::kSub, a, above, d, n);
  EmitScalar(context, Arithmetic::kAdd, d, kWhole, d, n);
  EmitScalar(context, Arithmetic::kSub, d, kWhole, d, n);
  EmitTensor(context, Arithmetic::kAdd, d, above, d, n);
}

}  // namespace

void EmitIsPositive(LowerContext& context, Operand a, Operand d, int64_t n) {
  // The smallest fp16 number is 2^-24. Where a product overflows, 1 minus infinity, or minus the
  // largest number, is cut to 0 as well.
  constexpr float kHalfwayToOne = 4096;
  EmitActivation(context, Activation::kRelu, a, d, n);
  EmitScalar(context, Arithmetic::kMul, d, kHalfwayToOne, d, n);
  EmitScalar(context, Arithmetic::kMul, d, kHalfwayToOne, d, n);
  EmitScalarFirst(context, Arithmetic::kSub, 1, d, d, n);
  EmitActivation(context, Activation::kRelu, d, d, n);
  EmitScalarFirst(context, Arithmetic::kSub, 1, d, d, n);
}

void EmitRound(LowerContext& context, Operand a, Operand d, int64_t n) {
  const Operand part = context.Temp(n);
  const Operand below = context.Temp(n);
  EmitScalar(context, Arithmetic::kMul, a, -1, part, n);
  EmitActivation(context, Activation::kRelu, part, part, n);
  EmitRoundPositive(context, part, below, n);
  EmitActivation(context, Activation::kRelu, a, part, n);
  EmitRoundPositive(context, part, d, n);
  EmitTensor(context, Arithmetic::kSub, d, below, d, n);
}

void EmitFloor(LowerContext& context, Operand a, Operand d, int64_t n) {
  const Operand excess = context.Temp(n);
  EmitRound(context, a, d, n);
  EmitTensor(context, Arithmetic::kSub, d, a, excess, n);
  EmitIsPositive(context, excess, excess, n);
  EmitTensor(context, Arithmetic::kSub, d, excess, d, n);
}

}  // namespace npuc
