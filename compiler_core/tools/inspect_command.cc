#include "compiler_core/tools/inspect_command.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "compiler_core/base/status.h"
#include "compiler_core/config/config.h"
#include "compiler_core/tools/array_files.h"
#include "compiler_core/tools/diagnostics_output.h"
#include "compiler_core/tools/loaded_config.h"
#include "nlohmann/json.hpp"

namespace npuc {
namespace {

using Json = nlohmann::ordered_json;
using Port = ModelOutline::Port;
using Kind = CoreVerdict::Kind;

Json PortsJson(const std::vector<Port>& ports) {
  Json list = Json::array();
  for (const Port& port : ports) {
    Json shape = nullptr;
    if (port.dims.has_value()) {
      shape = Json::array();
      for (const int64_t dim : *port.dims) shape.push_back(dim < 0 ? Json(nullptr) : Json(dim));
    }
    list.push_back({{"key", port.key},
                    {"name", port.name},
                    {"type", port.type},
                    {"shape", std::move(shape)},
                    {"may_be_left_out", port.may_be_left_out}});
    if (!port.dim_names.empty()) list.back()["dim_names"] = port.dim_names;
    if (!port.constant.empty()) list.back()["constant"] = port.constant;
  }
  return list;
}

Json VerdictJson(const CoreVerdict& verdict) {
  Json json{{"family", verdict.family.name},
            {"cores", verdict.family.cores},
            {"verdict", std::string(NameOf(verdict.kind))},
            {"reasons", ReasonsJson(verdict)}};
  if (verdict.kind == Kind::kCompiles) {
    json["ram_bytes"] = verdict.summary.ram_bytes;
    json["ram_limit_bytes"] = verdict.summary.ram_limit_bytes;
    json["flash_bytes"] = verdict.summary.flash_bytes;
    json["cycles"] = verdict.summary.cycles;
    json["warnings"] = verdict.warnings;
  }
  return json;
}

Json InspectionJson(const ModelInspection& inspection) {
  const ModelOutline& outline = inspection.outline;
  Json json{{"ok", true},
            {"format", std::string(InfoOf(outline.framework).format)},
            {"framework", FrameworkName(outline.framework)},
            {"producer", outline.producer},
            {"inputs", PortsJson(outline.inputs)},
            {"outputs", PortsJson(outline.outputs)},
            {"operators", outline.operators},
            {"operators_are", outline.operators_are},
            {"weights", outline.weights},
            {"weight_bytes", outline.weight_bytes},
            {"macs", inspection.macs.has_value() ? Json(*inspection.macs) : Json(nullptr)},
            {"notes", outline.notes},
            {"verdicts", Json::array()}};
  for (const CoreVerdict& verdict : inspection.verdicts) {
    json["verdicts"].push_back(VerdictJson(verdict));
  }
  return json;
}

// "[1,time,40]": an open dimension by its name, where it has one.
std::string ShapeWithNames(const Port& port) {
  const bool is_named = std::any_of(port.dim_names.begin(), port.dim_names.end(),
                                    [](const std::string& name) { return !name.empty(); });
  if (!is_named || !port.dims.has_value() || port.dims->size() != port.dim_names.size()) {
    return OutlineShape(port.dims);
  }
  std::vector<std::string> dims;
  for (size_t i = 0; i < port.dims->size(); ++i) {
    const int64_t dim = (*port.dims)[i];
    dims.push_back(dim >= 0                    ? absl::StrCat(dim)
                   : port.dim_names[i].empty() ? "?"
                                               : Printable(port.dim_names[i], 40));
  }
  return absl::StrCat("[", absl::StrJoin(dims, ","), "]");
}

std::string PortLines(const char* title, const std::vector<Port>& ports) {
  if (ports.empty()) return absl::StrFormat("%-9s not stated by the file\n", title);
  std::string text;
  for (const Port& port : ports) {
    std::string name = Printable(port.name);
    if (port.key != port.name) name = absl::StrCat(Printable(port.key), " (", name, ")");
    absl::StrAppend(
        &text, absl::StrFormat("%-9s %s %s%s%s%s\n", text.empty() ? title : "", name, port.type,
                               port.type.empty() ? "" : " ", ShapeWithNames(port),
                               port.constant.empty() ? "" : " = " + port.constant));
  }
  return text;
}

std::string OperatorLine(const ModelOutline& outline) {
  std::vector<std::pair<int64_t, std::string>> sorted;
  int64_t total = 0;
  for (const auto& [name, count] : outline.operators) {
    sorted.emplace_back(-count, name);
    total += count;
  }
  std::sort(sorted.begin(), sorted.end());
  return absl::StrFormat("%-9s %d %s: %s\n", "operators", total, outline.operators_are,
                         absl::StrJoin(sorted, ", ", [](std::string* out, const auto& entry) {
                           absl::StrAppend(out, -entry.first, " ", entry.second);
                         }));
}

std::string VerdictLines(const CoreVerdict& verdict) {
  std::string cores = verdict.family.name;
  if (verdict.family.cores.size() > 1) {
    absl::StrAppend(&cores, " (", absl::StrJoin(verdict.family.cores, ", "), ")");
  }
  std::string text = absl::StrCat("  ", cores, ": ", NameOf(verdict.kind));
  switch (verdict.kind) {
    case Kind::kCompiles:
      absl::StrAppend(&text,
                      verdict.warnings == 0
                          ? ""
                          : absl::StrCat(" with ", verdict.warnings,
                                         verdict.warnings == 1 ? " warning" : " warnings"),
                      "; ", MemoryText(verdict.summary), "\n");
      break;
    case Kind::kNeedsCalibration:
      absl::StrAppend(&text, "; the model is in float, the core computes in integers\n");
      break;
    case Kind::kNeedsShapes:
      absl::StrAppend(
          &text, "; say --input-shape 1,... for each input of unknown shape, or --dim NAME=N\n");
      break;
    case Kind::kRefused:
      absl::StrAppend(&text, "\n", ReasonLines(verdict));
      break;
  }
  return text;
}

std::string InspectionText(const std::string& path, size_t bytes,
                           const ModelInspection& inspection) {
  const ModelOutline& outline = inspection.outline;
  std::string text =
      absl::StrCat(Printable(path), ": ", InfoOf(outline.framework).format,
                   outline.producer.empty() ? "" : ", ", outline.producer, "; ", bytes, " bytes\n");
  absl::StrAppend(&text, PortLines("inputs", outline.inputs), PortLines("outputs", outline.outputs),
                  OperatorLine(outline),
                  absl::StrFormat("%-9s %d values, %d bytes\n", "weights", outline.weights,
                                  outline.weight_bytes));
  absl::StrAppend(&text, absl::StrFormat("%-9s %s\n", "MACs",
                                         inspection.macs.has_value()
                                             ? absl::StrCat(*inspection.macs)
                                             : "not known: the model is not imported yet"));
  for (const std::string& note : outline.notes) absl::StrAppend(&text, "note      ", note, "\n");
  absl::StrAppend(&text, "cores\n");
  for (const CoreVerdict& verdict : inspection.verdicts) {
    absl::StrAppend(&text, VerdictLines(verdict));
  }
  return absl::StrCat(text, "next: npuc init ", Printable(path), "\n");
}

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

Json ReasonsJson(const CoreVerdict& verdict) {
  Json reasons = Json::array();
  for (const RefusalReason& reason : verdict.reasons) {
    reasons.push_back({{"id", reason.id},
                       {"op", reason.op},
                       {"nodes", reason.nodes},
                       {"first_node", reason.node},
                       {"message", reason.message},
                       {"fix", reason.fix}});
  }
  return reasons;
}

std::string ReasonLines(const CoreVerdict& verdict) {
  std::string text;
  for (const RefusalReason& reason : verdict.reasons) {
    std::string where;
    if (!reason.op.empty()) {
      where = absl::StrCat(reason.nodes, reason.nodes == 1 ? " node  " : " nodes ",
                           Printable(reason.op), ": ");
    }
    absl::StrAppend(&text, "      ", where, Printable(reason.message, 400),
                    reason.fix.empty() ? "" : "; ", Printable(reason.fix, 300), " [", reason.id,
                    "]\n");
  }
  return text;
}

int RunInspectCommand(const InspectCommand& command) {
  Diagnostics diagnostics;
  absl::StatusOr<ModelArgument> model = LoadModel(command.model_path, command.stated, diagnostics);
  absl::StatusOr<ModelInspection> inspection =
      model.ok() ? InspectModel(model->request, diagnostics) : model.status();
  const int code = Finish(inspection.status(), diagnostics);
  if (command.json) {
    PrintReport(inspection.ok() ? InspectionJson(*inspection) : Json::object(), code == 0,
                diagnostics);
  } else if (inspection.ok()) {
    std::fputs(InspectionText(command.model_path, model->bytes.view().size(), *inspection).c_str(),
               stdout);
  }
  return code;
}

}  // namespace npuc
