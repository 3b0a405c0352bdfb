#ifndef NPUC_COMPILER_CORE_QUANT_EVALUATE_H_
#define NPUC_COMPILER_CORE_QUANT_EVALUATE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler_core/quant/data/sample_set.h"
#include "compiler_core/quant/executor/float_executor.h"
#include "compiler_core/quant/params.h"

namespace npuc {

// What happens to each value of a graph in a quantized run, by value id.
using FakeQuants = std::vector<FakeQuant>;

// How far quantized outputs are from float ones, summed over samples.
struct OutputError {
  double error = 0;   // sum of squared differences
  double energy = 0;  // sum of squared float values
  double dot = 0;     // of float and quantized values
  double energy_quantized = 0;

  void Add(absl::Span<const float> wanted, absl::Span<const float> got);
  double cosine() const;
  double mse(double count) const { return error / count; }
  double sqnr_db() const;
  // Error over energy: what choices are compared by.
  double relative() const { return energy > 0 ? error / energy : error; }
};

// A fixed set of samples with their float outputs, and quantized runs over them from any step on.
// Memory: an arena a sample, so kept small (kMaxSamples).
class Evaluator {
 public:
  static constexpr int64_t kMaxSamples = 32;

  // Up to `samples` of the set, evenly spaced. `executor` must outlive this.
  static absl::StatusOr<Evaluator> Create(const FloatExecutor& executor, const SampleSet& set,
                                          int64_t samples);

  // Forgets all runs: every sample stands before step 0.
  void Restart();
  int step() const { return step_; }
  // Runs every sample up to step `last` and stays there. `executor` is the float one or a copy of
  // it with other constants.
  absl::Status Advance(const FloatExecutor& executor, const FakeQuants& quants, int last);
  // The error at the graph's outputs, each output counting alike, when all samples are run from
  // here to the end; stays here.
  absl::StatusOr<double> Finish(const FloatExecutor& executor, const FakeQuants& quants);
  // The same per graph output, from the start.
  absl::StatusOr<std::vector<OutputError>> Outputs(const FloatExecutor& executor,
                                                   const FakeQuants& quants);
  int64_t size() const { return static_cast<int64_t>(inputs_.size()); }
  FloatExecutor::Arena& arena(int64_t sample) { return arenas_[sample]; }

 private:
  absl::Status RunFrom(const FloatExecutor& executor, const FakeQuants& quants, int64_t sample);

  std::vector<std::vector<std::vector<float>>> inputs_;   // by sample, graph input
  std::vector<std::vector<std::vector<float>>> outputs_;  // by sample, graph output
  std::vector<FloatExecutor::Arena> arenas_;
  FloatExecutor::Arena scratch_;
  const FloatExecutor* executor_ = nullptr;
  int step_ = 0;
};

// The hook that applies `quants`; it must outlive the hook.
FloatExecutor::Hook HookOf(const FakeQuants& quants);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_EVALUATE_H_
