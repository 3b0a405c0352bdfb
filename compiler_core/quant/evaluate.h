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
  void Add(const OutputError& other);
  double cosine() const;
  double mse(double count) const { return error / count; }
  double sqnr_db() const;
  // Error over energy: what choices are compared by.
  double relative() const { return energy > 0 ? error / energy : error; }
};

// The relative errors of all outputs, each counting alike.
double SumOf(absl::Span<const OutputError> errors);

// Which samples choices are made by, and which other ones say whether the choice holds. Both are
// spread evenly over the set; with under 8 samples there are none to spare, and both are all.
struct SampleSplit {
  std::vector<int64_t> search;
  std::vector<int64_t> check;
};
// A small net is searched on more samples, up to 256; one of over 2 million products on 32. To
// check there are up to seven times as many.
SampleSplit SplitSamples(const Graph& graph, int64_t samples);

// A fixed set of samples with their float outputs, and quantized runs over them from any step on.
// Memory: inputs and outputs of each sample; from the first Advance on an arena each.
class Evaluator {
 public:
  // `executor` must outlive this.
  static absl::StatusOr<Evaluator> Create(const FloatExecutor& executor, const SampleSet& set,
                                          absl::Span<const int64_t> samples);

  // Forgets all runs: every sample stands before step 0.
  void Restart();
  // Runs every sample up to step `last` and stays there. `executor` is the float one or a copy of
  // it with other constants.
  absl::Status Advance(const FloatExecutor& executor, const FakeQuants& quants, int last);
  // The error at each graph output when all samples are run from here to the end; stays here.
  absl::StatusOr<std::vector<OutputError>> Finish(const FloatExecutor& executor,
                                                  const FakeQuants& quants);
  // The same from the start.
  absl::StatusOr<std::vector<OutputError>> Outputs(const FloatExecutor& executor,
                                                   const FakeQuants& quants);
  // Of the last Finish or Outputs: the error of each sample over the energy of all, outputs summed.
  const std::vector<double>& sample_errors() const { return sample_errors_; }
  int64_t size() const { return static_cast<int64_t>(inputs_.size()); }
  // Of a sample, before step 0 after Restart.
  FloatExecutor::Arena& arena(int64_t sample);

 private:
  absl::Status RunFrom(const FloatExecutor& executor, const FakeQuants& quants, int64_t sample);
  void Load(FloatExecutor::Arena& arena, int64_t sample) const;
  void LoadAll();

  std::vector<std::vector<std::vector<float>>> inputs_;   // by sample, graph input
  std::vector<std::vector<std::vector<float>>> outputs_;  // by sample, graph output
  std::vector<double> energies_;                          // by graph output
  std::vector<double> sample_errors_;
  std::vector<FloatExecutor::Arena> arenas_;
  FloatExecutor::Arena scratch_;
  const FloatExecutor* executor_ = nullptr;
  int step_ = 0;
  bool loaded_ = false;  // the arenas hold every sample at step_
};

// The two sets that a quantizing run measures on.
struct Evaluators {
  Evaluator search;
  Evaluator check;
  bool one_set = false;  // too few samples to part them
};

// The hook that applies `quants`; it must outlive the hook.
FloatExecutor::Hook HookOf(const FakeQuants& quants);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_EVALUATE_H_
