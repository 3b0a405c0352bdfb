#ifndef NPUC_COMPILER_CORE_CONFIG_CONFIG_H_
#define NPUC_COMPILER_CORE_CONFIG_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/yaml_tree.h"
#include "compiler_core/config/cfg_task.h"

namespace npuc {

// A file that a config names, and that the caller must load: relative paths are relative to the
// config's folder.
struct ConfigFile {
  std::string role;  // "MODEL_FILE", "OPT_CONFIG", FrameworkInfo::data_key
  std::string path;  // as written
  int line = 0;
};

struct ParsedConfig {
  CompileOptions options;
  bool is_cfg = false;            // a .cfg of Compass's tools
  CfgTask task;                   // what it asks for beside the compile
  std::string output_path;        // OUTPUT_FILE as written
  std::vector<ConfigFile> files;  // MODEL_FILE first
};

// How a detector's outputs become boxes: a key, and the role of the file that it names.
inline constexpr char kBoxesRole[] = "DETECTION_POSTPROCESS";
// The files that declare operators: "PLUGINS[0]" and so on, in the order of the key.
inline constexpr char kPluginsRole[] = "PLUGINS";
std::string PluginsRole(size_t number);

inline constexpr size_t kMaxConfigBytes = kMaxYamlBytes;

// Parses a gxnpuc YAML config, or a .cfg of aipubuild (cfg_config.h), told by its first line.
// `name` is the file's name for diagnostics. Reads nothing but `text`. All problems at once go to
// `diagnostics`, each with line, what was found, what is allowed, and the nearest known key or
// value; the status is diagnostics.ToStatus(). Size, depth and node count are bounded; duplicate
// keys, aliases and tags are refused.
absl::StatusOr<ParsedConfig> ParseConfig(absl::string_view text, absl::string_view name,
                                         Diagnostics& diagnostics);

// True for the .cfg of a Darknet net, which is a model and no config: it begins with [net].
bool IsDarknetNet(absl::string_view text);

// Adds a note, where the diagnostics of a compile name keys of a YAML config, of what its .cfg
// calls them: "INPUT_OPS is input and input_shape of [Parser]". `name`: of the config.
void AddCfgWords(absl::string_view name, Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_CONFIG_CONFIG_H_
