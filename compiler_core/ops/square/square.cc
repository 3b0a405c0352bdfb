#include "compiler_core/ops/elementwise.h"
#include "compiler_core/ops/numeric.h"

namespace npuc {
namespace {

struct Square : UnaryOp<Square> {
  static double Eval(double x) { return x * x; }
  static int64_t EvalInt(int64_t x) { return WrapMul(x, x); }
};

}  // namespace

NPUC_DEFINE_OP(Square)

}  // namespace npuc
