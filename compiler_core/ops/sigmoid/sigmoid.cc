#include <cmath>

#include "compiler_core/ops/elementwise.h"
#include "compiler_core/ops/vector_emit.h"

namespace npuc {
namespace {

struct Sigmoid : UnaryOp<Sigmoid> {
  static constexpr OpTraits kTraits = {.layout = LayoutRule::kElementwise,
                                       .integer = IntegerRule::kActivation,
                                       .layer_type = "Activation",
                                       .method = "SIGMOID",
                                       .is_pointwise = true};

  static double Eval(double x) { return 1.0 / (1.0 + std::exp(-x)); }
  static absl::Status Lower(const OpView& view, LowerContext& context) {
    return LowerActivation(view, context, Activation::kSigmoid);
  }
};

}  // namespace

NPUC_DEFINE_OP(Sigmoid)

}  // namespace npuc
