#include "compiler_core/tools/compile_command.h"

#include <cstdio>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/status.h"
#include "compiler_core/pipeline/compile.h"
#include "compiler_core/target/core_spec.h"
#include "compiler_core/tools/diagnostics_output.h"
#include "compiler_core/tools/files.h"
#include "compiler_core/tools/loaded_config.h"
#include "nlohmann/json.hpp"

namespace npuc {
namespace {

constexpr int kDone = 0;
constexpr int kRefused = 1;

std::string OutputFolder(const CompileCommand& command, const ParsedConfig& config) {
  if (!command.output_dir.empty()) return command.output_dir;
  const std::string path = ResolveBeside(command.config_path, config.output_path);
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

struct Written {
  std::string path;
  const Artifact* artifact = nullptr;
};

absl::StatusOr<std::vector<Written>> WriteArtifacts(const std::string& folder,
                                                    const CompileResult& result) {
  std::vector<Written> written;
  for (const Artifact& artifact : result.artifacts) {
    const std::string path = (std::filesystem::path(folder) / artifact.name).string();
    RETURN_IF_ERROR(WriteFileAtomically(path, artifact.bytes));
    written.push_back({path, &artifact});
  }
  return written;
}

void PrintJson(bool ok, const std::vector<Written>& written, const Diagnostics& diagnostics) {
  nlohmann::ordered_json out;
  out["ok"] = ok;
  out["artifacts"] = nlohmann::ordered_json::array();
  for (const Written& file : written) {
    out["artifacts"].push_back({{"name", file.artifact->name},
                                {"path", file.path},
                                {"size", file.artifact->bytes.size()},
                                {"sha256", Sha256Hex(file.artifact->bytes)}});
  }
  out["diagnostics"] = nlohmann::ordered_json::parse(DiagnosticsJson(diagnostics));
  std::printf("%s\n",
              out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

int Refuse(const CompileCommand& command, const Diagnostics& diagnostics) {
  PrintDiagnostics(diagnostics);
  if (command.json) PrintJson(false, {}, diagnostics);
  return kRefused;
}

// gxnpuc's own words for -q on a core that computes in floating point.
bool RefusesQuantInference(const CompileCommand& command, const CompileOptions& options) {
  if (!command.quantize) return false;
  const CoreSpec* core = FindCore(options.core);
  if (core != nullptr && core->quant_inference) return false;
  std::fprintf(stderr, "CORENAME '%s' doesn't need to run quantized inference\n",
               Printable(options.core).c_str());
  return true;
}

void PrintListings(const CompileCommand& command, const CompileListings& listings) {
  std::FILE* out = command.json ? stderr : stdout;
  if (command.list_ops) std::fputs(listings.ops.c_str(), out);
  if (command.list_memory) std::fputs(listings.memory.c_str(), out);
  if (command.list_weights) std::fputs(listings.weights.c_str(), out);
}

}  // namespace

int RunCompileCommand(const CompileCommand& command) {
  Diagnostics diagnostics;
  absl::StatusOr<LoadedConfig> loaded = LoadConfig(command.config_path, diagnostics);
  if (!loaded.ok()) return Refuse(command, diagnostics);
  if (RefusesQuantInference(command, loaded->config.options)) return kRefused;

  CompileRequest request;
  request.options = loaded->config.options;
  request.model_bytes = loaded->model;
  request.side_inputs = std::move(loaded->side_inputs);
  request.timestamp_seconds = command.timestamp_seconds;
  CompileObserver observer;
  const absl::StatusOr<CompileResult> result = Compile(request, observer, diagnostics);
  if (!result.ok()) return Refuse(command, diagnostics);

  const std::string folder = OutputFolder(command, loaded->config);
  const absl::StatusOr<std::vector<Written>> written = WriteArtifacts(folder, *result);
  if (!written.ok()) {
    diagnostics.Add({.kind = DiagnosticKind::kFileUnwritable,
                     .message = std::string(written.status().message()),
                     .fix = "name a writable folder with -o"});
    return Refuse(command, diagnostics);
  }
  PrintDiagnostics(diagnostics);
  PrintListings(command, result->listings);
  if (command.json) {
    PrintJson(true, *written, diagnostics);
  } else {
    for (const Written& file : *written) {
      std::printf("%s %zu bytes\n", Printable(file.path).c_str(), file.artifact->bytes.size());
    }
  }
  return kDone;
}

}  // namespace npuc
