#include "compiler_core/ops/reduce.h"

namespace npuc {
namespace {

struct ReduceMean : ReduceOp<Reduction::kMean> {
  static constexpr OpTraits kTraits = {.layout = LayoutRule::kReduction,
                                       .integer = IntegerRule::kReduction,
                                       .layer_type = "Reduce",
                                       .method = "MEAN",
                                       .listed_as = "Mean",
                                       .fp16_error = {.roundings = 5, .of_terms = true}};
};

}  // namespace

NPUC_DEFINE_OP(ReduceMean)

}  // namespace npuc
