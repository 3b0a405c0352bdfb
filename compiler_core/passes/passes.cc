#include "compiler_core/passes/passes.h"

#include <utility>

#include "compiler_core/base/status.h"
#include "compiler_core/passes/apply.h"
#include "compiler_core/passes/dead_channels.h"
#include "compiler_core/passes/rewriter.h"

namespace npuc {
namespace {

absl::StatusOr<Graph> Checked(const Graph& graph, Graph (*apply)(Graph)) {
  RETURN_IF_ERROR(VerifyGraph(graph));
  return apply(graph);
}

// One round of the passes that clean up after the rewrites and each other.
Graph CleanUp(Graph graph, FoldBudget& budget) {
  graph = ApplyConstantFold(std::move(graph), budget);
  graph = ApplyCanonicalize(std::move(graph));    // before RemoveIdentity: it makes Reshapes
  graph = ApplyRemoveIdentity(std::move(graph));  // before Cse: so that it sees through them
  graph = ApplyCse(std::move(graph));
  return ApplyDeadCode(std::move(graph));
}

}  // namespace

absl::StatusOr<Graph> ConstantFold(const Graph& graph, FoldBudget budget) {
  RETURN_IF_ERROR(VerifyGraph(graph));
  return ApplyConstantFold(graph, budget);
}
absl::StatusOr<Graph> DeadCode(const Graph& graph) { return Checked(graph, &ApplyDeadCode); }
absl::StatusOr<Graph> RemoveIdentity(const Graph& graph) {
  return Checked(graph, &ApplyRemoveIdentity);
}
absl::StatusOr<Graph> Cse(const Graph& graph) { return Checked(graph, &ApplyCse); }
absl::StatusOr<Graph> Canonicalize(const Graph& graph) {
  return Checked(graph, &ApplyCanonicalize);
}
absl::StatusOr<Graph> PropagateTransposes(const Graph& graph) {
  return Checked(graph, &ApplyPropagateTransposes);
}
absl::StatusOr<Graph> RewriteSoftmax(const Graph& graph) {
  return Checked(graph, &ApplyRewriteSoftmax);
}
absl::StatusOr<Graph> LogOfSquares(const Graph& graph) {
  return Checked(graph, &ApplyLogOfSquares);
}
absl::StatusOr<Graph> RewriteBatchNorm(const Graph& graph) {
  return Checked(graph, &ApplyRewriteBatchNorm);
}
absl::StatusOr<Graph> FuseBatchNorm(const Graph& graph) {
  return Checked(graph, &ApplyFuseBatchNorm);
}

absl::StatusOr<Graph> FuseBias(const Graph& graph) { return Checked(graph, &ApplyFuseBias); }

absl::StatusOr<Graph> RemoveDeadChannels(const Graph& graph) {
  RETURN_IF_ERROR(VerifyGraph(graph));
  const KeptChannels kept = FindDeadChannels(graph, HalfChannelFacts(graph));
  return kept.removed == 0 ? graph : KeepChannels(graph, kept);
}

absl::StatusOr<Graph> RunPasses(Graph graph, const PassOptions& options) {
  FoldBudget budget = options.fold_budget;
  Graph current = ApplyDeadCode(std::move(graph));  // first: what nobody needs costs no folding
  // Before the rewrites: they look for constant operands.
  current = CleanUp(std::move(current), budget);
  if (options.fuse_batch_norm) current = ApplyFuseBatchNorm(std::move(current));
  // What was not fused.
  if (options.rewrite_batch_norm) current = ApplyRewriteBatchNorm(std::move(current));
  if (options.rewrite_softmax) current = ApplyRewriteSoftmax(std::move(current));
  if (options.log_of_squares) current = ApplyLogOfSquares(std::move(current));
  uint64_t fingerprint = Fingerprint(current);
  uint64_t settled = 0;  // fingerprint of a graph whose transposes are where they should be
  for (int round = 0; round < options.max_rounds; ++round) {
    current = CleanUp(std::move(current), budget);
    const uint64_t clean = Fingerprint(current);
    uint64_t next = clean;
    if (clean != settled) {
      // Behind the clean-up, which merges transposes and drops nodes that stand in their way.
      current = ApplyPropagateTransposes(std::move(current));
      next = Fingerprint(current);
      if (next == clean) settled = clean;
    }
    if (next == fingerprint) break;
    fingerprint = next;
  }
  // Last: the other passes need not know of a convolution's third operand.
  if (options.fuse_bias) current = ApplyFuseBias(std::move(current));
  if (options.verify) RETURN_IF_ERROR(VerifyGraph(current));
  return current;
}

}  // namespace npuc
