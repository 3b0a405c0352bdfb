#include <cmath>

#include "compiler_core/ops/elementwise.h"
#include "compiler_core/ops/vector_emit.h"

namespace npuc {
namespace {

// Source: Klambauer et al., Self-Normalizing Neural Networks, 2017, equation 2.
struct Selu : UnaryOp<Selu> {
  static constexpr OpTraits kTraits = {.layout = LayoutRule::kElementwise,
                                       .integer = IntegerRule::kActivation,
                                       .layer_type = "Activation",
                                       .method = "SELU",
                                       .is_pointwise = true,
                                       .fp16_error = {.roundings = 8, .floor = 0x1p-8}};

  static double Eval(double x) {
    constexpr double kScale = 1.0507009873554804934;
    constexpr double kAlpha = 1.6732632423543772848;
    return x < 0 ? kScale * kAlpha * std::expm1(x) : kScale * x;
  }
  static absl::Status Lower(const OpView& view, LowerContext& context) {
    return LowerActivation(view, context, Activation::kSelu);
  }
};

}  // namespace

NPUC_DEFINE_OP(Selu)

}  // namespace npuc
