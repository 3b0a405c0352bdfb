#include "compiler_core/ops/softmax.h"

namespace npuc {
namespace {

struct LogSoftmax : SoftmaxOp</*kLog=*/true> {
  static constexpr OpTraits kTraits = {.layout = LayoutRule::kAxis,
                                       .integer = IntegerRule::kSoftmax,
                                       .fp16_error = {.roundings = 12, .floor = 0x1p-8}};
};

}  // namespace

NPUC_DEFINE_OP(LogSoftmax)

}  // namespace npuc
