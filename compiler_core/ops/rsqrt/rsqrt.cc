#include <cmath>

#include "compiler_core/ops/elementwise.h"

namespace npuc {
namespace {

struct Rsqrt : UnaryOp<Rsqrt> {
  static double Eval(double x) { return 1.0 / std::sqrt(x); }
};

}  // namespace

NPUC_DEFINE_OP(Rsqrt)

}  // namespace npuc
