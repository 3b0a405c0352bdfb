#include "compiler_core/ops/elementwise.h"
#include "compiler_core/ops/vector_emit.h"

namespace npuc {
namespace {

struct Relu : UnaryOp<Relu> {
  static constexpr OpTraits kTraits = {.layout = LayoutRule::kElementwise,
                                       .integer = IntegerRule::kActivation,
                                       .layer_type = "Activation",
                                       .method = "RELU",
                                       .is_pointwise = true};

  static double Eval(double x) { return x < 0 ? 0.0 : x; }
  static int64_t EvalInt(int64_t x) { return x < 0 ? 0 : x; }
  static absl::Status Lower(const OpView& view, LowerContext& context) {
    return LowerActivation(view, context, Activation::kRelu);
  }
};

}  // namespace

NPUC_DEFINE_OP(Relu)

}  // namespace npuc
