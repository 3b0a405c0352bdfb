#include "compiler_core/ops/comparison.h"

namespace npuc {
namespace {

struct Equal : ComparisonOp<Equal> {
  template <typename T>
  static bool Holds(T a, T b) {
    return a == b;
  }
};

}  // namespace

NPUC_DEFINE_OP(Equal)

}  // namespace npuc
