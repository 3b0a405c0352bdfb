#ifndef NPUC_COMPILER_CORE_LOWERING_INTEGER_CODE_WEIGHTS_H_
#define NPUC_COMPILER_CORE_LOWERING_INTEGER_CODE_WEIGHTS_H_

#include "absl/status/status.h"
#include "compiler_core/ir/integer/command.h"

namespace npuc {

// Puts the i8 weights of convolutions into their lossless code (ir/integer/weight_code.h) where
// that, with the tables that they share, takes fewer bytes; all others stay as they are. Moves
// every constant. Results are the same bits.
absl::Status CodeWeights(integer::Program& program);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_LOWERING_INTEGER_CODE_WEIGHTS_H_
