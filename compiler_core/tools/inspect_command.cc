#include "compiler_core/tools/inspect_command.h"

#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "compiler_core/base/file_beside.h"
#include "compiler_core/base/status.h"
#include "compiler_core/config/config.h"
#include "compiler_core/pipeline/inspection_output.h"
#include "compiler_core/tools/array_files.h"
#include "compiler_core/tools/diagnostics_output.h"
#include "compiler_core/tools/loaded_config.h"
#include "nlohmann/json.hpp"

namespace npuc {
namespace {

// Opens the second file of the model, where one lies beside it. Without the file the cores say what
// is missing.
void AddFileBeside(const std::string& path, InspectRequest& request, Diagnostics& diagnostics) {
  const std::optional<Framework> framework =
      FrameworkOfModel(request.model_bytes, request.model_name);
  if (!framework.has_value()) return;
  const FrameworkInfo& info = InfoOf(*framework);
  Diagnostics nobody;  // InspectModel reports them
  const absl::StatusOr<ModelOutline> outline = OutlineModel(request, nobody);
  const FileBeside beside = FindFileBeside(info, path, outline.ok() ? outline->data_file : "");
  if (beside.path.empty()) return;
  auto opened = OpenInput(beside.path, kMaxSideInputBytes);
  if (!opened.ok()) return AddFileProblem(opened.status(), diagnostics);
  request.side_inputs[std::string(info.data_key)] = {beside.path, *std::move(opened)};
  request.data_in_config = beside.in_config;
}

}  // namespace

absl::StatusOr<ModelArgument> LoadModel(const std::string& path, const StatedOptions& stated,
                                        Diagnostics& diagnostics) {
  ModelArgument model;
  const auto take = [&](auto value, auto& list) {
    if (value.ok()) return list.push_back(*std::move(value));
    diagnostics.Add({.kind = DiagnosticKind::kRunInputInvalid,
                     .message = std::string(value.status().message())});
  };
  StatedFacts& facts = model.request.stated;
  for (const std::string& text : stated.shapes) take(ParseStatedShape(text), facts.shapes);
  for (const std::string& text : stated.dims) take(ParseStatedValue("--dim", text), facts.dims);
  for (const std::string& text : stated.constants) {
    take(ParseStatedValue("--const", text), facts.constants);
  }
  absl::StatusOr<FileBytes> bytes = ReadInputBytes(path, kMaxModelBytes);
  if (!bytes.ok()) AddFileProblem(bytes.status(), diagnostics);
  RETURN_IF_ERROR(diagnostics.ToStatus());
  model.bytes = *std::move(bytes);
  model.request.model_bytes = model.bytes.view();
  model.request.model_name = std::filesystem::path(path).filename().string();
  AddFileBeside(path, model.request, diagnostics);
  RETURN_IF_ERROR(diagnostics.ToStatus());
  return model;
}

int RunInspectCommand(const InspectCommand& command) {
  Diagnostics diagnostics;
  absl::StatusOr<ModelArgument> model = LoadModel(command.model_path, command.stated, diagnostics);
  absl::StatusOr<ModelInspection> inspection =
      model.ok() ? InspectModel(model->request, diagnostics) : model.status();
  const int code = Finish(inspection.status(), diagnostics);
  if (command.json) {
    PrintReport(inspection.ok() ? InspectionJson(model->request, *inspection)
                                : nlohmann::ordered_json::object(),
                code == 0, diagnostics);
  } else if (inspection.ok()) {
    std::fputs(InspectionText(command.model_path, model->bytes.view().size(), *inspection).c_str(),
               stdout);
    std::printf("next: npuc init %s\n", Printable(command.model_path).c_str());
  }
  return code;
}

}  // namespace npuc
