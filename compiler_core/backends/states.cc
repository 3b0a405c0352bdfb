#include "compiler_core/backends/states.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {
namespace {

bool NamesStateOf(const std::string& output, const std::string& input) {
  const std::string suffix = absl::StrCat(input, "_out");
  return output == suffix || absl::EndsWith(output, absl::StrCat("_", suffix)) ||
         absl::EndsWith(output, absl::StrCat("/", suffix));
}

// Pairs outputs with inputs that `matches` accepts, each input at most once.
template <typename Matches>
void Pair(Program& program, std::vector<bool>& taken, const Matches& matches) {
  for (PortTensor& output : program.outputs) {
    if (output.dtype != DType::kFloat16 || output.state_input >= 0) continue;
    for (size_t i = 0; i < program.inputs.size(); ++i) {
      if (taken[i] || program.inputs[i].shape != output.shape) continue;
      if (!matches(output, program.inputs[i])) continue;
      output.state_input = static_cast<int>(i);
      taken[i] = true;
      break;
    }
  }
}

}  // namespace

void AssignStates(Program& program, const std::string& config_name, Framework framework,
                  Diagnostics& diagnostics) {
  std::vector<bool> taken(program.inputs.size(), false);
  Pair(program, taken, [](const PortTensor& output, const PortTensor& input) {
    return NamesStateOf(output.name, input.name);
  });
  Pair(program, taken, [](const PortTensor&, const PortTensor&) { return true; });

  std::vector<const PortTensor*> states;
  std::vector<std::string> others;
  for (const PortTensor& output : program.outputs) {
    if (output.state_input >= 0) {
      states.push_back(&output);
    } else {
      others.push_back(output.name);
    }
  }
  std::stable_sort(states.begin(), states.end(), [](const PortTensor* x, const PortTensor* y) {
    return x->state_input < y->state_input;
  });
  std::vector<std::string> wanted;
  for (const PortTensor* state : states) wanted.push_back(state->name);
  wanted.insert(wanted.end(), others.begin(), others.end());
  std::vector<std::string> found;
  for (const PortTensor& output : program.outputs) found.push_back(output.name);
  if (found == wanted) return;
  const bool has_names = InfoOf(framework).has_port_names;
  diagnostics.Add(
      {.kind = DiagnosticKind::kStateOutputOrder,
       .message = absl::StrCat(has_names ? "OUTPUT_OPS [" : "the model's outputs [",
                               absl::StrJoin(found, ", "), has_names ? "] does" : "] do",
                               " not list the state outputs first, in the order of the state "
                               "inputs in INPUT_OPS"),
       .file = config_name,
       .fix = absl::StrCat(
           has_names ? "write OUTPUT_OPS: [" : "return from forward, in this order, [",
           absl::StrJoin(wanted, ", "), "], or copy each state by its name in the application")});
}

std::vector<int> StatesOf(const Graph& graph, const CompileOptions& options,
                          Diagnostics& diagnostics) {
  const CoreSpec* core = FindCore(options.core);
  const bool by_name = core != nullptr && core->integer != nullptr;
  Program ports;
  for (const ValueId input : graph.inputs()) {
    PortTensor port;
    port.name = graph.def(input).source.name;
    port.shape = graph.type(input).shape;
    ports.inputs.push_back(std::move(port));
  }
  for (const GraphOutput& output : graph.outputs()) {
    PortTensor port;
    port.name = output.name;
    port.shape = graph.type(output.value).shape;
    const bool named =
        std::any_of(ports.inputs.begin(), ports.inputs.end(),
                    [&](const PortTensor& input) { return NamesStateOf(output.name, input.name); });
    // AssignStates tells states by fp16.
    port.dtype = output.fp16 || (by_name && named) ? DType::kFloat16 : DType::kFloat32;
    ports.outputs.push_back(std::move(port));
  }
  AssignStates(ports, options.output_file, options.framework, diagnostics);
  std::vector<int> states;
  for (const PortTensor& port : ports.outputs) states.push_back(port.state_input);
  return states;
}

}  // namespace npuc
