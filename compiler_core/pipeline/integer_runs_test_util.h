#ifndef NPUC_COMPILER_CORE_PIPELINE_INTEGER_RUNS_TEST_UTIL_H_
#define NPUC_COMPILER_CORE_PIPELINE_INTEGER_RUNS_TEST_UTIL_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler_core/emit/model_file.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/ir/graph/quantization.h"

namespace npuc {

// Every value's parameters from its extrema over the samples, each of which holds one tensor per
// graph input.
QuantPlan PlanByExtrema(const Graph& graph, const std::vector<std::vector<Tensor>>& samples,
                        int bits, bool symmetric);

// Lowered for an integer core, planned, checked, encoded, and through the file and back, as a
// user's artifact goes.
absl::StatusOr<CompiledModel> CompileIntegers(const Graph& graph, const QuantPlan& plan);

// What the simulator computes: the real values of each output.
absl::StatusOr<std::vector<std::vector<double>>> SimulateIntegers(const CompiledModel& model,
                                                                  absl::Span<const Tensor> inputs);

// The numbers that an input port's integers stand for: what the model computes with.
Tensor AsStored(const PortTensor& port, const Tensor& values);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PIPELINE_INTEGER_RUNS_TEST_UTIL_H_
