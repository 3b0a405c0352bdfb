#ifndef NPUC_COMPILER_CORE_LOWERING_COPIES_H_
#define NPUC_COMPILER_CORE_LOWERING_COPIES_H_

#include "compiler_core/ir/cmd/command.h"

namespace npuc {

// Leaves out copies of a program whose buffers are not placed yet:
// - of a whole buffer into a part of another, or into an output: what computes the buffer writes to
//   that place at once (concatenations, padded images, states);
// - of an element-wise result, row by row to rows of other lengths: the copies compute it;
// - into a buffer of which only a function is computed: the copies compute it (parts of a product);
// - into a buffer that nothing else writes: its readers read the original (slices, splits).
// What only waits to be copied to an output is copied as soon as it is complete, where that lowers
// the most bytes alive at once, which never grow. Every value stays the same. No command reads
// slot 4. PortTensor::state_input must be set: applications may lay the output struct over the next
// frame's states, so no state's output is written before the last command that reads its input.
// Deterministic; work is bounded by a count of steps, behind which copies stay.
void DropCopies(Program& program);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_LOWERING_COPIES_H_
