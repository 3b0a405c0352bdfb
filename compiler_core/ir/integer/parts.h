#ifndef NPUC_COMPILER_CORE_IR_INTEGER_PARTS_H_
#define NPUC_COMPILER_CORE_IR_INTEGER_PARTS_H_

#include <vector>

#include "compiler_core/ir/integer/command.h"

namespace npuc::integer {

// The parts of a command that several cores run side by side: commands that together compute the
// same result, to the bit, each its own elements of it.
//   kRows: rows of a convolve or pool (images where there are several), places of the outermost
//   extent that has several, rows of a softmax, elements of a fill or lookup.
//   kChannels: result channels of a convolve whose channels all read one group of inputs. Its
//   weights must not be coded.
// Parts are as equal as whole units allow. Empty where the command has no such parts. Takes a
// command without problems (verify.h).
std::vector<Body> PartsOf(const Body& body, const Sharing& sharing);

}  // namespace npuc::integer

#endif  // NPUC_COMPILER_CORE_IR_INTEGER_PARTS_H_
