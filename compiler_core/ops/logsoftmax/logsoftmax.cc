#include "compiler_core/ops/softmax.h"

namespace npuc {
namespace {

struct LogSoftmax : SoftmaxOp</*kLog=*/true> {};

}  // namespace

NPUC_DEFINE_OP(LogSoftmax)

}  // namespace npuc
