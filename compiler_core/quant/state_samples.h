#ifndef NPUC_COMPILER_CORE_QUANT_STATE_SAMPLES_H_
#define NPUC_COMPILER_CORE_QUANT_STATE_SAMPLES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler_core/quant/data/sample_set.h"
#include "compiler_core/quant/executor/float_executor.h"

namespace npuc {

// All samples of all states together may have so many elements.
inline constexpr int64_t kMaxStateElements = int64_t{1} << 26;

// Gives samples to the states that have none: the float model runs once over all samples as over
// the frames of one recording, from states of zeros, and each state has the value that it then has.
// state_inputs: QuantizeInput's. RESOURCE_EXHAUSTED beyond kMaxStateElements; the samples' own
// errors.
absl::Status AddStateSamples(const FloatExecutor& executor, const std::vector<int>& state_inputs,
                             SampleSet& samples, std::vector<std::string>& log);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_STATE_SAMPLES_H_
