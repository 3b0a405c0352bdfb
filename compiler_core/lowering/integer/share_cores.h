#ifndef NPUC_COMPILER_CORE_LOWERING_INTEGER_SHARE_CORES_H_
#define NPUC_COMPILER_CORE_LOWERING_INTEGER_SHARE_CORES_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
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
// (ir/integer/parts.h), by rows or by result channels, whichever the cycle model finds faster; the
// parts are a phase (ir/integer/phases.h) of their own, one a core. Commands that nothing makes
// faster stay on core 0.
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
  integer::Sharing Best(const integer::Program& program, const integer::Command& command) const;
  bool CanRun(const integer::Program& program, const std::vector<integer::Body>& parts) const;
  int64_t CyclesOf(const integer::Body& body) const;
  // The core that takes part i.
  int32_t CoreOfPart(size_t i, size_t parts) const;

  const CoreSpec& core_;
  const int64_t cores_;
  const ManualRows manual_;
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_LOWERING_INTEGER_SHARE_CORES_H_
