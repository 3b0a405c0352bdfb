#ifndef NPUC_COMPILER_CORE_TOOLS_RUN_IR_COMMAND_H_
#define NPUC_COMPILER_CORE_TOOLS_RUN_IR_COMMAND_H_

#include <string>

#include "compiler_core/tools/layer_dump.h"

namespace npuc {

// aipurun: builds an IR in memory and runs it on the simulator. Only what the run gives is written.
struct RunIrArgs {
  std::string config_text;  // a .cfg with mode = run; its paths are relative to the current folder
  std::string shown;        // its name in messages
  LayerDump dump;           // into the folder "dump" beside the output
};

// The process's exit code: 0 done, 1 refused, 2 wrong usage.
int RunIrCommand(const RunIrArgs& args);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_RUN_IR_COMMAND_H_
