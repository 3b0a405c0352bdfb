#include "compiler_core/ops/elementwise.h"
#include "compiler_core/ops/numeric.h"
#include "compiler_core/ops/vector_emit.h"

namespace npuc {
namespace {

struct Add : BinaryOp<Add> {
  static constexpr OpTraits kTraits = {.layout = LayoutRule::kBroadcast,
                                       .integer = IntegerRule::kCombine,
                                       .layer_type = "Eltwise",
                                       .method = "ADD",
                                       .is_pointwise = true};

  static double Eval(double a, double b) { return a + b; }
  static std::optional<int64_t> EvalInt(int64_t a, int64_t b) { return WrapAdd(a, b); }
  static absl::Status Lower(const OpView& view, LowerContext& context) {
    return LowerBroadcast(view, context, Arithmetic::kAdd);
  }
};

}  // namespace

NPUC_DEFINE_OP(Add)

}  // namespace npuc
