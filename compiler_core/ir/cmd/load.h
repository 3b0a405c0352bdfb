#ifndef NPUC_COMPILER_CORE_IR_CMD_LOAD_H_
#define NPUC_COMPILER_CORE_IR_CMD_LOAD_H_

#include <cstdint>
#include <map>
#include <vector>

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

// The two parts of a command's time beside its fetch, which go on side by side.
struct UnitCycles {
  int64_t computing = 0;
  int64_t moving = 0;  // between memory and units
};
UnitCycles EstimateUnits(const CycleModel& model, const CommandLoad& load);
// Cycles of a command between others of one core, rounded up; an estimate (target/core_spec.h).
// They are its own time and the wait for the next command's fetch, and so do not depend on its
// neighbours: searches add them up. The sum is the frame's time but for the first fetch and the
// wait behind the last command.
int64_t EstimateCycles(const CycleModel& model, const CommandLoad& load);

// Runs a stream's commands by the cycle model, one after the other in the stream's order.
// target/README.md states when each begins.
class StreamClock {
 public:
  StreamClock(const CycleModel& model, int64_t cores);
  // Runs the next command. Its cycles: from the end of what its core and its phase wait for, to its
  // own end; so they begin with the wait for its fetch. core: below `cores`.
  int64_t Run(int64_t phase, int32_t core, const CommandLoad& load);
  // When all commands so far have ended.
  int64_t cycles() const { return latest_end_; }
  // When the core's next command is fetched.
  int64_t FetchedAt(int32_t core) const { return cores_[static_cast<size_t>(core)].fetched; }

 private:
  struct Core {
    int64_t fetched = 0;
    int64_t ended = 0;
  };
  const CycleModel* model_;
  std::vector<Core> cores_;
  int64_t phase_ = 0;
  int64_t phase_begin_ = 0;
  int64_t latest_end_ = 0;
};

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
