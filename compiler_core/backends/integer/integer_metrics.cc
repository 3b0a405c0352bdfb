#include "compiler_core/backends/integer/integer_metrics.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/config/quant_config.h"
#include "compiler_core/ir/integer/port_values.h"
#include "compiler_core/quant/data/npy.h"
#include "compiler_core/quant/data/sample_set.h"
#include "compiler_core/quant/executor/float_executor.h"
#include "compiler_core/sim/simulator.h"

namespace npuc {
namespace {

constexpr int64_t kMaxLabelBytes = int64_t{1} << 28;
constexpr int64_t kMaxValues = int64_t{1}
                               << 26;  // of all outputs of all items, 4 bytes each, twice

void StorePort(const PortTensor& port, absl::Span<const float> values, uint8_t* struct_bytes) {
  for (size_t i = 0; i < values.size(); ++i) {
    integer::StoreInteger(port.dtype, integer::StoredValue(port, values[i]),
                          struct_bytes + port.offset_bytes, static_cast<int64_t>(i));
  }
}

void AppendPort(const PortTensor& port, const uint8_t* struct_bytes, std::vector<float>& values) {
  const int64_t count = ElementCount(port.shape);
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(integer::RealValue(
        port, integer::LoadInteger(port.dtype, struct_bytes + port.offset_bytes, i)));
  }
}

class Measurement {
 public:
  Measurement(const CompileRequest& request, const IntegerModel& quantized,
              const CompiledModel& model, Diagnostics& diagnostics)
      : request_(request),
        options_(*request.options.quant),
        graph_(quantized.reference.has_value() ? *quantized.reference : quantized.graph),
        model_(model),
        diagnostics_(diagnostics) {}

  absl::StatusOr<ModelMetrics> Run(const std::function<bool()>& cancelled) {
    RETURN_IF_ERROR(ReadMetricNames());
    RETURN_IF_ERROR(OpenFiles());
    RETURN_IF_ERROR(RunItems(cancelled));
    if (cancelled()) return std::move(result_);  // not all items were run
    result_ = {"data", "simulator", samples_->size(), {}};
    for (const QualityMetric& metric : metrics_) RETURN_IF_ERROR(MeasureOne(metric));
    return std::move(result_);
  }

 private:
  absl::Status Refuse(DiagnosticKind kind, const absl::Status& status, const std::string& fix) {
    diagnostics_.Add({.kind = kind,
                      .message = std::string(status.message()),
                      .file = request_.options.model_name,
                      .fix = fix});
    return diagnostics_.ToStatus();
  }

  const CompileRequest::SideInput* Find(const std::string& role) const {
    const auto found = request_.side_inputs.find(role);
    return found == request_.side_inputs.end() ? nullptr : &found->second;
  }

  absl::Status ReadMetricNames() {
    std::vector<std::string> names = options_.metrics;
    if (names.empty()) names = {"cosine", "mse", "sqnr"};
    for (const std::string& name : names) {
      ASSIGN_OR_RETURN(const QualityMetric metric, MetricFromName(name));  // the config was checked
      metrics_.push_back(metric);
    }
    return absl::OkStatus();
  }

  absl::Status OpenFiles() {
    std::vector<SampleFile> files;
    for (size_t i = 0; i < options_.data_inputs.size(); ++i) {
      const std::string& input = options_.data_inputs[i];
      const std::string role =
          input.empty() ? std::string(kDataRole) : absl::StrCat(kDataRole, "[", i, "]");
      const CompileRequest::SideInput* file = Find(role);
      if (file != nullptr) files.push_back({input, file->name, file->bytes});
    }
    absl::StatusOr<SampleSet> samples = SampleSet::Open(files, graph_);
    if (!samples.ok()) {
      return Refuse(DiagnosticKind::kMetricData, samples.status(),
                    "give NumPy arrays of items for every input of the model");
    }
    samples_ = *std::move(samples);
    const CompileRequest::SideInput* label = Find(kLabelRole);
    if (label == nullptr) return absl::OkStatus();
    const absl::StatusOr<std::string> text = ReadAll(*label->bytes, kMaxLabelBytes);
    absl::StatusOr<Labels> labels = text.ok() ? ReadLabels(*text) : text.status();
    if (!labels.ok()) {
      return Refuse(
          DiagnosticKind::kMetricLabels,
          absl::InvalidArgumentError(absl::StrCat(label->name, ": ", labels.status().message())),
          "give a .npy file of integers, one for each item");
    }
    labels_ = *std::move(labels);
    return absl::OkStatus();
  }

  absl::Status RunItems(const std::function<bool()>& cancelled) {
    int64_t values = 0;
    for (const PortTensor& port : model_.outputs) values += ElementCount(port.shape);
    if (values > kMaxValues / samples_->size()) {
      return Refuse(
          DiagnosticKind::kMetricData,
          absl::InvalidArgumentError(absl::StrCat("the outputs of ", samples_->size(),
                                                  " items have over ", kMaxValues, " values")),
          "give fewer items in QUANT: data");
    }
    ASSIGN_OR_RETURN(const FloatExecutor executor, FloatExecutor::Create(graph_));
    ASSIGN_OR_RETURN(const std::unique_ptr<Simulator> simulator,
                     Simulator::Load(model_, request_.options.model_name, diagnostics_));
    FloatExecutor::Arena arena = executor.MakeArena();
    std::vector<std::vector<float>> inputs;
    std::vector<uint8_t> stored(static_cast<size_t>(simulator->input_bytes()));
    std::vector<uint8_t> answer;
    wanted_.resize(model_.outputs.size());
    got_.resize(model_.outputs.size());
    for (int64_t item = 0; item < samples_->size() && !cancelled(); ++item) {
      const absl::Status read = samples_->Read(item, inputs);
      if (!read.ok()) return Refuse(DiagnosticKind::kMetricData, read, "mend the data");
      for (size_t k = 0; k < inputs.size(); ++k) {
        executor.SetInput(arena, k, inputs[k]);
        StorePort(model_.inputs[k], inputs[k], stored.data());
      }
      RETURN_IF_ERROR(executor.RunAll(arena, nullptr));
      RETURN_IF_ERROR(simulator->Run(stored, answer));
      for (size_t k = 0; k < model_.outputs.size(); ++k) {
        const absl::Span<const float> value = executor.ValueOf(arena, graph_.outputs()[k].value);
        wanted_[k].insert(wanted_[k].end(), value.begin(), value.end());
        AppendPort(model_.outputs[k], answer.data(), got_[k]);
      }
    }
    return absl::OkStatus();
  }

  absl::Status MeasureOne(const QualityMetric& metric) {
    const auto judged = std::find_if(model_.outputs.begin(), model_.outputs.end(),
                                     [](const PortTensor& port) { return port.state_input < 0; });
    for (size_t k = 0; k < model_.outputs.size(); ++k) {
      const PortTensor& port = model_.outputs[k];
      if (NeedsLabels(metric) && &port != &*judged) continue;
      Scores scores;
      scores.items = samples_->size();
      scores.shape = port.shape;
      // A tensor's first dimension of 1 is the item's own place.
      if (scores.shape.size() > 1 && scores.shape[0] == 1) scores.shape.erase(scores.shape.begin());
      scores.wanted = wanted_[k];
      scores.values = wanted_[k];
      const absl::StatusOr<double> of_float = Measure(metric, scores, labels_);
      scores.values = got_[k];
      const absl::StatusOr<double> of_quantized = Measure(metric, scores, labels_);
      const absl::Status status = of_float.ok() ? of_quantized.status() : of_float.status();
      if (!status.ok()) {
        return Refuse(
            DiagnosticKind::kMetricUnsuited,
            absl::InvalidArgumentError(absl::StrCat("metric ", NameOf(metric), " of output '",
                                                    Printable(port.name), "': ", status.message())),
            absl::IsOutOfRange(status)
                ? "leave the items out, or end the model before the operator "
                  "that makes such values"
                : "choose a metric that suits the output and the labels");
      }
      result_.figures.push_back({NameOf(metric), port.name, *of_float, *of_quantized});
    }
    return absl::OkStatus();
  }

  const CompileRequest& request_;
  const QuantOptions& options_;
  const Graph& graph_;
  const CompiledModel& model_;
  Diagnostics& diagnostics_;
  std::vector<QualityMetric> metrics_;
  std::optional<SampleSet> samples_;
  Labels labels_;
  std::vector<std::vector<float>> wanted_;  // by output: all items of the float model
  std::vector<std::vector<float>> got_;     // and of the simulator
  ModelMetrics result_;
};

ModelMetrics MetricsOfCalibration(const IntegerModel& quantized) {
  ModelMetrics metrics{"calibration_data", "fake quantization", quantized.compared_samples, {}};
  const std::vector<GraphOutput>& outputs = quantized.graph.outputs();
  for (size_t k = 0; k < quantized.output_errors.size(); ++k) {
    const OutputError& error = quantized.output_errors[k];
    const double values = static_cast<double>(
        quantized.graph.type(outputs[k].value).element_count() * quantized.compared_samples);
    const std::string& name = outputs[k].name;
    constexpr double kNone = std::numeric_limits<double>::infinity();
    metrics.figures.push_back({"cosine", name, 1, error.cosine()});
    metrics.figures.push_back({"mse", name, 0, error.mse(values)});
    metrics.figures.push_back({"sqnr", name, kNone, error.sqnr_db()});
  }
  return metrics;
}

}  // namespace

absl::StatusOr<Labels> ReadLabels(absl::string_view file) {
  const bool is_text = !file.empty() && file.find('\0') == absl::string_view::npos &&
                       absl::ascii_isprint(static_cast<unsigned char>(file[0]));
  if (is_text) return LabelsFromCsv(file);
  ASSIGN_OR_RETURN(const NpyArray array, ReadNpy(file));
  if (array.dtype == DType::kFloat16 || array.dtype == DType::kFloat32 ||
      array.dtype == DType::kFloat64) {
    return absl::InvalidArgumentError(
        absl::StrCat("labels are integers, found ", std::string(NameOf(array.dtype))));
  }
  Labels labels;
  labels.shape = array.shape;
  for (int64_t i = 0; i < array.element_count(); ++i) {
    labels.values.push_back(integer::LoadInteger(array.dtype, array.bytes.data(), i));
  }
  return labels;
}

absl::StatusOr<ModelMetrics> MeasureMetrics(const CompileRequest& request,
                                            const IntegerModel& quantized,
                                            const CompiledModel& model,
                                            const std::function<bool()>& cancelled,
                                            Diagnostics& diagnostics) {
  const std::optional<QuantOptions>& options = request.options.quant;
  if (!options.has_value() || options->data_inputs.empty()) return MetricsOfCalibration(quantized);
  return Measurement(request, quantized, model, diagnostics).Run(cancelled);
}

}  // namespace npuc
