#include "compiler_core/base/status.h"
#include "compiler_core/ops/elementwise.h"
#include "compiler_core/ops/numeric.h"
#include "compiler_core/ops/vector_emit.h"

namespace npuc {
namespace {

struct Square : UnaryOp<Square> {
  static double Eval(double x) { return x * x; }
  static int64_t EvalInt(int64_t x) { return WrapMul(x, x); }
  static absl::Status Lower(const OpView& view, LowerContext& context) {
    ASSIGN_OR_RETURN(const Operand a, context.Input(0));
    EmitTensor(context, Arithmetic::kMul, a, a, context.OutputOver(0, 0),
               view.inputs[0].element_count());
    return absl::OkStatus();
  }
};

}  // namespace

NPUC_DEFINE_OP(Square)

}  // namespace npuc
