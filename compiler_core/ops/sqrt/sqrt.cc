#include <cmath>

#include "compiler_core/ops/elementwise.h"

namespace npuc {
namespace {

struct Sqrt : UnaryOp<Sqrt> {
  static double Eval(double x) { return std::sqrt(x); }
};

}  // namespace

NPUC_DEFINE_OP(Sqrt)

}  // namespace npuc
