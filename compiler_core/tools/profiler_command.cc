#include "compiler_core/tools/profiler_command.h"

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/report/page.h"
#include "compiler_core/report/profile_buffer.h"
#include "compiler_core/report/profile_data.h"
#include "compiler_core/report/xlsx.h"
#include "compiler_core/tools/array_files.h"
#include "compiler_core/tools/diagnostics_output.h"
#include "compiler_core/tools/files.h"

namespace npuc {
namespace {

using Json = nlohmann::ordered_json;

absl::StatusOr<std::string> ReadInput(const std::string& path, Diagnostics& diagnostics) {
  absl::StatusOr<std::string> bytes = ReadFile(path, kMaxProfileBytes);
  if (!bytes.ok()) AddFileProblem(bytes.status(), diagnostics);
  return bytes;
}

absl::Status Refuse(const std::string& path, absl::string_view what, absl::string_view fix,
                    Diagnostics& diagnostics) {
  diagnostics.Add({.kind = DiagnosticKind::kFileUnreadable,
                   .message = std::string(what),
                   .file = path,
                   .fix = std::string(fix)});
  return diagnostics.ToStatus();
}

absl::StatusOr<Json> LoadProfile(const ProfilerArgs& args, Diagnostics& diagnostics) {
  ASSIGN_OR_RETURN(const std::string graph, ReadInput(args.graph_path, diagnostics));
  ASSIGN_OR_RETURN(const std::string bytes, ReadInput(args.buffer_path, diagnostics));
  const absl::StatusOr<ProfileBuffer> buffer = ReadProfileBuffer(bytes);
  if (!buffer.ok()) {
    return Refuse(args.buffer_path, buffer.status().message(),
                  "name the profile_data.bin of a run with profile=true", diagnostics);
  }
  ProfileProblem problem;
  std::optional<Json> data = MakeProfileData(graph, *buffer, args.frequency_mhz, problem);
  if (data.has_value()) return *std::move(data);
  if (problem.in_graph) {
    return Refuse(args.graph_path, problem.message,
                  "name the graph.json of a build with profile=true", diagnostics);
  }
  return Refuse(args.buffer_path, problem.message, "build and run again with profile=true",
                diagnostics);
}

absl::StatusOr<std::string> ReportOf(const std::string& method, const Json& data) {
  if (method == "xlsx") return WriteXlsx(ProfileTables(data));
  if (method == "csv") return WriteCsv(ProfileTables(data)[0]);
  const std::string text = absl::StrCat(DumpJson(data), "\n");
  return method == "json" ? text : ProfilePage(text);
}

absl::Status Run(const ProfilerArgs& args, Diagnostics& diagnostics) {
  ASSIGN_OR_RETURN(const Json data, LoadProfile(args, diagnostics));
  ASSIGN_OR_RETURN(const std::string report, ReportOf(args.method, data));
  std::string path = args.output_path;
  if (path.empty()) {
    path = absl::StrCat(FileStem(data["graph_name"].get<std::string>()), ".", args.method);
  }
  RETURN_IF_ERROR(WriteFileAtomically(path, report));
  std::printf("%s %zu bytes\n", Printable(path).c_str(), report.size());
  return absl::OkStatus();
}

}  // namespace

int RunProfilerCommand(const ProfilerArgs& args) {
  Diagnostics diagnostics;
  return Finish(Run(args, diagnostics), diagnostics);
}

}  // namespace npuc
