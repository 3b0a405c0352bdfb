#include "compiler_core/ops/reduce.h"

namespace npuc {
namespace {

struct ReduceSum : ReduceOp<Reduction::kSum> {
  static constexpr OpTraits kTraits = {.layout = LayoutRule::kReduction,
                                       .integer = IntegerRule::kReduction,
                                       .layer_type = "Reduce",
                                       .method = "SUM",
                                       .listed_as = "Sum",
                                       .fp16_error = {.roundings = 5, .of_terms = true}};
};

}  // namespace

NPUC_DEFINE_OP(ReduceSum)

}  // namespace npuc
