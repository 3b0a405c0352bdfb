#ifndef NPUC_COMPILER_CORE_PASSES_APPLY_H_
#define NPUC_COMPILER_CORE_PASSES_APPLY_H_

#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/ops/op.h"

namespace npuc {

// The passes of passes.h without their check of the operand: RunPasses checks once and then chains
// these, moving the graph along. The graph must have passed VerifyGraph.
Graph ApplyConstantFold(Graph graph, FoldBudget& budget);
Graph ApplyDeadCode(Graph graph);
// keeps_input_quantizers: a Quantize of a graph input stays, since it says how the input is stored.
Graph DropUnused(Graph graph, bool keeps_input_quantizers);
Graph ApplyRemoveIdentity(Graph graph);
Graph ApplyCse(Graph graph);
Graph ApplyCanonicalize(Graph graph);
Graph ApplyPropagateTransposes(Graph graph);
Graph ApplyRewriteSoftmax(Graph graph);
Graph ApplyLogOfSquares(Graph graph);
Graph ApplyRewriteBatchNorm(Graph graph);
Graph ApplyFuseBatchNorm(Graph graph);
Graph ApplyFuseBias(Graph graph);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PASSES_APPLY_H_
