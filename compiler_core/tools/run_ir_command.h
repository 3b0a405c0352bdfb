#ifndef NPUC_COMPILER_CORE_TOOLS_RUN_IR_COMMAND_H_
#define NPUC_COMPILER_CORE_TOOLS_RUN_IR_COMMAND_H_

#include <string>
#include <utility>
#include <vector>

#include "compiler_core/tools/layer_dump.h"

namespace npuc {

// aipurun and aipudumper: build an IR in memory and run it on the simulator. Only what the run
// gives is written, and the addresses of the buffers where they are asked for.
struct RunIrArgs {
  // A .cfg, with inputs where it runs; its paths are relative to the current folder.
  std::string config_text;
  std::string shown;                // its name in messages
  LayerDump dump;                   // into the folder "dump" beside the output
  std::string load_addresses = {};  // a file of addresses to use; "": npuc's own
  std::string dump_addresses = {};  // where such a file is written; "": nowhere
  // Options that change nothing, each with the reason.
  std::vector<std::pair<std::string, std::string>> without_effect = {};
};

// The process's exit code: 0 done, 1 refused, 2 wrong usage.
int RunIrCommand(const RunIrArgs& args);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_RUN_IR_COMMAND_H_
