#include <cstdio>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/status.h"
#include "compiler_core/base/suggest.h"
#include "compiler_core/pipeline/inspection_output.h"
#include "compiler_core/target/chips.h"
#include "compiler_core/target/family.h"
#include "compiler_core/tools/array_files.h"
#include "compiler_core/tools/diagnostics_output.h"
#include "compiler_core/tools/inspect_command.h"
#include "nlohmann/json.hpp"

namespace npuc {
namespace {

using Json = nlohmann::ordered_json;
using Kind = CoreVerdict::Kind;

struct Written {
  std::string config_path;
  std::string core;
  bool is_chosen = false;  // by npuc: the command names none
  StarterConfig config;
  CoreVerdict verdict;
};

// The core that -c names, or its chip.
absl::StatusOr<const CoreSpec*> CoreOf(const std::string& name) {
  const CoreSpec* core = FindCore(name);
  if (core == nullptr) core = FindCoreOfChip(name);
  if (core != nullptr) return core;
  std::vector<absl::string_view> known;
  for (const CoreSpec* spec : AllCores()) {
    known.push_back(spec->name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no core '", Printable(name), "' to compile for; ",
                   DidYouMean(name, known, absl::StrCat("known: ", absl::StrJoin(known, ", ")))));
}

const CoreVerdict& VerdictFor(const ModelInspection& inspection, const CoreSpec* core) {
  for (const CoreVerdict& verdict : inspection.verdicts) {
    for (const std::string& name : verdict.family.cores) {
      if (core != nullptr && name == core->name) return verdict;
    }
  }
  const CoreVerdict* best = BestVerdict(inspection);
  return best != nullptr ? *best : inspection.verdicts.front();
}

// A path of a file as a config at `config_path` names it.
std::string SeenFrom(const std::string& config_path, const std::string& path) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::absolute(config_path, error).parent_path();
  const std::filesystem::path seen = std::filesystem::absolute(path, error)
                                         .lexically_normal()
                                         .lexically_proximate(folder.lexically_normal());
  return error ? path : seen.string();
}

absl::Status Write(const InitCommand& command, Written& written, Diagnostics& diagnostics) {
  const CoreSpec* core = nullptr;
  if (!command.core.empty()) {
    ASSIGN_OR_RETURN(core, CoreOf(command.core));
  }
  ASSIGN_OR_RETURN(ModelArgument model, LoadModel(command.model_path, command.stated, diagnostics));
  ASSIGN_OR_RETURN(const ModelInspection inspection, InspectModel(model.request, diagnostics));
  written.verdict = VerdictFor(inspection, core);
  written.is_chosen = core == nullptr;
  written.core = core != nullptr ? std::string(core->name) : written.verdict.family.cores[0];
  const std::string stem = std::filesystem::path(command.model_path).stem().string();
  written.config_path = command.config_path.empty() ? stem + ".yaml" : command.config_path;
  const bool to_terminal = written.config_path == "-";
  const std::string place = to_terminal ? stem + ".yaml" : written.config_path;
  written.config =
      WriteStarterConfig(inspection.outline, {.core = written.core,
                                              .model_path = SeenFrom(place, command.model_path),
                                              .output_path = HeaderNameFor(stem),
                                              .config_path = place,
                                              .needs_calibration = written.verdict.wants_samples,
                                              .quantizes_anew = written.verdict.quantizes_anew});
  if (to_terminal) return absl::OkStatus();
  std::error_code error;
  if (!command.force && std::filesystem::exists(written.config_path, error)) {
    diagnostics.Add({.kind = DiagnosticKind::kFileUnwritable,
                     .message = "the file is there already",
                     .file = written.config_path,
                     .fix = "name another one with -o, or overwrite it with --force"});
    return diagnostics.ToStatus();
  }
  const absl::Status saved = WriteFileAtomically(written.config_path, written.config.text);
  if (saved.ok()) return saved;
  diagnostics.Add({.kind = DiagnosticKind::kFileUnwritable,
                   .message = std::string(saved.message()),
                   .fix = "name another file with -o"});
  return diagnostics.ToStatus();
}

void Print(const Written& written) {
  if (written.config_path == "-") {
    std::fputs(written.config.text.c_str(), stdout);
    return;
  }
  const std::string shown = Printable(written.config_path);
  std::printf("%s: for core %s%s\n", shown.c_str(), written.core.c_str(),
              written.is_chosen ? "; -c CORE names another one" : "");
  for (const std::string& open : written.config.open) {
    std::printf("only you know %s: complete the lines marked %s\n", open.c_str(), kFillIn);
  }
  if (written.verdict.kind == Kind::kNeedsCalibration) {
    std::printf("only you have calibration data: name them in the lines of QUANT\n");
  }
  if (written.verdict.kind == Kind::kRefused) {
    std::printf("core %s refuses the model as it is:\n%s", written.core.c_str(),
                ReasonLines(written.verdict).c_str());
    std::printf(
        "next: change the model, or cut these nodes off by INPUT_OPS and OUTPUT_OPS in %s\n",
        shown.c_str());
    return;
  }
  std::printf("next: npuc %s -o out\n", shown.c_str());
}

}  // namespace

int RunInitCommand(const InitCommand& command) {
  Diagnostics diagnostics;
  Written written;
  const absl::Status status = Write(command, written, diagnostics);
  const bool is_refused = status.ok() && written.verdict.kind == Kind::kRefused;
  const int code = Finish(status, diagnostics) != 0 || is_refused ? 1 : 0;
  if (command.json) {
    Json json{{"ok", code == 0}, {"config", written.config_path}, {"core", written.core}};
    if (status.ok()) {
      json["verdict"] = std::string(NameOf(written.verdict.kind));
      json["reasons"] = ReasonsJson(written.verdict);
      json["open"] = written.config.open;
      json["text"] = written.config.text;
    }
    PrintReport(std::move(json), code == 0, diagnostics);
  } else if (status.ok()) {
    Print(written);
  }
  return code;
}

}  // namespace npuc
