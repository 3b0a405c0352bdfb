#include "compiler_core/ops/elementwise.h"

namespace npuc {
namespace {

struct Reciprocal : UnaryOp<Reciprocal> {
  static double Eval(double x) { return 1.0 / x; }
};

}  // namespace

NPUC_DEFINE_OP(Reciprocal)

}  // namespace npuc
