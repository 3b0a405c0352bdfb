#include "compiler_core/pipeline/emission.h"

#include <ctime>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/status.h"
#include "compiler_core/base/yaml_tree.h"
#include "compiler_core/boxes/box_plan.h"
#include "compiler_core/config/config.h"
#include "compiler_core/emit/header_writer.h"
#include "compiler_core/emit/model_file.h"
#include "compiler_core/emit/raw_file.h"
#include "compiler_core/pipeline/file_limits.h"
#include "compiler_core/quant/opt_template.h"
#include "compiler_core/quant/statistics.h"

namespace npuc {
namespace {

constexpr char kBoxesKey[] = "BOXES";  // names the settings in messages

// The text of a header's model_info line.
std::string ModelInfo(const CompileRequest& request) {
  const std::time_t seconds = request.timestamp_seconds;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  return absl::StrFormat("%s(%04d%02d%02d%02d%02d%02d)", request.options.model_info,
                         utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min,
                         utc.tm_sec);
}

std::string StemOf(const CompileOptions& options) {
  return options.output_file.substr(0, options.output_file.rfind('.'));
}

// The name of the model file beside the header.
std::string ModelFileName(const CompileOptions& options) {
  return absl::StrCat(StemOf(options), ".npuc");
}

// The settings of boxes: the model's own, the file's and those of BOXES over each other. nullopt:
// nothing is known of boxes, or (reported) it is wrong.
absl::StatusOr<std::optional<BoxSettings>> SettingsOfBoxes(const CompileRequest& request,
                                                           const std::optional<BoxSettings>& model,
                                                           Diagnostics& diagnostics) {
  std::optional<BoxSettings> settings = model;
  const auto input = request.side_inputs.find(kBoxesRole);
  if (input != request.side_inputs.end()) {
    ASSIGN_OR_RETURN(const std::string text,
                     ReadAll(*input->second.bytes, static_cast<int64_t>(kMaxYamlBytes)));
    settings = ParseBoxSettings(text, input->second.name, diagnostics, settings);
    if (!settings.has_value()) return diagnostics.ToStatus();
  }
  if (!request.options.boxes.empty()) {
    settings = ParseBoxSettings(request.options.boxes, kBoxesKey, diagnostics, settings);
    if (!settings.has_value()) return diagnostics.ToStatus();
  }
  return settings;
}

// The C files that decode boxes, and their settings for `npuc run --postprocess`.
absl::Status EmitBoxCode(const CompileRequest& request, const CompiledUnit& unit,
                         const std::optional<BoxSettings>& boxes, CompileObserver& observer,
                         Diagnostics& diagnostics) {
  const auto input = request.side_inputs.find(kBoxesRole);
  const bool is_asked = input != request.side_inputs.end() || !request.options.boxes.empty();
  ASSIGN_OR_RETURN(std::optional<BoxSettings> settings,
                   SettingsOfBoxes(request, boxes, diagnostics));
  if (!settings.has_value()) return absl::OkStatus();
  Diagnostics found;
  const std::optional<BoxPlan> plan =
      BoxPlan::Make(*std::move(settings), unit.model.outputs,
                    input != request.side_inputs.end() ? input->second.name : kBoxesKey, found);
  if (!plan.has_value() && !is_asked)
    return absl::OkStatus();  // the config cut the model elsewhere
  diagnostics.Append(found);
  if (!plan.has_value()) return diagnostics.ToStatus();
  const std::string name = BoxCodeName(StemOf(request.options));
  observer.OnArtifact({absl::StrCat(name, "_boxes.h"), WriterOf(plan->HeaderText(name))});
  observer.OnArtifact({absl::StrCat(name, "_boxes.c"), WriterOf(plan->SourceText(name))});
  observer.OnArtifact(
      {absl::StrCat(name, "_boxes.yaml"), WriterOf(BoxSettingsText(plan->settings()))});
  return absl::OkStatus();
}

}  // namespace

absl::Status Emit(const CompileRequest& request, const std::shared_ptr<CompiledUnit>& unit,
                  const std::optional<BoxSettings>& boxes, CompileObserver& observer,
                  Diagnostics& diagnostics) {
  const CompileOptions& options = request.options;
  unit->model.version = std::string(CompilerVersion());
  unit->model.model_md5 = request.model_md5 ? request.model_md5() : Md5Hex(request.model_bytes);
  unit->model.model_info = ModelInfo(request);
  const std::shared_ptr<const CompiledModel> model(unit, &unit->model);
  if (options.output_type == "raw") {
    observer.OnArtifact({options.output_file,
                         [model](const ByteSink& sink) { return WriteRawFile(*model, sink); }});
  } else if (options.output_type == "json") {
    observer.OnArtifact({options.output_file,
                         [model](const ByteSink& sink) { return WriteRawJson(*model, sink); }});
  } else {
    RETURN_IF_ERROR(CheckCHeader(*model, diagnostics));
    observer.OnArtifact({options.output_file,
                         [model](const ByteSink& sink) { return WriteCHeader(*model, sink); }});
  }
  const auto add = [&](const char* name, std::string bytes, size_t most) {
    if (bytes.empty()) return absl::OkStatus();
    RETURN_IF_ERROR(CheckFileSize(name, bytes.size(), most, options.model_name, diagnostics));
    observer.OnArtifact({name, WriterOf(std::move(bytes))});
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(add("opt_template.json", std::move(unit->opt_template), kMaxTemplateBytes));
  RETURN_IF_ERROR(add("statistics.json", std::move(unit->statistics), kMaxStatisticsBytes));
  RETURN_IF_ERROR(EmitBoxCode(request, *unit, boxes, observer, diagnostics));
  observer.OnArtifact({ModelFileName(options),
                       [model](const ByteSink& sink) { return WriteModelFile(*model, sink); }});
  return absl::OkStatus();
}

}  // namespace npuc
