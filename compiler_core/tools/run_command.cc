#include "compiler_core/tools/run_command.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler_core/base/fp16.h"
#include "compiler_core/base/status.h"
#include "compiler_core/emit/disassemble.h"
#include "compiler_core/emit/model_file.h"
#include "compiler_core/quant/data/npy.h"
#include "compiler_core/sim/simulator.h"
#include "compiler_core/tools/array_files.h"
#include "compiler_core/tools/diagnostics_output.h"
#include "compiler_core/tools/files.h"
#include "compiler_core/tools/profile.h"
#include "compiler_core/tools/run_items.h"
#include "nlohmann/json.hpp"

namespace npuc {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDone = 0;
constexpr int kRefused = 1;

absl::Status Run(const RunCommandArgs& args, Json& report, Diagnostics& diagnostics) {
  ASSIGN_OR_RETURN(const CompiledModel model, LoadArtifact(args.artifact, diagnostics));
  ASSIGN_OR_RETURN(const std::unique_ptr<Simulator> simulator,
                   Simulator::Load(model, args.artifact, diagnostics));
  if (args.frames < 0) {
    diagnostics.Add({.kind = DiagnosticKind::kRunInputInvalid,
                     .message = absl::StrCat("--frames ", args.frames, " is negative")});
  }
  const auto is_float = [](const PortTensor& port) { return port.scale <= 0; };
  if (args.raw && std::all_of(model.inputs.begin(), model.inputs.end(), is_float) &&
      std::all_of(model.outputs.begin(), model.outputs.end(), is_float)) {
    diagnostics.Add({.kind = DiagnosticKind::kRunInputInvalid,
                     .message = "--raw is for inputs and outputs that are stored as integers; this "
                                "artifact has none"});
  }
  SimulatorRunner runner(*simulator);
  const std::vector<NamedArray> inputs = LoadInputs(args.inputs, runner, diagnostics);
  if (diagnostics.has_errors()) return diagnostics.ToStatus();
  ASSIGN_OR_RETURN(const RunItemsResult result,
                   RunItems(runner, inputs, args.frames, diagnostics,
                            args.raw ? RunValues::kStored : RunValues::kReal));
  report["items"] = result.items;
  RETURN_IF_ERROR(WriteOutputs(args.output_dir, !args.json, result, report["outputs"]));
  if (args.profile_path.empty()) return absl::OkStatus();
  return WriteFileAtomically(args.profile_path,
                             absl::StrCat(DumpJson(ProfileJson(*simulator, result.items)), "\n"));
}

}  // namespace

int RunArtifactCommand(const RunCommandArgs& args) {
  Diagnostics diagnostics;
  Json report;
  report["ok"] = false;
  report["items"] = 0;
  report["outputs"] = Json::array();
  const absl::Status status = Run(args, report, diagnostics);
  const int code = Finish(status, diagnostics);
  if (args.json) PrintReport(std::move(report), code == kDone, diagnostics);
  return code;
}

int DisassembleCommand(const std::string& artifact, bool json) {
  Diagnostics diagnostics;
  const absl::StatusOr<CompiledModel> model = LoadArtifact(artifact, diagnostics);
  const Disassembly listing = model.ok() ? DisassembleModel(*model) : Disassembly();
  const int code = Finish(model.status(), diagnostics);
  const bool ok = code == kDone && listing.complete;
  if (json) {
    PrintReport({{"ok", ok},
                 {"commands", listing.command_count},
                 {"end", listing.end_bytes},
                 {"text", listing.text}},
                ok, diagnostics);
  } else {
    std::fwrite(listing.text.data(), 1, listing.text.size(), stdout);
  }
  return ok ? kDone : kRefused;
}

}  // namespace npuc
