#include "compiler_core/tools/run_ir_command.h"

#include <cstdio>
#include <filesystem>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/emit/model_file.h"
#include "compiler_core/pipeline/compile.h"
#include "compiler_core/tools/address_files.h"
#include "compiler_core/tools/array_files.h"
#include "compiler_core/tools/diagnostics_output.h"
#include "compiler_core/tools/files.h"
#include "compiler_core/tools/graph_files.h"
#include "compiler_core/tools/loaded_config.h"
#include "compiler_core/tools/profile.h"
#include "compiler_core/tools/simulation.h"

namespace npuc {
namespace {

constexpr char kDumpFolder[] = "dump";

// Keeps the model file and the report in memory.
class ModelKeeper : public CompileObserver {
 public:
  void OnArtifact(Artifact artifact) override {
    if (artifact.name.ends_with(".npuc")) model_ = std::move(artifact.write);
    if (artifact.name == "report.json") report_ = std::move(artifact.write);
  }
  absl::StatusOr<CompiledModel> Model(Diagnostics& diagnostics) const {
    ASSIGN_OR_RETURN(const std::string bytes, BytesOf(model_));
    return ReadModelFile(bytes, "the built model", diagnostics);
  }
  absl::StatusOr<std::string> Addresses() const {
    ASSIGN_OR_RETURN(const std::string report, BytesOf(report_));
    return AddressFileOf(report);
  }

 private:
  static absl::StatusOr<std::string> BytesOf(const ByteWriter& write) {
    std::string bytes;
    RETURN_IF_ERROR(write([&](absl::string_view part) {
      bytes.append(part.data(), part.size());
      return absl::OkStatus();
    }));
    return bytes;
  }

  ByteWriter model_;
  ByteWriter report_;
};

absl::Status Run(const RunIrArgs& args, const std::set<int>& ids, Diagnostics& diagnostics) {
  ASSIGN_OR_RETURN(const LoadedConfig loaded,
                   LoadConfigText(args.config_text, "-", args.shown, diagnostics));
  CompileRequest request = RequestOf(loaded);
  for (const auto& [option, why] : args.without_effect) {
    diagnostics.Add({.kind = DiagnosticKind::kConfigNoEffect,
                     .message = absl::StrCat(option, " changes nothing: ", why),
                     .file = args.shown,
                     .fix = "leave it out"});
  }
  RETURN_IF_ERROR(TakeAddressFile(args.load_addresses, request, diagnostics));
  if (!args.load_addresses.empty() || !args.dump_addresses.empty()) {
    request.options.memory_plan = CompileOptions::MemoryPlan::kCompatible;  // can be moved
  }
  const CfgTask& task = loaded.config.task;
  const std::filesystem::path beside = std::filesystem::path(task.output_path).parent_path();
  const GraphPictures pictures{task.svg_path, task.png_path};
  request.wants_listings = task.profiles || !pictures.svg.empty() || !pictures.png.empty();
  ModelKeeper keeper;
  ASSIGN_OR_RETURN(const CompileResult result, Compile(request, keeper, diagnostics));
  RETURN_IF_ERROR(
      WriteGraphPictures(pictures, result.listings.profile_graph, "npuc", true, diagnostics));
  SimulationFiles files{.inputs = task.inputs, .output = task.output_path};
  if (task.profiles) {
    files.profile = (beside / kProfileDataFile).string();
    RETURN_IF_ERROR(
        WriteFileAtomically((beside / kProfileGraphFile).string(), result.listings.profile_graph));
  }
  if (!task.inputs.empty()) {
    ASSIGN_OR_RETURN(const CompiledModel model, keeper.Model(diagnostics));
    RETURN_IF_ERROR(RunWithFiles(model, files, diagnostics));
  }
  if (!args.dump_addresses.empty()) {
    ASSIGN_OR_RETURN(const std::string text, keeper.Addresses());
    RETURN_IF_ERROR(WriteFileAtomically(args.dump_addresses, text));
    std::printf("%s: the addresses of the buffers\n", Printable(args.dump_addresses).c_str());
  }
  if (!args.dump.all && ids.empty()) return absl::OkStatus();
  const std::filesystem::path folder = beside / kDumpFolder;
  RETURN_IF_ERROR(DumpRun(request, task.inputs, ids, folder.string(), diagnostics));
  std::printf("%s: every layer's tensors and layers.csv\n", Printable(folder.string()).c_str());
  return absl::OkStatus();
}

}  // namespace

int RunIrCommand(const RunIrArgs& args) {
  const absl::StatusOr<std::set<int>> ids = LayerIdsOf(args.dump);
  if (!ids.ok()) {
    std::fprintf(stderr, "%s: %s\n", args.shown.c_str(),
                 std::string(ids.status().message()).c_str());
    return kWrongUsage;
  }
  Diagnostics diagnostics;
  return Finish(Run(args, *ids, diagnostics), diagnostics);
}

}  // namespace npuc
