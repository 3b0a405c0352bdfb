#ifndef NPUC_COMPILER_CORE_OPS_FACTS_H_
#define NPUC_COMPILER_CORE_OPS_FACTS_H_

namespace npuc {

// Attributes of the form kFactPrefix (op.h) that say to lowerings what the source has for
// arithmetic. Operators ignore them.

// True of the two products of a TensorFlow Lite SVDF. Where an integer core follows TensorFlow
// Lite, their sums have 32 bits and their factors are made in float32.
inline constexpr char kSvdfFact[] = "fact_is_svdf";

// True of a Maximum with the lowest finite number, or a Minimum with the largest, that changes
// infinities alone, so that they make no NaN. Cores compute with finite numbers and take operand 0.
inline constexpr char kBoundsInfinityFact[] = "fact_bounds_infinity";

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_OPS_FACTS_H_
