#ifndef NPUC_COMPILER_CORE_TOOLS_INSPECT_COMMAND_H_
#define NPUC_COMPILER_CORE_TOOLS_INSPECT_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/pipeline/inspect.h"
#include "compiler_core/tools/files.h"

namespace npuc {

// Facts that a user states beside the model, as written.
struct StatedOptions {
  std::vector<std::string> shapes;     // "1,40,98", "NAME=1,40,98"
  std::vector<std::string> dims;       // "NAME=25"
  std::vector<std::string> constants;  // "NAME=16000"
};

// A model on the command line, with what InspectModel reads.
struct ModelArgument {
  FileBytes bytes;
  InspectRequest request;  // views of `bytes`
};
// Problems go to `diagnostics`: files that cannot be read, shapes that are none.
absl::StatusOr<ModelArgument> LoadModel(const std::string& path, const StatedOptions& stated,
                                        Diagnostics& diagnostics);

// `npuc inspect MODEL`: what the file holds, and which cores take it.
struct InspectCommand {
  std::string model_path;
  StatedOptions stated;
  bool json = false;
};
// The process's exit code: 0 done, whatever the verdicts; 1 it is no model that can be read.
int RunInspectCommand(const InspectCommand& command);

// `npuc init MODEL`: writes a config for it.
struct InitCommand {
  std::string model_path;
  std::string core;         // empty: the first family that takes the model
  std::string config_path;  // empty: the model's name with .yaml, here; "-": standard output
  StatedOptions stated;
  bool force = false;  // overwrites
  bool json = false;
};
// The process's exit code: 0 the config is there; 1 it is not, or no core takes the model.
int RunInitCommand(const InitCommand& command);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_INSPECT_COMMAND_H_
