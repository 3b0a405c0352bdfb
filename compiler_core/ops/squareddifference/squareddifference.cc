#include "compiler_core/ops/elementwise.h"
#include "compiler_core/ops/numeric.h"

namespace npuc {
namespace {

struct SquaredDifference : BinaryOp<SquaredDifference> {
  static double Eval(double a, double b) { return (a - b) * (a - b); }
  static std::optional<int64_t> EvalInt(int64_t a, int64_t b) {
    const int64_t d = WrapAdd(a, WrapMul(b, -1));
    return WrapMul(d, d);
  }
};

}  // namespace

NPUC_DEFINE_OP(SquaredDifference)

}  // namespace npuc
