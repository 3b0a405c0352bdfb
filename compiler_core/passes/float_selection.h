#ifndef NPUC_COMPILER_CORE_PASSES_FLOAT_SELECTION_H_
#define NPUC_COMPILER_CORE_PASSES_FLOAT_SELECTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc {

struct FloatSelectionOptions {
  // Every whole number up to it is exact on the core, and one more than it may be an index.
  int64_t largest_index = 2048;
  // Differences of whole numbers are cut to -3..3 before they are compared, so that few bits hold
  // them. Costs commands where values are floats.
  bool narrows_differences = false;
  // Where a model is quantized: what has known bounds gets scales of its own, as bytes, so that a
  // core that keeps the model's scales has them for every value.
  bool stores_bounded = false;
};

struct FloatSelection {
  // A node that has no form in floats.
  struct Refusal {
    NodeSource source;
    std::string message;
    std::string fix;
  };
  Graph graph;
  int values = 0;  // that were booleans or integers; 0: the graph is as it was
  std::vector<std::string> inputs = {};  // names of those that are graph inputs
  std::vector<Refusal> refusals = {};    // where there are any, graph is of no use
};

// Attributes of a node that is known to give whole numbers or 0 and 1: bounds of its only result.
inline constexpr char kLeastFact[] = "fact_least";
inline constexpr char kMostFact[] = "fact_most";
// True of a MatMul each of whose results is one row of its operand 1.
inline constexpr char kPicksRowsFact[] = "fact_picks_rows";

// Cores compute with floats, or with integers that stand for them. Replaces the booleans and
// integers that a model computes at run time by floats, false and true by 0 and 1
// (decisions/0010-booleans-as-floats.md):
//   Greater            of floats stays, with a result in floats; all other comparisons are made of
//                      it, or of a difference where both sides are whole numbers
//   Select             c * a + (1 - c) * b; where an operator of a or b, as Log, may give no finite
//                      number, its operand is bounded where the other choice counts
//   Gather             a product with the rows [index = 0, index = 1, ...]
//   ArgMax             the largest of n - i where x_i is the maximum
//   Cast to integers   Floor of the size; roundings of floats as they are
//   sums, moves ...    as they are
//   Maximum, Minimum   operand 0, where kBoundsInfinityFact (ops/facts.h) marks them
// Exact as long as whole numbers are within largest_index. Leaves the integers of quantized models
// alone: what a Quantize gives, and inputs that a Dequantize reads. INTERNAL where the graph does
// not verify.
absl::StatusOr<FloatSelection> SelectInFloats(Graph graph, const FloatSelectionOptions& options);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PASSES_FLOAT_SELECTION_H_
