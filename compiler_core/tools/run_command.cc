#include "compiler_core/tools/run_command.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler_core/base/fp16.h"
#include "compiler_core/base/status.h"
#include "compiler_core/emit/disassemble.h"
#include "compiler_core/emit/model_file.h"
#include "compiler_core/sim/simulator.h"
#include "compiler_core/tools/array_files.h"
#include "compiler_core/tools/diagnostics_output.h"
#include "compiler_core/tools/files.h"
#include "compiler_core/tools/npy.h"
#include "compiler_core/tools/run_items.h"
#include "nlohmann/json.hpp"

namespace npuc {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDone = 0;
constexpr int kRefused = 1;
constexpr int64_t kMaxArtifactBytes = int64_t{1} << 30;

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<CompiledModel> LoadArtifact(const std::string& path, Diagnostics& diagnostics) {
  const absl::StatusOr<std::string> bytes = ReadFile(path, kMaxArtifactBytes);
  if (!bytes.ok()) {
    AddFileProblem(bytes.status(), diagnostics);
    return bytes.status();
  }
  return ReadArtifact(*bytes, path, diagnostics);
}

// What commands do, as an object; `cycles` is an estimate.
Json LoadJson(const CommandLoad& load, int64_t cycles) {
  return {{"macs", load.macs},
          {"elements", load.elements},
          {"read_bytes", load.read_bytes},
          {"written_bytes", load.written_bytes},
          {"cycles", cycles}};
}

// Counts for each command of one frame, and their sums by kind.
Json Profile(const Simulator& simulator, int64_t items) {
  struct Sum {
    int64_t commands = 0;
    CommandLoad load;
    int64_t cycles = 0;
    void Add(const Simulator::CommandInfo& info) {
      ++commands;
      load += info.load;
      cycles += info.cycles;
    }
    Json ToJson() const {
      Json json = {{"commands", commands}};
      json.update(LoadJson(load, cycles));
      return json;
    }
  };
  Json commands = Json::array();
  std::map<std::string, Sum> kinds;
  Sum frame;
  for (const Simulator::CommandInfo& info : simulator.commands()) {
    frame.Add(info);
    kinds[info.kind].Add(info);
    Json command = {{"offset", info.offset_bytes}, {"kind", info.kind}};
    command.update(LoadJson(info.load, info.cycles));
    commands.push_back(std::move(command));
  }
  Json per_frame = frame.ToJson();
  per_frame["by_kind"] = Json::object();
  for (const auto& [kind, sum] : kinds) per_frame["by_kind"][kind] = sum.ToJson();
  return {{"items", items}, {"per_frame", per_frame}, {"commands", commands}};
}

absl::Status Run(const RunCommandArgs& args, Json& report, Diagnostics& diagnostics) {
  ASSIGN_OR_RETURN(const CompiledModel model, LoadArtifact(args.artifact, diagnostics));
  ASSIGN_OR_RETURN(const std::unique_ptr<Simulator> simulator,
                   Simulator::Load(model, args.artifact, diagnostics));
  if (args.frames < 0) {
    diagnostics.Add({.kind = DiagnosticKind::kRunInputInvalid,
                     .message = absl::StrCat("--frames ", args.frames, " is negative")});
  }
  SimulatorRunner runner(*simulator);
  const std::vector<NamedArray> inputs = LoadInputs(args.inputs, diagnostics);
  if (diagnostics.has_errors()) return diagnostics.ToStatus();
  ASSIGN_OR_RETURN(const RunItemsResult result, RunItems(runner, inputs, args.frames, diagnostics));
  report["items"] = result.items;
  RETURN_IF_ERROR(WriteOutputs(args.output_dir, !args.json, result, report["outputs"]));
  if (args.profile_path.empty()) return absl::OkStatus();
  return WriteFileAtomically(args.profile_path,
                             absl::StrCat(Dump(Profile(*simulator, result.items)), "\n"));
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
  if (args.json) {
    report["ok"] = code == kDone;
    report["diagnostics"] = Json::parse(DiagnosticsJson(diagnostics));
    std::printf("%s\n", Dump(report).c_str());
  }
  return code;
}

int DisassembleCommand(const std::string& artifact, bool json) {
  Diagnostics diagnostics;
  const absl::StatusOr<CompiledModel> model = LoadArtifact(artifact, diagnostics);
  const Disassembly listing = model.ok() ? DisassembleModel(*model) : Disassembly();
  const int code = Finish(model.status(), diagnostics);
  if (json) {
    const Json report = {{"ok", code == kDone && listing.complete},
                         {"commands", listing.command_count},
                         {"end", listing.end_bytes},
                         {"text", listing.text},
                         {"diagnostics", Json::parse(DiagnosticsJson(diagnostics))}};
    std::printf("%s\n", Dump(report).c_str());
  } else {
    std::fwrite(listing.text.data(), 1, listing.text.size(), stdout);
  }
  return code == kDone && listing.complete ? kDone : kRefused;
}

}  // namespace npuc
