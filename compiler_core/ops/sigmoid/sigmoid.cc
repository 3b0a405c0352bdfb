#include <cmath>

#include "compiler_core/ops/elementwise.h"

namespace npuc {
namespace {

struct Sigmoid : UnaryOp<Sigmoid> {
  static double Eval(double x) { return 1.0 / (1.0 + std::exp(-x)); }
};

}  // namespace

NPUC_DEFINE_OP(Sigmoid)

}  // namespace npuc
