#ifndef NPUC_COMPILER_CORE_BASE_FP16_SPAN_H_
#define NPUC_COMPILER_CORE_BASE_FP16_SPAN_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace npuc {

// fp16.h's conversions for many values at once: by the processor's own instructions where it has
// them, which give the same bits for every value, NaN included, some ten times as fast.

// Whether the processor has them: instructions of "avx,f16c".
bool HasHalfInstructions();
// FloatToHalf of each value.
std::vector<uint16_t> FloatsToHalves(absl::Span<const float> values);
// Each value becomes RoundToHalf of it.
void RoundToHalves(absl::Span<float> values);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_FP16_SPAN_H_
