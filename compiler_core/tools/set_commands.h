#ifndef NPUC_COMPILER_CORE_TOOLS_SET_COMMANDS_H_
#define NPUC_COMPILER_CORE_TOOLS_SET_COMMANDS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/emit/model_set.h"

namespace npuc {

// The models of a header, a model file or a set of models (emit/model_set.h), named after the file
// where it holds one. Problems go to `diagnostics`.
absl::StatusOr<ModelSet> LoadModels(const std::string& path, Diagnostics& diagnostics);

// The model of a set by name, or where that is empty the one for these inputs ("NAME=FILE.npy"):
// the first whose inputs have exactly the arrays' shapes, else the first that takes them as items.
// Problems go to `diagnostics`.
absl::StatusOr<CompiledModel> ChooseModel(ModelSet set, const std::string& name,
                                          const std::vector<std::string>& inputs,
                                          const std::string& file, Diagnostics& diagnostics);

// `npuc combine A B -o ALL.npuc`: one file of several models. Exit code 0, or 1 where one cannot be
// read or written.
struct CombineCommand {
  std::vector<std::string> artifacts;
  std::string output;
  bool json = false;
};
int RunCombineCommand(const CombineCommand& command);

// `npuc info FILE`: the models of a file, their ports and sizes.
struct InfoCommand {
  std::string artifact;
  bool json = false;
};
int RunInfoCommand(const InfoCommand& command);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_SET_COMMANDS_H_
