#include "compiler_core/backends/grus/layer_errors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/backends/states.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/fp16.h"
#include "compiler_core/base/split_mix.h"
#include "compiler_core/base/status.h"
#include "compiler_core/emit/artifact.h"
#include "compiler_core/emit/grus_codec.h"
#include "compiler_core/memplan/plan.h"
#include "compiler_core/quant/executor/float_executor.h"
#include "compiler_core/sim/simulator.h"

namespace npuc {
namespace {

// Sums of one node's differences.
struct Sums {
  LayerError error;
  double square = 0;
  double dot = 0;
  double core = 0;
  double reference = 0;

  void Add(float on_core, float in_float) {
    ++error.values;
    if (!std::isfinite(on_core) || !std::isfinite(in_float)) {
      ++error.not_finite;
      return;
    }
    const double a = on_core;
    const double b = in_float;
    error.max_abs = std::max(error.max_abs, std::fabs(a - b));
    error.reference_max = std::max(error.reference_max, std::fabs(b));
    square += (a - b) * (a - b);
    dot += a * b;
    core += a * a;
    reference += b * b;
  }

  LayerError Result() const {
    LayerError result = error;
    const int64_t finite = error.values - error.not_finite;
    if (finite > 0) result.rms = std::sqrt(square / static_cast<double>(finite));
    if (core > 0 && reference > 0) {
      result.similarity = dot / (std::sqrt(core) * std::sqrt(reference));
    } else {
      result.similarity = core == reference ? 1 : 0;
    }
    return result;
  }
};

// One probe: output `port` of the model is `value`, a result of node `node`.
struct Probe {
  int node = 0;
  size_t port = 0;
};

class Comparison {
 public:
  Comparison(const Graph& graph, const CompileOptions& options)
      : graph_(graph), options_(options), probed_(graph), sums_(graph.nodes().size()) {}

  absl::Status Prepare(const CoreSpec& core, const LowerOptions& lower_options) {
    AddProbes();
    Diagnostics found;
    ASSIGN_OR_RETURN(LoweredModel lowered, Lower(probed_, core, lower_options, found));
    Program& program = lowered.program;
    RETURN_IF_ERROR(PlanMemory(program, core.limits->buffer_alignment_bytes).status());
    AssignStates(program, options_.output_file, options_.framework, found);
    CompiledModel model;
    model.core = std::string(core.name);
    model.npu_unit = options_.npu_unit;
    model.inputs = program.inputs;
    model.outputs = program.outputs;
    ASSIGN_OR_RETURN(model.cmd_content, EncodeCommands(program));
    model.weight_content = std::move(program.weights);
    model.data_bytes = program.data_bytes;
    ASSIGN_OR_RETURN(simulator_, Simulator::Load(model, options_.model_name, found));
    ASSIGN_OR_RETURN(FloatExecutor executor, FloatExecutor::Create(graph_));
    executor_ = std::make_unique<FloatExecutor>(std::move(executor));
    arena_ = executor_->MakeArena();
    input_.resize(static_cast<size_t>(simulator_->input_bytes()));
    for (const ValueId id : graph_.inputs()) {
      values_.emplace_back(static_cast<size_t>(graph_.type(id).element_count()), 0.0F);
    }
    return absl::OkStatus();
  }

  absl::Status RunFrame() {
    FillInputs();
    RETURN_IF_ERROR(simulator_->Run(input_, output_));
    const auto compare = [&](ValueId id, absl::Span<float> value) {
      const std::optional<Probe>& probe = probes_[id.value()];
      if (probe.has_value()) Compare(*probe, value);
    };
    RETURN_IF_ERROR(executor_->RunAll(arena_, compare));
    FeedBack();
    return absl::OkStatus();
  }

  LayerErrors Results() const {
    LayerErrors results;
    for (const std::optional<Sums>& sums : sums_) {
      results.push_back(sums.has_value() ? std::optional(sums->Result()) : std::nullopt);
    }
    return results;
  }

 private:
  void AddProbes() {
    probes_.resize(static_cast<size_t>(graph_.value_count()));
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const Node& node = graph_.nodes()[i];
      if (node.op == Op::kConst || node.op == Op::kPlaceholder) continue;
      sums_[i].emplace();
      for (const ValueId id : node.outputs) {
        probes_[id.value()] = Probe{static_cast<int>(i), probed_.outputs().size()};
        // No name that AssignStates takes for a state's.
        probed_.AddOutput({.name = absl::StrCat("value ", id.value()), .value = id});
      }
    }
  }

  bool IsState(size_t input) const {
    return std::any_of(
        simulator_->outputs().begin(), simulator_->outputs().end(),
        [&](const PortTensor& port) { return port.state_input == static_cast<int>(input); });
  }

  void FillInputs() {
    for (size_t k = 0; k < values_.size(); ++k) {
      if (!IsState(k)) {
        for (float& value : values_[k]) {
          value = static_cast<float>(noise_.Next() >> 40) / 8388608.0F - 1.0F;
        }
        const PortTensor& port = simulator_->inputs()[k];
        for (size_t i = 0; i < values_[k].size(); ++i) {
          const uint16_t half = FloatToHalf(values_[k][i]);
          std::memcpy(input_.data() + port.offset_bytes + 2 * i, &half, 2);
        }
      }
      executor_->SetInput(arena_, k, values_[k]);
    }
  }

  void Compare(const Probe& probe, absl::Span<const float> value) {
    const uint8_t* from = output_.data() + simulator_->outputs()[probe.port].offset_bytes;
    Sums& sums = *sums_[static_cast<size_t>(probe.node)];
    for (size_t i = 0; i < value.size(); ++i) {
      float on_core = 0;
      std::memcpy(&on_core, from + 4 * i, 4);
      sums.Add(on_core, value[i]);
    }
  }

  // States are fp16 on the core and float32 beside it; neither sees the other's.
  void FeedBack() {
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const PortTensor& from = simulator_->outputs()[i];
      if (from.state_input < 0) continue;
      const size_t k = static_cast<size_t>(from.state_input);
      const PortTensor& to = simulator_->inputs()[k];
      std::memcpy(input_.data() + to.offset_bytes, output_.data() + from.offset_bytes,
                  2 * values_[k].size());
      const absl::Span<const float> value = executor_->ValueOf(arena_, graph_.outputs()[i].value);
      values_[k].assign(value.begin(), value.end());
    }
  }

  const Graph& graph_;
  const CompileOptions& options_;
  Graph probed_;                              // graph_, with every result an output
  std::vector<std::optional<Probe>> probes_;  // by value
  std::vector<std::optional<Sums>> sums_;     // by node
  std::unique_ptr<Simulator> simulator_;
  std::unique_ptr<FloatExecutor> executor_;
  FloatExecutor::Arena arena_;
  SplitMix64 noise_{1};
  std::vector<uint8_t> input_;
  std::vector<uint8_t> output_;
  std::vector<std::vector<float>> values_;  // of each input, in float
};

}  // namespace

absl::StatusOr<LayerErrors> MeasureLayerErrors(const Graph& graph, const CoreSpec& core,
                                               const LowerOptions& lower_options,
                                               const CompileOptions& options, int64_t frames,
                                               const std::function<bool()>& cancelled) {
  Comparison comparison(graph, options);
  RETURN_IF_ERROR(comparison.Prepare(core, lower_options));
  for (int64_t frame = 0; frame < frames && !cancelled(); ++frame) {
    RETURN_IF_ERROR(comparison.RunFrame());
  }
  return comparison.Results();
}

}  // namespace npuc
