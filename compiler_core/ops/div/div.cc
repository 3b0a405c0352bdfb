#include "compiler_core/ops/elementwise.h"
#include "compiler_core/ops/numeric.h"
#include "compiler_core/ops/vector_emit.h"

namespace npuc {
namespace {

// Integers divide towards zero, as TensorFlow's Div does.
struct Div : BinaryOp<Div> {
  static double Eval(double a, double b) { return a / b; }
  static std::optional<int64_t> EvalInt(int64_t a, int64_t b) {
    if (b == 0) return std::nullopt;
    return b == -1 ? WrapMul(a, -1) : a / b;
  }
  static absl::Status Lower(const OpView& view, LowerContext& context) {
    return LowerBroadcast(view, context, Arithmetic::kDiv);
  }
};

}  // namespace

NPUC_DEFINE_OP(Div)

}  // namespace npuc
