#include "compiler_core/ops/reduce.h"

namespace npuc {
namespace {

struct ReduceMean : ReduceOp<Reduction::kMean> {};

}  // namespace

NPUC_DEFINE_OP(ReduceMean)

}  // namespace npuc
