#include <cmath>

#include "compiler_core/ops/elementwise.h"
#include "compiler_core/ops/vector_emit.h"

namespace npuc {
namespace {

struct Rsqrt : UnaryOp<Rsqrt> {
  static double Eval(double x) { return 1.0 / std::sqrt(x); }
  static absl::Status Lower(const OpView& view, LowerContext& context) {
    return LowerScalar(view, context, Arithmetic::kPow, -0.5f);
  }
};

}  // namespace

NPUC_DEFINE_OP(Rsqrt)

}  // namespace npuc
