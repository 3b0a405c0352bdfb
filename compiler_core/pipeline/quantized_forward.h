#ifndef NPUC_COMPILER_CORE_PIPELINE_QUANTIZED_FORWARD_H_
#define NPUC_COMPILER_CORE_PIPELINE_QUANTIZED_FORWARD_H_

#include "absl/status/statusor.h"
#include "compiler_core/backends/integer/integer_model.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/pipeline/compile.h"

namespace npuc {

// The quantized forward pass of a model for an integer core as float operators can run it: values
// that the core stores as integers are rounded to what those stand for, layers that stay in float
// (fake_quant_scopes_for_debug, fake_quant_operators_for_debug, the template's trigger_float_op)
// compute in float. It needs no command for any layer, so it also runs what does not compile.
struct QuantizedForward {
  IntegerModel model;
  Graph graph;  // the model in QDQ form, for the operators' references
};

// imported: of ImportModel. Problems go to `diagnostics`, with those of MakeIntegerModel: a core
// that does not quantize.
absl::StatusOr<QuantizedForward> MakeQuantizedForward(const CompileRequest& request, Graph imported,
                                                      Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PIPELINE_QUANTIZED_FORWARD_H_
