#ifndef NPUC_COMPILER_CORE_BACKENDS_GRUS_NODE_USES_H_
#define NPUC_COMPILER_CORE_BACKENDS_GRUS_NODE_USES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "compiler_core/backends/report_data.h"
#include "compiler_core/ir/cmd/command.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {

// What the commands of one source node use.
struct NodeUse {
  explicit NodeUse(std::string node) : name(std::move(node)) {}
  std::string name;
  CommandFigures figures;
  std::vector<int32_t> data_buffers;  // ascending, each once
  std::vector<int32_t> weight_buffers;
};
// In order of first command. `cycles` may be null.
std::vector<NodeUse> UseByNode(const Program& program, const CycleModel* cycles);

int64_t BytesOf(const Program& program, absl::Span<const int32_t> buffers);

// Which operators' weights fit a cache of `size_bytes`: in order of use, each operator whole or not
// at all, weights that a cached operator has brought in counting once. An estimate, not verified on
// silicon. Pure.
WeightCacheUse PlanWeightCache(const Program& program, absl::Span<const NodeUse> uses,
                               int64_t size_bytes);

std::vector<TransposeRecord> TransposesOf(const Graph& graph, const Program& program);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BACKENDS_GRUS_NODE_USES_H_
