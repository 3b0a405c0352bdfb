#include "compiler_core/sim/simulator.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/sim/integer_engine.h"
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
      RunConvolution(*step.form, *step.weights, state.At(step.a), state.At(step.d));
    } else {
      RunFullyConnected(*step.weights, state.At(step.a), state.At(step.d));
    }
  }
  void operator()(const DepthwiseStep& step) const {
    RunDepthwise(step.form, *step.weights, state.At(step.a), state.At(step.d));
  }
  void operator()(const TransposeStep& step) const {
    RunTranspose(step.form, state.At(step.a), state.At(step.d));
  }
};

}  // namespace

void SimulatorState::Run(absl::Span<const uint8_t> input, absl::Span<uint8_t> output) {
  SlotMemory& in = memory[static_cast<size_t>(Slot::kInput)];
  SlotMemory& data = memory[static_cast<size_t>(Slot::kData)];
  SlotMemory& out = memory[static_cast<size_t>(Slot::kOutput)];
  if (!input.empty()) std::memcpy(in.data(), input.data(), input.size());
  std::fill(data.begin(), data.end(), uint16_t{0});
  std::fill(out.begin(), out.end(), uint16_t{0});
  for (const Step& step : steps) std::visit(Runner{*this}, step);
  if (!output.empty()) std::memcpy(output.data(), out.data(), output.size());
}

Simulator::Simulator(std::unique_ptr<FrameEngine> engine) : engine_(std::move(engine)) {}

Simulator::~Simulator() = default;

absl::StatusOr<std::unique_ptr<Simulator>> Simulator::Load(const CompiledModel& model,
                                                           absl::string_view file_name,
                                                           Diagnostics& diagnostics,
                                                           const Limits& limits) {
  Diagnostics found;
  std::unique_ptr<FrameEngine> engine;
  if (model.command_set == CommandSet::kInteger) {
    engine = integer::PrepareEngine(model, file_name, limits, found);
  } else {
    engine = PrepareProgram(model, file_name, limits, found);
  }
  diagnostics.Append(found);
  if (engine == nullptr) return found.ToStatus();
  return std::unique_ptr<Simulator>(new Simulator(std::move(engine)));
}

absl::Status Simulator::Run(absl::Span<const uint8_t> input, std::vector<uint8_t>& output) {
  if (static_cast<int64_t>(input.size()) != engine_->input_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("an input of ", input.size(), " bytes; struct input has ", input_bytes()));
  }
  output.resize(static_cast<size_t>(engine_->output_bytes));
  engine_->Run(input, absl::MakeSpan(output));
  return absl::OkStatus();
}

const std::vector<Simulator::CommandInfo>& Simulator::commands() const { return engine_->infos; }
const std::vector<PortTensor>& Simulator::inputs() const { return engine_->inputs; }
const std::vector<PortTensor>& Simulator::outputs() const { return engine_->outputs; }
int64_t Simulator::input_bytes() const { return engine_->input_bytes; }
int64_t Simulator::output_bytes() const { return engine_->output_bytes; }

}  // namespace npuc
