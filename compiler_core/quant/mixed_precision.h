#ifndef NPUC_COMPILER_CORE_QUANT_MIXED_PRECISION_H_
#define NPUC_COMPILER_CORE_QUANT_MIXED_PRECISION_H_

#include <string>
#include <vector>

#include "compiler_core/quant/state.h"

namespace npuc {

// mixed_precision_auto_search: raises the cheapest set of layers to 16 bits whose score is within
// the threshold of the float model's. Each layer's gain is measured once, alone; layers are then
// raised by gain over cost until the threshold is met, and those that it is met without are taken
// back, the dearest first. The cost of a layer is the bytes that 16 bits add to its weights and
// results. The score is the mean over the outputs of the cosine with the float model's ("L": float
// - quantized <= threshold), or of the square error over the energy ("G": quantized - float <=
// threshold); the number of batches only says whether to search at all. All samples
// count, and the score must be within the threshold by twice its standard error, so that it is
// likely to be on other data. `log` says
// what was measured and raised, and what raising every layer behind one index would have taken.
absl::Status SearchMixedPrecision(QuantState& state, Evaluators& evaluators,
                                  const SampleSet& samples, std::vector<std::string>& log);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_MIXED_PRECISION_H_
