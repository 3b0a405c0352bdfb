#include <cmath>

#include "compiler_core/base/status.h"
#include "compiler_core/ops/elementwise.h"
#include "compiler_core/ops/numeric.h"
#include "compiler_core/ops/vector_emit.h"

namespace npuc {
namespace {

struct Abs : UnaryOp<Abs> {
  static double Eval(double x) { return std::fabs(x); }
  static int64_t EvalInt(int64_t x) { return x < 0 ? WrapMul(x, -1) : x; }
  static absl::Status Lower(const OpView& view, LowerContext& context) {
    // |x| = relu(x) + relu(-x): one of the two is 0, so the sum is exact.
    const int64_t n = view.inputs[0].element_count();
    ASSIGN_OR_RETURN(const Operand a, context.Input(0));
    const Operand negated = context.Temp(n);
    const Operand negative_part = context.Temp(n);
    const Operand positive_part = context.Temp(n);
    EmitScalar(context, Arithmetic::kMul, a, -1.0f, negated, n);
    EmitActivation(context, Activation::kRelu, negated, negative_part, n);
    EmitActivation(context, Activation::kRelu, a, positive_part, n);
    EmitTensor(context, Arithmetic::kAdd, positive_part, negative_part, context.Output(0), n);
    return absl::OkStatus();
  }
};

}  // namespace

NPUC_DEFINE_OP(Abs)

}  // namespace npuc
