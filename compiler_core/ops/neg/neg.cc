#include "compiler_core/ops/elementwise.h"
#include "compiler_core/ops/numeric.h"

namespace npuc {
namespace {

struct Neg : UnaryOp<Neg> {
  static double Eval(double x) { return -x; }
  static int64_t EvalInt(int64_t x) { return WrapMul(x, -1); }
};

}  // namespace

NPUC_DEFINE_OP(Neg)

}  // namespace npuc
