#include "compiler_core/tools/loaded_config.h"

#include <utility>

#include "compiler_core/base/status.h"

namespace npuc {
namespace {

void AddUnreadable(const absl::Status& status, const std::string& file, int line,
                   const std::string& fix, Diagnostics& diagnostics) {
  diagnostics.Add({.kind = DiagnosticKind::kFileUnreadable,
                   .message = std::string(status.message()),
                   .file = file,
                   .line = line,
                   .fix = fix});
}

}  // namespace

CompileRequest RequestOf(const LoadedConfig& loaded) {
  CompileRequest request;
  request.options = loaded.config.options;
  request.model_bytes = loaded.model.view();
  request.side_inputs = loaded.side_inputs;
  return request;
}

absl::StatusOr<LoadedConfig> LoadConfig(const std::string& path, Diagnostics& diagnostics,
                                        const HelpersFor& helpers_for) {
  const std::string shown = path == "-" ? "standard input" : path;
  absl::StatusOr<std::string> text = ReadFile(path, kMaxConfigBytes);
  if (!text.ok()) {
    AddUnreadable(text.status(), "", 0, "name a YAML config file", diagnostics);
    return diagnostics.ToStatus();
  }
  LoadedConfig loaded;
  ASSIGN_OR_RETURN(loaded.config, ParseConfig(*text, shown, diagnostics));
  for (const ConfigFile& file : loaded.config.files) {
    const std::string from = ResolveBeside(path, file.path);
    absl::Status read;
    if (file.role == "MODEL_FILE") {
      absl::StatusOr<FileBytes> bytes = ReadFileBytes(from, kMaxModelBytes, helpers_for);
      read = bytes.status();
      if (bytes.ok()) loaded.model = *std::move(bytes);
    } else {
      auto bytes = OpenFile(from, kMaxSideInputBytes);
      read = bytes.status();
      if (bytes.ok()) loaded.side_inputs[file.role] = {file.path, *std::move(bytes)};
    }
    if (read.ok()) continue;
    AddUnreadable(read, shown, file.line, "paths are relative to the folder of the config",
                  diagnostics);
  }
  RETURN_IF_ERROR(diagnostics.ToStatus());
  return loaded;
}

}  // namespace npuc
