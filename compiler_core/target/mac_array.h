#ifndef NPUC_COMPILER_CORE_TARGET_MAC_ARRAY_H_
#define NPUC_COMPILER_CORE_TARGET_MAC_ARRAY_H_

#include <cstdint>

#include "compiler_core/target/core_spec.h"

namespace npuc {

// The arrangement of an integer core's multipliers: outputs x inputs x pixels of them work in a
// cycle, and are idle where a layer has fewer of one. An assumption, as all of the cycle model;
// README.md states what it counts. Whole numbers > 0; the product is the core's macs_per_cycle.
struct MacArray {
  int64_t outputs;            // result channels side by side
  int64_t inputs;             // products of one sum: of inputs of a tap, or of up to four taps
  int64_t pixels;             // result pixels that follow each other
  int64_t weights_per_cycle;  // that the decoder of coded weights gives
};

// Null where the core's data file states none.
const MacArray* MacArrayOf(const CoreSpec& core);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TARGET_MAC_ARRAY_H_
