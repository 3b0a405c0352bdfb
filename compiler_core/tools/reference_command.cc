#include "compiler_core/tools/reference_command.h"

#include <cstdio>
#include <filesystem>
#include <utility>

#include "absl/strings/str_format.h"
#include "compiler_core/base/status.h"
#include "compiler_core/pipeline/import.h"
#include "compiler_core/pipeline/quantized_forward.h"
#include "compiler_core/tools/array_files.h"
#include "compiler_core/tools/diagnostics_output.h"
#include "compiler_core/tools/files.h"
#include "compiler_core/tools/graph_runner.h"
#include "compiler_core/tools/loaded_config.h"
#include "nlohmann/json.hpp"

namespace npuc {
namespace {

using Json = nlohmann::ordered_json;

// What each layer computes in, and how like float its results are on the calibration samples.
void ReportLayers(const IntegerModel& model, bool print, Json& report) {
  const size_t count = model.plan.layers.size();
  if (print) std::printf("%-14s %-8s %10s  layer\n", "type", "in", "similarity");
  for (size_t i = 0; i < count; ++i) {
    const Layer& layer = model.plan.layers[i];
    const bool in_float = i < model.plan.settings.size() && model.plan.settings[i].in_float;
    Json row{{"layer", Printable(layer.name)},
             {"type", layer.type},
             {"in", in_float ? "float" : "integers"}};
    std::string similarity = "-";
    if (i < model.fidelity.size()) {
      row["similarity"] = model.fidelity[i].cosine;
      row["mse"] = model.fidelity[i].mse;
      similarity = absl::StrFormat("%.6f", model.fidelity[i].cosine);
    }
    report.push_back(std::move(row));
    if (print) {
      std::printf("%-14s %-8s %10s  %s\n", layer.type.c_str(), in_float ? "float" : "integers",
                  similarity.c_str(), Printable(layer.name).c_str());
    }
  }
}

absl::StatusOr<Graph> QuantizedGraph(const ReferenceCommand& command, const LoadedConfig& loaded,
                                     Graph imported, Json& report, Diagnostics& diagnostics) {
  ASSIGN_OR_RETURN(QuantizedForward forward,
                   MakeQuantizedForward(RequestOf(loaded), std::move(imported), diagnostics));
  ReportLayers(forward.model, !command.json, report["layers"]);
  if (!forward.model.opt_template.empty()) {
    const std::filesystem::path path =
        std::filesystem::path(command.output_dir) / "opt_template.json";
    RETURN_IF_ERROR(WriteFileAtomically(path.string(), forward.model.opt_template));
  }
  return std::move(forward.graph);
}

absl::Status Run(const ReferenceCommand& command, Json& report, Diagnostics& diagnostics) {
  ASSIGN_OR_RETURN(const LoadedConfig loaded, LoadConfig(command.config_path, diagnostics));
  const CompileOptions& options = loaded.config.options;
  ASSIGN_OR_RETURN(Graph graph, ImportModel(RequestOf(loaded), diagnostics));
  if (command.quantized) {
    ASSIGN_OR_RETURN(graph, QuantizedGraph(command, loaded, std::move(graph), report, diagnostics));
  }
  GraphRunner runner(std::move(graph), options);
  const std::vector<NamedArray> inputs = LoadInputs(command.inputs, runner, diagnostics);
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
  if (command.json) PrintReport(std::move(report), code == 0, diagnostics);
  return code;
}

}  // namespace npuc
