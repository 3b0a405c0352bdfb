#include "compiler_core/base/status.h"
#include "compiler_core/ops/elementwise.h"
#include "compiler_core/ops/vector_emit.h"

namespace npuc {
namespace {

struct Reciprocal : UnaryOp<Reciprocal> {
  static double Eval(double x) { return 1.0 / x; }
  static absl::Status Lower(const OpView& view, LowerContext& context) {
    ASSIGN_OR_RETURN(const Operand a, context.Input(0));
    EmitScalarFirst(context, Arithmetic::kDiv, 1.0f, a, context.OutputOver(0, 0),
                    view.inputs[0].element_count());
    return absl::OkStatus();
  }
};

}  // namespace

NPUC_DEFINE_OP(Reciprocal)

}  // namespace npuc
