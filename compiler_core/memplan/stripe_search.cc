#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "compiler_core/base/rounding.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/integer/access.h"
#include "compiler_core/ir/integer/load.h"
#include "compiler_core/ir/integer/pieces.h"
#include "compiler_core/ir/integer/steps.h"
#include "compiler_core/memplan/stripes.h"
#include "compiler_core/target/mac_array.h"

namespace npuc {
namespace {

using integer::ByteRange;

constexpr size_t kMaxStripedCommands = 1024;  // longer programs stay as they are
constexpr size_t kMaxChain = 10;              // commands
constexpr int64_t kStripeCounts[] = {2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64};  // of a chain
constexpr int64_t kSearchNodes = 300'000;  // commands planned in parts
constexpr int64_t kPartNodes = 400;        // of the placement of a part
constexpr int kMaxPlans = 48;              // of the whole program
constexpr int64_t kNoWay = std::numeric_limits<int64_t>::max() / 4;

// A way to compute commands [chain.first, chain.end).
struct Way {
  StripedChain chain;  // units 0: as they are
  int64_t arena_bytes = 0;
  int64_t cycles = 0;
  bool is_striped() const { return chain.units > 0; }
};
using Ways = std::vector<Way>;

class StripeSearch {
 public:
  StripeSearch(const integer::Program& program, const CoreSpec& core, const StripeGoal& goal)
      : program_(program), core_(core), goal_(goal), uses_(program) {}

  // Ways of each command, and of chains that hold a command which needs more than the floor.
  void FindWays(int64_t most_more_cycles) {
    most_more_cycles_ = most_more_cycles;
    FindBorders();
    FindRows();
    for (size_t i = 0; i < program_.commands.size(); ++i) TakeSingle(i);
    // Chains with the largest commands come first: the budget may end.
    const int64_t floor = Floor();
    const int64_t worst = WorstOf(0, program_.commands.size());
    int64_t high = worst;
    for (const int64_t low : {worst / 8 * 7, worst / 8 * 6, worst / 2, worst / 4, floor}) {
      TakeChainsBetween(std::max(low, floor), high);
      high = std::min(high, std::max(low, floor));
    }
    std::stable_sort(ways_.begin(), ways_.end(), [](const Way& x, const Way& y) {
      return std::pair(x.chain.end, x.chain.first) < std::pair(y.chain.end, y.chain.first);
    });
  }

  // The ways with the fewest cycles of which none needs more than `limit`; empty: there are none.
  Ways CheapestWithin(int64_t limit) const {
    const size_t count = program_.commands.size();
    std::vector<int64_t> cycles(count + 1, kNoWay);
    std::vector<const Way*> last(count + 1, nullptr);
    cycles[0] = 0;
    for (const Way& way : ways_) {  // by their ends
      if (way.arena_bytes > limit || cycles[way.chain.first] >= kNoWay) continue;
      const int64_t sum = cycles[way.chain.first] + way.cycles;
      if (sum >= cycles[way.chain.end]) continue;
      cycles[way.chain.end] = sum;
      last[way.chain.end] = &way;
    }
    Ways ways;
    if (cycles[count] >= kNoWay) return ways;
    for (size_t end = count; end > 0; end = last[end]->chain.first) ways.push_back(*last[end]);
    std::reverse(ways.begin(), ways.end());
    return ways;
  }

  // The memory of all ways, each once, ascending: other limits give no other cheapest ways.
  std::vector<int64_t> Limits() const {
    std::set<int64_t> limits;
    for (const Way& way : ways_) limits.insert(way.arena_bytes);
    return {limits.begin(), limits.end()};
  }

  // The program with these ways; adds to the report what they are. None where a chain that was
  // turned round cannot be cut.
  std::optional<integer::Program> Apply(const Ways& ways, StripeReport& report) const {
    integer::Program result = program_;
    result.commands.clear();
    for (const Way& way : ways) {
      if (!way.is_striped()) {
        result.commands.push_back(program_.commands[way.chain.first]);
        continue;
      }
      std::optional<Stripes> stripes =
          CutInStripes(program_, uses_, way.chain, static_cast<int32_t>(result.buffers.size()));
      if (!stripes.has_value()) return std::nullopt;
      StripeReport::Chain& chain = report.chains.emplace_back();
      chain.first_layer = program_.commands[way.chain.first].layer;
      chain.last_layer = program_.commands[way.chain.end - 1].layer;
      chain.commands = static_cast<int64_t>(way.chain.end - way.chain.first);
      chain.stripes = stripes->count;
      chain.pieces = static_cast<int64_t>(stripes->commands.size()) - stripes->copies;
      chain.copies = stripes->copies;
      for (integer::Command& command : stripes->commands) {
        result.commands.push_back(std::move(command));
      }
      for (Buffer& buffer : stripes->buffers) result.buffers.push_back(std::move(buffer));
    }
    return result;
  }

  // The sum over all commands as they are.
  int64_t CyclesBefore() const { return cycles_.back(); }
  int64_t nodes() const { return nodes_; }
  bool budget_ended() const { return nodes_ >= kSearchNodes; }

 private:
  bool IsPlaced(BufferId buffer) const {
    const Slot slot = program_.buffers[static_cast<size_t>(buffer.value())].slot;
    return slot == Slot::kData || (goal_.ports_in_data && slot != Slot::kWeight);
  }

  // stored_[i], needed_[i]: of the buffers before and behind the first i commands.
  void FindBorders() {
    const size_t count = program_.commands.size();
    std::vector<ByteRange> none(program_.buffers.size());
    stored_.assign(count + 1, none);
    needed_.assign(count + 1, none);
    if (goal_.ports_in_data) {
      stored_[0][0] = {0, program_.buffers[0].size_bytes};
      needed_[count][1] = {0, program_.buffers[1].size_bytes};
    }
    const auto take = [&](size_t i, bool writes, std::vector<ByteRange>& ranges) {
      for (const Access& access : integer::AccessesOf(program_.commands[i].body)) {
        if (access.writes != writes || !IsPlaced(access.operand.buffer)) continue;
        ByteRange& range = ranges[static_cast<size_t>(access.operand.buffer.value())];
        const int64_t begin = access.operand.offset_bytes;
        range = integer::HullOf(range, {begin, begin + access.size_bytes});
      }
    };
    for (size_t i = 0; i < count; ++i) {
      stored_[i + 1] = stored_[i];
      take(i, true, stored_[i + 1]);
    }
    for (size_t i = count; i-- > 0;) {
      needed_[i] = needed_[i + 1];
      take(i, false, needed_[i]);
    }
  }

  // The rows of each buffer's map, where a window reads or makes it.
  void FindRows() {
    rows_.assign(program_.buffers.size(), 0);
    for (const integer::Command& command : program_.commands) {
      const Operand& d = integer::ResultOf(command.body).d;
      int64_t& rows = rows_[static_cast<size_t>(d.buffer.value())];
      std::visit(
          [&](const auto& body) {
            if constexpr (requires { body.out_h; }) {
              rows_[static_cast<size_t>(body.a.buffer.value())] = body.in_h;
              rows = body.out_h;
            } else if constexpr (requires { body.a; }) {
              rows = rows_[static_cast<size_t>(body.a.buffer.value())];
            }
          },
          command.body);
    }
  }

  // Bytes stored before the part and read in it or behind it; bytes stored before its end and
  // read behind it.
  RowBorders BordersOf(size_t first, size_t end) const {
    RowBorders borders{stored_[first], needed_[end]};
    for (size_t i = 0; i < borders.stored.size(); ++i) {
      if (needed_[first][i].empty()) borders.stored[i] = {};
      if (stored_[end][i].empty()) borders.needed[i] = {};
    }
    return borders;
  }

  void TakeSingle(size_t i) {
    Way way;
    way.chain.first = i;
    way.chain.end = i + 1;
    integer::Program part;
    part.buffers = program_.buffers;
    part.commands = {program_.commands[i]};
    way.arena_bytes = ArenaOfPart(part, BordersOf(i, i + 1), goal_.alignment_bytes,
                                  goal_.ports_in_data, kPartNodes, [](int64_t) { return true; })
                          .value_or(kNoWay - 1);
    way.cycles = CyclesOf(part);
    singles_.push_back(way.arena_bytes);
    cycles_.push_back(cycles_.back() + way.cycles);
    ways_.push_back(std::move(way));
    ++nodes_;
  }

  // A part's cycles are the same wherever it stands, so they add up.
  int64_t CyclesOf(const integer::Program& part) const {
    int64_t cycles = 0;
    for (const integer::Command& command : part.commands) {
      cycles += EstimateCycles(*core_.cycles, integer::LoadOf(command.body, MacArrayOf(core_)));
    }
    return cycles;
  }

  int64_t CyclesBetween(size_t first, size_t end) const { return cycles_[end] - cycles_[first]; }

  int64_t WorstOf(size_t first, size_t end) const {
    return *std::max_element(singles_.begin() + static_cast<std::ptrdiff_t>(first),
                             singles_.begin() + static_cast<std::ptrdiff_t>(end));
  }

  // The bytes that stripes cannot lower: those of commands that cannot be cut.
  int64_t Floor() const {
    int64_t floor = std::max(goal_.limit_bytes, RowBound(program_, goal_.ports_in_data));
    for (size_t i = 0; i < program_.commands.size(); ++i) {
      if (!integer::UnitsOf(program_.commands[i].body).has_value()) {
        floor = std::max(floor, singles_[i]);
      }
    }
    return floor;
  }

  // Chains of which the largest command needs more than `low` and at most `high`.
  void TakeChainsBetween(int64_t low, int64_t high) {
    for (size_t length = 2; length <= kMaxChain; ++length) {
      for (size_t first = 0; first + length <= program_.commands.size(); ++first) {
        const int64_t worst = WorstOf(first, first + length);
        if (worst > low && worst <= high) TakeChains(first, first + length);
      }
    }
  }

  void TakeChains(size_t first, size_t end) {
    const integer::Body& last = program_.commands[end - 1].body;
    const std::optional<integer::Units> units = integer::UnitsOf(last);
    if (!units.has_value()) return;
    const int64_t rows = rows_[static_cast<size_t>(integer::ResultOf(last).d.buffer.value())];
    if (rows < 2 || units->count % rows != 0) return;
    const std::vector<std::vector<StripeKeep>> keeps = KeepsOf(first, end);
    Ways found;
    for (const int64_t height : HeightsOf(rows)) {
      for (const std::vector<StripeKeep>& keep : keeps) {
        // Upwards the lowest stripe comes first; where it is smaller the memory differs.
        for (const bool upwards : {false, true}) {
          if (budget_ended()) return;
          if (upwards && rows % height == 0) continue;
          TakeChain({first, end, height * (units->count / rows), upwards, keep}, found);
        }
      }
    }
    for (Way& way : found) ways_.push_back(std::move(way));
  }

  // Rows a stripe: of equal stripes, and of two unequal ones, since a first stripe finds the
  // chain's operands whole and needs most.
  static std::set<int64_t> HeightsOf(int64_t rows) {
    std::set<int64_t> heights;
    for (const int64_t count : kStripeCounts) heights.insert(DivideUp(rows, count));
    heights.insert(DivideUp(rows, 2) + DivideUp(rows, 16));
    heights.erase(heights.lower_bound(rows), heights.end());
    return heights;
  }

  // Choices of what becomes of the results within a chain: all whole; those whole that are not
  // larger than what the chain begins and ends with, the others in either way; none whole.
  std::vector<std::vector<StripeKeep>> KeepsOf(size_t first, size_t end) const {
    int64_t ends_bytes = 0;
    std::vector<bool> is_inside;
    std::vector<int64_t> sizes;
    for (size_t i = first; i < end; ++i) {
      const integer::Body& body = program_.commands[i].body;
      for (const Operand& operand : integer::OperandsOf(body)) {
        if (!operand.present() || !IsPlaced(operand.buffer)) continue;
        const std::vector<size_t>& writers = uses_.writers(operand.buffer);
        if (!writers.empty() && writers.back() >= first) continue;
        ends_bytes = std::max(ends_bytes, SizeOf(operand.buffer));
      }
      const BufferId d = integer::ResultOf(body).d.buffer;
      is_inside.push_back(!uses_.IsNeededBehind(d, end));
      sizes.push_back(SizeOf(d));
      if (!is_inside.back()) ends_bytes = std::max(ends_bytes, sizes.back());
    }
    std::vector<std::vector<StripeKeep>> keeps;
    keeps.emplace_back(sizes.size(), StripeKeep::kWhole);
    for (const bool large_alone : {true, false}) {
      for (const StripeKeep other : {StripeKeep::kRecomputed, StripeKeep::kCopied}) {
        std::vector<StripeKeep> keep = keeps[0];
        for (size_t i = 0; i < sizes.size(); ++i) {
          if (is_inside[i] && (!large_alone || sizes[i] > ends_bytes)) keep[i] = other;
        }
        if (std::find(keeps.begin(), keeps.end(), keep) == keeps.end()) keeps.push_back(keep);
      }
    }
    return keeps;
  }

  int64_t SizeOf(BufferId buffer) const {
    return program_.buffers[static_cast<size_t>(buffer.value())].size_bytes;
  }

  // Adds the way to those of its commands, unless another one is better.
  void TakeChain(const StripedChain& chain, Ways& found) {
    const auto is_beaten = [&](int64_t arena_bytes, int64_t cycles) {
      return arena_bytes >= WorstOf(chain.first, chain.end) ||
             std::any_of(found.begin(), found.end(), [&](const Way& way) {
               return way.arena_bytes <= arena_bytes && way.cycles <= cycles;
             });
    };
    std::optional<Stripes> stripes =
        CutInStripes(program_, uses_, chain, static_cast<int32_t>(program_.buffers.size()));
    ++nodes_;
    if (!stripes.has_value()) return;
    nodes_ += static_cast<int64_t>(stripes->commands.size());
    integer::Program part;
    part.buffers = program_.buffers;
    part.buffers.insert(part.buffers.end(), stripes->buffers.begin(), stripes->buffers.end());
    part.commands = std::move(stripes->commands);
    const int64_t cycles = CyclesOf(part);
    if (cycles - CyclesBetween(chain.first, chain.end) > most_more_cycles_) return;
    // A plan looks at each buffer of the program and at each step, of elements 1,024 a command.
    nodes_ += static_cast<int64_t>(program_.buffers.size()) / 8;
    for (const integer::Command& command : part.commands) {
      if (integer::MultipliesAndAdds(command.body)) continue;
      nodes_ += std::min(integer::kMaxSteps, integer::WorkOf(command.body)) / 128;
    }
    const auto is_worth_it = [&](int64_t bytes) { return !is_beaten(bytes, cycles); };
    const std::optional<int64_t> arena_bytes =
        ArenaOfPart(part, BordersOf(chain.first, chain.end), goal_.alignment_bytes,
                    goal_.ports_in_data, kPartNodes, is_worth_it);
    if (arena_bytes.has_value() && is_worth_it(*arena_bytes)) {
      found.push_back({chain, *arena_bytes, cycles});
    }
  }

  const integer::Program& program_;
  const CoreSpec& core_;
  const StripeGoal& goal_;
  BufferUses uses_;
  std::vector<std::vector<ByteRange>> stored_, needed_;
  std::vector<int64_t> rows_;
  std::vector<int64_t> singles_;       // the memory of each command as it is
  std::vector<int64_t> cycles_ = {0};  // of the first i commands as they are
  int64_t most_more_cycles_ = 0;       // of all chains together
  Ways ways_;
  int64_t nodes_ = 0;
};

// Plans the whole program in the ways that the search found, and keeps the smallest plan.
class PlanChooser {
 public:
  PlanChooser(StripeSearch& search, const CoreSpec& core, const StripeGoal& goal,
              int64_t max_cycles, integer::Program& planned, MemoryPlanResult& memory,
              StripeReport& report)
      : search_(search),
        core_(core),
        goal_(goal),
        max_cycles_(max_cycles),
        planned_(planned),
        memory_(memory),
        report_(report) {}

  absl::Status Run() {
    if (goal_.limit_bytes > 0) RETURN_IF_ERROR(KeepToLimit());
    plans_ = 0;
    for (const int64_t limit : search_.Limits()) {
      if (IsKept() || limit >= planned_.data_bytes) break;
      RETURN_IF_ERROR(Try(search_.CheapestWithin(limit), limit).status());
    }
    return absl::OkStatus();
  }

 private:
  bool IsKept() const { return goal_.limit_bytes > 0 && planned_.data_bytes <= goal_.limit_bytes; }

  // A plan may take more than its largest part: then parts are tried that take less, by half of
  // what is too much.
  absl::Status KeepToLimit() {
    int64_t limit = goal_.limit_bytes;
    while (plans_ < kMaxPlans) {
      const Ways ways = search_.CheapestWithin(limit);
      ASSIGN_OR_RETURN(const int64_t arena_bytes, Try(ways, limit));
      if (IsKept() || arena_bytes == kNoWay) break;
      limit = 0;
      for (const Way& way : ways) limit = std::max(limit, way.arena_bytes);
      limit -= 1 + (arena_bytes - goal_.limit_bytes) / 2;
    }
    return absl::OkStatus();
  }

  // Plans the whole program in these ways, each chain in either direction; the bytes of the
  // smallest plan, kNoWay where there is none.
  absl::StatusOr<int64_t> Try(Ways ways, int64_t limit) {
    std::vector<Way*> striped;
    int64_t cycles = 0;
    for (Way& way : ways) {
      if (way.is_striped()) striped.push_back(&way);
      cycles += way.cycles;
    }
    int64_t least = kNoWay;
    if (striped.empty() || cycles > max_cycles_) return least;
    const size_t turned = std::min<size_t>(striped.size(), 3);
    std::vector<bool> upwards;
    for (const Way* way : striped) upwards.push_back(way->chain.upwards);
    for (size_t directions = 0; directions < size_t{1} << turned; ++directions) {
      if (plans_ >= kMaxPlans) break;
      for (size_t i = 0; i < striped.size(); ++i) {
        striped[i]->chain.upwards = upwards[i] != ((directions >> (i % turned) & 1) != 0);
      }
      ASSIGN_OR_RETURN(const int64_t arena_bytes, Plan(ways));
      least = std::min(least, arena_bytes);
      if (least <= std::max(limit, goal_.limit_bytes)) break;
    }
    return least;
  }

  absl::StatusOr<int64_t> Plan(const Ways& ways) {
    ++plans_;
    StripeReport report = report_;
    report.chains.clear();
    std::optional<integer::Program> program = search_.Apply(ways, report);
    if (!program.has_value()) return kNoWay;
    ASSIGN_OR_RETURN(MemoryPlanResult memory,
                     PlanMemoryByRows(*program, goal_.alignment_bytes, goal_.ports_in_data));
    const int64_t arena_bytes = program->data_bytes;
    if (arena_bytes >= planned_.data_bytes) return arena_bytes;
    report.arena_bytes = arena_bytes;
    const integer::FrameLoad frame = integer::FrameLoadOf(*program, core_);
    report.cycles = frame.cycles;
    report.macs = frame.load.macs;
    memory.is_reordered = memory_.is_reordered;
    memory.order_bound_bytes = memory_.order_bound_bytes;
    planned_ = *std::move(program);
    memory_ = memory;
    report_ = std::move(report);
    return arena_bytes;
  }

  StripeSearch& search_;
  const CoreSpec& core_;
  const StripeGoal& goal_;
  const int64_t max_cycles_;
  integer::Program& planned_;
  MemoryPlanResult& memory_;
  StripeReport& report_;
  int plans_ = 0;
};

}  // namespace

absl::Status PlanInStripes(const integer::Program& program, const CoreSpec& core,
                           const StripeGoal& goal, integer::Program& planned,
                           MemoryPlanResult& memory) {
  StripeReport report;
  StripeSearch search(program, core, goal);
  report.arena_before_bytes = report.arena_bytes = planned.data_bytes;
  const integer::FrameLoad before = integer::FrameLoadOf(program, core);
  report.macs_before = report.macs = before.load.macs;
  report.cycles_before = report.cycles = before.cycles;
  const bool is_small_enough = goal.limit_bytes > 0 && planned.data_bytes <= goal.limit_bytes;
  const size_t commands = program.commands.size();
  if (!is_small_enough && commands > 0 && commands <= kMaxStripedCommands) {
    const int64_t most_more_cycles =
        goal.limit_bytes > 0 ? kNoWay : report.cycles_before * kMoreCyclesPercent / 100;
    search.FindWays(most_more_cycles);
    const int64_t max_cycles = search.CyclesBefore() + most_more_cycles;
    RETURN_IF_ERROR(PlanChooser(search, core, goal, max_cycles, planned, memory, report).Run());
    report.nodes = search.nodes();
    report.budget_ended = search.budget_ended();
  }
  memory.stripes = std::move(report);
  return absl::OkStatus();
}

}  // namespace npuc
