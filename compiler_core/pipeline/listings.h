#ifndef NPUC_COMPILER_CORE_PIPELINE_LISTINGS_H_
#define NPUC_COMPILER_CORE_PIPELINE_LISTINGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/emit/artifact.h"
#include "compiler_core/ir/cmd/load.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/lowering/lower.h"
#include "compiler_core/memplan/plan.h"
#include "compiler_core/pipeline/layer_errors.h"
#include "compiler_core/report/histogram.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {

// What the commands of one source node use.
struct NodeUse {
  explicit NodeUse(std::string node) : name(std::move(node)) {}
  std::string name;
  int64_t commands = 0;
  CommandLoad load;
  int64_t cycles = 0;                 // estimate; 0 without a cycle model
  std::vector<int32_t> data_buffers;  // ascending, each once
  std::vector<int32_t> weight_buffers;
};
// In order of first command. `cycles` may be null.
std::vector<NodeUse> UseByNode(const Program& program, const CycleModel* cycles);

// What the listings and the report tell about a finished compile. Views; valid during the calls.
struct CompileFacts {
  const Graph& graph;  // legalised
  const Program& program;
  const CompiledModel& model;
  const MemoryPlanResult& memory;
  absl::Span<const WeightRecord> weights;
  absl::Span<const Histogram> histograms;  // ReportHistograms of the two
  const Diagnostics& diagnostics;
  const CompileOptions& options;
  const CycleModel* cycles;        // of the core; may be null
  absl::Span<const NodeUse> uses;  // UseByNode of the two
  // By node of the graph; empty where the config does not ask for it.
  absl::Span<const std::optional<LayerError>> layer_errors;
};

int64_t BytesOf(const Program& program, absl::Span<const int32_t> buffers);

// Which operators' weights fit a cache of `size_bytes`: in order of use, each operator whole or not
// at all, weights that a cached operator has brought in counting once. An estimate, not verified on
// silicon. Pure.
struct WeightCacheUse {
  int64_t bytes = 0;
  std::vector<std::string> nodes;
};
WeightCacheUse PlanWeightCache(const Program& program, absl::Span<const NodeUse> uses,
                               int64_t size_bytes);

// A transpose that is left: a node of the graph, or a command by which another operator's data is
// turned for its unit.
struct TransposeRecord {
  std::string node;
  Shape shape;  // before
  std::vector<int64_t> perm;
  std::string reason;
};
std::vector<TransposeRecord> TransposesOf(const CompileFacts& facts);

// -v: one line per operator of the NPU model: source name, operator, output type, commands.
std::string ListOps(const CompileFacts& facts);
// -m: bytes of data, weights and commands by operator, then the totals and the liveness bound.
std::string ListMemory(const CompileFacts& facts);
// -w: per weight: shape, compression, range, step, sparsity, error.
std::string ListWeights(const CompileFacts& facts);
}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PIPELINE_LISTINGS_H_
