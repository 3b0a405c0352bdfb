#include "compiler_core/ir/integer/phases.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/integer/access.h"
#include "compiler_core/ir/integer/steps.h"

namespace npuc::integer {
namespace {

// Bytes of a memory: of each period from the begin of `range` on the first `width` ones, up to its
// end; without a period all of it.
struct Places {
  int64_t memory = 0;  // a slot, or a buffer that has no offset
  ByteRange range;
  int64_t period = 0;
  int64_t width = 0;
  bool writes = false;
};

bool Meet(const Places& x, const Places& y) {
  if (x.memory != y.memory || !x.range.Overlaps(y.range)) return false;
  if (x.period == 0 || x.period != y.period) return true;
  const int64_t ahead = (y.range.begin - x.range.begin) % x.period;
  const int64_t shift = ahead < 0 ? ahead + x.period : ahead;
  return shift < x.width || shift + y.width > x.period;
}

std::vector<Places> PlacesOf(absl::Span<const Buffer> buffers, const Body& body) {
  std::vector<Places> places;
  for (const Access& access : AccessesOf(body)) {
    const int32_t id = access.operand.buffer.value();
    const Buffer& buffer = buffers[static_cast<size_t>(id)];
    if (buffer.slot == Slot::kWeight) continue;  // nothing is stored there
    const bool is_placed = buffer.offset_bytes >= 0;
    const int64_t begin = access.operand.offset_bytes + (is_placed ? buffer.offset_bytes : 0);
    Places one;
    one.memory = is_placed ? static_cast<int64_t>(buffer.slot) : kSlotCount + int64_t{id};
    one.range = {begin, begin + access.size_bytes};
    one.writes = access.writes;
    if (const auto* c = std::get_if<Convolve>(&body);
        c != nullptr && access.writes && c->d_pixel > 0) {
      one.period = int64_t{c->d_pixel} * SizeOf(c->result.type);
      one.width = int64_t{c->out_c} * SizeOf(c->result.type);
    }
    places.push_back(one);
  }
  return places;
}

// Says what one command does to bytes that another one uses; null: nothing.
const char* ConflictOf(const std::vector<Places>& one, const std::vector<Places>& other) {
  for (const Places& x : one) {
    for (const Places& y : other) {
      if ((x.writes || y.writes) && Meet(x, y)) {
        return x.writes && y.writes ? "stores bytes that the other stores"
               : x.writes           ? "stores bytes that the other reads"
                                    : "reads bytes that the other stores";
      }
    }
  }
  return nullptr;
}

}  // namespace

std::optional<std::string> PhaseProblem(absl::Span<const Buffer> buffers,
                                        absl::Span<const PhaseCommand> phase) {
  const bool is_shared = std::any_of(phase.begin(), phase.end(), [&](const PhaseCommand& command) {
    return command.core != phase.front().core;
  });
  if (!is_shared) return std::nullopt;
  if (phase.size() > kMaxPhaseCommands) {
    return absl::StrCat("a phase of several cores has ", phase.size(), " commands; at most ",
                        kMaxPhaseCommands);
  }
  std::vector<std::vector<Places>> places;
  for (const PhaseCommand& command : phase) places.push_back(PlacesOf(buffers, *command.body));
  for (size_t i = 0; i < phase.size(); ++i) {
    for (size_t j = i + 1; j < phase.size(); ++j) {
      if (phase[i].core == phase[j].core) continue;
      const char* conflict = ConflictOf(places[i], places[j]);
      if (conflict == nullptr) continue;
      return absl::StrCat("of two commands that run side by side, ", i, " of its phase (",
                          NameOf(*phase[i].body), ", core ", phase[i].core, ") and ", j, " (",
                          NameOf(*phase[j].body), ", core ", phase[j].core, "), the first ",
                          conflict);
    }
  }
  return std::nullopt;
}

void ForEachPhase(const Program& program, absl::FunctionRef<void(size_t first, size_t end)> take) {
  const size_t count = program.commands.size();
  for (size_t first = 0; first < count;) {
    size_t end = first + 1;
    while (end < count && !program.commands[end].barrier) ++end;
    take(first, end);
    first = end;
  }
}

absl::Status VerifyPhases(const Program& program, int64_t cores) {
  absl::Status status;
  ForEachPhase(program, [&](size_t first, size_t end) {
    if (!status.ok()) return;
    std::vector<PhaseCommand> phase;
    for (size_t i = first; i < end; ++i) {
      const Command& command = program.commands[i];
      if (command.core < 0 || command.core >= cores) {
        status = absl::InternalError(
            absl::StrCat("command ", i, " is of core ", command.core, "; there are ", cores));
        return;
      }
      phase.push_back({&command.body, command.core});
    }
    const std::optional<std::string> problem = PhaseProblem(program.buffers, phase);
    if (!problem.has_value()) return;
    status = absl::InternalError(absl::StrCat("the phase from command ", first, " of layer '",
                                              Printable(program.commands[first].layer),
                                              "' on: ", *problem));
  });
  return status;
}

}  // namespace npuc::integer
