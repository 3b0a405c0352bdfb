#include "compiler_core/ops/softmax.h"

namespace npuc {
namespace {

struct Softmax : SoftmaxOp</*kLog=*/false> {
  static constexpr OpTraits kTraits = {.layout = LayoutRule::kAxis,
                                       .integer = IntegerRule::kSoftmax,
                                       .fp16_error = {.roundings = 12}};
};

}  // namespace

NPUC_DEFINE_OP(Softmax)

}  // namespace npuc
