#include <cmath>

#include "compiler_core/ops/elementwise.h"
#include "compiler_core/ops/vector_emit.h"

namespace npuc {
namespace {

struct Tanh : UnaryOp<Tanh> {
  static constexpr OpTraits kTraits = {.layout = LayoutRule::kElementwise,
                                       .integer = IntegerRule::kActivation,
                                       .layer_type = "Activation",
                                       .method = "TANH",
                                       .is_pointwise = true};

  static double Eval(double x) { return std::tanh(x); }
  static absl::Status Lower(const OpView& view, LowerContext& context) {
    return LowerActivation(view, context, Activation::kTanh);
  }
};

}  // namespace

NPUC_DEFINE_OP(Tanh)

}  // namespace npuc
