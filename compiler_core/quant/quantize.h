#ifndef NPUC_COMPILER_CORE_QUANT_QUANTIZE_H_
#define NPUC_COMPILER_CORE_QUANT_QUANTIZE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/quant_options.h"
#include "compiler_core/ir/graph/quantization.h"
#include "compiler_core/quant/data/sample_set.h"
#include "compiler_core/quant/evaluate.h"
#include "compiler_core/quant/ranges.h"
#include "compiler_core/quant/settings.h"

namespace npuc {

// What a quantizing run reads. Views: all must outlive the call.
struct QuantizeInput {
  const Graph* graph = nullptr;  // float, behind the passes; each layer has its own bias
  std::vector<Layer> layers;     // GroupLayers(*graph, ...)
  QuantOptions options;
  std::string model_name;                    // for diagnostics
  std::map<ValueId, ValueRange> in_ir = {};  // ranges that the model itself gives
  // Bounds that no samples need reach, as of indices: a range holds them by any strategy.
  std::map<ValueId, ValueRange> stated = {};
  std::vector<SampleFile> calibration = {};  // calibration_data; empty: statistics
  std::string statistics_name = {};          // statistics_file: its name and bytes
  absl::string_view statistics = {};
  std::string template_name = {};  // OPT_CONFIG: its name and bytes
  absl::string_view opt_template = {};
  // For a fixed-point core: every value has 16 bits and a power of two as scale, the least that
  // holds what was seen and is read (settings.h, FixedPointSettings).
  bool fixed_point = false;
  // Which graph input each graph output is fed back as in the next frame, or -1: the two get one
  // set of parameters. Empty: none is.
  std::vector<int> state_inputs = {};
};

// How well one layer's quantized results agree with the float model's, over the samples.
struct LayerFidelity {
  double cosine = 1;
  double mse = 0;
};

struct QuantizeResult {
  // What the plan belongs to: the graph given, or with equalized weights the one that those are in.
  // Node and value ids are the same.
  Graph graph;
  QuantPlan plan;
  std::vector<LayerSettings> settings;  // as the template has them, one a layer
  std::vector<LayerFidelity> fidelity;  // one a layer
  std::vector<OutputError> outputs;     // one a graph output
  int64_t compared_samples = 0;         // that fidelity and outputs are of
  std::string opt_template;             // opt_template.json
  // With save_statistic_info: the statistics file, and the same as Compass's tools write it.
  std::string statistics;
  std::string numpy_statistics;
  std::vector<std::string> log;  // what was tried, a line each
};

// Quantizes a float graph: calibrates on samples (or takes their statistics), settles each layer's
// settings from options and template, chooses parameters, quantizes weights and biases. Problems
// with the user's files go to `diagnostics`. Deterministic: one thread, one order.
absl::StatusOr<QuantizeResult> Quantize(const QuantizeInput& input, Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_QUANTIZE_H_
