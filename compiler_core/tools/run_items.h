#ifndef NPUC_COMPILER_CORE_TOOLS_RUN_ITEMS_H_
#define NPUC_COMPILER_CORE_TOOLS_RUN_ITEMS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/base/diagnostic.h"
#include "compiler_core/emit/artifact.h"
#include "compiler_core/sim/simulator.h"
#include "compiler_core/tools/npy.h"

namespace npuc {

// Runs a simulator over stacked items, as `npuc run` does. No files.

struct NamedArray {
  std::string name;
  NpyArray array;
};

struct RunItemsResult {
  int64_t items = 0;
  std::vector<NamedArray> outputs;  // in the model's order; items stacked in the first dimension
};

// Inputs are matched by name ('/' and ':' may stand as '_'); float32, float64, float16, or uint16
// (fp16 bit patterns). An array [m*t,...] for a tensor [t,...] is m items; one item serves all.
// An array of one dimension more, [m,t,...], is m items too. State inputs may be left out: they
// start at zero, and are fed back from item to item; one that is given is the first item's.
// `max_items` 0: all there are. Above the number of items: where every input is one item, it is
// repeated that often; else no effect. All problems become diagnostics.
absl::StatusOr<RunItemsResult> RunItems(Simulator& simulator, const std::vector<NamedArray>& inputs,
                                        int64_t max_items, Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_RUN_ITEMS_H_
