#include "compiler_core/tools/inspect_command.h"

#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "compiler_core/base/status.h"
#include "compiler_core/config/config.h"
#include "compiler_core/pipeline/inspection_output.h"
#include "compiler_core/tools/array_files.h"
#include "compiler_core/tools/diagnostics_output.h"
#include "compiler_core/tools/loaded_config.h"
#include "nlohmann/json.hpp"

namespace npuc {
namespace {

// A model's second file, and the key of a config that names it.
struct FileBeside {
  std::string path;
  absl::string_view role;
};

// Finds the second file of the model by its ending, or by the name that the model states, in the
// model's folder and nowhere else. nullopt: there is none.
std::optional<FileBeside> DataFileBeside(const std::string& path, absl::string_view bytes) {
  const std::filesystem::path file(path);
  const std::string name = file.filename().string();
  const std::optional<Framework> framework = FrameworkOfModel(bytes, name);
  if (!framework.has_value()) return std::nullopt;
  const FrameworkInfo& info = InfoOf(*framework);
  if (info.data_file == DataFile::kNone) return std::nullopt;
  if (info.data_file == DataFile::kAlways) {
    return FileBeside{
        std::filesystem::path(path).replace_extension(std::string(info.data_ending)).string(),
        info.data_key};
  }
  Diagnostics nobody;  // InspectModel reports them
  const absl::StatusOr<ModelOutline> outline = OutlineModel(bytes, name, nobody);
  if (!outline.ok() || outline->data_file.empty()) return std::nullopt;
  const std::filesystem::path data = file.parent_path() / outline->data_file;
  std::error_code error;  // without the file the cores say what is missing
  if (!std::filesystem::exists(data, error)) return std::nullopt;
  return FileBeside{data.string(), info.data_key};
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
  const std::filesystem::path file(path);
  model.request.model_name = file.filename().string();
  const std::optional<FileBeside> data = DataFileBeside(path, model.bytes.view());
  if (data.has_value()) {
    auto opened = OpenFile(data->path, kMaxSideInputBytes);
    if (!opened.ok()) AddFileProblem(opened.status(), diagnostics);
    RETURN_IF_ERROR(diagnostics.ToStatus());
    model.request.side_inputs[std::string(data->role)] = {data->path, *std::move(opened)};
  }
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
