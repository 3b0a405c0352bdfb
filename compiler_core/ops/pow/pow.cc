#include <cmath>

#include "compiler_core/ops/elementwise.h"
#include "compiler_core/ops/numeric.h"
#include "compiler_core/ops/vector_emit.h"

namespace npuc {
namespace {

// Integer powers take no negative exponent, as in TensorFlow.
struct Pow : BinaryOp<Pow> {
  static double Eval(double a, double b) { return std::pow(a, b); }
  static std::optional<int64_t> EvalInt(int64_t a, int64_t b) {
    if (b < 0) return std::nullopt;
    int64_t power = 1;
    for (; b != 0; b >>= 1) {
      if ((b & 1) != 0) power = WrapMul(power, a);
      a = WrapMul(a, a);
    }
    return power;
  }
  static absl::Status Lower(const OpView& view, LowerContext& context) {
    return LowerBroadcast(view, context, Arithmetic::kPow);
  }
};

}  // namespace

NPUC_DEFINE_OP(Pow)

}  // namespace npuc
