#ifndef NPUC_COMPILER_CORE_PIPELINE_RANDOM_NODES_TEST_UTIL_H_
#define NPUC_COMPILER_CORE_PIPELINE_RANDOM_NODES_TEST_UTIL_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/lowering/lower.h"

namespace npuc {

// One node with its operands, for tests that run every operator through the compiler.
struct NodeSpec {
  Op op = {};                // of the IR
  std::string framework_op;  // the TensorFlow operator that it could come from
  AttrMap attrs;
  std::vector<Tensor> operands;  // f32, every value one of fp16
  std::vector<bool> is_constant;

  std::string ToString() const;
};

// A graph of that node alone; operands that are not constant are graph inputs, in order.
struct NodeGraph {
  Graph graph;
  std::vector<Tensor> inputs;
};
// Every operand's absolute values where `absolute`: the sums that bound rounding errors.
absl::StatusOr<NodeGraph> BuildNodeGraph(const NodeSpec& spec, bool absolute = false);

// A random node of operator `op` with legal shapes and attributes; extents cluster around the
// widths of the command fields. At most `max_elements` an operand. Values suit the operator: no
// division by zero, no logarithm of a negative number, no overflow of fp16.
NodeSpec RandomNode(Op op, std::mt19937& rng, int64_t max_elements);

// The default options, with MEMORY_PLAN: in_place where `in_place`.
LowerOptions OptionsOf(bool in_place);

// The graph lowered for a core of fp16, planned, checked, encoded and run by the simulator: one
// vector per output. Copies are dropped unless options.plain_commands.
absl::StatusOr<std::vector<std::vector<float>>> Simulate(const Graph& graph,
                                                         absl::Span<const Tensor> inputs,
                                                         const LowerOptions& options,
                                                         Diagnostics& diagnostics,
                                                         absl::string_view core = "GRUS");

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PIPELINE_RANDOM_NODES_TEST_UTIL_H_
