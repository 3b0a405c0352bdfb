#ifndef NPUC_COMPILER_CORE_LOWERING_INTEGER_SHARE_CORES_H_
#define NPUC_COMPILER_CORE_LOWERING_INTEGER_SHARE_CORES_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "compiler_core/ir/cmd/load.h"
#include "compiler_core/ir/integer/command.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {

// Parts by rows that the user asks for, whatever the cycle model says.
struct ManualRows {
  std::map<std::string, int64_t> of_layers;
  int64_t of_others = 1;  // of all other layers; 1: nothing is asked
  // Others stay whole whose parts would read more percent of their operand's rows again.
  int64_t max_overlap_percent = 100;
  bool empty() const { return of_layers.empty() && of_others == 1; }
  // 0: nothing is asked.
  int64_t Of(const std::string& layer) const;
};

// Shares a program among the cores of one chip. Each command is cut into parts
// (ir/integer/parts.h) by rows or by result channels, or stays whole; the parts are a phase
// (ir/integer/phases.h) of their own, one a core. The cuts of all commands are chosen together, for
// the fewest cycles of the frame by the cycle model: while some cores run a command the others
// fetch their next ones, so that cores may take turns at commands that are shorter than a fetch.
class CoreSharing {
 public:
  // cores: at least 2 of them.
  CoreSharing(const CoreSpec& core, int64_t cores, ManualRows manual)
      : core_(core), cores_(cores), manual_(std::move(manual)) {}

  // Before memory is planned: sets `sharing` of each command.
  void Choose(integer::Program& program) const;

  // When every buffer has its place: puts the parts in place of their commands. A command whose
  // result lies over bytes that another part reads has other parts than Choose said, or none.
  // Weights must not be coded yet. INTERNAL where the outcome is no program.
  absl::Status Share(integer::Program& program) const;

 private:
  // A way to run a command: its parts, each on a core of its own or behind the part before it.
  struct Cut {
    integer::Sharing sharing;
    std::vector<integer::Body> parts;
    std::vector<CommandLoad> loads;  // of the parts
  };
  // The cut of a command that was chosen, and the core of each part.
  struct Choice {
    Cut cut;
    std::vector<int32_t> cores;
  };

  // The whole command first.
  std::vector<Cut> CutsOf(const integer::Program& program, const integer::Command& command,
                          bool by_channels) const;
  bool CanRun(const integer::Program& program, const std::vector<integer::Body>& parts) const;
  // For each command. Weights that some commands would read whole and others in parts are read
  // whole by all: each range of bytes that a command reads is coded and stored on its own.
  std::vector<Choice> ChooseCuts(const integer::Program& program) const;
  // The same, with no command cut by channels whose weights begin at one of `whole_weights`.
  std::vector<Choice> ChooseCuts(const integer::Program& program,
                                 const std::set<int64_t>& whole_weights) const;

  const CoreSpec& core_;
  const int64_t cores_;
  const ManualRows manual_;
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_LOWERING_INTEGER_SHARE_CORES_H_
