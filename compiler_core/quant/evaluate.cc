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

absl::StatusOr<Evaluator> Evaluator::Create(const FloatExecutor& executor, const SampleSet& set,
                                            int64_t samples) {
  Evaluator evaluator;
  evaluator.executor_ = &executor;
  const int64_t count = std::min({samples, kMaxSamples, set.size()});
  evaluator.scratch_ = executor.MakeArena();
  for (int64_t i = 0; i < count; ++i) {
    std::vector<std::vector<float>> inputs;
    RETURN_IF_ERROR(set.Read(i * set.size() / count, inputs));
    FloatExecutor::Arena& arena = evaluator.scratch_;
    for (size_t k = 0; k < inputs.size(); ++k) executor.SetInput(arena, k, inputs[k]);
    RETURN_IF_ERROR(executor.RunAll(arena, nullptr));
    std::vector<std::vector<float>> outputs;
    for (const GraphOutput& output : executor.graph().outputs()) {
      const absl::Span<const float> value = executor.ValueOf(arena, output.value);
      outputs.emplace_back(value.begin(), value.end());
    }
    evaluator.inputs_.push_back(std::move(inputs));
    evaluator.outputs_.push_back(std::move(outputs));
  }
  evaluator.Restart();
  return evaluator;
}

void Evaluator::Restart() {
  step_ = 0;
  arenas_.resize(inputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (arenas_[i].values.empty()) arenas_[i] = executor_->MakeArena();
    for (size_t k = 0; k < inputs_[i].size(); ++k) {
      executor_->SetInput(arenas_[i], k, inputs_[i][k]);
    }
  }
}

absl::Status Evaluator::Advance(const FloatExecutor& executor, const FakeQuants& quants, int last) {
  if (last <= step_) return absl::OkStatus();
  const FloatExecutor::Hook hook = HookOf(quants);
  for (FloatExecutor::Arena& arena : arenas_) {
    RETURN_IF_ERROR(executor.Run(arena, step_, last, hook));
  }
  step_ = last;
  return absl::OkStatus();
}

absl::Status Evaluator::RunFrom(const FloatExecutor& executor, const FakeQuants& quants,
                                int64_t sample) {
  scratch_.values = arenas_[sample].values;
  return executor.Run(scratch_, step_, executor.graph().node_count(), HookOf(quants));
}

absl::StatusOr<double> Evaluator::Finish(const FloatExecutor& executor, const FakeQuants& quants) {
  const std::vector<GraphOutput>& outputs = executor.graph().outputs();
  std::vector<OutputError> errors(outputs.size());
  for (int64_t i = 0; i < size(); ++i) {
    RETURN_IF_ERROR(RunFrom(executor, quants, i));
    for (size_t k = 0; k < outputs.size(); ++k) {
      errors[k].Add(outputs_[i][k], executor.ValueOf(scratch_, outputs[k].value));
    }
  }
  double sum = 0;
  for (const OutputError& error : errors) sum += error.relative();
  return sum;
}

absl::StatusOr<std::vector<OutputError>> Evaluator::Outputs(const FloatExecutor& executor,
                                                            const FakeQuants& quants) {
  Restart();
  const std::vector<GraphOutput>& outputs = executor.graph().outputs();
  std::vector<OutputError> errors(outputs.size());
  for (int64_t i = 0; i < size(); ++i) {
    RETURN_IF_ERROR(RunFrom(executor, quants, i));
    for (size_t k = 0; k < outputs.size(); ++k) {
      errors[k].Add(outputs_[i][k], executor.ValueOf(scratch_, outputs[k].value));
    }
  }
  return errors;
}

}  // namespace npuc
