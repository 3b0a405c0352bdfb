#ifndef NPUC_COMPILER_CORE_TOOLS_SIMULATION_H_
#define NPUC_COMPILER_CORE_TOOLS_SIMULATION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/emit/artifact.h"
#include "compiler_core/tools/run_items.h"

namespace npuc {

// Runs with files as Compass's tools have them: one for each input in the model's order, raw bytes
// as the ports store them, or .npy.

struct SimulationFiles {
  std::vector<std::string> inputs;
  // The file of the first output; the second has "1" behind this name, the third "2" and so on. A
  // name that ends in .npy gets arrays of real values, any other the stored bytes.
  std::string output;
  bool prints = true;        // a line for each output
  std::string profile = {};  // where the run's counters go; empty: nowhere
};

// "y.bin", "y.bin1", "y.bin2"; "y.npy", "y1.npy".
std::string OutputPath(const std::string& first, size_t index);

// One file for each input as --input has them, "NAME=FILE". Too many or too few become diagnostics.
std::vector<std::string> NamedInputs(const std::vector<std::string>& files,
                                     const FrameRunner& model, Diagnostics& diagnostics);

absl::Status RunWithFiles(const CompiledModel& model, const SimulationFiles& files,
                          Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_SIMULATION_H_
