#ifndef NPUC_COMPILER_CORE_BACKENDS_INTEGER_INTEGER_MODEL_H_
#define NPUC_COMPILER_CORE_BACKENDS_INTEGER_INTEGER_MODEL_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/ir/graph/quantization.h"
#include "compiler_core/pipeline/compile.h"
#include "compiler_core/quant/data/sample_set.h"
#include "compiler_core/quant/quantize.h"

namespace npuc {

// What an integer core computes: a float graph, and beside it the integers of every value between
// layers. They are the model's own where it is quantized, and Quantize()'s where it is in float.
struct IntegerModel {
  Graph graph;
  QuantPlan plan;
  std::optional<Graph> reference = {};  // what metrics compare with, where it is not `graph`
  std::vector<int> state_inputs = {};   // states.h, StatesOf; those quantized here share parameters
  bool quantized_here = false;
  std::vector<LayerSettings> settings = {};  // the members from here on: of models quantized here
  std::vector<LayerFidelity> fidelity = {};
  std::vector<OutputError> output_errors = {};  // one a graph output, of so many samples
  int64_t compared_samples = 0;
  std::string opt_template = {};
  std::string statistics = {};  // empty where the options do not ask for them
  std::string numpy_statistics = {};
  std::vector<std::string> log = {};
};

// The imported graph as MakeIntegerModel takes it: behind the passes. Where the core has scales of
// its own, requantizing steps of whole numbers are floats (whole_numbers.h), which a note says.
absl::StatusOr<Graph> IntegerGraph(const CompileRequest& request, Graph imported,
                                   Diagnostics& diagnostics);

// The files of QUANT: calibration_data, each with the input that it is for.
std::vector<SampleFile> CalibrationFilesOf(const CompileRequest& request);

// True where MakeIntegerModel keeps the model's own integers: it brings them, and the options ask
// for no float. `graph`: of IntegerGraph.
bool KeepsIntegers(const CompileRequest& request, const Graph& graph);

// `graph`: of IntegerGraph. Problems go to `diagnostics`: calibration data that are missing, do
// not fit or cannot be read; templates; operators that cannot be calibrated.
absl::StatusOr<IntegerModel> MakeIntegerModel(const CompileRequest& request, const Graph& graph,
                                              Diagnostics& diagnostics);

// The model without channels that change no output (passes/dead_channels.h), to the bit; the log
// says how many. Nodes, values and layers keep their ids and places.
absl::StatusOr<IntegerModel> DropDeadChannels(IntegerModel model);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BACKENDS_INTEGER_INTEGER_MODEL_H_
