#include "compiler_core/tools/report_command.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler_core/base/status.h"
#include "compiler_core/report/json_parts.h"
#include "compiler_core/report/page.h"
#include "compiler_core/target/core_spec.h"
#include "compiler_core/tools/array_files.h"
#include "compiler_core/tools/diagnostics_output.h"
#include "compiler_core/tools/files.h"
#include "compiler_core/tools/profile.h"

namespace npuc {
namespace {

using Json = nlohmann::ordered_json;

// The sections of report.json that an artifact alone can fill.
Json ArtifactReport(const CompiledModel& model, const Simulator& simulator,
                    const std::string& name) {
  Json report = {{"compiler", Printable(model.version)},
                 {"core", Printable(model.core)},
                 {"npu_unit", Printable(model.npu_unit)},
                 {"model", Printable(name)},
                 {"model_md5", Printable(model.model_md5)},
                 {"sizes_bytes",
                  {{"cmd_content", model.cmd_content.size()},
                   {"weight_content", model.weight_content.size()},
                   {"ops_content", model.ops_content.size()},
                   {"data_content", model.data_bytes},
                   {"npu_size", model.npu_size()},
                   {"total_size", model.total_size()}}},
                 {"inputs", PortsJson(model.inputs, model.inputs)},
                 {"outputs", PortsJson(model.inputs, model.outputs)}};
  const CoreSpec* core = FindCore(model.core);
  if (core != nullptr && core->cycles != nullptr) {
    report["cycle_model"] = CycleModelJson(*core, model.npu_unit);
  }
  const bool has_cores = CoresOf(model.core) > 1;
  report["per_frame"] = ProfileJson(simulator, 0, has_cores)["per_frame"];
  const std::vector<Simulator::CommandInfo>& commands = simulator.commands();
  Json nodes = Json::array();
  for (size_t i = 0; i < std::min(commands.size(), kMaxReportEntries); ++i) {
    Json node = {{"node", absl::StrFormat("command at byte %06d", commands[i].offset_bytes)},
                 {"operator", commands[i].kind},
                 {"commands", 1}};
    if (has_cores) node.update(Json{{"core", commands[i].core}, {"phase", commands[i].phase}});
    node.update(LoadJson(commands[i].load, commands[i].cycles));
    nodes.push_back(std::move(node));
  }
  report["nodes"] = std::move(nodes);
  if (commands.size() > kMaxReportEntries) {
    report["omitted"] = {{"nodes", commands.size() - kMaxReportEntries}};
  }
  report["diagnostics"] = Json::array();
  return report;
}

std::string PagePath(const ReportCommandArgs& args) {
  const std::string stem = std::filesystem::path(args.artifact).stem().string();
  return (std::filesystem::path(args.output_dir) / absl::StrCat(stem, ".html")).string();
}

absl::Status WriteReport(const ReportCommandArgs& args, Diagnostics& diagnostics) {
  ASSIGN_OR_RETURN(const CompiledModel model, LoadArtifact(args.artifact, diagnostics));
  ASSIGN_OR_RETURN(const std::unique_ptr<Simulator> simulator,
                   Simulator::Load(model, args.artifact, diagnostics));
  const Json report = ArtifactReport(model, *simulator, args.artifact);
  return WriteFileAtomically(PagePath(args), ReportPage(absl::StrCat(DumpJson(report), "\n")));
}

}  // namespace

int RunReportCommand(const ReportCommandArgs& args) {
  Diagnostics diagnostics;
  const int code = Finish(WriteReport(args, diagnostics), diagnostics);
  if (args.json) {
    PrintReport({{"ok", code == 0}, {"path", PagePath(args)}}, code == 0, diagnostics);
  } else if (code == 0) {
    std::printf("%s\n", PagePath(args).c_str());
  }
  return code;
}

}  // namespace npuc
