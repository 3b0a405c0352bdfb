#include <cmath>

#include "compiler_core/ops/elementwise.h"

namespace npuc {
namespace {

struct Exp : UnaryOp<Exp> {
  static double Eval(double x) { return std::exp(x); }
};

}  // namespace

NPUC_DEFINE_OP(Exp)

}  // namespace npuc
