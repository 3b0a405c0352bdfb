#include "compiler_core/quant/state_samples.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"

namespace npuc {
namespace {

// A state without samples, and those that it gets.
struct State {
  size_t input = 0;
  ValueId output;
  std::vector<float> now;
  std::vector<float> all;
};

}  // namespace

absl::Status AddStateSamples(const FloatExecutor& executor, const std::vector<int>& state_inputs,
                             SampleSet& samples, std::vector<std::string>& log) {
  const Graph& graph = executor.graph();
  std::vector<State> states;
  int64_t elements = 0;
  for (size_t k = 0; k < state_inputs.size(); ++k) {
    if (state_inputs[k] < 0 || samples.HasSamples(static_cast<size_t>(state_inputs[k]))) continue;
    const ValueId input = graph.inputs()[static_cast<size_t>(state_inputs[k])];
    if (graph.type(input) != graph.type(graph.outputs()[k].value)) continue;
    State& state = states.emplace_back();
    state.input = static_cast<size_t>(state_inputs[k]);
    state.output = graph.outputs()[k].value;
    const int64_t count = graph.type(input).element_count();
    state.now.assign(static_cast<size_t>(count), 0);
    elements += count * samples.size();
  }
  if (states.empty()) return absl::OkStatus();
  if (elements > kMaxStateElements) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the states of ", samples.size(), " samples have ", elements,
                     " elements; at most ", kMaxStateElements, " are found here"));
  }
  FloatExecutor::Arena arena = executor.MakeArena();
  std::vector<std::vector<float>> inputs;
  for (int64_t s = 0; s < samples.size(); ++s) {
    RETURN_IF_ERROR(samples.Read(s, inputs));
    for (State& state : states) {
      state.all.insert(state.all.end(), state.now.begin(), state.now.end());
      inputs[state.input] = state.now;
    }
    for (size_t k = 0; k < inputs.size(); ++k) executor.SetInput(arena, k, inputs[k]);
    RETURN_IF_ERROR(executor.RunAll(arena, nullptr));
    for (State& state : states) {
      const absl::Span<const float> next = executor.ValueOf(arena, state.output);
      state.now.assign(next.begin(), next.end());
    }
  }
  for (const State& state : states) {
    const std::string name = Printable(graph.def(graph.inputs()[state.input]).source.name);
    log.push_back(absl::StrCat("calibration: state '", name,
                               "' has no samples; it goes from sample to sample as from frame to "
                               "frame, from zeros on"));
    samples.SetSamples(state.input, name, state.all);
  }
  return absl::OkStatus();
}

}  // namespace npuc
