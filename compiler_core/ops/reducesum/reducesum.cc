#include "compiler_core/ops/reduce.h"

namespace npuc {
namespace {

struct ReduceSum : ReduceOp<Reduction::kSum> {};

}  // namespace

NPUC_DEFINE_OP(ReduceSum)

}  // namespace npuc
