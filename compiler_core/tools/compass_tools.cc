#include "compiler_core/tools/compass_tools.h"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <fstream>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/pipeline/compile.h"
#include "compiler_core/report/profile_data.h"
#include "compiler_core/tools/compile_command.h"
#include "compiler_core/tools/diagnostics_output.h"
#include "compiler_core/tools/profiler_command.h"
#include "compiler_core/tools/run_ir_command.h"

namespace npuc {
namespace {

// An option of aipugb and aipurun that stands for a key of [GBuilder].
struct OptionKey {
  const char* flags;
  absl::string_view key;
  bool is_flag;
  const char* what;
};
constexpr OptionKey kBuilderOptions[] = {
    {"--target", "target", false, "The core (default: X2_1204)"},
    {"--png", "png", false, "A picture of the graph"},
    {"--svg", "svg", false, "The same as SVG"},
    {"-L,--lib", "local_lib", false, "Folder of operator libraries"},
    {"-p,--profile", "profile", true, "Profile the run"},
    {"--prof_unit", "prof_unit", false, "TPC, DMA or AIFF"},
    {"--fast_perf", "fast_perf", true, "No profile of DMA and AIFF"},
    {"--max_sample_point_num", "max_sample_point_num", false, "Sample points of the profiler"},
    {"--max_aiff_sample_point_num", "max_aiff_sample_point_num", false, "Those of AIFF"},
    {"--max_dma_sample_point_num", "max_dma_sample_point_num", false, "Those of DMA"},
    {"--max_custom_sample_point_num", "max_custom_sample_point_num", false, "Others"},
    {"--stack_size", "stack_size", false, "Stack in KB"},
    {"--simulator", "simulator", false, "Path of the simulator"},
    {"--tcm_size", "tcm_size", false, "Size of DTCM"},
    {"--gm_size", "gm_size", false, "Size of the global memory in KB"},
    {"--tiling", "tiling", false, "fps"},
    {"--ocm_size", "ocm_size", false, "Size of on-chip memory in KB"},
    {"--ocm_addr", "ocm_addr", false, "Its address"},
};

std::string Quoted(absl::string_view value) {
  const char quote = value.find('"') == absl::string_view::npos ? '"' : '\'';
  return absl::StrCat(std::string(1, quote), value, std::string(1, quote));
}

// Parses; an exit code where the tool ends with that.
std::optional<int> Parse(CLI::App& app, int argc, char** argv, const bool& version) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (version) {
      std::printf("%s\n", std::string(CompilerVersion()).c_str());
      return 0;
    }
    return app.exit(error) == 0 ? 0 : kWrongUsage;
  }
  if (!version) return std::nullopt;
  std::printf("%s\n", std::string(CompilerVersion()).c_str());
  return 0;
}

// aipu_profiler graph.json profile_data.bin -o net.html --method html.
int RunProfiler(int argc, char** argv) {
  CLI::App app("Makes a report of graph.json and the counters of a run.", "aipu_profiler");
  ProfilerArgs args;
  bool version = false;
  app.add_flag("-v,--version", version, "Print the compiler's version");
  app.add_option("graph", args.graph_path, "graph.json of a profiled build")->required();
  app.add_option("profiler_binary", args.buffer_path, "profile_data.bin of its run")->required();
  app.add_option("-o,--output", args.output_path,
                 "The report (default: the model's name with the method as its ending)");
  app.add_option("--method", args.method, "html, xlsx, csv, or json: what get_profiler_data gives")
      ->check(CLI::IsMember({"html", "xlsx", "csv", "json"}))
      ->capture_default_str();
  app.add_option("--frequency", args.frequency_mhz,
                 "Clock in MHz, for milliseconds (default: that of graph.json)")
      ->check(CLI::Range(int64_t{1}, kMaxFrequencyMhz));
  const std::optional<int> ended = Parse(app, argc, argv, version);
  return ended.has_value() ? *ended : RunProfilerCommand(args);
}

// aipubuild CONFIG, aipuparse -c CONFIG, aipuopt -c CONFIG.
int RunConfigTool(const std::string& name, int argc, char** argv, int64_t timestamp_seconds) {
  const bool builds = name == "aipubuild";
  CLI::App app(builds                ? "Compiles what a .cfg names, and runs it where mode is run."
               : name == "aipuparse" ? "Writes a model as a float IR."
                                     : "Writes a float IR as a quantized one.",
               name);
  CompileCommand command;
  bool version = false;
  app.add_flag("-v,--version", version, "Print the compiler's version");
  app.add_option(builds ? "config" : "-c,--cfg", command.config_path, "The .cfg file")
      ->type_name("FILE")
      ->required();
  const std::optional<int> ended = Parse(app, argc, argv, version);
  if (ended.has_value()) return *ended;
  command.timestamp_seconds = timestamp_seconds;
  if (!builds) {
    command.wanted =
        name == "aipuparse" ? CompileCommand::Wanted::kParse : CompileCommand::Wanted::kQuantize;
  }
  return RunCompileCommand(command);
}

// Options of aipudumper for silicon's cores and memories.
constexpr char kOneArena[] = "buffers lie in one arena, and commands run on one core";
struct MemoryOption {
  const char* flag;
  bool has_value;
  const char* why;
};
constexpr MemoryOption kMemoryOptions[] = {
    {"--multi_core", true, kOneArena},
    {"--disable_gm", false, kOneArena},
    {"--multi_batch", true, "a run takes as many items as its input files hold"}};

// True for a file that aipugb or npuc wrote.
bool IsBuiltFile(const std::string& path) {
  constexpr absl::string_view kMagic = "NPUCMDL1";
  std::string head(kMagic.size(), 0);
  std::ifstream(path, std::ios::binary).read(head.data(), static_cast<int64_t>(head.size()));
  return head == kMagic;
}

// aipugb IR, aipurun IR and aipudumper IR.
class IrTool {
 public:
  explicit IrTool(const std::string& name)
      : runs_(name != "aipugb"),
        is_dumper_(name == "aipudumper"),
        app_(is_dumper_ ? "Writes where buffers lie, takes the file back, and runs the result."
             : runs_    ? "Builds a quantized IR and runs it on the simulator."
                        : "Builds a quantized IR.",
             name) {
    app_.add_option("ir_path", ir_, "The IR's text")->type_name("IR")->required();
    app_.add_option("-w,--weight", weights_, "Its weights (default: IR with .bin as its ending)");
    if (runs_) {
      app_.add_option("-i,--input", inputs_, "The input files, with commas between them")
          ->required(!is_dumper_);
    }
    if (is_dumper_) AddAddressOptions();
    app_.add_option("-o,--output", output_, "The result")->capture_default_str();
    app_.add_flag("--dump_all_tensors", dump_.all, "Write every layer's results");
    app_.add_option("--dump_tensors", dump_.layer_ids, "Those of layers, with commas between them");
    app_.add_flag("-v,--version", version_, "Print the compiler's version");
    for (const OptionKey& option : kBuilderOptions) {
      if (option.is_flag) {
        flags_.emplace_back(false, option.key);
        app_.add_flag(option.flags, flags_.back().first, option.what);
      } else {
        values_.emplace_back("", option.key);
        app_.add_option(option.flags, values_.back().first, option.what);
      }
    }
    if (!runs_) output_ = "aipu.bin";
  }

  int Run(int argc, char** argv, int64_t timestamp_seconds) {
    const std::optional<int> ended = Parse(app_, argc, argv, version_);
    if (ended.has_value()) return *ended;
    const bool has_inputs = !inputs_.empty();
    std::vector<BuilderOption> options = {{"outputs", output_}};
    if (has_inputs) options.push_back({"inputs", inputs_});
    for (const auto& [value, key] : values_) {
      if (!value.empty()) options.push_back({std::string(key), value});
    }
    for (const auto& [set, key] : flags_) {
      if (set) options.push_back({std::string(key), "true"});
    }
    if (IsBuiltFile(ir_)) {
      std::fprintf(stderr, "%s: '%s' is a built file; name the IR that it was built from\n",
                   app_.get_name().c_str(), Printable(ir_).c_str());
      return kWrongUsage;
    }
    if (runs_ && !has_inputs && (!dumps_addresses_ || dump_.all || !dump_.layer_ids.empty())) {
      std::fprintf(stderr, "%s: -i is missing; only aipudumper's --dump_addr_cfg goes without\n",
                   app_.get_name().c_str());
      return kWrongUsage;
    }
    const std::string text = CfgOfIr(ir_, weights_, has_inputs, options);
    if (runs_) return RunIr(text);
    if (dump_.all || !dump_.layer_ids.empty()) {
      std::fprintf(stderr, "aipugb: a build holds no tensors; aipurun writes them\n");
      return kWrongUsage;
    }
    CompileCommand command;
    command.config_text = text;
    command.shown = app_.get_name();
    command.config_path = "-";
    command.timestamp_seconds = timestamp_seconds;
    return RunCompileCommand(command);
  }

 private:
  void AddAddressOptions() {
    app_.add_flag(
        "--dump_addr_cfg", dumps_addresses_,
        absl::StrCat("Write ", kAddressFile, " beside the output: where each buffer lies"));
    app_.add_option("--load_addr_cfg", load_addresses_, "Such a file, edited: use its addresses");
    for (const MemoryOption& option : kMemoryOptions) {
      const char* const what = "Changes nothing here";
      if (option.has_value) {
        app_.add_option(option.flag, ignored_, what);
      } else {
        app_.add_flag(option.flag, what);
      }
    }
  }

  int RunIr(const std::string& text) const {
    RunIrArgs args{.config_text = text, .shown = app_.get_name(), .dump = dump_};
    if (!is_dumper_) return RunIrCommand(args);
    args.load_addresses = load_addresses_;
    if (dumps_addresses_) {
      const std::filesystem::path beside = std::filesystem::path(output_).parent_path();
      args.dump_addresses = (beside / kAddressFile).string();
    }
    for (const MemoryOption& option : kMemoryOptions) {
      if (app_.count(option.flag) > 0) args.without_effect.emplace_back(option.flag, option.why);
    }
    return RunIrCommand(args);
  }

  static constexpr char kAddressFile[] = "addr_cfg_default.ini";

  const bool runs_;
  const bool is_dumper_;
  CLI::App app_;
  std::string ir_;
  std::string weights_;
  std::string inputs_;
  std::string output_ = "output.bin";
  LayerDump dump_;
  bool version_ = false;
  std::deque<std::pair<std::string, absl::string_view>> values_;
  std::deque<std::pair<bool, absl::string_view>> flags_;
  bool dumps_addresses_ = false;
  std::string load_addresses_;
  std::string ignored_;
};

}  // namespace

std::vector<absl::string_view> CompassTools() {
  return {"aipubuild", "aipuparse", "aipuopt", "aipugb", "aipurun", "aipudumper", "aipu_profiler"};
}

std::string CfgOfIr(const std::string& ir, const std::string& weights, bool runs,
                    const std::vector<BuilderOption>& options) {
  std::string name = std::filesystem::path(ir).stem().string();
  for (char& c : name) {  // of artifacts
    if (!absl::ascii_isalnum(c) && c != '_' && c != '-' && c != '.' && c != '+') c = '_';
  }
  if (name.empty() || name[0] == '.') name.insert(0, "m");
  std::string text = absl::StrCat("[Common]\nmode = ", runs ? "run" : "build",
                                  "\n[Parser]\nmodel_type = Compass\nmodel_name = ", Quoted(name),
                                  "\ninput_model = ", Quoted(ir), "\n");
  if (!weights.empty()) absl::StrAppend(&text, "input_bin = ", Quoted(weights), "\n");
  absl::StrAppend(&text, "[GBuilder]\n");
  for (const BuilderOption& option : options) {
    absl::StrAppend(&text, option.key, " = ", Quoted(option.value), "\n");
  }
  return text;
}

std::optional<int> RunCompassTool(int argc, char** argv, int64_t timestamp_seconds) {
  if (argc < 1) return std::nullopt;
  const std::string name = std::filesystem::path(argv[0]).filename().string();
  const std::vector<absl::string_view> tools = CompassTools();
  if (std::find(tools.begin(), tools.end(), name) == tools.end()) return std::nullopt;
  if (name == "aipu_profiler") return RunProfiler(argc, argv);
  if (name == "aipugb" || name == "aipurun" || name == "aipudumper") {
    return IrTool(name).Run(argc, argv, timestamp_seconds);
  }
  return RunConfigTool(name, argc, argv, timestamp_seconds);
}

}  // namespace npuc
