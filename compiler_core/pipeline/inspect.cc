#include "compiler_core/pipeline/inspect.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/status.h"
#include "compiler_core/config/config.h"
#include "compiler_core/config/quant_config.h"
#include "compiler_core/frontends/common/sniff.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/pipeline/import.h"
#include "compiler_core/quant/data/npy.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {
namespace {

constexpr int64_t kSamplesTried = 2;
constexpr int64_t kMaxTriedBytes = int64_t{1} << 26;
// A core is tried in floats, at some hundred million multiply-adds a second: an answer is due in
// seconds.
constexpr int64_t kMaxTriedMacs = 500'000'000;

// Samples for one input that stand for calibration data where only the verdict counts.
std::string RandomSamples(const std::vector<int64_t>& dims, std::mt19937& random) {
  NpyArray array;
  array.shape = dims;
  if (!array.shape.empty()) array.shape[0] *= kSamplesTried;
  array.bytes.resize(static_cast<size_t>(array.element_count()) * sizeof(float));
  for (int64_t i = 0; i < array.element_count(); ++i) {
    const float value = static_cast<float>(random()) / 2147483648.0F - 1.0F;  // in [-1, 1]
    std::memcpy(array.bytes.data() + static_cast<size_t>(i) * sizeof(float), &value, sizeof(float));
  }
  return WriteNpy(array).value_or("");
}

bool IsAbout(const Diagnostic& diagnostic, std::initializer_list<DiagnosticKind> kinds) {
  return std::find(kinds.begin(), kinds.end(), diagnostic.kind) != kinds.end();
}

// True where the errors say that samples are missing, and nothing else.
bool LacksCalibration(const Diagnostics& found) {
  return found.has_errors() &&
         std::all_of(found.list().begin(), found.list().end(), [](const Diagnostic& diagnostic) {
           return diagnostic.severity() != Severity::kError ||
                  IsAbout(diagnostic,
                          {DiagnosticKind::kCalibrationData, DiagnosticKind::kStrategyWithoutData});
         });
}

std::vector<RefusalReason> ReasonsOf(const Diagnostics& found) {
  std::vector<RefusalReason> reasons;
  for (const Diagnostic& diagnostic : found.list()) {
    if (diagnostic.severity() != Severity::kError) continue;
    const std::string id = IdOf(diagnostic.kind);
    const auto same =
        std::find_if(reasons.begin(), reasons.end(), [&](const RefusalReason& reason) {
          return reason.id == id && reason.op == diagnostic.op &&
                 (!diagnostic.op.empty() || reason.message == diagnostic.message);
        });
    if (same != reasons.end()) {
      ++same->nodes;
      continue;
    }
    reasons.push_back({id, diagnostic.op, diagnostic.message, diagnostic.fix, diagnostic.node, 1});
  }
  std::stable_sort(
      reasons.begin(), reasons.end(),
      [](const RefusalReason& a, const RefusalReason& b) { return a.nodes > b.nodes; });
  return reasons;
}

class Inspector {
 public:
  Inspector(const InspectRequest& request, ModelInspection& inspection)
      : request_(request), inspection_(inspection) {}

  void Run() {
    ProposeShape();
    bool is_imported = false;
    for (CoreFamily& family : CoreFamilies()) {
      CoreVerdict verdict{.family = std::move(family)};
      CompileRequest compile = RequestFor(verdict);
      if (verdict.kind != CoreVerdict::Kind::kNeedsShapes && verdict.reasons.empty()) {
        if (!is_imported) Measure(compile);
        is_imported = true;
        Judge(std::move(compile), verdict);
      }
      inspection_.verdicts.push_back(std::move(verdict));
    }
  }

 private:
  // Gives the only input, of which the model states nothing, the first row that a matrix of the
  // model takes and with which the whole model can be imported.
  void ProposeShape() {
    std::vector<ModelOutline::Port*> wanted;
    for (ModelOutline::Port& port : inspection_.outline.inputs) {
      if (port.is_tensor && port.constant.empty() && !port.may_be_left_out) wanted.push_back(&port);
    }
    if (wanted.size() != 1 || wanted[0]->dims.has_value()) return;
    for (const int64_t columns : inspection_.outline.matrix_columns) {
      wanted[0]->dims = {1, columns};
      CoreVerdict verdict{.family = CoreFamilies()[0]};
      const CompileRequest compile = RequestFor(verdict);
      Diagnostics found;
      if (verdict.reasons.empty() && ImportModel(compile, found).ok()) {
        inspection_.outline.notes.push_back(absl::StrCat(
            "the model states no shape; [1,", columns,
            "] is the first row that its matrices take, so check it and write another one where "
            "the model was trained on more dimensions"));
        return;
      }
    }
    wanted[0]->dims.reset();
  }

  // The config that `init` would write for the family, as the compiler reads it.
  CompileRequest RequestFor(CoreVerdict& verdict) {
    CompileRequest compile;
    const StarterConfig config =
        WriteStarterConfig(inspection_.outline, {.core = verdict.family.cores[0],
                                                 .model_path = request_.model_name,
                                                 .output_path = "model.h",
                                                 .config_path = "model.yaml"});
    if (!config.open.empty()) {
      verdict.kind = CoreVerdict::Kind::kNeedsShapes;
      return compile;
    }
    Diagnostics found;
    const absl::StatusOr<ParsedConfig> parsed = ParseConfig(config.text, "model.yaml", found);
    if (!parsed.ok()) {
      verdict.reasons = ReasonsOf(found);
      return compile;
    }
    compile.options = parsed->options;
    compile.model_bytes = request_.model_bytes;
    compile.side_inputs = request_.side_inputs;
    return compile;
  }

  void Judge(CompileRequest compile, CoreVerdict& verdict) {
    Diagnostics found;
    CompileObserver nobody;
    absl::StatusOr<CompileResult> result = Compile(compile, nobody, found);
    if (!result.ok() && LacksCalibration(found)) {
      verdict.kind = CoreVerdict::Kind::kNeedsCalibration;
      verdict.wants_samples = true;
      if (!AddSamples(compile)) return;  // too many to try
      found = Diagnostics();
      result = Compile(compile, nobody, found);
      // Samples made up here may be wrong where those of the user are not.
      if (result.ok() || LacksCalibration(found)) return;
    }
    if (!result.ok() && CompilesQuantizedAnew(compile)) {
      verdict.kind = CoreVerdict::Kind::kNeedsCalibration;
      verdict.wants_samples = true;
      verdict.quantizes_anew = true;
      return;
    }
    if (!result.ok()) {
      verdict.kind = CoreVerdict::Kind::kRefused;
      verdict.reasons = ReasonsOf(found);
      return;
    }
    verdict.kind = CoreVerdict::Kind::kCompiles;
    verdict.summary = std::move(result->summary);
    for (const Diagnostic& diagnostic : found.list()) {
      if (diagnostic.severity() == Severity::kWarning) ++verdict.warnings;
    }
  }

  // True for a model that an integer core refuses for what it leaves in floats, where it takes the
  // model with samples and all of its values quantized by them.
  bool CompilesQuantizedAnew(CompileRequest compile) const {
    const CoreSpec* core = FindCore(compile.options.core);
    if (core == nullptr || core->integer == nullptr || compile.options.quant.has_value() ||
        !AddSamples(compile)) {
      return false;
    }
    compile.options.quant->force_float_ir = true;
    CompileObserver nobody;
    Diagnostics found;
    return Compile(compile, nobody, found).ok();
  }

  bool AddSamples(CompileRequest& compile) const {
    if (inspection_.macs > kMaxTriedMacs / kSamplesTried) return false;
    int64_t bytes = 0;
    for (const auto& [name, dims] : graph_inputs_) {
      bytes += kSamplesTried * ElementCount(dims) * static_cast<int64_t>(sizeof(float));
      if (bytes > kMaxTriedBytes) return false;
    }
    const size_t count = graph_inputs_.size();
    if (count == 0 || count > kMaxCalibrationFiles) return false;
    compile.options.quant.emplace();
    std::mt19937 random(1);
    for (size_t i = 0; i < count; ++i) {
      const auto& [name, dims] = graph_inputs_[i];
      compile.options.quant->calibration_inputs.push_back(count == 1 ? "" : name);
      const std::string role =
          count == 1 ? std::string(kCalibrationRole) : absl::StrCat(kCalibrationRole, "[", i, "]");
      compile.side_inputs[role] = {
          "samples.npy", std::make_shared<const OwnedSource>(RandomSamples(dims, random))};
    }
    return true;
  }

  // Fills in the facts that only the imported graph has.
  void Measure(const CompileRequest& compile) {
    Diagnostics found;
    const absl::StatusOr<Graph> graph = ImportModel(compile, found);
    if (!graph.ok()) return;
    for (const ValueId input : graph->inputs()) {
      graph_inputs_.emplace_back(graph->def(input).source.name, graph->type(input).shape);
    }
    int64_t macs = 0;
    for (const Node& node : graph->nodes()) macs += MacsOf(*graph, node);
    inspection_.macs = macs;
    std::vector<ModelOutline::Port>& outputs = inspection_.outline.outputs;
    const bool is_told = outputs.size() == graph->outputs().size();
    if (!outputs.empty() && !is_told) return;
    outputs.resize(graph->outputs().size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      const GraphOutput& output = graph->outputs()[i];
      if (!is_told) outputs[i].key = outputs[i].name = output.name;
      if (outputs[i].type.empty()) {
        outputs[i].type = OutlineTypeName(graph->type(output.value).dtype);
      }
      outputs[i].dims = graph->type(output.value).shape;
    }
  }

  static int64_t MacsOf(const Graph& graph, const Node& node) {
    if (node.inputs.size() < 2 || node.outputs.empty()) return 0;
    const Shape& data = graph.type(node.inputs[0]).shape;
    const Shape& weight = graph.type(node.inputs[1]).shape;
    const int64_t results = graph.type(node.outputs[0]).element_count();
    if (node.op == Op::kConv2D) return results * weight[0] * weight[1] * weight[2];
    if (node.op == Op::kDepthwiseConv2D) return results * weight[0] * weight[1];
    if (node.op != Op::kMatMul) return 0;
    return results * data[data.size() - (BoolAttrOr(node, "transpose_a", false) ? 2 : 1)];
  }

  const InspectRequest& request_;
  ModelInspection& inspection_;
  std::vector<std::pair<std::string, Shape>> graph_inputs_;
};

}  // namespace

std::optional<Framework> FrameworkOfModel(absl::string_view bytes, absl::string_view name) {
  const std::optional<Framework> sniffed = SniffFramework(bytes);
  if (sniffed.has_value()) return sniffed;
  if (!GuessFileKind(bytes).what.empty()) return std::nullopt;  // it is something else
  const std::string lower = absl::AsciiStrToLower(name);
  for (const FrameworkInfo& info : AllFrameworks()) {
    for (const absl::string_view ending : absl::StrSplit(info.endings, '|', absl::SkipEmpty())) {
      if (absl::EndsWith(lower, ending)) return info.framework;
    }
  }
  return std::nullopt;
}

absl::StatusOr<ModelOutline> OutlineModel(const InspectRequest& request, Diagnostics& diagnostics) {
  const absl::string_view bytes = request.model_bytes;
  const absl::string_view name = request.model_name;
  const std::optional<Framework> framework = FrameworkOfModel(bytes, name);
  if (framework.has_value()) {
    ModelFiles files{.model = bytes};
    SetDataFile(request.side_inputs, *framework, files);
    ASSIGN_OR_RETURN(ModelOutline outline,
                     FrontEndOf(*framework).outline(files, name, diagnostics));
    outline.framework = *framework;
    if (!request.data_in_config.empty()) {
      outline.data_file = request.data_in_config;
    } else if (files.data != nullptr && InfoOf(*framework).data_file != DataFile::kAlways) {
      outline.data_file = files.data_name;
    }
    return outline;
  }
  const FileGuess guess = GuessFileKind(bytes);
  diagnostics.Add(
      {.kind = bytes.empty() ? DiagnosticKind::kEmptyModel : DiagnosticKind::kFrameworkNotSupported,
       .message = bytes.empty() ? "the file has no bytes"
                  : guess.what.empty()
                      ? "the file is of no format that npuc knows"
                      : absl::StrCat("the file is no model that npuc reads; it looks "
                                     "like ",
                                     guess.what),
       .file = std::string(name),
       .fix = guess.fix.empty() ? absl::StrCat("name ", ModelsThatAreRead()) : guess.fix});
  return diagnostics.ToStatus();
}

std::vector<CoreFamily> CoreFamilies() {
  std::vector<CoreFamily> families;
  for (const CoreSpec* core : AllCores()) {
    // Integer cores differ in numbers alone, but for those of fixed point.
    const bool is_integer = core->integer != nullptr && !IsFixedPoint(*core);
    const std::string name = is_integer ? "integer cores" : std::string(core->name);
    auto family = std::find_if(families.begin(), families.end(),
                               [&](const CoreFamily& known) { return known.name == name; });
    if (family == families.end()) family = families.insert(family, {.name = name});
    family->cores.emplace_back(core->name);
  }
  return families;
}

absl::string_view NameOf(CoreVerdict::Kind kind) {
  switch (kind) {
    case CoreVerdict::Kind::kCompiles:
      return "compiles";
    case CoreVerdict::Kind::kNeedsCalibration:
      return "needs calibration data";
    case CoreVerdict::Kind::kNeedsShapes:
      return "needs shapes";
    case CoreVerdict::Kind::kRefused:
      return "refused";
  }
  NPUC_CHECK(false);
  return "";
}

absl::StatusOr<ModelInspection> InspectModel(const InspectRequest& request,
                                             Diagnostics& diagnostics) {
  ModelInspection inspection;
  ASSIGN_OR_RETURN(inspection.outline, OutlineModel(request, diagnostics));
  const absl::Status settled = SettleInputs(request.stated, inspection.outline);
  if (!settled.ok()) {
    diagnostics.Add({.kind = DiagnosticKind::kInputNotInModel,
                     .message = std::string(settled.message()),
                     .file = request.model_name});
    return diagnostics.ToStatus();
  }
  Inspector(request, inspection).Run();
  return inspection;
}

const CoreVerdict* BestVerdict(const ModelInspection& inspection) {
  const auto fits = [](const CoreVerdict& verdict) {
    const CompileSummary& summary = verdict.summary;
    return summary.ram_limit_bytes == 0 || summary.ram_bytes <= summary.ram_limit_bytes;
  };
  const auto keeps_integers = [](const CoreVerdict& verdict) {
    return FindCore(verdict.family.cores[0])->integer != nullptr && !verdict.wants_samples;
  };
  const auto is_better = [&](const CoreVerdict& one, const CoreVerdict& other) {
    if (one.kind != other.kind) return one.kind < other.kind;
    if (one.kind != CoreVerdict::Kind::kCompiles) return false;
    // The memory of cores with code books is not published, so that a model fits says little.
    if (HasCodeBooks(*FindCore(one.family.cores[0]))) return false;
    if (fits(one) != fits(other)) return fits(one);
    return keeps_integers(one) && !keeps_integers(other);
  };
  const CoreVerdict* best = nullptr;
  for (const CoreVerdict& verdict : inspection.verdicts) {
    if (verdict.kind == CoreVerdict::Kind::kRefused) continue;
    if (best == nullptr || is_better(verdict, *best)) best = &verdict;
  }
  return best;
}

}  // namespace npuc
