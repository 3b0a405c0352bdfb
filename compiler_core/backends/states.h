#ifndef NPUC_COMPILER_CORE_BACKENDS_STATES_H_
#define NPUC_COMPILER_CORE_BACKENDS_STATES_H_

#include <string>
#include <vector>

#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/cmd/command.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc {

// Finds the recurrent states among the fp16 outputs and sets PortTensor::state_input: first by name
// (NAME_out, or anything ending in "_NAME_out" or "/NAME_out", for input NAME), then, in order, the
// remaining fp16 outputs whose shape equals that of a so far unpaired input. Source: published
// headers; shared/spec/gxnpuc.md section 3. Adds a diagnostic with the right order where the state
// outputs do not come first in the order of their inputs: applications lay the output struct over
// the next frame's state inputs. `framework` words what to do about it.
void AssignStates(Program& program, const std::string& config_name, Framework framework,
                  Diagnostics& diagnostics);

// The same for a graph before it is compiled: of each output the input that it feeds, or -1.
// Outputs of an integer core, which has no FP16_OUT_OPS of its own, may be states by their names
// alone.
std::vector<int> StatesOf(const Graph& graph, const CompileOptions& options,
                          Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BACKENDS_STATES_H_
