#include "compiler_core/ops/reduce.h"

namespace npuc {
namespace {

struct ReduceMax : ReduceOp<Reduction::kMax> {
  static constexpr OpTraits kTraits = {.layout = LayoutRule::kReduction,
                                       .integer = IntegerRule::kReduction,
                                       .layer_type = "Reduce",
                                       .method = "MAX",
                                       .listed_as = "Max"};
};

}  // namespace

NPUC_DEFINE_OP(ReduceMax)

}  // namespace npuc
