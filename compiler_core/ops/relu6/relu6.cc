#include "compiler_core/ops/elementwise.h"

namespace npuc {
namespace {

struct Relu6 : UnaryOp<Relu6> {
  static double Eval(double x) { return x < 0 ? 0.0 : (x > 6 ? 6.0 : x); }
  static int64_t EvalInt(int64_t x) { return x < 0 ? 0 : (x > 6 ? 6 : x); }
};

}  // namespace

NPUC_DEFINE_OP(Relu6)

}  // namespace npuc
