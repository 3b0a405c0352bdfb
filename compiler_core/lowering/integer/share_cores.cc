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

constexpr int64_t kNoWeights = -1;

// The begin of a convolve's weights.
int64_t WeightsOf(const Body& body) {
  const auto* convolve = std::get_if<integer::Convolve>(&body);
  return convolve == nullptr ? kNoWeights : convolve->weights.offset_bytes;
}

// The core that takes part i of so many, counted from those that are free first.
size_t LaneOf(size_t i, size_t parts, int64_t cores) {
  return i * std::min(static_cast<size_t>(cores), parts) / parts;
}

// The commands up to one of them, cut in some way.
struct Course {
  StreamClock clock;
  int64_t commands = 0;
  size_t cut = 0;              // of the last command
  std::vector<int32_t> cores;  // of its parts
  size_t before = 0;           // the course that this one continues
};

// At most so many courses are continued: those that end first. Measured: vww takes 4,077 cycles
// with one, and 3,758 with 4 to 64.
constexpr size_t kMaxCourses = 16;

// Cores in the order in which they can begin their next commands, and when.
std::vector<std::pair<int64_t, int32_t>> FetchesOf(const StreamClock& clock, int64_t cores) {
  std::vector<std::pair<int64_t, int32_t>> fetches;
  for (int32_t core = 0; core < cores; ++core) {
    fetches.emplace_back(std::max(clock.FetchedAt(core), clock.cycles()), core);
  }
  std::sort(fetches.begin(), fetches.end());
  return fetches;
}

// True where x, continued as y is, ends no later and with no more commands: cores are alike.
bool IsAsGood(const Course& x, const Course& y, int64_t cores) {
  if (x.clock.cycles() > y.clock.cycles() || x.commands > y.commands) return false;
  const auto of_x = FetchesOf(x.clock, cores);
  const auto of_y = FetchesOf(y.clock, cores);
  for (size_t i = 0; i < of_x.size(); ++i) {
    if (of_x[i].first > of_y[i].first) return false;
  }
  return true;
}

// The best courses, each of which may be better than the others in the end.
std::vector<Course> BestOf(std::vector<Course> found, int64_t cores) {
  std::stable_sort(found.begin(), found.end(), [](const Course& x, const Course& y) {
    return std::pair(x.clock.cycles(), x.commands) < std::pair(y.clock.cycles(), y.commands);
  });
  std::vector<Course> best;
  for (Course& course : found) {
    const bool is_beaten = std::any_of(best.begin(), best.end(), [&](const Course& other) {
      return IsAsGood(other, course, cores);
    });
    if (!is_beaten) best.push_back(std::move(course));
    if (best.size() == kMaxCourses) break;
  }
  return best;
}

}  // namespace

int64_t ManualRows::Of(const std::string& layer) const {
  const auto given = of_layers.find(layer);
  if (given != of_layers.end()) return given->second;
  return of_others > 1 ? of_others : 0;
}

bool CoreSharing::CanRun(const integer::Program& program, const std::vector<Body>& parts) const {
  std::vector<PhaseCommand> phase;
  for (size_t i = 0; i < parts.size(); ++i) {
    phase.push_back({&parts[i], static_cast<int32_t>(LaneOf(i, parts.size(), cores_))});
  }
  return !parts.empty() && !integer::PhaseProblem(program.buffers, phase).has_value();
}

std::vector<CoreSharing::Cut> CoreSharing::CutsOf(const integer::Program& program,
                                                  const integer::Command& command,
                                                  bool by_channels) const {
  const auto cut_of = [&](const Sharing& sharing, std::vector<Body> parts) {
    Cut cut = {sharing, std::move(parts), {}};
    for (const Body& part : cut.parts) {
      cut.loads.push_back(integer::LoadOf(part, MacArrayOf(core_)));
    }
    return cut;
  };
  if (const int64_t rows = manual_.Of(command.layer); rows > 0) {
    const Sharing wanted = {Sharing::Axis::kRows, static_cast<int32_t>(rows)};
    std::vector<Body> parts = integer::PartsOf(command.body, wanted);
    const bool is_wasteful = !manual_.of_layers.contains(command.layer) &&
                             OverlapPercent(command.body, parts) > manual_.max_overlap_percent;
    if (!is_wasteful && CanRun(program, parts)) return {cut_of(wanted, std::move(parts))};
    return {cut_of({}, {command.body})};
  }
  std::vector<Cut> cuts = {cut_of({}, {command.body})};
  for (int32_t count = 2; count <= cores_; ++count) {
    for (const Sharing::Axis axis : {Sharing::Axis::kRows, Sharing::Axis::kChannels}) {
      if (axis == Sharing::Axis::kChannels && !by_channels) continue;
      std::vector<Body> parts = integer::PartsOf(command.body, {axis, count});
      if (CanRun(program, parts)) cuts.push_back(cut_of({axis, count}, std::move(parts)));
    }
  }
  return cuts;
}

std::vector<CoreSharing::Choice> CoreSharing::ChooseCuts(const integer::Program& program) const {
  std::set<int64_t> whole_weights;
  for (;;) {
    std::vector<Choice> choices = ChooseCuts(program, whole_weights);
    std::map<int64_t, Sharing> sharings;  // by weights: by channels, or none
    const size_t before = whole_weights.size();
    for (size_t i = 0; i < choices.size(); ++i) {
      const int64_t weights = WeightsOf(program.commands[i].body);
      const Sharing& sharing = choices[i].cut.sharing;
      const Sharing own = sharing.axis == Sharing::Axis::kChannels ? sharing : Sharing();
      const auto [known, is_new] = sharings.emplace(weights, own);
      if (!is_new && known->second != own) whole_weights.insert(weights);
    }
    whole_weights.erase(kNoWeights);
    if (whole_weights.size() == before) return choices;
  }
}

std::vector<CoreSharing::Choice> CoreSharing::ChooseCuts(
    const integer::Program& program, const std::set<int64_t>& whole_weights) const {
  std::vector<std::vector<Cut>> cuts;
  const Course begin = {.clock = StreamClock(*core_.cycles, cores_), .cores = {}};
  std::vector<std::vector<Course>> courses = {{begin}};  // behind each command
  for (const integer::Command& command : program.commands) {
    cuts.push_back(CutsOf(program, command, !whole_weights.contains(WeightsOf(command.body))));
    std::vector<Course> found;
    for (size_t before = 0; before < courses.back().size(); ++before) {
      const Course& course = courses.back()[before];
      const auto fetches = FetchesOf(course.clock, cores_);
      for (size_t c = 0; c < cuts.back().size(); ++c) {
        const Cut& cut = cuts.back()[c];
        Course& next = found.emplace_back(course);
        next.before = before;
        next.cut = c;
        next.cores.clear();
        for (size_t i = 0; i < cut.loads.size(); ++i) {
          next.cores.push_back(fetches[LaneOf(i, cut.loads.size(), cores_)].second);
          next.clock.Run(static_cast<int64_t>(cuts.size()), next.cores.back(), cut.loads[i]);
        }
        next.commands += static_cast<int64_t>(cut.loads.size());
      }
    }
    courses.push_back(BestOf(std::move(found), cores_));
  }
  std::vector<Choice> choices(cuts.size());
  size_t best = 0;
  for (size_t i = cuts.size(); i-- > 0;) {
    Course& course = courses[i + 1][best];
    choices[i] = {std::move(cuts[i][course.cut]), std::move(course.cores)};
    best = course.before;
  }
  return choices;
}

void CoreSharing::Choose(integer::Program& program) const {
  const std::vector<Choice> choices = ChooseCuts(program);
  for (size_t i = 0; i < choices.size(); ++i) program.commands[i].sharing = choices[i].cut.sharing;
}

absl::Status CoreSharing::Share(integer::Program& program) const {
  std::vector<Choice> choices = ChooseCuts(program);
  std::vector<integer::Command> commands;
  for (size_t i = 0; i < choices.size(); ++i) {
    const Choice& choice = choices[i];
    // Commands in a row that one core takes need no barrier.
    const bool is_behind_own =
        i > 0 && choice.cores.size() == 1 && choices[i - 1].cores == choice.cores;
    for (size_t k = 0; k < choice.cores.size(); ++k) {
      integer::Command part = program.commands[i];
      part.body = choice.cut.parts[k];
      part.core = choice.cores[k];
      part.barrier = k == 0 && i > 0 && !is_behind_own;
      part.sharing = choice.cut.sharing;
      commands.push_back(std::move(part));
    }
  }
  program.commands = std::move(commands);
  RETURN_IF_ERROR(integer::VerifyProgram(program));
  return integer::VerifyPhases(program, cores_);
}

}  // namespace npuc
