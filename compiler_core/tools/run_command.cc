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
constexpr int64_t kMaxNpyBytes = int64_t{1} << 31;
constexpr int64_t kPrintedValues = 16;

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void AddFileProblem(const absl::Status& status, Diagnostics& diagnostics) {
  diagnostics.Add(
      {.kind = DiagnosticKind::kFileUnreadable, .message = std::string(status.message())});
}

absl::StatusOr<CompiledModel> LoadArtifact(const std::string& path, Diagnostics& diagnostics) {
  const absl::StatusOr<std::string> bytes = ReadFile(path, kMaxArtifactBytes);
  if (!bytes.ok()) {
    AddFileProblem(bytes.status(), diagnostics);
    return bytes.status();
  }
  return ReadArtifact(*bytes, path, diagnostics);
}

// Every "NAME=FILE.npy"; all problems are reported.
std::vector<NamedArray> LoadInputs(const std::vector<std::string>& inputs,
                                   Diagnostics& diagnostics) {
  std::vector<NamedArray> arrays;
  for (const std::string& input : inputs) {
    const size_t equals = input.find('=');
    if (equals == std::string::npos || equals == 0) {
      diagnostics.Add({.kind = DiagnosticKind::kRunInputInvalid,
                       .message = absl::StrCat("'", Printable(input), "' is no NAME=FILE.npy")});
      continue;
    }
    const std::string path = input.substr(equals + 1);
    const absl::StatusOr<std::string> bytes = ReadFile(path, kMaxNpyBytes);
    if (!bytes.ok()) {
      AddFileProblem(bytes.status(), diagnostics);
      continue;
    }
    absl::StatusOr<NpyArray> array = ReadNpy(*bytes);
    if (!array.ok()) {
      diagnostics.Add({.kind = DiagnosticKind::kRunInputInvalid,
                       .message = std::string(array.status().message()),
                       .file = path});
      continue;
    }
    arrays.push_back({input.substr(0, equals), *std::move(array)});
  }
  return arrays;
}

// NAME of NAME.npy: '/' and ':' written as '_', and what cannot stand in a file name too.
std::string FileStem(const std::string& name) {
  std::string stem = name.empty() ? "_" : name;
  for (char& c : stem) {
    if (c == '/' || c == ':' || c == '\0') c = '_';
  }
  return stem;
}

double ValueAt(const NpyArray& array, int64_t i) {
  if (array.dtype == DType::kFloat32) {
    float value;
    std::memcpy(&value, array.bytes.data() + 4 * i, sizeof(value));
    return value;
  }
  uint16_t half;
  std::memcpy(&half, array.bytes.data() + 2 * i, sizeof(half));
  return HalfToFloat(half);
}

void PrintOutput(const NamedArray& output, const std::string& path) {
  const std::string type = TypeToString({output.array.dtype, output.array.shape});
  if (!path.empty()) {
    std::printf("%s %s -> %s\n", Printable(output.name).c_str(), type.c_str(), path.c_str());
    return;
  }
  std::printf("%s %s:", Printable(output.name).c_str(), type.c_str());
  const int64_t count = output.array.element_count();
  for (int64_t i = 0; i < std::min(count, kPrintedValues); ++i) {
    std::printf(" %g", ValueAt(output.array, i));
  }
  std::printf("%s\n", count > kPrintedValues ? " ..." : "");
}

absl::Status WriteOutputs(const RunCommandArgs& args, const RunItemsResult& result, Json& list) {
  std::map<std::string, std::string> written;  // path -> tensor name
  for (const NamedArray& output : result.outputs) {
    std::string path;
    if (!args.output_dir.empty()) {
      const std::string file = absl::StrCat(FileStem(output.name), ".npy");
      path = (std::filesystem::path(args.output_dir) / file).string();
      const auto [it, inserted] = written.emplace(path, output.name);
      if (!inserted) {
        return absl::InvalidArgumentError(absl::StrCat("outputs '", Printable(it->second),
                                                       "' and '", Printable(output.name),
                                                       "' would both be ", Printable(path)));
      }
      ASSIGN_OR_RETURN(const std::string bytes, WriteNpy(output.array));
      RETURN_IF_ERROR(WriteFileAtomically(path, bytes));
    }
    list.push_back({{"name", output.name},
                    {"dtype", output.array.dtype == DType::kFloat32 ? "float32" : "float16"},
                    {"shape", output.array.shape},
                    {"path", path}});
    if (!args.json) PrintOutput(output, path);
  }
  return absl::OkStatus();
}

// Counts for each command of one frame, and their sums by kind.
Json Profile(const Simulator& simulator, int64_t items) {
  Json commands = Json::array();
  Json kinds = Json::object();
  int64_t multiply_adds = 0;
  int64_t elements = 0;
  for (const Simulator::CommandInfo& info : simulator.commands()) {
    const int64_t macs = info.multiplies ? info.work : 0;
    const int64_t work = info.multiplies ? 0 : info.work;
    multiply_adds += macs;
    elements += work;
    commands.push_back({{"offset", info.offset_bytes},
                        {"kind", info.kind},
                        {"macs", macs},
                        {"elements", work},
                        {"read_bytes", info.read_bytes},
                        {"written_bytes", info.written_bytes}});
    Json& kind = kinds[info.kind];
    if (kind.is_null()) kind = Json::object();
    for (const auto& [key, value] : {std::pair<const char*, int64_t>{"commands", 1},
                                     {"macs", macs},
                                     {"elements", work},
                                     {"read_bytes", info.read_bytes},
                                     {"written_bytes", info.written_bytes}}) {
      kind[key] = kind.value(key, int64_t{0}) + value;
    }
  }
  return {{"items", items},
          {"per_frame",
           {{"commands", simulator.commands().size()},
            {"macs", multiply_adds},
            {"elements", elements},
            {"by_kind", kinds}}},
          {"commands", commands}};
}

absl::Status Run(const RunCommandArgs& args, Json& report, Diagnostics& diagnostics) {
  ASSIGN_OR_RETURN(const CompiledModel model, LoadArtifact(args.artifact, diagnostics));
  ASSIGN_OR_RETURN(const std::unique_ptr<Simulator> simulator,
                   Simulator::Load(model, args.artifact, diagnostics));
  if (args.frames < 0) {
    diagnostics.Add({.kind = DiagnosticKind::kRunInputInvalid,
                     .message = absl::StrCat("--frames ", args.frames, " is negative")});
  }
  const std::vector<NamedArray> inputs = LoadInputs(args.inputs, diagnostics);
  if (diagnostics.has_errors()) return diagnostics.ToStatus();
  ASSIGN_OR_RETURN(const RunItemsResult result,
                   RunItems(*simulator, inputs, args.frames, diagnostics));
  report["items"] = result.items;
  RETURN_IF_ERROR(WriteOutputs(args, result, report["outputs"]));
  if (args.profile_path.empty()) return absl::OkStatus();
  return WriteFileAtomically(args.profile_path,
                             absl::StrCat(Dump(Profile(*simulator, result.items)), "\n"));
}

// Prints what went wrong, once. The exit code.
int Finish(const absl::Status& status, const Diagnostics& diagnostics) {
  PrintDiagnostics(diagnostics);
  if (!status.ok() && !diagnostics.has_errors()) {
    std::fprintf(stderr, "npuc: %s\n", std::string(status.message()).c_str());
  }
  return status.ok() && !diagnostics.has_errors() ? kDone : kRefused;
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
