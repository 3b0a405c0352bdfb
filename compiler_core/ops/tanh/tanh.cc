#include <cmath>

#include "compiler_core/ops/elementwise.h"

namespace npuc {
namespace {

struct Tanh : UnaryOp<Tanh> {
  static double Eval(double x) { return std::tanh(x); }
};

}  // namespace

NPUC_DEFINE_OP(Tanh)

}  // namespace npuc
