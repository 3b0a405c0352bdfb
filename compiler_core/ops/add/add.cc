#include "compiler_core/ops/elementwise.h"
#include "compiler_core/ops/numeric.h"

namespace npuc {
namespace {

struct Add : BinaryOp<Add> {
  static double Eval(double a, double b) { return a + b; }
  static std::optional<int64_t> EvalInt(int64_t a, int64_t b) { return WrapAdd(a, b); }
};

}  // namespace

NPUC_DEFINE_OP(Add)

}  // namespace npuc
