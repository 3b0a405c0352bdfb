#include "compiler_core/ops/elementwise.h"
#include "compiler_core/ops/numeric.h"

namespace npuc {
namespace {

struct Mul : BinaryOp<Mul> {
  static double Eval(double a, double b) { return a * b; }
  static std::optional<int64_t> EvalInt(int64_t a, int64_t b) { return WrapMul(a, b); }
};

}  // namespace

NPUC_DEFINE_OP(Mul)

}  // namespace npuc
