#ifndef NPUC_COMPILER_CORE_TOOLS_LOADED_CONFIG_H_
#define NPUC_COMPILER_CORE_TOOLS_LOADED_CONFIG_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/config/config.h"
#include "compiler_core/pipeline/compile.h"
#include "compiler_core/tools/files.h"

namespace npuc {

// A config with every file that it names: the model read, the others open.
struct LoadedConfig {
  ParsedConfig config;
  FileBytes model;
  std::map<std::string, CompileRequest::SideInput> side_inputs;
  std::shared_ptr<NativeOperators> native_operators;  // runs the libraries of PLUGINS
};

inline constexpr int64_t kMaxModelBytes = int64_t{1} << 31;
inline constexpr int64_t kMaxSideInputBytes = int64_t{1} << 34;

// Reads the config at `path` ("-": standard input) and the files beside it that it names; every
// problem, missing files included, goes to diagnostics.
absl::StatusOr<LoadedConfig> LoadConfig(const std::string& path, Diagnostics& diagnostics);

// Reads a config's text likewise. Its files lie beside `path`; messages call it `shown`.
absl::StatusOr<LoadedConfig> LoadConfigText(const std::string& text, const std::string& path,
                                            const std::string& shown, Diagnostics& diagnostics);

// What a compile of it would read; a view of `loaded`, which must outlive it.
CompileRequest RequestOf(const LoadedConfig& loaded);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_LOADED_CONFIG_H_
