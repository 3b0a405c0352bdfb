#ifndef NPUC_COMPILER_CORE_LOWERING_INTEGER_CHANNEL_FACTS_H_
#define NPUC_COMPILER_CORE_LOWERING_INTEGER_CHANNEL_FACTS_H_

#include <map>

#include "absl/status/statusor.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/ir/graph/quantization.h"
#include "compiler_core/ops/channels.h"

namespace npuc {

// The channels of a quantized graph that always hold one integer, by the arithmetic that
// LowerInteger gives its layers: of weights that are all zero, of such channels alone, and what
// moves and pools them. A layer that LowerInteger would refuse has no facts.
ChannelFacts IntegerChannelFacts(const Graph& graph, const QuantPlan& plan);

// The integers of the channels that remain. `plan` changes in its constants, their parameters and
// the layers' factors alone, as ids stay (passes/dead_channels.h).
struct KeptIntegers {
  QuantPlan plan;
  std::map<ValueId, Tensor> biases;  // float biases that took up constant channels, already cut
};
// UNIMPLEMENTED where a layer's weight cannot be lowered.
absl::StatusOr<KeptIntegers> KeepIntegers(const Graph& graph, const QuantPlan& plan,
                                          const ChannelFacts& facts, const KeptChannels& kept);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_LOWERING_INTEGER_CHANNEL_FACTS_H_
