#include "compiler_core/tools/ir_command.h"

#include <cstdio>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/compass/check.h"
#include "compiler_core/tools/array_files.h"
#include "compiler_core/tools/diagnostics_output.h"
#include "compiler_core/tools/files.h"
#include "compiler_core/tools/loaded_config.h"
#include "nlohmann/json.hpp"

namespace npuc {
namespace {

using Json = nlohmann::ordered_json;

int Print(bool json, Json report, const absl::Status& status, const Diagnostics& diagnostics) {
  const int code = Finish(status, diagnostics);
  if (json) PrintReport(std::move(report), code == 0, diagnostics);
  return code;
}

absl::Status Write(const IrWriteCommand& command, Json& report, Diagnostics& diagnostics) {
  ASSIGN_OR_RETURN(const LoadedConfig loaded, LoadConfig(command.config_path, diagnostics));
  const CompileRequest request = RequestOf(loaded);
  const IrForm form = command.as_float ? IrForm::kFloat : IrForm::kQuantized;
  ASSIGN_OR_RETURN(const ModelIr ir,
                   MakeIrFiles(request, form, request.options.model_name, diagnostics));
  const std::string stem = std::filesystem::path(request.options.model_name).stem().string();
  return WriteIrFiles(ir, {command.output_dir, stem, !command.json}, report["files"]);
}

absl::Status Check(const IrCheckCommand& command, Json& report, Diagnostics& diagnostics) {
  const absl::StatusOr<std::string> text =
      ReadFile(command.text_path, static_cast<int64_t>(compass::kMaxTextBytes));
  if (!text.ok()) {
    AddFileProblem(text.status(), diagnostics);
    return diagnostics.ToStatus();
  }
  std::filesystem::path bin(command.bin_path);
  if (command.bin_path.empty()) {
    bin = std::filesystem::path(command.text_path).replace_extension(".bin");
  }
  std::error_code error;
  const auto bytes = std::filesystem::file_size(bin, error);
  if (error && !command.bin_path.empty()) {
    AddFileProblem(
        absl::NotFoundError(absl::StrCat(Printable(command.bin_path), ": ", error.message())),
        diagnostics);
    return diagnostics.ToStatus();
  }
  std::optional<int64_t> bin_bytes;
  if (!error) bin_bytes = static_cast<int64_t>(bytes);
  ASSIGN_OR_RETURN(const compass::Document document,
                   compass::ParseDocument(*text, command.text_path, diagnostics));
  report["layers"] = document.layers.size();
  RETURN_IF_ERROR(compass::CheckDocument(document, bin_bytes, command.text_path, diagnostics));
  if (!command.json) {
    std::printf("%s: %zu layers, no problem%s\n", Printable(command.text_path).c_str(),
                document.layers.size(),
                bin_bytes.has_value() ? "" : " (there is no .bin to compare with)");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteIrFiles(const ModelIr& ir, const IrPlace& place, Json& list) {
  const std::pair<std::string, std::string> parts[] = {
      {absl::StrCat(place.name, ".txt"), compass::PrintDocument(ir.files.document)},
      {absl::StrCat(place.name, ".bin"), ir.files.bin},
      {"opt_template.json", ir.opt_template},
      {"statistics.json", ir.statistics},
      {absl::StrCat(place.name, "_statistic_info.npy"), ir.numpy_statistics}};
  for (const auto& [name, bytes] : parts) {
    if (bytes.empty() && !absl::EndsWith(name, ".bin")) continue;
    const std::string path = (std::filesystem::path(place.folder) / name).string();
    RETURN_IF_ERROR(WriteFileAtomically(path, bytes));
    list.push_back({{"path", path}, {"size", bytes.size()}});
    if (place.prints) std::printf("%s %zu bytes\n", Printable(path).c_str(), bytes.size());
  }
  return absl::OkStatus();
}

int RunIrWriteCommand(const IrWriteCommand& command) {
  Diagnostics diagnostics;
  Json report{{"ok", false}, {"files", Json::array()}};
  const absl::Status status = Write(command, report, diagnostics);
  return Print(command.json, std::move(report), status, diagnostics);
}

int RunIrCheckCommand(const IrCheckCommand& command) {
  Diagnostics diagnostics;
  Json report{{"ok", false}, {"layers", 0}};
  const absl::Status status = Check(command, report, diagnostics);
  return Print(command.json, std::move(report), status, diagnostics);
}

}  // namespace npuc
