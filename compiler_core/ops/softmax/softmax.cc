#include "compiler_core/ops/softmax.h"

namespace npuc {
namespace {

struct Softmax : SoftmaxOp</*kLog=*/false> {};

}  // namespace

NPUC_DEFINE_OP(Softmax)

}  // namespace npuc
