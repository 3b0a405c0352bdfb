#include "compiler_core/tools/reference_command.h"

#include <cstdio>
#include <utility>

#include "compiler_core/base/status.h"
#include "compiler_core/pipeline/import.h"
#include "compiler_core/tools/array_files.h"
#include "compiler_core/tools/diagnostics_output.h"
#include "compiler_core/tools/graph_runner.h"
#include "compiler_core/tools/loaded_config.h"
#include "nlohmann/json.hpp"

namespace npuc {
namespace {

using Json = nlohmann::ordered_json;

absl::Status Run(const ReferenceCommand& command, Json& report, Diagnostics& diagnostics) {
  ASSIGN_OR_RETURN(const LoadedConfig loaded, LoadConfig(command.config_path, diagnostics));
  const CompileOptions& options = loaded.config.options;
  ASSIGN_OR_RETURN(Graph graph, ImportModel(loaded.model, options, diagnostics));
  GraphRunner runner(std::move(graph), options);
  const std::vector<NamedArray> inputs = LoadInputs(command.inputs, diagnostics);
  RETURN_IF_ERROR(diagnostics.ToStatus());
  ASSIGN_OR_RETURN(const RunItemsResult result, RunItems(runner, inputs, 0, diagnostics));
  report["items"] = result.items;
  return WriteOutputs(command.output_dir, !command.json, result, report["outputs"]);
}

}  // namespace

int RunReferenceCommand(const ReferenceCommand& command) {
  Diagnostics diagnostics;
  Json report{{"ok", false}, {"items", 0}, {"outputs", Json::array()}};
  const absl::Status status = Run(command, report, diagnostics);
  const int code = Finish(status, diagnostics);
  if (command.json) {
    report["ok"] = code == 0;
    report["diagnostics"] = Json::parse(DiagnosticsJson(diagnostics));
    std::printf("%s\n", report.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  }
  return code;
}

}  // namespace npuc
