#include "compiler_core/tools/evaluate_command.h"

#include <cmath>
#include <cstdio>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/backends/integer/integer_metrics.h"
#include "compiler_core/base/status.h"
#include "compiler_core/emit/header_writer.h"
#include "compiler_core/pipeline/import.h"
#include "compiler_core/pipeline/quantized_forward.h"
#include "compiler_core/quant/metrics/metrics.h"
#include "compiler_core/sim/simulator.h"
#include "compiler_core/tools/array_files.h"
#include "compiler_core/tools/diagnostics_output.h"
#include "compiler_core/tools/files.h"
#include "compiler_core/tools/graph_runner.h"
#include "compiler_core/tools/loaded_config.h"
#include "compiler_core/tools/profile.h"
#include "nlohmann/json.hpp"

namespace npuc {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxLabelBytes = int64_t{1} << 28;

class Evaluation {
 public:
  Evaluation(const EvaluateCommand& command, Json& report, Diagnostics& diagnostics)
      : command_(command), report_(report), diagnostics_(diagnostics) {}

  absl::Status Run() {
    if (command_.artifact.empty() && !command_.quantized) {
      Refuse("there is no artifact to measure: name one, or give --quantized");
    }
    ReadMetrics();
    ReadLabels();
    ASSIGN_OR_RETURN(const LoadedConfig loaded, LoadConfig(command_.config_path, diagnostics_));
    const CompileOptions& options = loaded.config.options;
    const CompileRequest request = RequestOf(loaded);
    ASSIGN_OR_RETURN(Graph graph, ImportModel(request, diagnostics_));
    GraphRunner reference(graph, options, GraphRunner::Edges::kRealValues);
    if (command_.quantized) {
      ASSIGN_OR_RETURN(QuantizedForward forward,
                       MakeQuantizedForward(request, std::move(graph), diagnostics_));
      GraphRunner quantized(std::move(forward.graph), options);
      return Compare(reference, quantized, reference);
    }
    ASSIGN_OR_RETURN(const CompiledModel model, LoadArtifact(command_.artifact, diagnostics_));
    ASSIGN_OR_RETURN(const std::unique_ptr<Simulator> simulator,
                     Simulator::Load(model, command_.artifact, diagnostics_));
    SimulatorRunner simulated(*simulator, StatedTypes(reference, simulator->inputs()));
    return Compare(reference, simulated, simulated);
  }

 private:
  // Integers of the config's model without a scale, such as words' numbers, are integers to the
  // artifact, too, though its ports may be floats.
  static std::vector<DType> StatedTypes(const FrameRunner& reference,
                                        const std::vector<PortTensor>& ports) {
    std::vector<DType> stated;
    for (const PortTensor& port : ports) {
      DType& type = stated.emplace_back(port.dtype);
      for (size_t i = 0; i < reference.inputs().size(); ++i) {
        const PortTensor& input = reference.inputs()[i];
        const bool is_whole = IsInteger(reference.StatedType(i)) && input.scale <= 0;
        if (is_whole && CIdentifier(input.name) == CIdentifier(port.name)) {
          type = reference.StatedType(i);
        }
      }
    }
    return stated;
  }

  // `given`: the model that takes the files as its inputs.
  absl::Status Compare(FrameRunner& reference, FrameRunner& judged, const FrameRunner& given) {
    const std::vector<NamedArray> inputs =
        RealInputs(given, LoadInputs(command_.inputs, given, diagnostics_));
    RETURN_IF_ERROR(PairOutputs(reference, judged));
    ASSIGN_OR_RETURN(float_, RunItems(reference, inputs, 0, diagnostics_));
    ASSIGN_OR_RETURN(quantized_, RunItems(judged, inputs, 0, diagnostics_));
    report_["items"] = float_.items;
    for (const QualityMetric& metric : metrics_) MeasureOne(metric, judged);
    return diagnostics_.ToStatus();
  }

  void Refuse(std::string message, std::string file = {}) {
    diagnostics_.Add({.kind = DiagnosticKind::kRunInputInvalid,
                      .message = std::move(message),
                      .file = std::move(file)});
  }

  void ReadMetrics() {
    std::vector<std::string> names = command_.metrics;
    if (names.empty()) names = {"cosine", "mse", "sqnr"};
    for (const std::string& name : names) {
      const absl::StatusOr<QualityMetric> metric = MetricFromName(name);
      if (!metric.ok()) {
        Refuse(std::string(metric.status().message()));
      } else if (NeedsLabels(*metric) && command_.label_path.empty()) {
        Refuse(absl::StrCat("metric ", name, " needs --label FILE.npy"));
      } else {
        metrics_.push_back(*metric);
      }
    }
  }

  void ReadLabels() {
    if (command_.label_path.empty()) return;
    const absl::StatusOr<std::string> bytes = ReadFile(command_.label_path, kMaxLabelBytes);
    if (!bytes.ok()) return AddFileProblem(bytes.status(), diagnostics_);
    absl::StatusOr<Labels> labels = npuc::ReadLabels(*bytes);
    if (!labels.ok()) return Refuse(std::string(labels.status().message()), command_.label_path);
    labels_ = *std::move(labels);
  }

  // A header knows a name only as an identifier. Outputs must be the same, in the same order.
  absl::Status PairOutputs(const FrameRunner& reference, const FrameRunner& simulated) {
    const std::vector<PortTensor>& a = reference.outputs();
    const std::vector<PortTensor>& b = simulated.outputs();
    bool same = a.size() == b.size();
    for (size_t i = 0; same && i < a.size(); ++i) {
      same = CIdentifier(a[i].name) == CIdentifier(b[i].name) && a[i].shape == b[i].shape;
    }
    if (!same) Refuse("its outputs are not those of the config's model", command_.artifact);
    judged_ = 0;
    while (judged_ < a.size() && (command_.output.empty() ? a[judged_].state_input >= 0
                                                          : CIdentifier(a[judged_].name) !=
                                                                CIdentifier(command_.output))) {
      ++judged_;
    }
    if (judged_ == a.size()) {
      Refuse(command_.output.empty()
                 ? "every output is a state: name the one to judge by --output"
                 : absl::StrCat("the model has no output '", Printable(command_.output), "'"));
    }
    return diagnostics_.ToStatus();
  }

  Scores ScoresOf(size_t output, const std::vector<float>& values, const std::vector<float>& wanted,
                  const FrameRunner& runner) const {
    Scores scores;
    scores.items = float_.items;
    scores.shape = runner.outputs()[output].shape;
    // A tensor's first dimension of 1 is the item's own place.
    if (scores.shape.size() > 1 && scores.shape[0] == 1) scores.shape.erase(scores.shape.begin());
    scores.values = values;
    scores.wanted = wanted;
    return scores;
  }

  void MeasureOne(const QualityMetric& metric, const FrameRunner& runner) {
    for (size_t k = 0; k < float_.outputs.size(); ++k) {
      if (NeedsLabels(metric) && k != judged_) continue;
      const std::vector<float> wanted = FloatsOf(float_.outputs[k].array);
      const std::vector<float> got = FloatsOf(quantized_.outputs[k].array);
      const auto of_float = Measure(metric, ScoresOf(k, wanted, wanted, runner), labels_);
      const auto of_artifact = Measure(metric, ScoresOf(k, got, wanted, runner), labels_);
      const absl::Status status = of_float.ok() ? of_artifact.status() : of_float.status();
      if (!status.ok()) {
        Refuse(absl::StrCat("output '", Printable(float_.outputs[k].name), "': ", status.message()),
               NeedsLabels(metric) ? command_.label_path : "");
        continue;
      }
      Add(metric, float_.outputs[k].name, *of_float, *of_artifact);
    }
  }

  void Add(const QualityMetric& metric, const std::string& output, double of_float,
           double of_artifact) {
    // JSON has no infinity: an sqnr without any difference is null.
    const auto number = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
    report_["metrics"].push_back({{"metric", NameOf(metric)},
                                  {"output", output},
                                  {"float", number(of_float)},
                                  {"artifact", number(of_artifact)}});
    if (command_.json) return;
    if (report_["metrics"].size() == 1) {
      std::printf("%-8s %14s %14s  output (%ld items)\n", "metric", "float", "artifact",
                  static_cast<long>(float_.items));
    }
    std::printf("%-8s %14.8g %14.8g  %s\n", NameOf(metric).c_str(), of_float, of_artifact,
                Printable(output).c_str());
  }

  const EvaluateCommand& command_;
  Json& report_;
  Diagnostics& diagnostics_;
  std::vector<QualityMetric> metrics_;
  Labels labels_;
  RunItemsResult float_;
  RunItemsResult quantized_;
  size_t judged_ = 0;  // the output that labels are for
};

}  // namespace

int RunEvaluateCommand(const EvaluateCommand& command) {
  Diagnostics diagnostics;
  Json report{{"ok", false}, {"items", 0}, {"metrics", Json::array()}};
  const absl::Status status = Evaluation(command, report, diagnostics).Run();
  const int code = Finish(status, diagnostics);
  if (command.json) PrintReport(std::move(report), code == 0, diagnostics);
  return code;
}

}  // namespace npuc
