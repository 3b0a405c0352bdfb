#ifndef NPUC_COMPILER_CORE_PASSES_DEAD_CHANNELS_H_
#define NPUC_COMPILER_CORE_PASSES_DEAD_CHANNELS_H_

#include <map>

#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/ops/channels.h"

namespace npuc {

// Exact removal of channels that change no output: those that only zero weights read, and those
// whose every element is one known number, where each reader can do without it. The facts say what
// is known of a core's numbers; what they leave empty is read from the graph. Nodes and values keep
// their ids, so that whatever speaks about them stays valid.

// The largest set of channels that can go: a channel stays where a graph input or output has it,
// where a node mixes it with others in a way that is not known here, where a weight that is not
// zero reads it for a result that stays (unless the facts give its number, and it is 0 or the
// product folds), or where it would be the last of a value. Linear in weights for graphs without
// such channels. Empty (removed = 0) for a graph of more than 2^22 channels.
KeptChannels FindDeadChannels(const Graph& graph, const ChannelFacts& facts);

// The graph of the remaining channels. `replaced`: constants to put in place of the graph's own,
// already cut.
Graph KeepChannels(const Graph& graph, const KeptChannels& kept,
                   const std::map<ValueId, Tensor>& replaced = {});

// Finds what is always zero where numbers and weights are stored in fp16 and computed by GRUS's
// commands (a weight or number that fp16 rounds to 0 counts as 0). A bias behind a convolution of
// zeros, and a Relu of what is never positive, are followed. Infinite activations aside, which
// times 0 would be NaN.
ChannelFacts HalfChannelFacts(const Graph& graph);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PASSES_DEAD_CHANNELS_H_
