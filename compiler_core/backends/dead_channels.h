#ifndef NPUC_COMPILER_CORE_BACKENDS_DEAD_CHANNELS_H_
#define NPUC_COMPILER_CORE_BACKENDS_DEAD_CHANNELS_H_

#include <string>

#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/ops/channels.h"

namespace npuc {

// A line for the log: how much less a graph computes without its dead channels.
std::string DeadChannelsNote(const KeptChannels& kept, const Graph& before, const Graph& after);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BACKENDS_DEAD_CHANNELS_H_
