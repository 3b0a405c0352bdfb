#ifndef NPUC_COMPILER_CORE_QUANT_READ_RANGES_H_
#define NPUC_COMPILER_CORE_QUANT_READ_RANGES_H_

#include <map>

#include "compiler_core/quant/state.h"

namespace npuc {

// The part of a value's extrema in which the results of its readers change, where all of these are
// continuous functions of it alone, or Softmax. Sigmoid is flat to a step of 8 bits beyond +-8, so
// that a range of +-9000 would leave its table one entry to work with. Of a Softmax's operand the
// part far below the largest element of each row says nothing, as a mask of -10000 has it. Graph
// inputs and outputs keep their whole ranges. The result has the values whose range becomes less.
// Reads state.statistics and state.least_tops.
std::map<ValueId, ValueRange> FindReadRanges(const QuantState& state);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_READ_RANGES_H_
