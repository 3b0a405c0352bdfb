#include "compiler_core/lowering/integer/share_cores.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/ir/integer/load.h"
#include "compiler_core/ir/integer/parts.h"
#include "compiler_core/ir/integer/phases.h"
#include "compiler_core/ir/integer/verify.h"

namespace npuc {

using integer::Body;
using integer::PhaseCommand;
using integer::Sharing;

namespace {

// Rows of a windowed command's operand; 0 of other commands.
int64_t RowsRead(const Body& body) {
  if (const auto* c = std::get_if<integer::Convolve>(&body)) return int64_t{c->n} * c->in_h;
  if (const auto* p = std::get_if<integer::Pool>(&body)) return int64_t{p->n} * p->in_h;
  return 0;
}

// The share of the operand's rows that parts read again.
int64_t OverlapPercent(const Body& body, const std::vector<Body>& parts) {
  const int64_t whole = RowsRead(body);
  int64_t read = 0;
  for (const Body& part : parts) read += RowsRead(part);
  return read <= whole ? 0 : 100 * (read - whole) / whole;
}

}  // namespace

int64_t ManualRows::Of(const std::string& layer) const {
  const auto given = of_layers.find(layer);
  if (given != of_layers.end()) return given->second;
  return of_others > 1 ? of_others : 0;
}

int32_t CoreSharing::CoreOfPart(size_t i, size_t parts) const {
  const int64_t used = std::min(cores_, static_cast<int64_t>(parts));
  return static_cast<int32_t>(static_cast<int64_t>(i) * used / static_cast<int64_t>(parts));
}

int64_t CoreSharing::CyclesOf(const Body& body) const {
  return EstimateCycles(*core_.cycles, integer::LoadOf(body, MacArrayOf(core_)));
}

bool CoreSharing::CanRun(const integer::Program& program, const std::vector<Body>& parts) const {
  std::vector<PhaseCommand> phase;
  for (size_t i = 0; i < parts.size(); ++i) {
    phase.push_back({&parts[i], CoreOfPart(i, parts.size())});
  }
  return !parts.empty() && !integer::PhaseProblem(program.buffers, phase).has_value();
}

Sharing CoreSharing::Best(const integer::Program& program, const integer::Command& command) const {
  if (const int64_t rows = manual_.Of(command.layer); rows > 0) {
    const Sharing wanted = {Sharing::Axis::kRows, static_cast<int32_t>(rows)};
    const std::vector<Body> parts = integer::PartsOf(command.body, wanted);
    const bool is_wasteful = !manual_.of_layers.contains(command.layer) &&
                             OverlapPercent(command.body, parts) > manual_.max_overlap_percent;
    return !is_wasteful && CanRun(program, parts) ? wanted : Sharing();
  }
  Sharing best;
  int64_t least = CyclesOf(command.body);
  for (int32_t count = 2; count <= cores_; ++count) {
    for (const Sharing::Axis axis : {Sharing::Axis::kRows, Sharing::Axis::kChannels}) {
      const std::vector<Body> parts = integer::PartsOf(command.body, {axis, count});
      int64_t slowest = 0;
      for (const Body& part : parts) slowest = std::max(slowest, CyclesOf(part));
      if (parts.empty() || slowest >= least || !CanRun(program, parts)) continue;
      least = slowest;
      best = {axis, count};
    }
  }
  return best;
}

void CoreSharing::Choose(integer::Program& program) const {
  for (integer::Command& command : program.commands) command.sharing = Best(program, command);
}

absl::Status CoreSharing::Share(integer::Program& program) const {
  std::vector<integer::Command> commands;
  bool is_shared = false;  // by several cores: the phase that the last command is in
  for (integer::Command& command : program.commands) {
    const Sharing sharing = Best(program, command);
    std::vector<Body> parts = integer::PartsOf(command.body, sharing);
    const bool was_shared = std::exchange(is_shared, !parts.empty());
    if (parts.empty()) parts.push_back(command.body);
    for (size_t i = 0; i < parts.size(); ++i) {
      integer::Command part = command;
      part.body = std::move(parts[i]);
      part.core = CoreOfPart(i, parts.size());
      part.barrier = i == 0 && (is_shared || was_shared) && !commands.empty();
      part.sharing = sharing;
      commands.push_back(std::move(part));
    }
  }
  program.commands = std::move(commands);
  RETURN_IF_ERROR(integer::VerifyProgram(program));
  return integer::VerifyPhases(program, cores_);
}

}  // namespace npuc
