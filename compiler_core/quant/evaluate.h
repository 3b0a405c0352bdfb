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

// How far quantized outputs are from float ones, summed over samples. Elements that are not finite
// in float are not judged; one that is finite in float and not quantized is infinitely far.
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
// A small net is searched on more samples, up to 256; one of over 2 million products on 32; on
// fewer, but 8, where an arena (of arena_bytes) each would take over kMostArenaBytes, or where a
// search through all strategies and layers would take over kMostSearchWork products. To check there
// are up to seven times as many.
SampleSplit SplitSamples(const Graph& graph, int64_t samples, int64_t arena_bytes);
inline constexpr int64_t kMostArenaBytes = int64_t{1} << 28;
inline constexpr double kMostSearchWork = 0x1p37;

// About the time of a run of `graph`, in products of a convolution: its own, and some for each
// node.
double WorkOf(const Graph& graph);

// A fixed set of samples, and quantized runs over them from any step on. Samples are read when they
// are run. Memory: the float outputs of each sample; from the first Advance on an arena each.
class Evaluator {
 public:
  // `executor` and `set` must outlive this.
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
  int64_t size() const { return static_cast<int64_t>(samples_.size()); }
  // Of a sample, before step 0 after Restart.
  absl::StatusOr<FloatExecutor::Arena*> ArenaOf(int64_t sample);
  // With an arena for each sample.
  int64_t most_bytes() const;

 private:
  absl::Status RunFrom(const FloatExecutor& executor, const FakeQuants& quants, int64_t sample);
  absl::Status Load(FloatExecutor::Arena& arena, int64_t sample) const;
  absl::Status LoadAll();

  const SampleSet* set_ = nullptr;
  std::vector<int64_t> samples_;                          // indices in set_
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
