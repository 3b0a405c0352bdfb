#ifndef NPUC_COMPILER_CORE_PASSES_REMAINING_TRANSPOSES_H_
#define NPUC_COMPILER_CORE_PASSES_REMAINING_TRANSPOSES_H_

#include <string>
#include <vector>

#include "compiler_core/ir/graph/graph.h"

namespace npuc {

// A transpose that a graph still has, and why. Also a product that reads its first operand
// transposed, since the operand is moved for it.
struct RemainingTranspose {
  std::string node;  // source name
  Shape shape;       // of the operand
  std::vector<int64_t> perm;
  std::string reason;  // what its operand's node and its users do, for people; names are Printable
};

// In node order. The graph must have passed VerifyGraph. Pure.
std::vector<RemainingTranspose> RemainingTransposes(const Graph& graph);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PASSES_REMAINING_TRANSPOSES_H_
