#ifndef NPUC_COMPILER_CORE_CONFIG_CFG_TASK_H_
#define NPUC_COMPILER_CORE_CONFIG_CFG_TASK_H_

#include <cstdint>
#include <string>
#include <vector>

namespace npuc {

// What a config asks for beside a compile: of the tools that read and write files, not of the
// compiler. Paths are as written, relative to the config's folder.
struct CfgTask {
  enum class Kind : uint8_t {
    kBuild,     // mode = build, and every YAML config
    kRun,       // mode = run: build, then run on the simulator
    kParse,     // of aipuparse: write the model as a float IR
    kQuantize,  // of aipuopt: write a float IR as a quantized one
  };
  Kind kind = Kind::kBuild;
  std::vector<std::string> inputs;  // kRun: a file for each input of the model, in its order
  std::string output_path;          // kRun: of the first output
  std::string ir_name;              // kParse, kQuantize: NAME.txt and NAME.bin
  std::string output_dir;           // kParse, kQuantize
  bool profiles = false;            // kBuild, kRun: graph.json, and a profile of the run
  std::string svg_path;             // kBuild, kRun: a picture of the graph; empty: none
  std::string png_path;             // the same
  std::string dump_dir;             // QUANT: dump and dump_dir; empty: no dump
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_CONFIG_CFG_TASK_H_
