#include <cmath>

#include "compiler_core/ops/elementwise.h"
#include "compiler_core/ops/move_emit.h"

namespace npuc {
namespace {

// NaN in either operand gives NaN, as in numpy.
struct Minimum : BinaryOp<Minimum> {
  static constexpr OpTraits kTraits = {.layout = LayoutRule::kBroadcast,
                                       .integer = IntegerRule::kCombine,
                                       .layer_type = "Eltwise",
                                       .method = "MIN",
                                       .is_pointwise = true};

  static double Eval(double a, double b) { return std::isnan(a) || a < b ? a : b; }
  static std::optional<int64_t> EvalInt(int64_t a, int64_t b) { return a < b ? a : b; }
  static absl::Status Lower(const OpView& view, LowerContext& context) {
    return LowerExtremum(view, context, /*minimum=*/true);
  }
};

}  // namespace

NPUC_DEFINE_OP(Minimum)

}  // namespace npuc
