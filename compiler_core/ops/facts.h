#ifndef NPUC_COMPILER_CORE_OPS_FACTS_H_
#define NPUC_COMPILER_CORE_OPS_FACTS_H_

namespace npuc {

// Attributes of the form kFactPrefix (op.h) that say to lowerings what the source has for
// arithmetic. Operators ignore them.

// True of the two products of a TensorFlow Lite SVDF. Where an integer core follows TensorFlow
// Lite, their sums have 32 bits and their factors are made in float32.
inline constexpr char kSvdfFact[] = "fact_is_svdf";

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_OPS_FACTS_H_
