#include <cmath>

#include "compiler_core/ops/elementwise.h"

namespace npuc {
namespace {

// To the nearest integer, halves to the even one.
struct Round : UnaryOp<Round> {
  static constexpr OpTraits kTraits = {
      .layout = LayoutRule::kFixed, .integer = IntegerRule::kNone, .is_pointwise = true};

  static double Eval(double x) { return std::nearbyint(x); }
  static int64_t EvalInt(int64_t x) { return x; }
};

}  // namespace

NPUC_DEFINE_OP(Round)

}  // namespace npuc
