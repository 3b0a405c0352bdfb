#ifndef NPUC_COMPILER_CORE_TOOLS_REFERENCE_COMMAND_H_
#define NPUC_COMPILER_CORE_TOOLS_REFERENCE_COMMAND_H_

#include <string>
#include <vector>

namespace npuc {

// `npuc reference CONFIG`: the model in float by its framework's semantics, without any pass of the
// compiler. Inputs and items are as for `npuc run`: an input whose first dimension is a multiple of
// the tensor's is run once per item, and states are fed back from item to item.
struct ReferenceCommand {
  std::string config_path;
  std::vector<std::string> inputs;  // "NAME=FILE.npy"
  std::string output_dir;
  // The quantized forward pass (pipeline/quantized_forward.h) in place of the float model: what
  // fake quantization gives, each layer's likeness to float, and opt_template.json in output_dir.
  bool quantized = false;
  bool json = false;
};

// The process's exit code: 0 done, 1 refused.
int RunReferenceCommand(const ReferenceCommand& command);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_REFERENCE_COMMAND_H_
