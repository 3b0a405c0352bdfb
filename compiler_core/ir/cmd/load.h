#ifndef NPUC_COMPILER_CORE_IR_CMD_LOAD_H_
#define NPUC_COMPILER_CORE_IR_CMD_LOAD_H_

#include <cstdint>
#include <map>

#include "compiler_core/ir/cmd/command.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {

// What a command does, and from that what it costs. The compiler's report and the simulator's
// profile count with these functions, each on its own form of the commands.
struct CommandLoad {
  int64_t macs = 0;  // multiply-adds of matrix and convolution commands
  // The cycles that these take in the core's array of multipliers (target/mac_array.h), or in the
  // decoder of their weights where that takes longer; 0: no array is stated.
  int64_t array_cycles = 0;
  int64_t elements = 0;    // elements that every other command computes
  int64_t read_bytes = 0;  // as stored: compressed weights count compressed
  int64_t written_bytes = 0;

  CommandLoad& operator+=(const CommandLoad& other);
  bool operator==(const CommandLoad&) const = default;
};

// stored_code_bytes: the bytes of the command's weight codes where it has a mask, which the command
// alone does not tell; < 0 where it has none.
CommandLoad LoadOf(const Command& command, int64_t stored_code_bytes);
// Of a command of a program before it is encoded, whose buffers say how large the codes are.
CommandLoad LoadOf(const Program& program, const Command& command);

// The two parts of a command's time beside its set-up, which go on side by side.
struct UnitCycles {
  int64_t computing = 0;
  int64_t moving = 0;  // between memory and units
};
UnitCycles EstimateUnits(const CycleModel& model, const CommandLoad& load);
// Cycles of one command, rounded up; an estimate (target/core_spec.h).
int64_t EstimateCycles(const CycleModel& model, const CommandLoad& load);

// Adds up the cycles of commands. Those of a core follow each other; cores run side by side within
// a phase (ir/integer/phases.h), which takes as long as its slowest core. Phases follow each other.
class PhaseClock {
 public:
  void Add(int64_t phase, int32_t core, int64_t cycles);
  int64_t cycles() const { return ended_ + Slowest(); }
  // In which each core is busy.
  const std::map<int32_t, int64_t>& busy() const { return busy_; }

 private:
  int64_t Slowest() const;
  int64_t phase_ = 0;
  int64_t ended_ = 0;                   // of the phases before this one
  std::map<int32_t, int64_t> running_;  // of this phase, by core
  std::map<int32_t, int64_t> busy_;
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_IR_CMD_LOAD_H_
