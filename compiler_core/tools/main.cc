// npuc: the compiler without a server. Options are those of shared/spec/cli.md and of gxnpuc.

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/sanitized.h"
#include "compiler_core/base/suggest.h"
#include "compiler_core/pipeline/compile.h"
#include "compiler_core/tools/compass_tools.h"
#include "compiler_core/tools/compile_command.h"
#include "compiler_core/tools/diagnostics_output.h"
#include "compiler_core/tools/evaluate_command.h"
#include "compiler_core/tools/explain_command.h"
#include "compiler_core/tools/info_commands.h"
#include "compiler_core/tools/inspect_command.h"
#include "compiler_core/tools/ir_command.h"
#include "compiler_core/tools/reference_command.h"
#include "compiler_core/tools/report_command.h"
#include "compiler_core/tools/run_command.h"
#include "compiler_core/tools/set_commands.h"

namespace npuc {
namespace {

// model_info's time: SOURCE_DATE_EPOCH pins it, as reproducible builds expect.
int64_t TimestampSeconds() {
  const char* pinned = std::getenv("SOURCE_DATE_EPOCH");
  int64_t seconds = 0;
  if (pinned != nullptr && absl::SimpleAtoi(pinned, &seconds) && seconds >= 0) return seconds;
  return static_cast<int64_t>(std::time(nullptr));
}

struct Options {
  CompileCommand compile;
  bool version = false;
  bool list = false;
  bool compatibility = false;
  bool config_help = false;
  std::string core;
  std::string framework;
  RunCommandArgs run;
  ReferenceCommand reference;
  EvaluateCommand evaluate;
  IrWriteCommand ir_write;
  IrCheckCommand ir_check;
  ReportCommandArgs report;
  std::string disassemble;
  CombineCommand combine;
  InfoCommand info;
  InspectCommand inspect;
  InitCommand init;
  std::string explain;
  std::vector<std::string> help;
};

void DeclareCompile(CLI::App& app, Options& options) {
  app.add_option("config", options.compile.config_path,
                 "YAML config (or .cfg of aipubuild) to compile; standard input where it is left "
                 "out or '-'")
      ->type_name("FILE");
  app.add_option("-o,--output-dir", options.compile.output_dir,
                 "Folder for the artifacts (default: that of OUTPUT_FILE)")
      ->type_name("DIR");
  app.add_flag("-v,--verbose", options.compile.list_ops, "List the operators of the NPU model");
  app.add_option_function<std::string>(
         "--log-level",
         [&options](const std::string& word) {
           for (const Severity level : {Severity::kNote, Severity::kWarning, Severity::kError}) {
             if (word == NameOf(level)) options.compile.log_level = level;
           }
         },
         "Print messages of this level and above: note (default), warning or error; --json and "
         "compile.log hold all")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"note", "warning", "error"}));
  app.add_flag("-m,--meminfo", options.compile.list_memory, "List the memory of each operator");
  app.add_flag("-w,--weights", options.compile.list_weights, "List the weights' compression");
  app.add_option("--dump_addr_cfg", options.compile.dump_addresses,
                 "Write where each buffer of data_content lies, to edit it")
      ->type_name("FILE");
  app.add_option("--load_addr_cfg", options.compile.load_addresses,
                 "Place the buffers as such a file says; the same as the key ADDRESSES")
      ->type_name("FILE");
  app.add_flag(
      "-s,--save_hist", options.compile.save_histograms,
      "Save a histogram of each weight's values (GRUS, LEO) as a picture in folder npu_jpgs "
      "beside the artifacts");
  app.add_flag(
      "-q,--quant", options.compile.quantize,
      "Run the quantizing inference and write the quantization file, statistics.json, with "
      "opt_template.json (fixed-point cores only)");
  app.add_option("--threads", options.compile.threads,
                 "Threads that compile at once (default: the processors); the artifacts are the "
                 "same for any number")
      ->type_name("N")
      ->check(CLI::Range(1, kMaxCompileThreads));
  app.add_flag("-V,--version", options.version, "Print the compiler's version");
  app.add_flag("--list", options.list, "List the supported operators");
  app.add_option("-c,--core_name", options.core, "Core for --list")
      ->type_name("CORE")
      ->needs("--list");
  app.add_option("-f,--framework", options.framework,
                 absl::StrCat("Framework for --list: ", FrameworkNames()))
      ->type_name("FW")
      ->needs("--list");
  app.add_flag("--cmpt", options.compatibility, "List cores, chips and frameworks");
  app.add_flag("--config-help", options.config_help, "List the keys of a config");
}

// One file for each --input: the word behind it may be the artifact.
void DeclareInputs(CLI::App* command, std::vector<std::string>& inputs) {
  command
      ->add_option(
          "--input", inputs,
          "A NumPy file, once for each input: float32, float64 or float16; int32 or "
          "int64 as whole numbers, where those are exact; other integers where the input "
          "has that type; uint16 as the bits of an fp16 input alone. A .bin file holds "
          "the bytes that the input stores. NAME= may be left out where there is one "
          "input; random (or random:SEED) for those that are not given. A .png or .jpg "
          "file is an item; a folder or zip file of these and of .npy files is one "
          "item after the other, as are .wav files. pictures.yaml and sounds.yaml beside them "
          "say what pictures and sounds become")
      ->type_name("[NAME=]FILE.npy")
      ->allow_extra_args(false);
}

constexpr char kJsonOption[] = "--json";

void DeclareJson(CLI::App& app, Options& options) {
  app.add_flag(kJsonOption, options.compile.json, "Machine-readable output on standard output");
}

// A command of `app`, whose own footer it would have otherwise.
CLI::App* AddCommand(CLI::App& app, const char* name, const char* what, const char* example) {
  CLI::App* command = app.add_subcommand(name, what);
  command->footer(absl::StrCat("example: ", example, "\nexit codes: npuc --help"));
  return command;
}

CLI::App* DeclareRun(CLI::App& app, Options& options) {
  CLI::App* run =
      AddCommand(app, "run", "Run a compiled header, model or NPUB file on the simulator",
                 "npuc run out/model.h --input x=x.npy --output-dir y");
  run->add_option("artifact", options.run.artifact, "C header or .npuc file")
      ->type_name("FILE")
      ->required();
  run->add_option("--model", options.run.model,
                  "Of a file of several models (npuc combine) the one to run (default: the first "
                  "for the inputs' shapes)")
      ->type_name("NAME");
  DeclareInputs(run, options.run.inputs);
  run->add_option("-o,--output-dir", options.run.output_dir, "Folder for NAME.npy of each output")
      ->type_name("DIR");
  run->add_flag("--raw", options.run.raw,
                "Integer artifacts: stored values in and out, in place of float32");
  run->add_option("--frames", options.run.frames, "Run at most this many items (default: all)")
      ->type_name("N");
  run->add_option("--postprocess", options.run.boxes_path,
                  "Decode boxes by these settings (NAME_boxes.yaml of the compile, or the file of "
                  "DETECTION_POSTPROCESS); prints JSON, with -o writes boxes.json, and a picture "
                  "with its boxes for each that was an input")
      ->type_name("FILE");
  run->add_option("--regions", options.run.regions_path,
                  "Boxes of type RCNN: the regions that they are relative to, [regions, 4] corners "
                  "as parts of the picture")
      ->type_name("FILE.npy");
  run->add_option(
         "--profile", options.run.profile_path,
         "Write counts for each command as JSON; to a FILE.bin as aipu_profiler reads them")
      ->type_name("FILE");
  DeclareJson(*run, options);
  return run;
}

CLI::App* DeclareReference(CLI::App& app, Options& options) {
  CLI::App* reference =
      AddCommand(app, "reference", "Run a config's model in float, as its framework would",
                 "npuc reference model.yaml --input x=x.npy --output-dir y_float");
  reference->add_option("config", options.reference.config_path, "YAML config")
      ->type_name("FILE")
      ->required();
  DeclareInputs(reference, options.reference.inputs);
  reference
      ->add_option("-o,--output-dir", options.reference.output_dir,
                   "Folder for NAME.npy of each output")
      ->type_name("DIR")
      ->required();
  reference->add_flag("--quantized", options.reference.quantized,
                      "Integer cores: the fake-quantized forward pass, with the layers that QUANT "
                      "leaves in float, and each layer's likeness to float");
  DeclareJson(*reference, options);
  return reference;
}

CLI::App* DeclareEvaluate(CLI::App& app, Options& options) {
  CLI::App* evaluate = AddCommand(
      app, "evaluate",
      "Measure a header, model or NPUB file, and its config's model in float, on data",
      "npuc evaluate model.yaml out/model.h --input x=x.npy --label y.npy --metric topk:1");
  evaluate->add_option("config", options.evaluate.config_path, "YAML config")
      ->type_name("FILE")
      ->required();
  CLI::Option* artifact =
      evaluate->add_option("artifact", options.evaluate.artifact, "C header or .npuc file")
          ->type_name("FILE");
  CLI::Option* quantized = evaluate->add_flag(
      "--quantized", options.evaluate.quantized,
      "In place of an artifact: the fake-quantized forward pass of an integer core");
  artifact->excludes(quantized);
  DeclareInputs(evaluate, options.evaluate.inputs);
  evaluate->add_option("--label", options.evaluate.label_path, "Labels of the items")
      ->type_name("FILE.npy");
  evaluate
      ->add_option("--metric", options.evaluate.metrics,
                   "cosine, mse, sqnr, topk:N, auc or wer, any number of times (default: the "
                   "first three)")
      ->type_name("METRIC")
      ->allow_extra_args(false);
  evaluate
      ->add_option("--output", options.evaluate.output,
                   "The output that labels judge (default: the first that is no state)")
      ->type_name("NAME");
  DeclareJson(*evaluate, options);
  return evaluate;
}

// `npuc ir write` and `npuc ir check`.
std::pair<CLI::App*, CLI::App*> DeclareIr(CLI::App& app, Options& options) {
  CLI::App* ir = AddCommand(app, "ir", "Compass's IR files, NAME.txt and NAME.bin",
                            "npuc ir write model.yaml -o ir");
  ir->require_subcommand(1);
  CLI::App* write =
      AddCommand(*ir, "write", "Write a config's model", "npuc ir write model.yaml -o ir");
  write->add_option("config", options.ir_write.config_path, "YAML config")
      ->type_name("FILE")
      ->required();
  write->add_option("-o,--output-dir", options.ir_write.output_dir, "Folder for the files")
      ->type_name("DIR")
      ->required();
  write->add_flag("--float", options.ir_write.as_float, "In float, on an integer core too");
  CLI::App* check = AddCommand(*ir, "check", "Tell everything that is wrong with such files",
                               "npuc ir check ir/model.txt");
  check->add_option("text", options.ir_check.text_path, "The text of the IR")
      ->type_name("NAME.txt")
      ->required();
  check->add_option("--bin", options.ir_check.bin_path, "Its constants (default: beside NAME.txt)")
      ->type_name("NAME.bin");
  DeclareJson(*write, options);
  DeclareJson(*check, options);
  return {write, check};
}

CLI::App* DeclareReport(CLI::App& app, Options& options) {
  CLI::App* report = AddCommand(
      app, "report",
      "Write the page of a header, model or NPUB file: sizes, commands, estimated cycles",
      "npuc report out/model.h -o pages");
  report->add_option("artifact", options.report.artifact, "C header or .npuc file")
      ->type_name("FILE")
      ->required();
  report
      ->add_option("-o,--output-dir", options.report.output_dir,
                   "Folder for the page, which is named after the artifact: model.html of model.h")
      ->type_name("DIR")
      ->required();
  DeclareJson(*report, options);
  return report;
}

CLI::App* DeclareDisassemble(CLI::App& app, Options& options) {
  CLI::App* dis =
      AddCommand(app, "dis", "Disassemble a header, model or NPUB file", "npuc dis out/model.h");
  dis->add_option("artifact", options.disassemble, "C header or .npuc file")
      ->type_name("FILE")
      ->required();
  DeclareJson(*dis, options);
  return dis;
}

// `npuc combine` and `npuc info`.
std::pair<CLI::App*, CLI::App*> DeclareSets(CLI::App& app, Options& options) {
  CLI::App* combine =
      AddCommand(app, "combine", "Write several models as one file, equal weights once",
                 "npuc combine a/net.npuc b/net8.npuc -o all.npuc");
  combine
      ->add_option("artifacts", options.combine.artifacts,
                   "C headers, .npuc files and files of several; a model has its file's name")
      ->type_name("FILE")
      ->required();
  combine->add_option("-o,--output", options.combine.output, "The file to write")
      ->type_name("FILE.npuc")
      ->required();
  DeclareJson(*combine, options);
  CLI::App* info = AddCommand(app, "info", "List the models of a file, their inputs and sizes",
                              "npuc info all.npuc");
  info->add_option("artifact", options.info.artifact, "C header or .npuc file")
      ->type_name("FILE")
      ->required();
  DeclareJson(*info, options);
  return {combine, info};
}

// What stands before a command and belongs to a compile: "" where nothing does.
std::string OptionBeforeCommand(const CLI::App& app) {
  if (app.get_subcommands().empty()) return "";
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0 || option->check_name(kJsonOption)) continue;
    const std::string name =
        option->get_positional() ? option->results().front() : option->get_name();
    return absl::StrCat("npuc: ", name, " belongs to a compile and not to npuc ",
                        app.get_subcommands().front()->get_name(),
                        ", whose options follow its name\n");
  }
  return "";
}

void DeclareStated(CLI::App* command, StatedOptions& stated) {
  command
      ->add_option("--input-shape", stated.shapes,
                   "An input's shape, where the model does not state it; once for each input")
      ->type_name("[NAME=]1,40,98")
      ->allow_extra_args(false);
  command
      ->add_option("--dim", stated.dims,
                   "A dimension that the model names and leaves open; once for each")
      ->type_name("NAME=25")
      ->allow_extra_args(false);
  command
      ->add_option("--const", stated.constants,
                   "An input that has the same value at every inference; once for each")
      ->type_name("NAME=16000")
      ->allow_extra_args(false);
}

// Drops the '/' at the end of a folder's name.
std::string WithoutSlash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

CLI::App* DeclareInspect(CLI::App& app, Options& options) {
  CLI::App* inspect =
      AddCommand(app, "inspect", "Tell what a model file holds, and which cores take it",
                 "npuc inspect model.tflite");
  inspect
      ->add_option("model", options.inspect.model_path,
                   absl::StrCat("The model: ", ModelsThatAreRead()))
      ->type_name("MODEL")
      ->transform(WithoutSlash)
      ->required();
  DeclareStated(inspect, options.inspect.stated);
  DeclareJson(*inspect, options);
  return inspect;
}

CLI::App* DeclareInit(CLI::App& app, Options& options) {
  CLI::App* init = AddCommand(app, "init", "Write a config that compiles a model",
                              "npuc init model.tflite && npuc model.yaml -o out");
  init->add_option("model", options.init.model_path, "The model")
      ->type_name("MODEL")
      ->transform(WithoutSlash)
      ->required();
  init->add_option("-c,--core", options.init.core,
                   "Core or chip (default: the first core that takes the model)")
      ->type_name("CORE");
  init->add_option("-o,--output", options.init.config_path,
                   "The config (default: the model's name with .yaml; '-': standard output)")
      ->type_name("FILE.yaml");
  DeclareStated(init, options.init.stated);
  init->add_flag("--force", options.init.force, "Overwrite the config");
  DeclareJson(*init, options);
  return init;
}

// The commands for the first minute with a model.
struct FirstCommands {
  CLI::App* inspect;
  CLI::App* init;
  CLI::App* explain;
  CLI::App* help;
};

FirstCommands DeclareFirst(CLI::App& app, Options& options) {
  FirstCommands first{DeclareInspect(app, options), DeclareInit(app, options), nullptr, nullptr};
  first.explain =
      AddCommand(app, "explain", "Tell what a diagnostic's id means", "npuc explain NPUC1404");
  first.explain->add_option("id", options.explain, "At the end of a diagnostic's line")
      ->type_name("NPUCnnnn")
      ->required();
  DeclareJson(*first.explain, options);
  first.help = app.add_subcommand("help", "Show this help, or a command's");
  first.help->add_option("command", options.help, "The command")->type_name("COMMAND");
  return first;
}

// `npuc help`, `npuc help run`, `npuc help ir write`. The process's exit code.
int PrintHelp(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  std::string parents;  // of `command`, for its usage line
  for (const std::string& word : words) {
    std::vector<std::string> names;
    const CLI::App* next = nullptr;
    for (const CLI::App* sub : command->get_subcommands({})) {
      names.push_back(sub->get_name());
      if (sub->get_name() == word) next = sub;
    }
    if (next == nullptr) {
      std::fputs(NoSuchCommand("npuc", word, names).c_str(), stderr);
      return kWrongUsage;
    }
    absl::StrAppend(&parents, parents.empty() ? "" : " ", command->get_name());
    command = next;
  }
  std::fputs(command->help(parents).c_str(), stdout);
  return 0;
}

int PrintExplanation(const std::string& id, bool json) {
  const absl::StatusOr<std::string> text = ExplainDiagnostic(id, json);
  if (!text.ok()) {
    std::fprintf(stderr, "npuc: %s\n", std::string(text.status().message()).c_str());
    return kWrongUsage;
  }
  std::fputs(text->c_str(), stdout);
  return 0;
}

// `npuc dsi model.h`, where CLI11 takes the word for the config and complains of the file. Empty:
// it was something else.
std::string UnknownCommand(const CLI::App& app) {
  const std::vector<std::string> configs = app.get_option("config")->results();
  if (configs.size() != 1 || !app.get_subcommands().empty()) return "";
  const std::string& word = configs.front();
  if (word.find_first_of("./-") != std::string::npos) return "";  // a file
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands({})) names.push_back(sub->get_name());
  return NoSuchCommand("npuc", word, names);
}

int RunInfo(const Options& options, bool json) {
  if (options.version) {
    std::printf("%s\n", std::string(CompilerVersion()).c_str());
    return 0;
  }
  if (options.compatibility) {
    std::fputs(ListCompatibility(json).c_str(), stdout);
    return 0;
  }
  if (options.config_help) {
    std::fputs(ListConfigKeys(json).c_str(), stdout);
    return 0;
  }
  const absl::StatusOr<std::string> text = ListOperators(options.core, options.framework, json);
  if (!text.ok()) {
    std::fprintf(stderr, "npuc: %s\n", std::string(text.status().message()).c_str());
    return kWrongUsage;
  }
  std::fputs(text->c_str(), stdout);
  return 0;
}

int RunCompile(Options& options, const CLI::App& app) {
  const int infos = (options.version ? 1 : 0) + (options.list ? 1 : 0) +
                    (options.compatibility ? 1 : 0) + (options.config_help ? 1 : 0);
  if (infos + (options.compile.config_path.empty() ? 0 : 1) > 1) {
    std::fprintf(stderr,
                 "npuc: --version, --list, --cmpt, --config-help and a config file exclude each "
                 "other\n");
    return kWrongUsage;
  }
  if (infos > 0) return RunInfo(options, options.compile.json);
  if (options.compile.config_path.empty()) {
    if (isatty(STDIN_FILENO) != 0) {
      std::fprintf(stderr, "npuc: name a config file, or give it on standard input\n\n%s",
                   app.help().c_str());
      return kWrongUsage;
    }
    options.compile.config_path = "-";
  }
  options.compile.timestamp_seconds = TimestampSeconds();
#ifndef NPUC_SANITIZED  // where leaks are looked for at the end
  options.compile.leave = [](int exit_code) {
    std::fflush(nullptr);
    std::_Exit(exit_code);
  };
#endif
  return RunCompileCommand(options.compile);
}

int Main(int argc, char** argv) {
  const std::optional<int> compass = RunCompassTool(argc, argv, TimestampSeconds());
  if (compass.has_value()) return *compass;
  CLI::App app(
      "npuc: compiles small neural networks for NPUs, and runs what it made on a simulator.",
      "npuc");
  app.footer(
      "examples:\n"
      "  npuc inspect model.onnx           what the model is, and which cores take it\n"
      "  npuc init model.onnx              a config for it, model.yaml\n"
      "  npuc model.yaml -o out             compile; the header and the other artifacts go to "
      "out/\n"
      "  npuc run out/model.h --input x=x.npy --output-dir y\n"
      "  npuc reference model.yaml --input x=x.npy --output-dir y_float\n"
      "  npuc dis out/model.h\n"
      "  npuc report out/model.h -o pages\n"
      "exit codes: 0 done; 1 the model, config or artifact was refused; 2 wrong usage");
  Options options;
  DeclareCompile(app, options);
  DeclareJson(app, options);
  app.require_subcommand(0, 1);
  CLI::App* run = DeclareRun(app, options);
  CLI::App* reference = DeclareReference(app, options);
  CLI::App* evaluate = DeclareEvaluate(app, options);
  const auto [ir_write, ir_check] = DeclareIr(app, options);
  CLI::App* report = DeclareReport(app, options);
  CLI::App* dis = DeclareDisassemble(app, options);
  const auto [combine, info] = DeclareSets(app, options);
  const FirstCommands first = DeclareFirst(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool is_extra = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
    const std::string unknown = is_extra ? UnknownCommand(app) : "";
    std::fputs(unknown.c_str(), stderr);
    return !unknown.empty() || app.exit(error) != 0 ? kWrongUsage : 0;
  }
  const std::string misplaced = OptionBeforeCommand(app);
  if (!misplaced.empty()) {
    std::fputs(misplaced.c_str(), stderr);
    return kWrongUsage;
  }
  const bool json = options.compile.json;
  if (first.help->parsed()) return PrintHelp(app, options.help);
  if (first.explain->parsed()) return PrintExplanation(options.explain, json);
  for (bool* of_command :
       {&options.inspect.json, &options.init.json, &options.run.json, &options.reference.json,
        &options.ir_write.json, &options.ir_check.json, &options.evaluate.json,
        &options.report.json, &options.combine.json, &options.info.json}) {
    *of_command = json;
  }
  if (first.inspect->parsed()) return RunInspectCommand(options.inspect);
  if (first.init->parsed()) return RunInitCommand(options.init);
  if (run->parsed()) return RunArtifactCommand(options.run);
  if (reference->parsed()) return RunReferenceCommand(options.reference);
  if (ir_write->parsed()) return RunIrWriteCommand(options.ir_write);
  if (ir_check->parsed()) return RunIrCheckCommand(options.ir_check);
  if (evaluate->parsed()) return RunEvaluateCommand(options.evaluate);
  if (report->parsed()) return RunReportCommand(options.report);
  if (combine->parsed()) return RunCombineCommand(options.combine);
  if (info->parsed()) return RunInfoCommand(options.info);
  if (dis->parsed()) return DisassembleCommand(options.disassemble, json);
  return RunCompile(options, app);
}

// npuc lives for one compile, which takes and frees some hundred thousand blocks in milliseconds:
// at a small page's first touch each of them would wait for the system. So malloc is told to take
// its memory at once and to keep it, and the system to give it in huge pages
// (tests/bench/RESULTS.md). Where that fails, malloc works as ever.
void TakeHeapInHugePages() {
#ifndef NPUC_SANITIZED                  // sanitizers bring an allocator of their own
  constexpr int kHeapBytes = 64 << 20;  // more than most nets below a million weights use
  constexpr uintptr_t kHugePageBytes = 2 << 20;
  mallopt(M_ARENA_MAX, 1);              // for all threads
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most that mallopt takes
  mallopt(M_TRIM_THRESHOLD, 2 * kHeapBytes);
  mallopt(M_TOP_PAD, kHeapBytes);
  const auto heap_end = [] { return reinterpret_cast<uintptr_t>(sbrk(0)); };
  const uintptr_t begin = (heap_end() + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  // More than a new process's heap has left, so that it grows.
  void* volatile first = std::malloc(256 << 10);
  std::free(first);
  mallopt(M_TOP_PAD, 1 << 20);
  if (heap_end() <= begin) return;
  madvise(reinterpret_cast<void*>(begin), heap_end() - begin, MADV_HUGEPAGE);
#endif
}

}  // namespace
}  // namespace npuc

int main(int argc, char** argv) {
  npuc::TakeHeapInHugePages();
  return npuc::Main(argc, argv);
}
