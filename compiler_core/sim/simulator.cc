#include "compiler_core/sim/simulator.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/sim/program.h"

namespace npuc {
namespace {

struct Runner {
  SimulatorState& state;

  void operator()(const VectorStep& step) const {
    const VectorCommand& v = step.command;
    VectorOperands operands;
    if (!v.a_is_immediate) operands.a = state.At(v.a);
    operands.b = state.At(v.b);
    operands.c = state.At(v.c);
    operands.d = state.At(v.d);
    RunVector(v, operands, step.table);
  }
  void operator()(const MatrixStep& step) const {
    if (step.form.has_value()) {
      RunConvolution(*step.form, step.weights, state.At(step.a), state.At(step.d));
    } else {
      RunFullyConnected(step.weights, state.At(step.a), state.At(step.d));
    }
  }
  void operator()(const DepthwiseStep& step) const {
    RunDepthwise(step.form, step.weights, state.At(step.a), state.At(step.d));
  }
  void operator()(const TransposeStep& step) const {
    RunTranspose(step.form, state.At(step.a), state.At(step.d));
  }
};

}  // namespace

Simulator::Simulator(std::unique_ptr<SimulatorState> state) : state_(std::move(state)) {}

Simulator::~Simulator() = default;

absl::StatusOr<std::unique_ptr<Simulator>> Simulator::Load(const CompiledModel& model,
                                                           absl::string_view file_name,
                                                           Diagnostics& diagnostics,
                                                           const Limits& limits) {
  Diagnostics found;
  std::unique_ptr<SimulatorState> state = PrepareProgram(model, file_name, limits, found);
  diagnostics.Append(found);
  if (state == nullptr) return found.ToStatus();
  return std::unique_ptr<Simulator>(new Simulator(std::move(state)));
}

absl::Status Simulator::Run(absl::Span<const uint8_t> input, std::vector<uint8_t>& output) {
  SimulatorState& s = *state_;
  if (static_cast<int64_t>(input.size()) != s.input_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("an input of ", input.size(), " bytes; struct input has ", s.input_bytes));
  }
  SlotMemory& in = s.memory[static_cast<size_t>(Slot::kInput)];
  SlotMemory& data = s.memory[static_cast<size_t>(Slot::kData)];
  SlotMemory& out = s.memory[static_cast<size_t>(Slot::kOutput)];
  if (!input.empty()) std::memcpy(in.data(), input.data(), input.size());
  std::fill(data.begin(), data.end(), uint16_t{0});
  std::fill(out.begin(), out.end(), uint16_t{0});
  for (const Step& step : s.steps) std::visit(Runner{s}, step);
  output.resize(static_cast<size_t>(s.output_bytes));
  if (!output.empty()) std::memcpy(output.data(), out.data(), output.size());
  return absl::OkStatus();
}

const std::vector<Simulator::CommandInfo>& Simulator::commands() const { return state_->infos; }
const std::vector<PortTensor>& Simulator::inputs() const { return state_->inputs; }
const std::vector<PortTensor>& Simulator::outputs() const { return state_->outputs; }
int64_t Simulator::input_bytes() const { return state_->input_bytes; }
int64_t Simulator::output_bytes() const { return state_->output_bytes; }

}  // namespace npuc
