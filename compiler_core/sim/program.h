#ifndef NPUC_COMPILER_CORE_SIM_PROGRAM_H_
#define NPUC_COMPILER_CORE_SIM_PROGRAM_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/emit/artifact.h"
#include "compiler_core/ir/cmd/command.h"
#include "compiler_core/ir/cmd/raw_forms.h"
#include "compiler_core/sim/engine.h"
#include "compiler_core/sim/kernels.h"
#include "compiler_core/sim/simulator.h"

namespace npuc {

// A model made ready to run: operands checked, weights decompressed, once for all commands that
// read the same ones. The simulator's own header.

// A slot's memory in fp16 elements; every operand is on an even offset.
using SlotMemory = std::vector<uint16_t>;

struct VectorStep {
  VectorCommand command;
  const UnaryTable* table = nullptr;  // in SimulatorState::tables
};
struct MatrixStep {
  Operand a, d;
  std::optional<ConvolutionForm> form;  // absent: fully connected
  std::shared_ptr<const PanelMatrix> weights;
};
struct DepthwiseStep {
  Operand a, d;
  DepthwiseForm form;
  std::shared_ptr<const std::vector<float>> weights;
};
struct TransposeStep {
  Operand a, d;
  TransposeForm form;
};
using Step = std::variant<VectorStep, MatrixStep, DepthwiseStep, TransposeStep>;

struct SimulatorState : FrameEngine {
  void Run(absl::Span<const uint8_t> input, absl::Span<uint8_t> output) override;

  std::array<SlotMemory, kSlotCount> memory;  // by slot; empty where no command may go
  std::vector<Step> steps;
  std::map<std::pair<int, int>, UnaryTable> tables;  // by kind and function; addresses are stable

  // nullptr for an absent operand. Ranges were checked when the step was made.
  uint16_t* At(const Operand& operand) {
    if (!operand.present()) return nullptr;
    return memory[static_cast<size_t>(operand.buffer.value())].data() + operand.offset_bytes / 2;
  }
};

// Null where a diagnostic of severity error was added.
std::unique_ptr<SimulatorState> PrepareProgram(const CompiledModel& model,
                                               absl::string_view file_name,
                                               const Simulator::Limits& limits,
                                               Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_SIM_PROGRAM_H_
