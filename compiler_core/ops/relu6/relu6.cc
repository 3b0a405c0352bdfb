#include "compiler_core/base/status.h"
#include "compiler_core/ops/elementwise.h"
#include "compiler_core/ops/move_emit.h"
#include "compiler_core/ops/vector_emit.h"

namespace npuc {
namespace {

struct Relu6 : UnaryOp<Relu6> {
  static constexpr OpTraits kTraits = {.layout = LayoutRule::kElementwise,
                                       .integer = IntegerRule::kActivation,
                                       .layer_type = "Activation",
                                       .method = "RELU6",
                                       .is_pointwise = true};

  static double Eval(double x) { return x < 0 ? 0.0 : (x > 6 ? 6.0 : x); }
  static int64_t EvalInt(int64_t x) { return x < 0 ? 0 : (x > 6 ? 6 : x); }
  static absl::Status Lower(const OpView& view, LowerContext& context) {
    // min(r, 6) = -max(-r, -6), the maximum by pooling pairs: exact for every r, which no chain of
    // additions is. The unit's own code for Relu6 is not public.
    const int64_t n = view.inputs[0].element_count();
    ASSIGN_OR_RETURN(const Operand a, context.Input(0));
    const Operand positive = context.Temp(n);
    const Operand pair = context.Temp(2 * n);
    const Operand largest = context.Temp(n);
    EmitActivation(context, Activation::kRelu, a, positive, n);
    EmitScalar(context, Arithmetic::kMul, positive, -1.0f, pair, n);
    RETURN_IF_ERROR(EmitFill(context, -6.0f, pair.Plus(2 * n), n));
    RETURN_IF_ERROR(EmitMaxOverMiddle(context, pair, largest, 1, 2, n));
    EmitScalar(context, Arithmetic::kMul, largest, -1.0f, context.Output(0), n);
    return absl::OkStatus();
  }
};

}  // namespace

NPUC_DEFINE_OP(Relu6)

}  // namespace npuc
