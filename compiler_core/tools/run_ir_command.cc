#include "compiler_core/tools/run_ir_command.h"

#include <cstdio>
#include <filesystem>
#include <set>
#include <utility>

#include "compiler_core/base/status.h"
#include "compiler_core/emit/model_file.h"
#include "compiler_core/pipeline/compile.h"
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

// Keeps the bytes of the model file alone.
class ModelKeeper : public CompileObserver {
 public:
  void OnArtifact(Artifact artifact) override {
    if (artifact.name.ends_with(".npuc")) write_ = std::move(artifact.write);
  }
  absl::StatusOr<CompiledModel> Model(Diagnostics& diagnostics) const {
    std::string bytes;
    RETURN_IF_ERROR(write_([&](absl::string_view part) {
      bytes.append(part.data(), part.size());
      return absl::OkStatus();
    }));
    return ReadModelFile(bytes, "the built model", diagnostics);
  }

 private:
  ByteWriter write_;
};

absl::Status Run(const RunIrArgs& args, const std::set<int>& ids, Diagnostics& diagnostics) {
  ASSIGN_OR_RETURN(const LoadedConfig loaded,
                   LoadConfigText(args.config_text, "-", args.shown, diagnostics));
  CompileRequest request = RequestOf(loaded);
  const CfgTask& task = loaded.config.task;
  const std::filesystem::path beside = std::filesystem::path(task.output_path).parent_path();
  const GraphPictures pictures{task.svg_path, task.png_path};
  request.wants_listings = task.profiles || !pictures.svg.empty() || !pictures.png.empty();
  ModelKeeper keeper;
  ASSIGN_OR_RETURN(const CompileResult result, Compile(request, keeper, diagnostics));
  ASSIGN_OR_RETURN(const CompiledModel model, keeper.Model(diagnostics));
  RETURN_IF_ERROR(
      WriteGraphPictures(pictures, result.listings.profile_graph, "npuc", true, diagnostics));
  SimulationFiles files{.inputs = task.inputs, .output = task.output_path};
  if (task.profiles) {
    files.profile = (beside / kProfileDataFile).string();
    RETURN_IF_ERROR(
        WriteFileAtomically((beside / kProfileGraphFile).string(), result.listings.profile_graph));
  }
  RETURN_IF_ERROR(RunWithFiles(model, files, diagnostics));
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
