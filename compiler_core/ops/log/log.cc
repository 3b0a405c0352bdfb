#include <cmath>

#include "compiler_core/ops/elementwise.h"

namespace npuc {
namespace {

struct Log : UnaryOp<Log> {
  static double Eval(double x) { return std::log(x); }
};

}  // namespace

NPUC_DEFINE_OP(Log)

}  // namespace npuc
