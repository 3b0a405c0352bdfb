#include "compiler_core/ir/cmd/load.h"

#include <algorithm>
#include <variant>

#include "compiler_core/ir/cmd/access.h"

namespace npuc {
namespace {

bool Multiplies(const Command& command) {
  if (std::holds_alternative<FullyConnectedCommand>(command.body)) return true;
  const auto* raw = std::get_if<RawCommand>(&command.body);
  return raw != nullptr && (raw->opcode == 0x41 || raw->opcode == 0x42);
}

// Vector commands touch what their extents say: strides leave gaps that are not moved.
CommandLoad LoadOf(const VectorCommand& v) {
  constexpr int64_t kFloatBytes = 4;
  const int64_t outer = v.extents[0];
  const int64_t middle = v.extents[1];
  const int64_t inner = v.extents[2];
  CommandLoad load;
  load.elements = outer * middle * inner;
  if (v.a.present()) load.read_bytes += kHalfBytes * load.elements;
  if (v.b.present()) {
    const bool walks = v.kind == VectorCommand::Kind::kTensorTensor;
    load.read_bytes += kHalfBytes * (walks ? load.elements : inner);
  }
  if (v.c.present()) load.read_bytes += kHalfBytes * inner;
  switch (v.kind) {
    case VectorCommand::Kind::kPool:
      load.written_bytes = kHalfBytes * (outer / std::max<int64_t>(v.window_h, 1)) *
                           (middle / std::max<int64_t>(v.window_w, 1)) * inner;
      break;
    case VectorCommand::Kind::kReduce:
      load.written_bytes = kHalfBytes * outer * (v.reduce_middle ? inner : middle);
      break;
    case VectorCommand::Kind::kFormat:
      load.written_bytes = kFloatBytes * load.elements;
      break;
    default:
      load.written_bytes = kHalfBytes * load.elements;
  }
  return load;
}

int64_t DivideUp(int64_t value, int64_t by) { return value / by + (value % by != 0 ? 1 : 0); }

}  // namespace

CommandLoad& CommandLoad::operator+=(const CommandLoad& other) {
  macs += other.macs;
  array_cycles += other.array_cycles;
  elements += other.elements;
  read_bytes += other.read_bytes;
  written_bytes += other.written_bytes;
  return *this;
}

CommandLoad LoadOf(const Command& command, int64_t stored_code_bytes) {
  if (const auto* vector = std::get_if<VectorCommand>(&command.body)) return LoadOf(*vector);
  CommandLoad load;
  (Multiplies(command) ? load.macs : load.elements) = WorkOf(command);
  // Codes come in pairs.
  const int64_t codes = (std::max<int64_t>(stored_code_bytes, 0) + 1) / 2 * 2;
  for (const Access& access : AccessesOf(command)) {
    const int64_t bytes = access.size_bytes == Access::kUnknown ? codes : access.size_bytes;
    (access.writes ? load.written_bytes : load.read_bytes) += bytes;
  }
  return load;
}

CommandLoad LoadOf(const Program& program, const Command& command) {
  int64_t stored = -1;
  for (const Access& access : AccessesOf(command)) {
    if (access.size_bytes != Access::kUnknown) continue;
    stored =
        program.buffers[access.operand.buffer.value()].size_bytes - access.operand.offset_bytes;
  }
  return LoadOf(command, stored);
}

UnitCycles EstimateUnits(const CycleModel& model, const CommandLoad& load) {
  return {load.array_cycles > 0 ? load.array_cycles
          : load.macs > 0       ? DivideUp(load.macs, model.macs_per_cycle)
                                : DivideUp(load.elements, model.elements_per_cycle),
          DivideUp(load.read_bytes + load.written_bytes, model.bytes_per_cycle)};
}

int64_t EstimateCycles(const CycleModel& model, const CommandLoad& load) {
  const UnitCycles units = EstimateUnits(model, load);
  const int64_t work = std::max(units.computing, units.moving);
  return model.register_sets > 1 ? std::max(model.command_cycles, work)
                                 : model.command_cycles + work;
}

StreamClock::StreamClock(const CycleModel& model, int64_t cores)
    : model_(&model), cores_(static_cast<size_t>(cores), Core{.fetched = model.command_cycles}) {}

int64_t StreamClock::Run(int64_t phase, int32_t core, const CommandLoad& load) {
  if (phase != phase_) phase_begin_ = latest_end_;
  phase_ = phase;
  Core& own = cores_[static_cast<size_t>(core)];
  const int64_t free = std::max(phase_begin_, own.ended);
  const int64_t begin =
      model_->register_sets > 1 ? std::max(free, own.fetched) : free + model_->command_cycles;
  const UnitCycles units = EstimateUnits(*model_, load);
  own.fetched = begin + model_->command_cycles;
  own.ended = begin + std::max(units.computing, units.moving);
  latest_end_ = std::max(latest_end_, own.ended);
  return own.ended - free;
}

void PhaseClock::Add(int64_t phase, int32_t core, int64_t cycles) {
  if (phase != phase_) {
    ended_ += Slowest();
    running_.clear();
    phase_ = phase;
  }
  running_[core] += cycles;
  busy_[core] += cycles;
}

int64_t PhaseClock::Slowest() const {
  int64_t most = 0;
  for (const auto& [core, cycles] : running_) most = std::max(most, cycles);
  return most;
}

}  // namespace npuc
