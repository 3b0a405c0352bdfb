#include <cmath>

#include "compiler_core/base/status.h"
#include "compiler_core/ops/elementwise.h"
#include "compiler_core/ops/rounding_emit.h"

namespace npuc {
namespace {

struct Floor : UnaryOp<Floor> {
  static double Eval(double x) { return std::floor(x); }
  static int64_t EvalInt(int64_t x) { return x; }
  static absl::Status Lower(const OpView& view, LowerContext& context) {
    ASSIGN_OR_RETURN(const Operand a, context.Input(0));
    EmitFloor(context, a, context.Output(0), view.inputs[0].element_count());
    return absl::OkStatus();
  }
};

}  // namespace

NPUC_DEFINE_OP(Floor)

}  // namespace npuc
