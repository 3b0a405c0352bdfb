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
    if (!std::isfinite(a)) continue;
    if (!std::isfinite(b)) {
      error = HUGE_VAL;
      continue;
    }
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
  if (error == HUGE_VAL) return 0;
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

double WorkOf(const Graph& graph) {
  constexpr double kWorkOfNode = 4096;  // its parameters are chosen again for each run
  double work = 1;
  for (const Node& node : graph.nodes()) {
    if (node.outputs.empty() || node.op == Op::kConst) continue;
    work += kWorkOfNode;
    const auto results = static_cast<double>(graph.type(node.outputs[0]).element_count());
    const Tensor* weight = node.inputs.size() > 1 ? graph.ConstantOf(node.inputs[1]) : nullptr;
    if (weight == nullptr || weight->shape().size() < 2 || results == 0) continue;
    const double channels = std::max(static_cast<double>(weight->shape().back()), 1.0);
    work += results * static_cast<double>(weight->element_count()) / channels;
  }
  return work;
}

SampleSplit SplitSamples(const Graph& graph, int64_t samples, int64_t arena_bytes) {
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
  const double work = WorkOf(graph);
  const auto affordable = static_cast<int64_t>(std::min(kSearchWork / work, 1e6));
  // Each of eight strategies runs on a sample of the search and seven to check; then each layer
  // tries them on the sample's rest, half a run in the mean.
  const double runs = 64 + 4 * static_cast<double>(graph.node_count());
  const auto timely = static_cast<int64_t>(std::min(kMostSearchWork / (work * runs), 1e6));
  const int64_t held = kMostArenaBytes / std::max<int64_t>(arena_bytes, 1);
  const int64_t search =
      std::min(samples / 2,
               std::max(std::min({std::clamp(affordable, kLeastSearch, kMostSearch), timely, held}),
                        kFewest));
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
  evaluator.set_ = &set;
  evaluator.samples_.assign(samples.begin(), samples.end());
  evaluator.scratch_ = executor.MakeArena();
  evaluator.energies_.assign(executor.graph().outputs().size(), 0.0);
  for (int64_t i = 0; i < evaluator.size(); ++i) {
    FloatExecutor::Arena& arena = evaluator.scratch_;
    RETURN_IF_ERROR(evaluator.Load(arena, i));
    RETURN_IF_ERROR(executor.RunAll(arena, nullptr));
    std::vector<std::vector<float>> outputs;
    for (const GraphOutput& output : executor.graph().outputs()) {
      const absl::Span<const float> value = executor.ValueOf(arena, output.value);
      for (const float x : value) {
        if (std::isfinite(x)) evaluator.energies_[outputs.size()] += static_cast<double>(x) * x;
      }
      outputs.emplace_back(value.begin(), value.end());
    }
    evaluator.outputs_.push_back(std::move(outputs));
  }
  return evaluator;
}

void Evaluator::Restart() {
  step_ = 0;
  loaded_ = false;
}

int64_t Evaluator::most_bytes() const {
  int64_t bytes = size() * executor_->arena_bytes();
  for (const GraphOutput& output : executor_->graph().outputs()) {
    bytes += size() * executor_->graph().type(output.value).size_bytes();
  }
  return bytes;
}

absl::Status Evaluator::Load(FloatExecutor::Arena& arena, int64_t sample) const {
  std::vector<std::vector<float>> inputs;
  RETURN_IF_ERROR(set_->Read(samples_[sample], inputs));
  for (size_t k = 0; k < inputs.size(); ++k) executor_->SetInput(arena, k, inputs[k]);
  return absl::OkStatus();
}

absl::Status Evaluator::LoadAll() {
  if (loaded_) return absl::OkStatus();
  arenas_.resize(samples_.size());
  for (int64_t i = 0; i < size(); ++i) {
    if (arenas_[i].values.empty()) arenas_[i] = executor_->MakeArena();
    RETURN_IF_ERROR(Load(arenas_[i], i));
  }
  loaded_ = true;
  return absl::OkStatus();
}

absl::StatusOr<FloatExecutor::Arena*> Evaluator::ArenaOf(int64_t sample) {
  RETURN_IF_ERROR(LoadAll());
  return &arenas_[sample];
}

absl::Status Evaluator::Advance(const FloatExecutor& executor, const FakeQuants& quants, int last) {
  if (last <= step_) return absl::OkStatus();
  RETURN_IF_ERROR(LoadAll());
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
    RETURN_IF_ERROR(Load(scratch_, sample));
  }
  return executor.Run(scratch_, step_, executor.graph().node_count(), HookOf(quants));
}

absl::StatusOr<std::vector<OutputError>> Evaluator::Finish(const FloatExecutor& executor,
                                                           const FakeQuants& quants) {
  const std::vector<GraphOutput>& outputs = executor.graph().outputs();
  std::vector<OutputError> errors(outputs.size());
  sample_errors_.assign(samples_.size(), 0.0);
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
