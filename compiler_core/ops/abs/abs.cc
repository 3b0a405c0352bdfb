#include <cmath>

#include "compiler_core/ops/elementwise.h"
#include "compiler_core/ops/numeric.h"

namespace npuc {
namespace {

struct Abs : UnaryOp<Abs> {
  static double Eval(double x) { return std::fabs(x); }
  static int64_t EvalInt(int64_t x) { return x < 0 ? WrapMul(x, -1) : x; }
};

}  // namespace

NPUC_DEFINE_OP(Abs)

}  // namespace npuc
