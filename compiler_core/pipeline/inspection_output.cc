#include "compiler_core/pipeline/inspection_output.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/status.h"
#include "compiler_core/pipeline/inspect_files.h"
#include "nlohmann/json.hpp"

namespace npuc {
namespace {

using Json = nlohmann::ordered_json;
using Port = ModelOutline::Port;
using Kind = CoreVerdict::Kind;

constexpr char kDefaultStem[] = "model";

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

// "kws" of "kws.onnx".
std::string StemOf(absl::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == 0 || name.empty() ? kDefaultStem : std::string(name.substr(0, dot));
}

// Each core's config, as `npuc init` writes it beside the model, and what of it is left open.
void AddConfigs(const InspectRequest& request, const ModelOutline& outline,
                const CoreVerdict& verdict, Json& json) {
  const std::string stem = StemOf(request.model_name);
  json["configs"] = Json::object();
  for (const std::string& core : verdict.family.cores) {
    StarterConfig config = WriteStarterConfig(outline, {.core = core,
                                                        .model_path = request.model_name,
                                                        .output_path = HeaderNameFor(stem),
                                                        .config_path = stem + ".yaml",
                                                        .needs_calibration = verdict.wants_samples,
                                                        .quantizes_anew = verdict.quantizes_anew});
    json["configs"][core] = std::move(config.text);
    json["open"] = std::move(config.open);
  }
}

Json VerdictJson(const InspectRequest& request, const ModelOutline& outline,
                 const CoreVerdict& verdict) {
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
  AddConfigs(request, outline, verdict, json);
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

std::string OutlineLine(const ModelOutline& outline) {
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
      absl::StrAppend(&text, "; the core computes in integers, whose scales come from samples\n");
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

}  // namespace

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

Json InspectionJson(const InspectRequest& request, const ModelInspection& inspection) {
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
    json["verdicts"].push_back(VerdictJson(request, outline, verdict));
  }
  return json;
}

std::string InspectionText(absl::string_view path, size_t bytes,
                           const ModelInspection& inspection) {
  const ModelOutline& outline = inspection.outline;
  std::string text =
      absl::StrCat(Printable(path), ": ", InfoOf(outline.framework).format,
                   outline.producer.empty() ? "" : ", ", outline.producer, "; ", bytes, " bytes\n");
  absl::StrAppend(&text, PortLines("inputs", outline.inputs), PortLines("outputs", outline.outputs),
                  OutlineLine(outline),
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
  return text;
}

absl::Status InspectIntoFiles(const InspectFilesRequest& files, CompileObserver& observer,
                              Diagnostics& diagnostics) {
  InspectRequest request{.model_bytes = files.model_bytes,
                         .model_name = files.model_name,
                         .side_inputs = files.side_inputs};
  for (const std::string& text : files.shapes) {
    ASSIGN_OR_RETURN(StatedShape shape, ParseStatedShape(text));
    request.stated.shapes.push_back(std::move(shape));
  }
  for (const std::string& text : files.dims) {
    ASSIGN_OR_RETURN(auto value, ParseStatedValue("dims", text));
    request.stated.dims.push_back(std::move(value));
  }
  for (const std::string& text : files.constants) {
    ASSIGN_OR_RETURN(auto value, ParseStatedValue("constants", text));
    request.stated.constants.push_back(std::move(value));
  }
  ASSIGN_OR_RETURN(const ModelInspection inspection, InspectModel(request, diagnostics));
  const Json json = InspectionJson(request, inspection);
  observer.OnArtifact(
      {.name = kInspectionJson,
       .write = WriterOf(json.dump(-1, ' ', false, Json::error_handler_t::replace))});
  observer.OnArtifact(
      {.name = kInspectionText,
       .write = WriterOf(InspectionText(files.model_name, files.model_bytes.size(), inspection))});
  return absl::OkStatus();
}

}  // namespace npuc
