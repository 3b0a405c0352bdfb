#include "compiler_core/ops/elementwise.h"
#include "compiler_core/ops/numeric.h"
#include "compiler_core/ops/vector_emit.h"

namespace npuc {
namespace {

struct Neg : UnaryOp<Neg> {
  static constexpr OpTraits kTraits = {.layout = LayoutRule::kElementwise,
                                       .integer = IntegerRule::kFunction,
                                       .layer_type = "Negative",
                                       .is_pointwise = true};

  static double Eval(double x) { return -x; }
  static int64_t EvalInt(int64_t x) { return WrapMul(x, -1); }
  static absl::Status Lower(const OpView& view, LowerContext& context) {
    return LowerScalar(view, context, Arithmetic::kMul, -1.0f);
  }
};

}  // namespace

NPUC_DEFINE_OP(Neg)

}  // namespace npuc
