#include "compiler_core/base/status.h"
#include "compiler_core/ops/elementwise.h"
#include "compiler_core/ops/numeric.h"
#include "compiler_core/ops/shape_util.h"
#include "compiler_core/ops/vector_emit.h"

namespace npuc {
namespace {

struct SquaredDifference : BinaryOp<SquaredDifference> {
  static constexpr OpTraits kTraits = {.layout = LayoutRule::kBroadcast,
                                       .integer = IntegerRule::kCombine,
                                       .is_pointwise = true,
                                       .fp16_error = {.roundings = 4, .floor = 0x1p-16}};

  static double Eval(double a, double b) { return (a - b) * (a - b); }
  static std::optional<int64_t> EvalInt(int64_t a, int64_t b) {
    const int64_t d = WrapAdd(a, WrapMul(b, -1));
    return WrapMul(d, d);
  }
  static absl::Status Lower(const OpView& view, LowerContext& context) {
    ASSIGN_OR_RETURN(const Shape shape,
                     BroadcastShapes(view.inputs[0].shape, view.inputs[1].shape));
    const int64_t n = ElementCount(shape);
    const Operand difference = context.Temp(n);
    RETURN_IF_ERROR(LowerBroadcastTo(view, context, Arithmetic::kSub, difference));
    EmitTensor(context, Arithmetic::kMul, difference, difference, context.Output(0), n);
    return absl::OkStatus();
  }
};

}  // namespace

NPUC_DEFINE_OP(SquaredDifference)

}  // namespace npuc
