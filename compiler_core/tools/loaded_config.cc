#include "compiler_core/tools/loaded_config.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/pipeline/import.h"
#include "compiler_core/tools/native_runner.h"

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

// Reports a model in the place of a config; false: the file is none.
bool ReportModel(const std::string& path, Diagnostics& diagnostics) {
  if (path == "-") return false;
  const absl::StatusOr<FileBytes> bytes = ReadInputBytes(path, kMaxModelBytes);
  if (!bytes.ok()) return false;
  const std::optional<Framework> framework = SniffFramework(bytes->view());
  if (!framework.has_value()) return false;
  const std::string shown = Printable(path);
  diagnostics.Add({.kind = DiagnosticKind::kConfigUnreadable,
                   .message = absl::StrCat("the file is a model (", InfoOf(*framework).format,
                                           "), and a config is needed, which names it"),
                   .file = path,
                   .fix = absl::StrCat("look at it by npuc inspect ", shown,
                                       ", and have a config written by npuc init ", shown)});
  return true;
}

}  // namespace

CompileRequest RequestOf(const LoadedConfig& loaded) {
  CompileRequest request;
  request.options = loaded.config.options;
  request.model_bytes = loaded.model.view();
  request.side_inputs = loaded.side_inputs;
  request.native_operators = loaded.native_operators.get();
  return request;
}

absl::StatusOr<LoadedConfig> LoadConfig(const std::string& path, Diagnostics& diagnostics) {
  const std::string shown = path == "-" ? "standard input" : path;
  absl::StatusOr<std::string> text = ReadFile(path, kMaxConfigBytes);
  const bool may_be_model =
      absl::IsResourceExhausted(text.status()) || (text.ok() && SniffFramework(*text).has_value());
  if (may_be_model && ReportModel(path, diagnostics)) return diagnostics.ToStatus();
  if (!text.ok()) {
    AddUnreadable(text.status(), "", 0, "name a YAML config file", diagnostics);
    return diagnostics.ToStatus();
  }
  return LoadConfigText(*text, path, shown, diagnostics);
}

absl::StatusOr<LoadedConfig> LoadConfigText(const std::string& text, const std::string& path,
                                            const std::string& shown, Diagnostics& diagnostics) {
  LoadedConfig loaded;
  ASSIGN_OR_RETURN(loaded.config, ParseConfig(text, shown, diagnostics));
  for (const ConfigFile& file : loaded.config.files) {
    const std::string from = ResolveBeside(path, file.path);
    absl::Status read;
    if (file.role == "MODEL_FILE") {
      absl::StatusOr<FileBytes> bytes = ReadInputBytes(from, kMaxModelBytes);
      read = bytes.status();
      if (bytes.ok()) loaded.model = *std::move(bytes);
    } else {
      auto bytes = OpenInput(from, kMaxSideInputBytes);
      read = bytes.status();
      if (bytes.ok()) loaded.side_inputs[file.role] = {file.path, *std::move(bytes)};
    }
    if (read.ok()) continue;
    AddUnreadable(read, shown, file.line, "paths are relative to the folder of the config",
                  diagnostics);
  }
  RETURN_IF_ERROR(diagnostics.ToStatus());
  loaded.native_operators = std::make_shared<NativeRunner>(path);
  return loaded;
}

}  // namespace npuc
