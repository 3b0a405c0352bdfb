#ifndef NPUC_COMPILER_CORE_TOOLS_COMPILE_COMMAND_H_
#define NPUC_COMPILER_CORE_TOOLS_COMPILE_COMMAND_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "compiler_core/base/diagnostic.h"

namespace npuc {

constexpr int kMaxCompileThreads = 64;

// `npuc CONFIG`: what the flags say. Source of their meaning: shared/spec/cli.md, gxnpuc.md.
struct CompileCommand {
  std::string config_path;  // "-": standard input
  std::string config_text;  // in place of a file; config_path is what its files are beside
  std::string shown;        // the name of config_text in messages
  std::string output_dir;   // empty: the folder of OUTPUT_FILE
  enum class Wanted : uint8_t { kAny, kParse, kQuantize };  // kinds of .cfg
  Wanted wanted = Wanted::kAny;
  bool list_ops = false;         // -v
  bool list_memory = false;      // -m
  bool list_weights = false;     // -w
  std::string dump_addresses;    // a file of where buffers lie; empty: none
  std::string load_addresses;    // such a file, edited; empty: the config's ADDRESSES
  bool save_histograms = false;  // -s: pictures in folder npu_jpgs beside the artifacts
  bool quantize = false;         // -q
  bool json = false;
  Severity log_level = Severity::kNote;  // the least that is printed; --json has all
  int threads = 0;  // at once, at most kMaxCompileThreads; 0: as many as there are processors
  int64_t timestamp_seconds = 0;  // for model_info
  // Ends the process where all is done, so that nothing is taken apart that the system takes back
  // at once; null: returns.
  void (*leave)(int exit_code) = nullptr;
};

// Does what the config asks for, prints. Returns the process's exit code: 0 done, 1 refused, 2 the
// config is not of the wanted kind.
int RunCompileCommand(const CompileCommand& command);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_COMPILE_COMMAND_H_
