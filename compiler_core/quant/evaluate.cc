#include "compiler_core/quant/evaluate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "compiler_core/base/status.h"

namespace npuc {

void OutputError::Add(absl::Span<const float> wanted, absl::Span<const float> got) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double a = wanted[i];
    const double b = got[i];
    error += (a - b) * (a - b);
    energy += a * a;
    dot += a * b;
    energy_quantized += b * b;
  }
}

void OutputError::Add(const OutputError& other) {
  error += other.error;
  energy += other.energy;
  dot += other.dot;
  energy_quantized += other.energy_quantized;
}

double OutputError::cosine() const {
  if (energy == 0 || energy_quantized == 0) return energy == energy_quantized ? 1 : 0;
  return dot / std::sqrt(energy * energy_quantized);
}

double OutputError::sqnr_db() const {
  return error > 0 ? 10 * std::log10(energy / error) : HUGE_VAL;
}

FloatExecutor::Hook HookOf(const FakeQuants& quants) {
  return [&quants](ValueId id, absl::Span<float> value) { quants[id.value()].Apply(value); };
}

double SumOf(absl::Span<const OutputError> errors) {
  double sum = 0;
  for (const OutputError& error : errors) sum += error.relative();
  return sum;
}

namespace {

// About the products of one run.
double WorkOf(const Graph& graph) {
  double work = 1;
  for (const Node& node : graph.nodes()) {
    if (node.outputs.empty()) continue;
    const auto results = static_cast<double>(graph.type(node.outputs[0]).element_count());
    const Tensor* weight = node.inputs.size() > 1 ? graph.ConstantOf(node.inputs[1]) : nullptr;
    if (weight == nullptr || weight->shape().size() < 2 || results == 0) continue;
    const double channels = std::max(static_cast<double>(weight->shape().back()), 1.0);
    work += results * static_cast<double>(weight->element_count()) / channels;
  }
  return work;
}

}  // namespace

SampleSplit SplitSamples(const Graph& graph, int64_t samples) {
  constexpr int64_t kFewest = 8;
  constexpr double kSearchWork = 1 << 26;  // products of one try
  constexpr int64_t kLeastSearch = 32;
  constexpr int64_t kMostSearch = 256;
  SampleSplit split;
  if (samples < kFewest) {
    for (int64_t i = 0; i < samples; ++i) split.search.push_back(i);
    split.check = split.search;
    return split;
  }
  const auto affordable = static_cast<int64_t>(std::min(kSearchWork / WorkOf(graph), 1e6));
  const int64_t search = std::min(samples / 2, std::clamp(affordable, kLeastSearch, kMostSearch));
  const int64_t taken = std::min(samples, 8 * search);
  for (int64_t i = 0; i < taken; ++i) {
    const bool searched = (i + 1) * search / taken != i * search / taken;
    (searched ? split.search : split.check).push_back(i * samples / taken);
  }
  return split;
}

absl::StatusOr<Evaluator> Evaluator::Create(const FloatExecutor& executor, const SampleSet& set,
                                            absl::Span<const int64_t> samples) {
  Evaluator evaluator;
  evaluator.executor_ = &executor;
  evaluator.scratch_ = executor.MakeArena();
  evaluator.energies_.assign(executor.graph().outputs().size(), 0.0);
  for (const int64_t sample : samples) {
    std::vector<std::vector<float>> inputs;
    RETURN_IF_ERROR(set.Read(sample, inputs));
    FloatExecutor::Arena& arena = evaluator.scratch_;
    for (size_t k = 0; k < inputs.size(); ++k) executor.SetInput(arena, k, inputs[k]);
    RETURN_IF_ERROR(executor.RunAll(arena, nullptr));
    std::vector<std::vector<float>> outputs;
    for (const GraphOutput& output : executor.graph().outputs()) {
      const absl::Span<const float> value = executor.ValueOf(arena, output.value);
      for (const float x : value) evaluator.energies_[outputs.size()] += static_cast<double>(x) * x;
      outputs.emplace_back(value.begin(), value.end());
    }
    evaluator.inputs_.push_back(std::move(inputs));
    evaluator.outputs_.push_back(std::move(outputs));
  }
  return evaluator;
}

void Evaluator::Restart() {
  step_ = 0;
  loaded_ = false;
}

void Evaluator::Load(FloatExecutor::Arena& arena, int64_t sample) const {
  for (size_t k = 0; k < inputs_[sample].size(); ++k) {
    executor_->SetInput(arena, k, inputs_[sample][k]);
  }
}

void Evaluator::LoadAll() {
  if (loaded_) return;
  arenas_.resize(inputs_.size());
  for (int64_t i = 0; i < size(); ++i) {
    if (arenas_[i].values.empty()) arenas_[i] = executor_->MakeArena();
    Load(arenas_[i], i);
  }
  loaded_ = true;
}

FloatExecutor::Arena& Evaluator::arena(int64_t sample) {
  LoadAll();
  return arenas_[sample];
}

absl::Status Evaluator::Advance(const FloatExecutor& executor, const FakeQuants& quants, int last) {
  if (last <= step_) return absl::OkStatus();
  LoadAll();
  const FloatExecutor::Hook hook = HookOf(quants);
  for (FloatExecutor::Arena& arena : arenas_) {
    RETURN_IF_ERROR(executor.Run(arena, step_, last, hook));
  }
  step_ = last;
  return absl::OkStatus();
}

absl::Status Evaluator::RunFrom(const FloatExecutor& executor, const FakeQuants& quants,
                                int64_t sample) {
  if (loaded_) {
    scratch_.values = arenas_[sample].values;
  } else {
    Load(scratch_, sample);
  }
  return executor.Run(scratch_, step_, executor.graph().node_count(), HookOf(quants));
}

absl::StatusOr<std::vector<OutputError>> Evaluator::Finish(const FloatExecutor& executor,
                                                           const FakeQuants& quants) {
  const std::vector<GraphOutput>& outputs = executor.graph().outputs();
  std::vector<OutputError> errors(outputs.size());
  sample_errors_.assign(inputs_.size(), 0.0);
  for (int64_t i = 0; i < size(); ++i) {
    RETURN_IF_ERROR(RunFrom(executor, quants, i));
    for (size_t k = 0; k < outputs.size(); ++k) {
      OutputError one;
      one.Add(outputs_[i][k], executor.ValueOf(scratch_, outputs[k].value));
      sample_errors_[i] += energies_[k] > 0 ? one.error / energies_[k] : one.error;
      errors[k].Add(one);
    }
  }
  return errors;
}

absl::StatusOr<std::vector<OutputError>> Evaluator::Outputs(const FloatExecutor& executor,
                                                            const FakeQuants& quants) {
  Restart();
  return Finish(executor, quants);
}

}  // namespace npuc
