#ifndef NPUC_COMPILER_CORE_TOOLS_RUN_COMMAND_H_
#define NPUC_COMPILER_CORE_TOOLS_RUN_COMMAND_H_

#include <cstdint>
#include <string>
#include <vector>

namespace npuc {

// `npuc run ARTIFACT`. Source of the options' meaning: shared/spec/cli.md; see also RunItems.
struct RunCommandArgs {
  std::string artifact;             // C header, model file or file of several models
  std::string model;                // of several; empty: the one for the inputs' shapes
  std::vector<std::string> inputs;  // "NAME=FILE.npy"
  std::string output_dir;           // empty: outputs are printed, not written
  bool raw = false;                 // integer artifacts: stored values in and out
  int64_t frames = 0;               // 0: as many as the inputs hold
  std::string profile_path;         // empty: none
  std::string boxes_path;           // settings of boxes (compiler_core/boxes); empty: none
  std::string regions_path;         // RCNN: the regions that boxes are relative to, .npy
  bool json = false;
};

// Runs, writes DIR/NAME.npy for each output, prints. The process's exit code: 0 done, 1 refused.
int RunArtifactCommand(const RunCommandArgs& args);

// `npuc dis ARTIFACT`: prints one command a line. Exit code 0, or 1 where the artifact cannot be
// read, or a command is unknown, or the stream ends elsewhere than its array.
int DisassembleCommand(const std::string& artifact, bool json);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_RUN_COMMAND_H_
