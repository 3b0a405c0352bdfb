#ifndef NPUC_COMPILER_CORE_BACKENDS_INTEGER_LAYER_OUTPUTS_H_
#define NPUC_COMPILER_CORE_BACKENDS_INTEGER_LAYER_OUTPUTS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/emit/artifact.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/ir/integer/command.h"
#include "compiler_core/pipeline/compile.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {

// A lowered and placed program as the contents of an artifact; `model_name` is for diagnostics.
absl::StatusOr<CompiledModel> AssembleModel(const integer::Program& program,
                                            const std::string& model_name, const CoreSpec& core,
                                            Diagnostics& diagnostics);

// One result of a layer, and the output of LayerOutputs that it is.
struct LayerResult {
  int layer_id = 0;  // as opt_template.json and IR files count
  std::string layer;
  std::string type;  // Compass's
  size_t output = 0;
};

// A model for an integer core of which every layer's results are outputs, for those who want to see
// them: its own outputs first. Each layer's integers are the ones that the model without the
// further outputs has, since a layer stores its results either way.
struct LayerOutputs {
  CompiledModel model;
  Graph graph;  // in float, with the same inputs and outputs
  std::vector<LayerResult>
      results;  // in the layers' order; inputs and constants are not among them
  std::vector<size_t> state_inputs;  // inputs of the graph that an output feeds
};

// Quantizes as the compile of `request` does. Problems go to `diagnostics`: those of a compile, a
// core that has no integers, more layers than an artifact has outputs.
absl::StatusOr<LayerOutputs> MakeLayerOutputs(const CompileRequest& request, Graph imported,
                                              Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BACKENDS_INTEGER_LAYER_OUTPUTS_H_
