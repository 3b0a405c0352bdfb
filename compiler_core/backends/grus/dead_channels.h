#ifndef NPUC_COMPILER_CORE_BACKENDS_GRUS_DEAD_CHANNELS_H_
#define NPUC_COMPILER_CORE_BACKENDS_GRUS_DEAD_CHANNELS_H_

#include <map>
#include <string>

#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/lowering/lower.h"
#include "compiler_core/ops/channels.h"

namespace npuc {

// A graph without the channels that change no output in fp16.
struct LiveGraph {
  Graph graph;
  KeptChannels kept;
  // By weight name: the range of a weight, and of the bias that shares its codes, where what went
  // had its least or greatest value. Codes of that range give what remains the same values as
  // before.
  std::map<std::string, std::pair<double, double>> ranges;
};
LiveGraph DropDeadChannels(Graph graph);

// Sets the ranges of weights that are compressed and have none from the config.
void KeepRanges(const LiveGraph& live, LowerOptions& options);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BACKENDS_GRUS_DEAD_CHANNELS_H_
