#include <cmath>

#include "compiler_core/ops/elementwise.h"
#include "compiler_core/ops/vector_emit.h"

namespace npuc {
namespace {

struct Exp : UnaryOp<Exp> {
  static double Eval(double x) { return std::exp(x); }
  static absl::Status Lower(const OpView& view, LowerContext& context) {
    return LowerScalar(view, context, Arithmetic::kExp, 0.0f);
  }
};

}  // namespace

NPUC_DEFINE_OP(Exp)

}  // namespace npuc
