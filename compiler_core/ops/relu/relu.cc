#include "compiler_core/ops/elementwise.h"

namespace npuc {
namespace {

struct Relu : UnaryOp<Relu> {
  static double Eval(double x) { return x < 0 ? 0.0 : x; }
  static int64_t EvalInt(int64_t x) { return x < 0 ? 0 : x; }
};

}  // namespace

NPUC_DEFINE_OP(Relu)

}  // namespace npuc
