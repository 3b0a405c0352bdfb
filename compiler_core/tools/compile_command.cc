#include "compiler_core/tools/compile_command.h"

#include <sched.h>

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler_core/base/byte_source.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/helper_threads.h"
#include "compiler_core/base/status.h"
#include "compiler_core/pipeline/compile.h"
#include "compiler_core/pipeline/summary.h"
#include "compiler_core/target/core_spec.h"
#include "compiler_core/tools/address_files.h"
#include "compiler_core/tools/array_files.h"
#include "compiler_core/tools/artifact_files.h"
#include "compiler_core/tools/diagnostics_output.h"
#include "compiler_core/tools/files.h"
#include "compiler_core/tools/graph_files.h"
#include "compiler_core/tools/histogram_picture.h"
#include "compiler_core/tools/ir_command.h"
#include "compiler_core/tools/layer_dump.h"
#include "compiler_core/tools/loaded_config.h"
#include "compiler_core/tools/profile.h"
#include "compiler_core/tools/simulation.h"
#include "nlohmann/json.hpp"

namespace npuc {
namespace {

constexpr int kDone = 0;
constexpr int kRefused = 1;
// The name that gxnpuc gives the folder of -s.
constexpr char kHistogramFolder[] = "npu_jpgs";

std::string OutputFolder(const CompileCommand& command, const ParsedConfig& config) {
  if (!command.output_dir.empty()) return command.output_dir;
  const std::string path = ResolveBeside(command.config_path, config.output_path);
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

// The histograms as data, for those who would rather not look at pictures.
nlohmann::ordered_json HistogramsJson(const std::vector<WeightHistogram>& histograms,
                                      const std::vector<std::string>& paths) {
  auto list = nlohmann::ordered_json::array();
  for (size_t i = 0; i < histograms.size(); ++i) {
    const Histogram& values = histograms[i].values;
    list.push_back({{"weight", histograms[i].name},
                    {"path", paths[i]},
                    {"low", values.low},
                    {"high", values.high},
                    {"counts", values.counts},
                    {"zeros", values.zeros},
                    {"not_finite", values.not_finite},
                    {"min", values.min},
                    {"max", values.max},
                    {"mean", values.mean}});
  }
  return list;
}

void PrintJson(bool ok, const std::vector<ArtifactFiles::Written>& written,
               const Diagnostics& diagnostics, nlohmann::ordered_json histograms = nullptr) {
  nlohmann::ordered_json out;
  out["ok"] = ok;
  out["artifacts"] = nlohmann::ordered_json::array();
  for (const ArtifactFiles::Written& file : written) {
    out["artifacts"].push_back({{"name", file.name},
                                {"path", file.path},
                                {"size", file.size_bytes},
                                {"sha256", file.sha256}});
  }
  if (!histograms.is_null()) out["histograms"] = std::move(histograms);
  PrintReport(std::move(out), ok, diagnostics);
}

int Refuse(const CompileCommand& command, const Diagnostics& diagnostics) {
  PrintDiagnostics(diagnostics, command.log_level);
  if (command.json) PrintJson(false, {}, diagnostics);
  return kRefused;
}

int RefuseToWrite(const CompileCommand& command, const absl::Status& status,
                  Diagnostics& diagnostics) {
  diagnostics.Add({.kind = DiagnosticKind::kFileUnwritable,
                   .message = std::string(status.message()),
                   .fix = absl::IsResourceExhausted(status)
                              ? "free some space, or name another folder with -o"
                              : "name a writable folder with -o"});
  return Refuse(command, diagnostics);
}

void PrintPaths(const std::vector<ArtifactFiles::Written>& written,
                const std::vector<WeightHistogram>& histograms,
                const std::vector<std::string>& pictures) {
  for (const ArtifactFiles::Written& file : written) {
    std::printf("%s %" PRIu64 " bytes\n", Printable(file.path).c_str(), file.size_bytes);
  }
  for (size_t i = 0; i < pictures.size(); ++i) {
    std::printf("%s histogram of %s\n", Printable(pictures[i]).c_str(),
                Printable(histograms[i].name).c_str());
  }
}

// A file of another one of Compass's tools.
bool RefusesTask(const CompileCommand& command, const CfgTask& task) {
  using Wanted = CompileCommand::Wanted;
  using Kind = CfgTask::Kind;
  const auto refuse = [&](const char* tool, const char* has) {
    std::fprintf(stderr, "%s: %s is no file of %s, which has %s\n", tool,
                 Printable(command.config_path).c_str(), tool, has);
    return true;
  };
  if (command.wanted == Wanted::kParse && task.kind != Kind::kParse) {
    return refuse("aipuparse", "[Common] alone, with input_model");
  }
  if (command.wanted == Wanted::kQuantize && task.kind != Kind::kQuantize) {
    return refuse("aipuopt", "[Common] alone, with graph and bin");
  }
  return false;
}

// gxnpuc's own words for -q on a core that computes in floating point.
bool RefusesQuantInference(const CompileCommand& command, const CompileOptions& options) {
  if (!command.quantize) return false;
  const CoreSpec* core = FindCore(options.core);
  if (core != nullptr && IsFixedPoint(*core)) return false;
  std::fprintf(stderr, "CORENAME '%s' doesn't need to run quantized inference\n",
               Printable(options.core).c_str());
  return true;
}

void PrintListings(const CompileCommand& command, const CompileListings& listings) {
  std::FILE* out = command.json ? stderr : stdout;
  if (command.list_ops) std::fputs(listings.ops.c_str(), out);
  if (command.list_memory) std::fputs(listings.memory.c_str(), out);
  if (command.list_weights) std::fputs(listings.weights.c_str(), out);
}

// Less is compiled sooner than a thread is started.
constexpr size_t kWorthAThreadBytes = 64 << 10;

int ThreadsFor(const CompileCommand& command, size_t model_bytes) {
  if (command.threads > 0) return command.threads;
  if (model_bytes < kWorthAThreadBytes) return 1;
  // Not std::thread::hardware_concurrency, which reads a file.
  cpu_set_t processors;
  CPU_ZERO(&processors);
  if (::sched_getaffinity(0, sizeof(processors), &processors) != 0) return 1;
  return std::min(CPU_COUNT(&processors), kMaxCompileThreads);
}

// A result that a .cfg names beside the artifacts: below -o where that is given.
std::string ResultPath(const CompileCommand& command, const std::string& path) {
  if (command.output_dir.empty()) return ResolveBeside(command.config_path, path);
  return (std::filesystem::path(command.output_dir) / std::filesystem::path(path).filename())
      .string();
}

// Does what a config asks for behind the compile: the tensors of layers, a run on the simulator,
// the model file under a name.
absl::Status DoTask(const CompileCommand& command, const CfgTask& task,
                    const CompileRequest& request,
                    const std::vector<ArtifactFiles::Written>& written, Diagnostics& diagnostics) {
  if (!task.dump_dir.empty()) {
    const std::string folder = ResolveBeside(command.config_path, task.dump_dir);
    RETURN_IF_ERROR(DumpCalibration(request, folder, diagnostics));
    if (!command.json) {
      std::printf("%s dump of every layer: layers.csv\n", Printable(folder).c_str());
    }
  }
  if (task.output_path.empty()) return absl::OkStatus();
  const auto model_file =
      std::find_if(written.begin(), written.end(),
                   [](const ArtifactFiles::Written& file) { return file.name.ends_with(".npuc"); });
  if (model_file == written.end()) return absl::OkStatus();  // -q writes none
  const std::string result = ResultPath(command, task.output_path);
  if (task.kind == CfgTask::Kind::kRun) {
    ASSIGN_OR_RETURN(const CompiledModel model, LoadArtifact(model_file->path, diagnostics));
    SimulationFiles files{.inputs = {}, .output = result, .prints = !command.json};
    if (task.profiles) {
      files.profile = (std::filesystem::path(result).parent_path() / kProfileDataFile).string();
    }
    for (const std::string& input : task.inputs) {
      files.inputs.push_back(ResolveBeside(command.config_path, input));
    }
    return RunWithFiles(model, files, diagnostics);
  }
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(model_file->path, kMaxArtifactBytes));
  RETURN_IF_ERROR(WriteFileAtomically(result, bytes));
  if (!command.json) std::printf("%s %zu bytes\n", Printable(result).c_str(), bytes.size());
  return absl::OkStatus();
}

// True where the compiled model's graph is wanted.
bool WantsGraph(const CfgTask& task) {
  return task.profiles || !task.svg_path.empty() || !task.png_path.empty();
}

// Writes pictures of the graph, and graph.json where a profile is asked for.
absl::Status WriteGraph(const CompileCommand& command, const CfgTask& task,
                        const std::string& folder, const std::string& graph,
                        Diagnostics& diagnostics) {
  if (!WantsGraph(task)) return absl::OkStatus();
  GraphPictures pictures;
  if (!task.svg_path.empty()) pictures.svg = ResultPath(command, task.svg_path);
  if (!task.png_path.empty()) pictures.png = ResultPath(command, task.png_path);
  RETURN_IF_ERROR(WriteGraphPictures(pictures, graph, "npuc", !command.json, diagnostics));
  if (!task.profiles) return absl::OkStatus();
  const std::string path = (std::filesystem::path(folder) / kProfileGraphFile).string();
  if (!command.json) {
    std::printf("%s %zu bytes\n", Printable(path).c_str(), graph.size());
  }
  return WriteFileAtomically(path, graph);
}

// A .cfg of aipuparse or aipuopt.
int WriteIrOfTask(const CompileCommand& command, const LoadedConfig& loaded,
                  Diagnostics& diagnostics) {
  const CfgTask& task = loaded.config.task;
  std::string folder = command.output_dir;
  if (folder.empty()) folder = ResolveBeside(command.config_path, task.output_dir);
  if (folder.empty()) folder = ".";
  nlohmann::ordered_json report{{"ok", false}, {"files", nlohmann::ordered_json::array()}};
  const auto write = [&]() -> absl::Status {
    const IrForm form = task.kind == CfgTask::Kind::kParse ? IrForm::kAsModel : IrForm::kQuantized;
    ASSIGN_OR_RETURN(const ModelIr ir,
                     MakeIrFiles(RequestOf(loaded), form, task.ir_name, diagnostics));
    return WriteIrFiles(ir, {folder, task.ir_name, !command.json}, report["files"]);
  };
  const int code = Finish(write(), diagnostics);
  if (command.json) PrintReport(std::move(report), code == kDone, diagnostics);
  return code;
}

// Writes the file of --dump_addr_cfg from the report's memory map.
absl::Status DumpAddresses(const CompileCommand& command,
                           const std::vector<ArtifactFiles::Written>& written) {
  if (command.dump_addresses.empty()) return absl::OkStatus();
  for (const ArtifactFiles::Written& artifact : written) {
    if (artifact.name != "report.json") continue;
    ASSIGN_OR_RETURN(const std::string report, ReadFile(artifact.path, artifact.size_bytes));
    ASSIGN_OR_RETURN(const std::string text, AddressFileOf(report));
    return WriteFileAtomically(command.dump_addresses, text);
  }
  return absl::InternalError("--dump_addr_cfg: the compile gave no report.json");
}

}  // namespace

int RunCompileCommand(const CompileCommand& command) {
  Diagnostics diagnostics;
  const absl::StatusOr<LoadedConfig> loaded =
      command.config_text.empty()
          ? LoadConfig(command.config_path, diagnostics)
          : LoadConfigText(command.config_text, command.config_path, command.shown, diagnostics);
  if (!loaded.ok()) return Refuse(command, diagnostics);
  if (RefusesQuantInference(command, loaded->config.options)) return kRefused;
  const CfgTask& task = loaded->config.task;
  if (RefusesTask(command, task)) return kWrongUsage;
  if (task.kind == CfgTask::Kind::kParse || task.kind == CfgTask::Kind::kQuantize) {
    return WriteIrOfTask(command, *loaded, diagnostics);
  }

  CompileRequest request = RequestOf(*loaded);
  if (const absl::Status taken = TakeAddressFile(command.load_addresses, request, diagnostics);
      !taken.ok()) {
    return Refuse(command, diagnostics);
  }
  request.options.save_histograms = command.save_histograms;
  HelperThreads helpers(ThreadsFor(command, request.model_bytes.size()));
  std::string md5;
  HelperThreads::Task md5_is_known = helpers.Start([&] { md5 = Md5Hex(request.model_bytes); });
  request.model_md5 = [&] {
    md5_is_known.Wait();
    return md5;
  };
  request.timestamp_seconds = command.timestamp_seconds;
  request.wants_listings =
      command.list_ops || command.list_memory || command.list_weights || WantsGraph(task);
  const std::string folder = OutputFolder(command, loaded->config);
  if (command.quantize) {
    if (!request.options.quant.has_value()) request.options.quant.emplace();
    request.options.quant->save_statistic_info = true;
  }
  ArtifactFiles files({folder, command.quantize, command.json}, helpers);
  const absl::StatusOr<CompileResult> result = Compile(request, files, diagnostics);
  if (!result.ok()) {
    if (loaded->config.is_cfg) AddCfgWords(command.config_path, diagnostics);
    return Refuse(command, diagnostics);
  }
  const absl::StatusOr<std::vector<ArtifactFiles::Written>> written = files.PutInPlace();
  if (!written.ok()) return RefuseToWrite(command, written.status(), diagnostics);
  const absl::StatusOr<std::vector<std::string>> pictures = WriteHistograms(
      result->histograms, (std::filesystem::path(folder) / kHistogramFolder).string());
  if (!pictures.ok()) return RefuseToWrite(command, pictures.status(), diagnostics);
  absl::Status done =
      WriteGraph(command, task, folder, result->listings.profile_graph, diagnostics);
  if (done.ok()) done = DumpAddresses(command, *written);
  if (done.ok()) done = DoTask(command, task, request, *written, diagnostics);
  if (!done.ok()) return Finish(done, diagnostics);
  PrintDiagnostics(diagnostics, command.log_level);
  PrintListings(command, result->listings);
  if (command.json) {
    PrintJson(true, *written, diagnostics,
              command.save_histograms ? HistogramsJson(result->histograms, *pictures) : nullptr);
  } else {
    PrintPaths(*written, result->histograms, *pictures);
    if (!command.quantize) {
      const std::string report = (std::filesystem::path(folder) / "report.html").string();
      std::fputs(SummaryText(result->summary, report).c_str(), stdout);
    }
  }
  if (command.leave != nullptr) command.leave(kDone);
  return kDone;
}

}  // namespace npuc
