#ifndef NPUC_COMPILER_CORE_TOOLS_LAYER_DUMP_H_
#define NPUC_COMPILER_CORE_TOOLS_LAYER_DUMP_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/pipeline/compile.h"

namespace npuc {

// Writes the tensors of a model's layers, as an integer core stores them and as float computes
// them.

// --dump_all_tensors and --dump_tensors of Compass's tools.
struct LayerDump {
  bool all = false;
  std::string layer_ids;  // "3,5"
};
// The numbers of `layer_ids`; empty: all. INVALID_ARGUMENT where it is no list of numbers.
absl::StatusOr<std::set<int>> LayerIdsOf(const LayerDump& dump);

// The files of a dump in `folder`: NNNN_LAYER.npy with the stored integers of each result,
// NNNN_LAYER_float.npy with the float ones, and layers.csv, a line for each with type, scale, zero
// point and how far the two are apart.
//
// Dumps one item of `files`, which has a file for each model input, as NamedInputs has them.
absl::Status DumpRun(const CompileRequest& request, const std::vector<std::string>& files,
                     const std::set<int>& layer_ids, const std::string& folder,
                     Diagnostics& diagnostics);
// Does the same for the first sample of QUANT: calibration_data.
absl::Status DumpCalibration(const CompileRequest& request, const std::string& folder,
                             Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_LAYER_DUMP_H_
