#include <cmath>

#include "compiler_core/ops/elementwise.h"
#include "compiler_core/ops/vector_emit.h"

namespace npuc {
namespace {

struct Log : UnaryOp<Log> {
  static double Eval(double x) { return std::log(x); }
  static absl::Status Lower(const OpView& view, LowerContext& context) {
    return LowerScalar(view, context, Arithmetic::kLog, 0.0f);
  }
};

}  // namespace

NPUC_DEFINE_OP(Log)

}  // namespace npuc
