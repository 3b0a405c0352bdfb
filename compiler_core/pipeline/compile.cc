#include "compiler_core/pipeline/compile.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/status.h"
#include "compiler_core/emit/grus_codec.h"
#include "compiler_core/emit/header_writer.h"
#include "compiler_core/emit/model_file.h"
#include "compiler_core/lowering/lower.h"
#include "compiler_core/lowering/support.h"
#include "compiler_core/memplan/plan.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/passes/passes.h"
#include "compiler_core/pipeline/compile_integer.h"
#include "compiler_core/pipeline/file_limits.h"
#include "compiler_core/pipeline/float_model.h"
#include "compiler_core/pipeline/import.h"
#include "compiler_core/pipeline/layer_errors.h"
#include "compiler_core/pipeline/listings.h"
#include "compiler_core/pipeline/report_json.h"
#include "compiler_core/pipeline/stages.h"
#include "compiler_core/pipeline/states.h"
#include "compiler_core/pipeline/weight_choices.h"
#include "compiler_core/pipeline/weight_histograms.h"
#include "compiler_core/quant/opt_template.h"
#include "compiler_core/report/page.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {
namespace {

// One line for a model that keeps integers between its nodes, however many these are.
void ReportQuantized(const Node& first, int count, const CoreSpec& core,
                     const std::string& model_name, Diagnostics& diagnostics) {
  std::string integer_cores;
  for (const CoreSpec* other : AllCores()) {
    if (other->integer == nullptr || IsFixedPoint(*other)) continue;
    absl::StrAppend(&integer_cores, integer_cores.empty() ? "" : ", ", other->name);
  }
  diagnostics.Add({.kind = DiagnosticKind::kNotFp16Data,
                   .message = absl::StrCat(
                       "the model is quantized, ", count, count == 1 ? " value is" : " values are",
                       " integers at run time; ", core.name, " computes in fp16"),
                   .file = model_name,
                   .node = first.source.name,
                   .op = first.source.op.empty() ? std::string(NameOf(first.op)) : first.source.op,
                   .fix = absl::StrCat("set CORENAME to an integer core, which keeps its scales (",
                                       integer_cores, "), or give the float model")});
}

// The core computes in fp16: integer or boolean data may steer shapes, but not flow at run time.
absl::Status CheckDataTypes(const Graph& graph, const CoreSpec& core, const std::string& model_name,
                            Diagnostics& diagnostics) {
  const Node* first_quantized = nullptr;
  int quantized = 0;
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::kConst) continue;
    if (node.op == Op::kQuantize) {
      if (quantized++ == 0) first_quantized = &node;
      continue;
    }
    for (const ValueId output : node.outputs) {
      const DType dtype = graph.type(output).dtype;
      if (IsFloat(dtype)) continue;
      diagnostics.Add({.kind = DiagnosticKind::kNotFp16Data,
                       .message = absl::StrCat("computes ", std::string(NameOf(dtype)),
                                               " values at run time; the core computes in fp16"),
                       .file = model_name,
                       .node = node.source.name,
                       .op = node.source.op.empty() ? std::string(NameOf(node.op)) : node.source.op,
                       .fix = "feed the value as a float input, or make it a constant"});
    }
  }
  if (quantized > 0) ReportQuantized(*first_quantized, quantized, core, model_name, diagnostics);
  return diagnostics.ToStatus();
}

PassOptions PassOptionsOf(const CompileOptions& options) {
  PassOptions passes;
  passes.fuse_batch_norm = options.fuse_bn;
  passes.fuse_bias = options.fuse_biasadd;
  passes.verify = false;  // CheckSupportStage does
  return passes;
}

// What shares a range with the weights that CONV2D_COMPRESS compresses.
void WarnAboutFusedWeights(const CompileOptions& options, Diagnostics& diagnostics) {
  const auto warn = [&](std::string message) {
    diagnostics.Add({.kind = DiagnosticKind::kCompressesFusedWeights,
                     .message = std::move(message),
                     .file = options.model_name,
                     .fix = "compare the outputs, or set one of the two to false"});
  };
  if (!options.conv2d_compress) return;
  if (options.fuse_bn) {
    warn(
        "FUSE_BN folds batch normalisation into the weights that CONV2D_COMPRESS compresses; "
        "channels of unlike scales then share one range, which may cost accuracy");
  }
  if (options.fuse_biasadd) {
    warn(
        "FUSE_BIASADD gives biases the codes of the weights that CONV2D_COMPRESS compresses; one "
        "range then covers both, which may cost accuracy");
  }
}

// The transposes that are left, a line each as far as they are few.
void LogTransposes(const CompileFacts& facts, Stages& stages) {
  constexpr size_t kMaxLines = 20;
  const std::vector<TransposeRecord> transposes = TransposesOf(facts);
  stages.Log(absl::StrCat("transposes: ", transposes.size(), " left",
                          transposes.size() > kMaxLines ? "; the first ones:" : ""));
  for (size_t i = 0; i < std::min(transposes.size(), kMaxLines); ++i) {
    stages.Log(absl::StrCat("transpose '", Printable(transposes[i].node), "', ",
                            ShapeToString(transposes[i].shape), " by ",
                            ShapeToString(transposes[i].perm), ": ", transposes[i].reason));
  }
}

// The log's last lines.
void LogEnd(const CompileFacts& facts, Stages& stages) {
  LogTransposes(facts, stages);
  for (const Diagnostic& diagnostic : facts.diagnostics.list()) stages.Log(diagnostic.ToString());
  const CompiledModel& model = facts.model;
  stages.Log(absl::StrCat("done: ", facts.program.commands.size(), " commands, npu_size ",
                          model.npu_size(), ", total_size ", model.total_size(), ", data_content ",
                          model.data_bytes, " (liveness bound ", facts.memory.lower_bound_bytes,
                          ", ", std::string(NameOf(facts.memory.method)), ")"));
}

// Many small pieces, which idle helpers take apart beside the writing of the files.
void LetGo(HelperThreads& helpers, Graph graph, LoweredModel lowered, std::vector<NodeUse> uses) {
  helpers.WhenIdle([graph = std::make_shared<Graph>(std::move(graph)),
                    lowered = std::make_shared<LoweredModel>(std::move(lowered)),
                    uses = std::make_shared<std::vector<NodeUse>>(std::move(uses))] {});
}

// How much of the weights WEIGHT_CACHE_SIZE holds: an estimate, since the chip's way is not public.
void NoteWeightCache(const CompileOptions& options, const CoreSpec& core, const Program& program,
                     size_t weight_bytes, absl::Span<const NodeUse> uses,
                     Diagnostics& diagnostics) {
  const int64_t size = options.weight_cache_size_bytes.value_or(0);
  if (size == 0) return;
  const WeightCacheUse use = PlanWeightCache(program, uses, size);
  std::string names;
  for (const std::string& node : use.nodes) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", Printable(node));
  }
  const int64_t left = core.limits->npu_sram_bytes - program.data_bytes;
  diagnostics.Add({.kind = DiagnosticKind::kWeightCacheUse,
                   .message = absl::StrCat(
                       "WEIGHT_CACHE_SIZE: ", size, " would hold ", use.bytes, " of ", weight_bytes,
                       " weight bytes, of ", names.empty() ? "no operator" : names,
                       "; beside data_content ", left, " bytes of the NPU's SRAM are free",
                       left < size ? ", which is less than the cache" : ""),
                   .file = options.model_name,
                   .limit_source = absl::StrCat(std::string(core.name), " npu_sram_bytes")});
}

absl::Status CheckSupportStage(const Graph& graph, const CoreSpec& core,
                               const CompileOptions& options, HelperThreads& helpers,
                               Diagnostics& diagnostics) {
  absl::Status verified;
  HelperThreads::Task is_verified = helpers.Start([&] { verified = VerifyGraph(graph); });
  CheckSupport(graph, core, options, helpers, diagnostics);
  is_verified.Wait();
  RETURN_IF_ERROR(verified);
  return diagnostics.ToStatus();
}

// Takes the program's weights, which may be most of its bytes.
absl::StatusOr<CompiledModel> Assemble(const CompileRequest& request, const CoreSpec& core,
                                       const std::string& model_md5, Program& program,
                                       Diagnostics& diagnostics) {
  CompiledModel model;
  model.version = std::string(CompilerVersion());
  model.model_md5 = model_md5;
  model.npu_unit = request.options.npu_unit;
  model.model_info = ModelInfo(request);
  model.core = std::string(core.name);
  model.inputs = program.inputs;
  model.outputs = program.outputs;
  model.weight_content = std::move(program.weights);
  model.data_bytes = program.data_bytes;
  RETURN_IF_ERROR(CheckArtifactLimits(model, request.options.model_name, diagnostics));
  ASSIGN_OR_RETURN(model.cmd_content, EncodeCommands(program));
  return model;
}

void WarnAboutMemory(const CompiledModel& model, const CoreSpec& core, const std::string& name,
                     Diagnostics& diagnostics) {
  if (model.npu_size() <= core.limits->npu_sram_bytes) return;
  diagnostics.Add({.kind = DiagnosticKind::kMemoryBeyondNpuSram,
                   .message = absl::StrCat("npu_size ", model.npu_size(), " exceeds the ",
                                           core.limits->npu_sram_bytes,
                                           " bytes of SRAM that the NPU has by default"),
                   .file = name,
                   .limit_source = absl::StrCat(std::string(core.name), " npu_sram_bytes"),
                   .fix =
                       "set COMPRESS: true, execute commands and weights in place from flash, or "
                       "give the NPU more SRAM"});
}

absl::Status CheckRequest(const CompileRequest& request, const CoreSpec* core,
                          Diagnostics& diagnostics) {
  if (core == nullptr || (core->limits == nullptr && core->integer == nullptr)) {
    diagnostics.Add({.kind = DiagnosticKind::kNotLowerable,
                     .message = absl::StrCat("no command encoding is known for core ",
                                             Printable(request.options.core)),
                     .fix = "set CORENAME: GRUS, or an integer core such as X2_1204"});
  }
  return diagnostics.ToStatus();
}

// LAYER_ERROR_FRAMES: what cannot be compared is no reason to fail.
LayerErrors CompareLayers(const Graph& graph, const CoreSpec& core,
                          const LowerOptions& lower_options, const CompileOptions& options,
                          CompileObserver& observer, Stages& stages) {
  if (options.layer_error_frames == 0) return {};
  absl::StatusOr<LayerErrors> errors =
      MeasureLayerErrors(graph, core, lower_options, options, options.layer_error_frames,
                         [&] { return observer.IsCancelled(); });
  if (errors.ok()) return *std::move(errors);
  stages.Log(absl::StrCat("layers are not compared: ", errors.status().message()));
  return {};
}

// An artifact that is made in parts: they go to the observer or, where it takes none, into memory.
class ArtifactParts {
 public:
  ArtifactParts(std::string name, CompileObserver& observer)
      : name_(std::move(name)), observer_(observer), are_taken_(observer.TakesParts()) {}

  // Before the first Put; more than 0.
  void SetSize(uint64_t size_bytes) {
    size_bytes_ = left_ = size_bytes;
    if (!are_taken_) bytes_.resize(size_bytes);
  }
  // Thread-safe for parts that do not overlap. With the last one the observer has the artifact.
  void Put(uint64_t offset, absl::string_view bytes) {
    if (are_taken_) {
      observer_.OnArtifactPart(name_, offset, bytes);
      return;
    }
    std::copy(bytes.begin(), bytes.end(), bytes_.begin() + static_cast<ptrdiff_t>(offset));
    if (left_.fetch_sub(bytes.size()) == bytes.size()) observer_.OnArtifact(name_, bytes_);
  }
  // Behind the last part of those that come in their order. Not both this and SetSize.
  void Append(absl::string_view bytes) {
    constexpr size_t kShort = 4096;  // short ones are told together
    if (!are_taken_ || bytes.size() < kShort) {
      bytes_.append(bytes.data(), bytes.size());
      return;
    }
    Flush();
    Put(size_bytes_, bytes);
    size_bytes_ += bytes.size();
  }
  // Once all parts were put.
  Artifact Take() {
    if (are_taken_) {
      Flush();
      return {std::move(name_), "", size_bytes_};
    }
    if (size_bytes_ == 0) observer_.OnArtifact(name_, bytes_);
    return {std::move(name_), std::move(bytes_)};
  }

 private:
  void Flush() {
    if (bytes_.empty()) return;
    Put(size_bytes_, bytes_);
    size_bytes_ += bytes_.size();
    bytes_.clear();
  }

  std::string name_;
  CompileObserver& observer_;
  const bool are_taken_;
  uint64_t size_bytes_ = 0;
  std::atomic<uint64_t> left_ = 0;  // of SetSize's, not put yet
  std::string bytes_;
};

// What firmware and tools read, written beside what follows. The arguments must outlive it.
class EmittedFiles {
 public:
  // model: with a placeholder for its MD5, which is filled in.
  EmittedFiles(CompiledModel& model, ModelMd5& md5, const CompileOptions& options,
               HelperThreads& helpers, CompileObserver& observer)
      : model_(model),
        md5_(md5),
        helpers_(helpers),
        header_(options.output_file, observer),
        model_file_(ModelFileName(options), observer),
        text_(CHeaderText::Make(model, problems_)) {
    if (text_.ok()) header_.SetSize(text_->size_bytes());
    if (md5.IsKnown()) {
      BeginRest();
    } else if (helpers.threads() > 2) {  // a second one has the MD5 to find
      BeginBody();
    }
  }
  EmittedFiles(const EmittedFiles&) = delete;
  EmittedFiles& operator=(const EmittedFiles&) = delete;

  // Sees to it that all is being written, and the model has its MD5; until that is known, what does
  // not need it is written.
  void NameModel() {
    if (model_written_.has_value()) return;
    std::vector<char> room;
    while (!md5_.IsKnown() && WritePiece(room)) {
    }
    BeginRest();
  }

  absl::StatusOr<Artifact> TakeHeader(Diagnostics& diagnostics) {
    WriteBody();
    if (body_written_.has_value()) body_written_->Wait();
    diagnostics.Append(problems_);
    RETURN_IF_ERROR(text_.status());
    return header_.Take();
  }
  Artifact TakeModelFile() {
    model_written_->Wait();
    return model_file_.Take();
  }

 private:
  // Stays in a processor's cache while it is made and written.
  static constexpr size_t kPieceBytes = 256 << 10;

  // Writes a piece of what needs no MD5; false where none was left.
  bool WritePiece(std::vector<char>& room) {
    if (!text_.ok()) return false;
    const size_t size = text_->size_bytes();
    const size_t i = next_piece_++;
    if (i * kPieceBytes >= size) return false;
    const size_t begin = std::max(i * kPieceBytes, text_->head_bytes());
    const size_t end = std::min((i + 1) * kPieceBytes, size);
    if (begin < end) header_.Put(begin, text_->Body(begin, end, room));
    return true;
  }
  // Returns when no piece is left to begin.
  void WriteBody() {
    std::vector<char> room;
    while (WritePiece(room)) {
    }
  }
  void BeginBody() {
    body_written_.emplace(helpers_.Start([this] { WriteBody(); }));
  }
  // Waits for the MD5, and begins to write what names it and what has not begun.
  void BeginRest() {
    model_.model_md5 = md5_.Hex();
    model_written_.emplace(helpers_.Start([this] {
      WriteModelFile(model_, [this](absl::string_view bytes) { model_file_.Append(bytes); });
    }));
    // What is in small pieces comes last, since all threads then end together.
    if (!body_written_.has_value()) BeginBody();
    if (text_.ok()) header_.Put(0, text_->Head(model_.model_md5));
    // No helper will: so the observer has the header while the rest is made.
    if (helpers_.threads() == 1) WriteBody();
  }

  CompiledModel& model_;
  ModelMd5& md5_;
  HelperThreads& helpers_;
  ArtifactParts header_;
  ArtifactParts model_file_;
  Diagnostics problems_;  // of the header
  const absl::StatusOr<CHeaderText> text_;
  std::atomic<size_t> next_piece_ = 0;
  // Both end before what they write does.
  std::optional<HelperThreads::Task> body_written_;
  std::optional<HelperThreads::Task> model_written_;
};

// Makes the report's histograms beside what needs them not. The arguments must outlive it.
class HistogramMaker {
 public:
  HistogramMaker(const Graph& graph, HelperThreads& helpers) : graph_(graph), helpers_(helpers) {}
  HistogramMaker(const HistogramMaker&) = delete;
  HistogramMaker& operator=(const HistogramMaker&) = delete;
  // Again: does nothing.
  void Begin() {
    if (is_made_.has_value()) return;
    is_made_.emplace(helpers_.Start([this] { made_ = OperandHistograms(graph_); }));
  }
  // Once, after Begin.
  std::vector<Histogram> Take(absl::Span<const WeightRecord> weights) {
    is_made_->Wait();
    return ReportHistograms(graph_, weights, std::move(made_));
  }

 private:
  const Graph& graph_;
  HelperThreads& helpers_;
  std::map<ValueId, Histogram> made_;
  std::optional<HelperThreads::Task> is_made_;  // ends before made_ does
};

// What people read.
struct Reports {
  Artifact weights, report, page;
};

Reports MakeReports(const CompileFacts& facts, CompileObserver& observer) {
  Reports reports;
  const auto make = [&](std::string name, std::string bytes) {
    observer.OnArtifact(name, bytes);
    return Artifact{std::move(name), std::move(bytes)};
  };
  reports.weights = make("opt_template.json", WriteTemplate(facts.weights));
  reports.report = make("report.json", ReportJson(facts));
  reports.page = make("report.html", ReportPage(reports.report.bytes));
  return reports;
}

// All but the log, in their order.
absl::Status AddArtifacts(const std::string& model_name, Reports reports, EmittedFiles& files,
                          Stages& stages, Diagnostics& diagnostics,
                          std::vector<Artifact>& artifacts) {
  RETURN_IF_ERROR(CheckFileSize(reports.weights.name, reports.weights.bytes.size(),
                                kMaxTemplateBytes, model_name, diagnostics));
  absl::StatusOr<Artifact> header = files.TakeHeader(diagnostics);
  Artifact model_file = files.TakeModelFile();
  RETURN_IF_ERROR(stages.End(header.status()));
  artifacts.push_back(*std::move(header));
  artifacts.push_back(std::move(reports.weights));
  artifacts.push_back(std::move(model_file));
  artifacts.push_back(std::move(reports.report));
  artifacts.push_back(std::move(reports.page));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CompileResult> Compile(const CompileRequest& request, CompileObserver& observer,
                                      Diagnostics& diagnostics) {
  const CompileOptions& options = request.options;
  HelperThreads none(1);
  HelperThreads& helpers = request.helpers != nullptr ? *request.helpers : none;
  Stages stages(observer, diagnostics, options.model_name);
  const CoreSpec* core = FindCore(options.core);
  stages.Log(absl::StrCat(std::string(CompilerVersion()), ", core ", options.core, ", model ",
                          Printable(options.model_name), ", ", request.model_bytes.size(),
                          " bytes"));

  CHECK_STEP("check", 0.0, CheckRequest(request, core, diagnostics));
  ModelMd5 md5(request);
  STEP(Graph imported, "import", 0.05,
       ImportModel(
           request, helpers, [&] { md5.Begin(helpers); }, diagnostics));
  // From here: every shape is static, every value has a type, constants are folded.
  if (core->integer != nullptr) {
    return CompileInteger(request, *core, imported, md5, stages, observer, diagnostics);
  }
  STEP(Graph floats, "floats", 0.22, FloatModel(std::move(imported), *core, options, diagnostics));
  // From here: no integers of a quantized model.
  STEP(Graph graph, "passes", 0.25, RunPasses(std::move(floats), PassOptionsOf(options)));
  // From here: only operators that lowering knows or refuses by name.
  CHECK_STEP("types", 0.40, CheckDataTypes(graph, *core, options.model_name, diagnostics));
  CHECK_STEP("support", 0.42, CheckSupportStage(graph, *core, options, helpers, diagnostics));
  STEP(LowerOptions lower_options, "weights", 0.45,
       ChooseWeights(request, WeightNames(graph), diagnostics));
  lower_options.helpers = &helpers;
  HistogramMaker histogram_maker(graph, helpers);
  lower_options.helpers_free = [&] { histogram_maker.Begin(); };
  STEP(LoweredModel lowered, "lower", 0.50, Lower(graph, *core, lower_options, diagnostics));
  Program& program = lowered.program;
  STEP(const MemoryPlanResult memory, "plan", 0.75,
       PlanMemory(program, core->limits->buffer_alignment_bytes, &helpers));
  // From here: addresses are final.
  AssignStates(program, options.output_file, options.framework, diagnostics);
  RETURN_IF_ERROR(stages.Begin("check plan", 0.80));
  absl::Status plan_check;
  HelperThreads::Task plan_checked = helpers.Start([&] { plan_check = CheckMemoryPlan(program); });
  STEP(CompiledModel model, "emit", 0.85,
       Assemble(request, *core, md5.PlaceHolder(), program, diagnostics));
  EmittedFiles files(model, md5, options, helpers, observer);
  WarnAboutMemory(model, *core, options.model_name, diagnostics);
  WarnAboutFusedWeights(options, diagnostics);
  std::vector<NodeUse> uses = UseByNode(program, core->cycles);
  NoteWeightCache(options, *core, program, model.weight_content.size(), uses, diagnostics);
  plan_checked.Wait();
  RETURN_IF_ERROR(stages.End(plan_check));

  const LayerErrors layer_errors =
      CompareLayers(graph, *core, lower_options, options, observer, stages);
  const std::vector<Histogram> histograms = histogram_maker.Take(lowered.weights);
  const CompileFacts facts{graph,       program, model,        memory, lowered.weights, histograms,
                           diagnostics, options, core->cycles, uses,   layer_errors};
  CompileResult result;
  if (request.wants_listings) {
    result.listings = {ListOps(facts), ListMemory(facts), ListWeights(facts)};
  }
  RETURN_IF_ERROR(stages.Begin("header", 0.90));
  files.NameModel();
  RETURN_IF_ERROR(AddArtifacts(options.model_name, MakeReports(facts, observer), files, stages,
                               diagnostics, result.artifacts));
  if (options.save_histograms) result.histograms = WeightHistograms(graph, lowered.weights);
  LogEnd(facts, stages);
  result.artifacts.push_back({"compile.log", std::move(stages.log())});
  LetGo(helpers, std::move(graph), std::move(lowered), std::move(uses));
  observer.OnStage("done", 1.0);
  return result;
}

}  // namespace npuc
