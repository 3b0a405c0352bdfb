#include "compiler_core/tools/set_commands.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/status.h"
#include "compiler_core/emit/model_file.h"
#include "compiler_core/report/json_parts.h"
#include "compiler_core/sim/simulator.h"
#include "compiler_core/tools/array_files.h"
#include "compiler_core/tools/diagnostics_output.h"
#include "compiler_core/tools/files.h"

namespace npuc {
namespace {

using Json = nlohmann::ordered_json;

std::string PortsText(const std::vector<PortTensor>& ports) {
  return absl::StrJoin(ports, ", ", [](std::string* out, const PortTensor& port) {
    absl::StrAppend(out, Printable(port.name), " ", TypeToString({port.dtype, port.shape}));
  });
}

std::string NamesOf(const ModelSet& set) {
  return absl::StrJoin(set.models, "; ", [](std::string* out, const NamedModel& named) {
    absl::StrAppend(out, Printable(named.name), ": ", PortsText(named.model.inputs));
  });
}

// 2: the arrays have the inputs' shapes; 1: they are items of them; 0: neither.
int FitOf(const CompiledModel& model, const std::vector<std::string>& inputs) {
  Diagnostics found;
  const auto simulator = Simulator::Load(model, "", found);
  if (!simulator.ok()) return 0;
  SimulatorRunner runner(**simulator);
  const std::vector<NamedArray> arrays = LoadInputs(inputs, runner, found);
  if (found.has_errors() || arrays.size() != InputsToGive(runner).size()) return 0;
  int fit = 2;
  for (const NamedArray& given : arrays) {
    const auto port = std::find_if(
        model.inputs.begin(), model.inputs.end(),
        [&](const PortTensor& input) { return FileStem(input.name) == FileStem(given.name); });
    if (port == model.inputs.end() || ItemCount(port->shape, given.array.shape) == 0) return 0;
    if (port->shape != given.array.shape) fit = 1;
  }
  return fit;
}

absl::Status RefuseChoice(const ModelSet& set, const std::string& file, const std::string& why,
                          Diagnostics& diagnostics) {
  diagnostics.Add({.kind = DiagnosticKind::kRunInputInvalid,
                   .message = absl::StrCat(why, "; the file holds ", NamesOf(set)),
                   .file = file,
                   .fix = "name a model with --model, or give inputs of one's shapes"});
  return diagnostics.ToStatus();
}

absl::Status Combine(const CombineCommand& command, Json& report, Diagnostics& diagnostics) {
  std::vector<NamedModel> all;
  for (const std::string& path : command.artifacts) {
    ASSIGN_OR_RETURN(ModelSet set, LoadModels(path, diagnostics));
    for (NamedModel& model : set.models) all.push_back(std::move(model));
  }
  ASSIGN_OR_RETURN(const std::string bytes, WriteModelSet(all));
  ASSIGN_OR_RETURN(const ModelSet written, ReadModelSet(bytes, command.output, diagnostics));
  RETURN_IF_ERROR(WriteFileAtomically(command.output, bytes));
  report["models"] = all.size();
  report["size"] = bytes.size();
  report["shared_bytes"] = written.shared_bytes;
  if (command.json) return absl::OkStatus();
  std::printf("%s %zu bytes, %zu models, %lld bytes shared\n", Printable(command.output).c_str(),
              bytes.size(), all.size(), static_cast<long long>(written.shared_bytes));
  return absl::OkStatus();
}

Json ModelJson(const NamedModel& named) {
  const CompiledModel& model = named.model;
  return {{"name", Printable(named.name)},
          {"core", Printable(model.core)},
          {"compiler", Printable(model.version)},
          {"model_md5", Printable(model.model_md5)},
          {"inputs", PortsJson(model.inputs, model.inputs)},
          {"outputs", PortsJson(model.inputs, model.outputs)},
          {"npu_size", model.npu_size()},
          {"total_size", model.total_size()}};
}

}  // namespace

absl::StatusOr<ModelSet> LoadModels(const std::string& path, Diagnostics& diagnostics) {
  const absl::StatusOr<std::string> bytes = ReadFile(path, kMaxArtifactBytes);
  if (!bytes.ok()) {
    AddFileProblem(bytes.status(), diagnostics);
    return bytes.status();
  }
  if (IsModelSet(*bytes)) return ReadModelSet(*bytes, path, diagnostics);
  ASSIGN_OR_RETURN(CompiledModel model, ReadArtifact(*bytes, path, diagnostics));
  ModelSet set;
  set.models.push_back({std::filesystem::path(path).stem().string(), std::move(model)});
  return set;
}

absl::StatusOr<CompiledModel> ChooseModel(ModelSet set, const std::string& name,
                                          const std::vector<std::string>& inputs,
                                          const std::string& file, Diagnostics& diagnostics) {
  if (!name.empty()) {
    for (NamedModel& named : set.models) {
      if (named.name == name) return std::move(named.model);
    }
    return RefuseChoice(set, file, absl::StrCat("no model is named '", Printable(name, 80), "'"),
                        diagnostics);
  }
  if (set.models.size() == 1) return std::move(set.models[0].model);
  NamedModel* chosen = nullptr;
  int best = 0;
  for (NamedModel& named : set.models) {
    const int fit = FitOf(named.model, inputs);
    if (fit <= best) continue;
    best = fit;
    chosen = &named;
  }
  if (chosen != nullptr) return std::move(chosen->model);
  return RefuseChoice(set, file, "the inputs are those of no model", diagnostics);
}

int RunCombineCommand(const CombineCommand& command) {
  Diagnostics diagnostics;
  Json report{{"ok", false}, {"path", command.output}};
  const int code = Finish(Combine(command, report, diagnostics), diagnostics);
  if (command.json) PrintReport(std::move(report), code == 0, diagnostics);
  return code;
}

int RunInfoCommand(const InfoCommand& command) {
  Diagnostics diagnostics;
  const absl::StatusOr<ModelSet> set = LoadModels(command.artifact, diagnostics);
  const int code = Finish(set.status(), diagnostics);
  Json report{{"ok", code == 0}, {"models", Json::array()}};
  if (set.ok()) {
    for (const NamedModel& named : set->models) report["models"].push_back(ModelJson(named));
    report["shared_bytes"] = set->shared_bytes;
  }
  if (command.json) {
    PrintReport(std::move(report), code == 0, diagnostics);
  } else if (set.ok()) {
    for (const NamedModel& named : set->models) {
      std::printf("%s: %s, npu_size %lld, total_size %lld\n  inputs: %s\n  outputs: %s\n",
                  Printable(named.name).c_str(), Printable(named.model.core).c_str(),
                  static_cast<long long>(named.model.npu_size()),
                  static_cast<long long>(named.model.total_size()),
                  PortsText(named.model.inputs).c_str(), PortsText(named.model.outputs).c_str());
    }
    if (set->models.size() > 1) {
      std::printf("%lld bytes are shared\n", static_cast<long long>(set->shared_bytes));
    }
  }
  return code;
}

}  // namespace npuc
