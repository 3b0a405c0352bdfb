#include "compiler_core/ops/elementwise.h"
#include "compiler_core/ops/numeric.h"

namespace npuc {
namespace {

struct Sub : BinaryOp<Sub> {
  static double Eval(double a, double b) { return a - b; }
  static std::optional<int64_t> EvalInt(int64_t a, int64_t b) { return WrapAdd(a, WrapMul(b, -1)); }
};

}  // namespace

NPUC_DEFINE_OP(Sub)

}  // namespace npuc
