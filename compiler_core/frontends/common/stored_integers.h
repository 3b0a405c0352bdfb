#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_STORED_INTEGERS_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_STORED_INTEGERS_H_

#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/ir/graph/quantization.h"
#include "compiler_core/ir/graph/types.h"

namespace npuc::frontend {

// The integers of a constant that stands for floats, as the file holds them.
struct StoredIntegers {
  Tensor integers;
  QuantParams params;
};

// An operator that gives some of its operands' elements in another order, to be computed on the
// integers themselves.
struct StoredMove {
  AttrMap attrs;                    // of the operator on integers: a Pad fills with the zero point
  std::vector<QuantParams> params;  // of each result
};

// How Reshape, Transpose, Slice, Split, Concat, Pad with 0 or Identity moves stored integers.
// nullopt for any other operator, for one whose operands do not fit, and where no parameters
// describe the results: operands of unlike scales, a Reshape that mixes channels.
std::optional<StoredMove> MoveStored(const Node& node,
                                     absl::Span<const StoredIntegers* const> operands);

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_STORED_INTEGERS_H_
