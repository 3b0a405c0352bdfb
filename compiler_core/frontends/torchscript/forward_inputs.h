#ifndef NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_FORWARD_INPUTS_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_FORWARD_INPUTS_H_

#include <string>
#include <utility>
#include <vector>

#include "compiler_core/base/compile_options.h"
#include "compiler_core/frontends/torchscript/executor.h"
#include "compiler_core/frontends/torchscript/op_call.h"

namespace npuc::pt {

// The arguments of forward, and which inputs of the graph they hold.
struct ForwardInputs {
  std::vector<ScriptValue> arguments;
  std::vector<std::pair<std::string, ValueId>> inputs;  // as INPUT_OPS calls them: "1.0"
};

// Makes the arguments that INPUT_OPS and CONST_INPUTS declare. Both count forward's parameters from
// 0. A tensor of a tuple or list is PARAMETER.INDEX, one of a dict PARAMETER.KEY, and so on where
// they are nested. False: every problem is reported.
bool MakeForwardInputs(const ScriptFunction& forward, const CompileOptions& options,
                       ImportState& state, Executor& executor, ForwardInputs& made);

}  // namespace npuc::pt

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_FORWARD_INPUTS_H_
