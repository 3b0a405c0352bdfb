#ifndef NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_OUTLINE_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_OUTLINE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler_core/frontends/tensorflow/graphdef.h"

namespace npuc::tf {

// The shape of a Placeholder as it states it, with what follows from the weight of a MatMul or
// convolution right behind it; -1 where that leaves a dimension unknown. Empty optional: nothing is
// known.
std::optional<std::vector<int64_t>> LikelyShape(const GraphFile& graph, int placeholder);

}  // namespace npuc::tf

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_OUTLINE_H_
