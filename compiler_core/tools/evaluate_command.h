#ifndef NPUC_COMPILER_CORE_TOOLS_EVALUATE_COMMAND_H_
#define NPUC_COMPILER_CORE_TOOLS_EVALUATE_COMMAND_H_

#include <string>
#include <vector>

namespace npuc {

// `npuc evaluate CONFIG ARTIFACT`, or CONFIG --quantized: figures of a compiled model beside those
// of the same model in float, over data (as for `npuc run`) and labels.
struct EvaluateCommand {
  std::string config_path;           // the float model
  std::string artifact;              // header or model file
  std::vector<std::string> inputs;   // "NAME=FILE.npy"
  std::string label_path;            // .npy of integers, one row an item
  std::vector<std::string> metrics;  // quant/metrics/metrics.h; default cosine, mse, sqnr
  std::string output;                // whose scores the labels judge; default the first no state
  bool quantized = false;            // in place of an artifact: the quantized forward pass
  bool json = false;
};

// The process's exit code: 0 done, 1 refused.
int RunEvaluateCommand(const EvaluateCommand& command);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_EVALUATE_COMMAND_H_
