#include "compiler_core/ops/reduce.h"

namespace npuc {
namespace {

struct ReduceMax : ReduceOp<Reduction::kMax> {};

}  // namespace

NPUC_DEFINE_OP(ReduceMax)

}  // namespace npuc
