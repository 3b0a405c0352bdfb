#ifndef NPUC_COMPILER_CORE_TOOLS_IR_COMMAND_H_
#define NPUC_COMPILER_CORE_TOOLS_IR_COMMAND_H_

#include <string>

#include "absl/status/status.h"
#include "compiler_core/pipeline/ir_files.h"
#include "nlohmann/json_fwd.hpp"

namespace npuc {

// `npuc ir write CONFIG -o DIR [--float]`: the config's model as Compass's NAME.txt and NAME.bin.
struct IrWriteCommand {
  std::string config_path;
  std::string output_dir;
  bool as_float = false;
  bool json = false;
};

// Where IR files go: FOLDER/NAME.txt and .bin, with opt_template.json and statistics.json where
// there are such.
struct IrPlace {
  std::string folder;
  std::string name;
  bool prints = false;
};
// Adds each file to `list`.
absl::Status WriteIrFiles(const ModelIr& ir, const IrPlace& place, nlohmann::ordered_json& list);

// `npuc ir check NAME.txt [--bin NAME.bin]`: everything that is wrong with such files.
struct IrCheckCommand {
  std::string text_path;
  std::string bin_path;  // empty: NAME.bin beside NAME.txt where it is there
  bool json = false;
};

// The process's exit code: 0 done or sound, 1 refused.
int RunIrWriteCommand(const IrWriteCommand& command);
int RunIrCheckCommand(const IrCheckCommand& command);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_IR_COMMAND_H_
