#ifndef NPUC_COMPILER_CORE_PASSES_APPLY_H_
#define NPUC_COMPILER_CORE_PASSES_APPLY_H_

#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/ops/op.h"

namespace npuc {

// The passes of passes.h without their check of the operand: RunPasses checks once and then chains
// these. The graph must have passed VerifyGraph.
Graph ApplyConstantFold(const Graph& graph, FoldBudget& budget);
Graph ApplyDeadCode(const Graph& graph);
Graph ApplyRemoveIdentity(const Graph& graph);
Graph ApplyCse(const Graph& graph);
Graph ApplyCanonicalize(const Graph& graph);
Graph ApplyRewriteSoftmax(const Graph& graph);
Graph ApplyRewriteBatchNorm(const Graph& graph);
Graph ApplyFuseBatchNorm(const Graph& graph);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PASSES_APPLY_H_
