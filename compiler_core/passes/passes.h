#ifndef NPUC_COMPILER_CORE_PASSES_PASSES_H_
#define NPUC_COMPILER_CORE_PASSES_PASSES_H_

#include "absl/status/statusor.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/ops/op.h"

namespace npuc {

// Graph -> graph. Every pass checks its operand with VerifyGraph (INTERNAL where it fails), leaves
// it as it was and builds a new graph with the same inputs and outputs; constants are shared.
// Source names stay: a node that stands for another takes its name, and a node that was there
// before keeps its own. Passes are pure and thread-safe, linear in nodes, and touch constants'
// bytes only where they say so.

// Replaces nodes whose operands are all constants by their values, within the budget. What has no
// elements is a constant, too, and no operand of a Concat. A weight that
// is only reshaped or transposed keeps the weight's name.
absl::StatusOr<Graph> ConstantFold(const Graph& graph, FoldBudget budget = {});

// Drops nodes that no output needs. Graph inputs stay, and a Quantize of one, which says how the
// input is stored.
absl::StatusOr<Graph> DeadCode(const Graph& graph);

// Drops nodes whose result is their operand: Identity, Reshape to the same shape, Transpose that
// leaves every axis, Slice of everything, Pad by nothing, Concat of and Split into one, reductions
// over no axis, 1x1 pooling, Quantize of what a Dequantize of the same
// parameters gave. A Reshape of a Reshape skips the inner one.
absl::StatusOr<Graph> RemoveIdentity(const Graph& graph);

// Merges nodes that compute the same: same operator, operands, attributes and types. Constants are
// equal where types and bytes are; only constants of one type that begin alike are hashed, each
// once. The first one's name stays.
absl::StatusOr<Graph> Cse(const Graph& graph);

// One form for what can be written in several, by rules that keep every value (the sign of a zero
// apart): the list is in canonicalize.cc and README.md.
absl::StatusOr<Graph> Canonicalize(const Graph& graph);

// Moves transposes through regions of nodes that do not mind in which order their operands are
// stored, so that they meet and cancel, or merge into the constant of a MatMul: the cheapest choice
// of nodes to relay is a minimum cut. Only where the whole graph then transposes fewer elements, so
// it ends, and never makes a permutation of many more copy commands. The rules are in
// layout_rules.h. Sums may be added in another order.
absl::StatusOr<Graph> PropagateTransposes(const Graph& graph);

// Softmax -> ReduceMax, Sub, Exp, ReduceSum, Div; LogSoftmax -> ReduceMax, Sub, Exp, ReduceSum,
// Log, Sub. The last node has the old one's name, the others NAME/max, NAME/sub ...
absl::StatusOr<Graph> RewriteSoftmax(const Graph& graph);

// Log of Add of a sum of squares and a number below 2^-14 -> twice the logarithm of the largest
// size m among the squares' roots and the number's own root, and the logarithm of the sum of (x /
// m)^2. So fp16 holds what counts: squares vanish below 2^-12, and with them all that is quieter.
// The sum is a ReduceSum of squares, the square of its root (behind Transposes and Reshapes), two
// squares or one. Results differ by rounding alone.
absl::StatusOr<Graph> LogOfSquares(const Graph& graph);

// BatchNorm of constant parameters -> Mul and Add of constants NAME/scale and NAME/offset, computed
// in double and rounded once.
absl::StatusOr<Graph> RewriteBatchNorm(const Graph& graph);

// Multiplies a BatchNorm of constant parameters into the constant weights of the Conv2D,
// DepthwiseConv2D or MatMul in front of it (with or without an Add of a constant bias between) and
// leaves an Add of the offset. Computed in double and rounded once. The weight keeps its name.
// Nothing else may use the values between.
absl::StatusOr<Graph> FuseBatchNorm(const Graph& graph);

// An Add of a constant, one number a channel, behind a Conv2D or DepthwiseConv2D of constant weight
// whose sums nothing else uses -> the convolution's third operand, its bias. The convolution keeps
// its name. Drops nodes that no output needs.
absl::StatusOr<Graph> FuseBias(const Graph& graph);

// Takes out channels that change no output where numbers are fp16: dead_channels.h, by what
// HalfChannelFacts finds. Not among RunPasses: back ends call it for their own arithmetic.
absl::StatusOr<Graph> RemoveDeadChannels(const Graph& graph);

struct PassOptions {
  bool fuse_batch_norm = false;  // FUSE_BN
  bool fuse_bias = false;        // FUSE_BIASADD
  bool rewrite_batch_norm = true;
  bool rewrite_softmax = true;
  bool log_of_squares = false;  // where numbers have 16 bits
  FoldBudget fold_budget = {};  // of all rounds together
  int max_rounds = 16;          // of the clean-up passes; they settle within three on real models
  bool verify = true;           // the result; else the caller does
};
// All passes in their order, the clean-up ones repeated until the graph stays the same. Running it
// on its own result changes nothing. The graph must be one that VerifyGraph accepts, as those of
// front ends are.
absl::StatusOr<Graph> RunPasses(Graph graph, const PassOptions& options = {});

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PASSES_PASSES_H_
