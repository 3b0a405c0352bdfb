#include "compiler_core/ops/elementwise.h"
#include "compiler_core/ops/numeric.h"
#include "compiler_core/ops/vector_emit.h"

namespace npuc {
namespace {

struct Mul : BinaryOp<Mul> {
  static constexpr OpTraits kTraits = {.layout = LayoutRule::kBroadcast,
                                       .integer = IntegerRule::kCombine,
                                       .layer_type = "Eltwise",
                                       .method = "MUL",
                                       .is_pointwise = true};

  static double Eval(double a, double b) { return a * b; }
  static std::optional<int64_t> EvalInt(int64_t a, int64_t b) { return WrapMul(a, b); }
  static absl::Status Lower(const OpView& view, LowerContext& context) {
    return LowerBroadcast(view, context, Arithmetic::kMul);
  }
};

}  // namespace

NPUC_DEFINE_OP(Mul)

}  // namespace npuc
