#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler_core/base/rounding.h"
#include "compiler_core/ir/integer/access.h"
#include "compiler_core/ir/integer/steps.h"
#include "compiler_core/memplan/plan.h"

namespace npuc {
namespace {

using integer::ByteRange;
using integer::Step;

constexpr int32_t kInput = 0;
constexpr int32_t kOutput = 1;
constexpr size_t kMaxItems = 4096;
constexpr size_t kMaxPairs = 1 << 19;
// Most nets' first placement meets the bound; of a few hundred buffers this takes some 20 ms.
constexpr int64_t kRowNodes = 20'000;
constexpr int64_t kNever = std::numeric_limits<int64_t>::min();

// The bytes of one buffer that one command reads and stores, by step, ascending.
struct Touch {
  int32_t buffer = -1;
  std::vector<ByteRange> reads;
  std::vector<ByteRange> writes;
  ByteRange needed_later = {};  // what the commands behind this one read
  // The operand's offset in its buffer less the result's in its own, where the result's elements
  // may lie over the operand's one by one.
  std::optional<int64_t> walked = std::nullopt;
};

// All touches of one command. Where it reads one buffer, its direction is free, and the placement
// says which; where it reads several it goes upwards.
struct Touches {
  std::vector<Touch> all;
  int32_t written = -1;  // the result's buffer
  std::vector<bool> directions = {false, true};
};

// The bytes of a buffer that are alive at each step of a command, in the order of a direction.
using Trace = std::vector<ByteRange>;
// By touch of a command, ascending and descending.
using Traces = std::vector<std::array<Trace, 2>>;

// The least distance between two buffers.
struct PairDistance {
  int64_t second_above = 0;  // the second begins so far above the first, if it lies above it
  int64_t first_above = 0;
};
// By two buffers, the smaller number first. Nets of thousands of layers have 100,000 pairs.
using PairDistances = absl::flat_hash_map<std::pair<int32_t, int32_t>, PairDistance>;

// Computes which distances buffers must keep, and how many bytes are alive at once.
class RowLives {
 public:
  RowLives(const integer::Program& program, const RowBorders& borders, bool ports_in_data)
      : program_(program), ports_in_data_(ports_in_data), ranges_(program.buffers.size()) {
    for (const integer::Command& command : program.commands) TakeTouches(command);
    written_ = borders.stored;
    needed_ = borders.needed;
    written_.resize(ranges_.size());
    needed_.resize(ranges_.size());
    MarkBorders();
    FindNeeds();
  }

  // False where there are too many pairs.
  bool Run() {
    std::vector<std::vector<int32_t>> born(touches_.size());
    for (size_t i = 0; i < ranges_.size(); ++i) {
      if (ranges_[i].empty()) continue;
      born[static_cast<size_t>(ranges_[i].first)].push_back(static_cast<int32_t>(i));
    }
    std::vector<int32_t> alive;
    for (size_t c = 0; c < touches_.size(); ++c) {
      alive.insert(alive.end(), born[c].begin(), born[c].end());
      TakeCommand(touches_[c], alive);
      if (distances_.size() > kMaxPairs) return false;
      std::erase_if(
          alive, [&](int32_t buffer) { return ranges_[buffer].last <= static_cast<int32_t>(c); });
    }
    if (ports_in_data_ && HasStates()) {
      Require(kInput, kOutput, SizeOf(kInput));
      Require(kOutput, kInput, SizeOf(kOutput));
    }
    return true;
  }

  const LiveRange& RangeOf(int32_t buffer) const { return ranges_[buffer]; }
  int64_t bound_bytes() const { return bound_bytes_; }
  const PairDistances& distances() const { return distances_; }

 private:
  int64_t SizeOf(int32_t buffer) const {
    return program_.buffers[static_cast<size_t>(buffer)].size_bytes;
  }
  bool IsPlaced(const Operand& operand) const {
    if (!operand.present()) return false;
    const Slot slot = program_.buffers[static_cast<size_t>(operand.buffer.value())].slot;
    return slot == Slot::kData || (ports_in_data_ && slot != Slot::kWeight);
  }
  bool HasStates() const {
    return std::any_of(program_.outputs.begin(), program_.outputs.end(),
                       [](const PortTensor& port) { return port.state_input >= 0; });
  }

  static Touch& TouchOf(int32_t buffer, size_t steps, Touches& touches) {
    for (Touch& touch : touches.all) {
      if (touch.buffer == buffer) return touch;
    }
    touches.all.push_back({buffer, std::vector<ByteRange>(steps), std::vector<ByteRange>(steps)});
    return touches.all.back();
  }

  void TakeTouches(const integer::Command& command) {
    const int32_t now = static_cast<int32_t>(touches_.size());
    Touches& touches = touches_.emplace_back();
    const std::array<Operand, 2> operands = integer::OperandsOf(command.body);
    const Operand& d = integer::ResultOf(command.body).d;
    const std::vector<Step> steps = integer::StepsOf(command.body);
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!IsPlaced(operands[i])) continue;
      Touch& touch = TouchOf(operands[i].buffer.value(), steps.size(), touches);
      for (size_t s = 0; s < steps.size(); ++s) {
        touch.reads[s] =
            integer::HullOf(touch.reads[s], steps[s].reads[i].Plus(operands[i].offset_bytes));
      }
      if (integer::WalksWithResult(command.body, i) && operands[0].buffer != operands[1].buffer) {
        touch.walked = operands[i].offset_bytes - d.offset_bytes;
      }
    }
    if (touches.all.size() > 1) touches.directions = {false};
    if (IsPlaced(d)) {
      touches.written = d.buffer.value();
      Touch& touch = TouchOf(touches.written, steps.size(), touches);
      for (size_t s = 0; s < steps.size(); ++s) {
        touch.writes[s] = steps[s].writes.Plus(d.offset_bytes);
      }
    }
    if (command.sharing.parts > 1) MergeSteps(touches);
    for (const Touch& touch : touches.all) {
      LiveRange& range = ranges_[touch.buffer];
      if (range.empty()) range.first = now;
      range.last = now;
    }
  }

  // Cores take the parts of a command side by side, so that nothing is dead before its end.
  static void MergeSteps(Touches& touches) {
    for (Touch& touch : touches.all) {
      ByteRange reads, writes;
      for (const ByteRange& range : touch.reads) reads = integer::HullOf(reads, range);
      for (const ByteRange& range : touch.writes) writes = integer::HullOf(writes, range);
      touch.reads = {reads};
      touch.writes = {writes};
      touch.walked = std::nullopt;
    }
  }

  // Bytes stored before the first command are alive from there on, and those needed behind the last
  // one up to there.
  void MarkBorders() {
    const int32_t end = static_cast<int32_t>(touches_.size()) - 1;
    for (size_t i = 0; i < ranges_.size(); ++i) {
      LiveRange& range = ranges_[i];
      if (!written_[i].empty()) range = {0, std::max(range.last, 0)};
      if (!needed_[i].empty()) range = {range.empty() ? end : range.first, end};
    }
  }

  // From the last command to the first, so that needed_ is then what all commands read.
  void FindNeeds() {
    for (size_t c = touches_.size(); c-- > 0;) {
      for (Touch& touch : touches_[c].all) {
        touch.needed_later = needed_[touch.buffer];
        for (const ByteRange& range : touch.reads) {
          needed_[touch.buffer] = integer::HullOf(needed_[touch.buffer], range);
        }
      }
    }
  }

  // The bytes that a step or one behind it reads, with those stored up to the step and read later.
  Trace TraceOf(const Touch& touch, bool descending) const {
    const size_t count = touch.reads.size();
    const auto at = [&](size_t i) { return descending ? count - 1 - i : i; };
    Trace trace(count);
    ByteRange reads;
    for (size_t i = count; i-- > 0;) {
      reads = integer::HullOf(reads, touch.reads[at(i)]);
      trace[i] = reads;
    }
    ByteRange stored = written_[touch.buffer];
    for (size_t i = 0; i < count; ++i) {
      const ByteRange& writes = touch.writes[at(i)];
      stored = integer::HullOf(stored, writes);
      const ByteRange kept = integer::CommonOf(stored, touch.needed_later);
      trace[i] = integer::HullOf(integer::HullOf(trace[i], kept), writes);
    }
    return trace;
  }

  void Require(int32_t lower, int32_t upper, int64_t distance) {
    if (distance == kNever) return;
    PairDistance& pair = distances_[std::minmax(lower, upper)];
    int64_t& above = lower < upper ? pair.second_above : pair.first_above;
    above = std::max(above, distance);
  }

  // The least distance from the begin of `lower` to that of `upper`; kNever: they are never alive
  // together.
  static int64_t DistanceOf(const Trace& lower, const Trace& upper) {
    int64_t distance = kNever;
    for (size_t i = 0; i < lower.size(); ++i) {
      if (lower[i].empty() || upper[i].empty()) continue;
      distance = std::max(distance, lower[i].end - upper[i].begin);
    }
    return distance;
  }

  // Two buffers that a command touches: in the direction that asks for less.
  void RequireOfTouched(const Touches& touches, const Traces& traces, size_t lower, size_t upper) {
    int64_t distance = std::numeric_limits<int64_t>::max();
    for (const bool descending : touches.directions) {
      int64_t its = DistanceOf(traces[lower][descending], traces[upper][descending]);
      // Element over element: upwards the result lies not above its operand, downwards not below.
      const Touch& operand = touches.all[descending ? lower : upper];
      const Touch& result = touches.all[descending ? upper : lower];
      if (operand.walked.has_value() && result.buffer == touches.written &&
          operand.needed_later.empty() && written_[result.buffer].empty()) {
        its = std::min(its, descending ? *operand.walked : -*operand.walked);
      }
      distance = std::min(distance, its);
    }
    Require(touches.all[lower].buffer, touches.all[upper].buffer, distance);
  }

  void TakeCommand(const Touches& touches, const std::vector<int32_t>& alive) {
    int64_t idle_bytes = 0;          // of buffers that the command does not touch
    std::vector<ByteRange> touched;  // alive at some step; long nets have hundreds of idle buffers
    Traces traces(touches.all.size());
    for (size_t i = 0; i < touches.all.size(); ++i) {
      for (const bool descending : touches.directions) {
        traces[i][descending] = TraceOf(touches.all[i], descending);
      }
      ByteRange& hull = touched.emplace_back();
      for (const ByteRange& alive_now : traces[i][0]) hull = integer::HullOf(hull, alive_now);
    }
    for (const int32_t other : alive) {
      if (std::any_of(touches.all.begin(), touches.all.end(),
                      [other](const Touch& touch) { return touch.buffer == other; })) {
        continue;
      }
      const ByteRange range = integer::CommonOf(written_[other], needed_[other]);
      if (range.empty()) continue;
      idle_bytes += range.size();
      for (size_t i = 0; i < touched.size(); ++i) {
        if (touched[i].empty()) continue;
        Require(other, touches.all[i].buffer, range.end - touched[i].begin);
        Require(touches.all[i].buffer, other, touched[i].end - range.begin);
      }
    }
    for (size_t lower = 0; lower < touches.all.size(); ++lower) {
      for (size_t upper = 0; upper < touches.all.size(); ++upper) {
        if (lower != upper) RequireOfTouched(touches, traces, lower, upper);
      }
    }
    TakeBound(touches, traces, idle_bytes);
    for (const Touch& touch : touches.all) {
      for (const ByteRange& range : touch.writes) {
        written_[touch.buffer] = integer::HullOf(written_[touch.buffer], range);
      }
      needed_[touch.buffer] = touch.needed_later;
    }
  }

  // An element that lies over its operand takes no byte of its own: where there may be one, what
  // the step itself stores is not counted.
  void TakeBound(const Touches& touches, const Traces& traces, int64_t idle_bytes) {
    const bool is_walked = std::any_of(touches.all.begin(), touches.all.end(),
                                       [](const Touch& touch) { return touch.walked.has_value(); });
    int64_t least = std::numeric_limits<int64_t>::max();
    for (const bool descending : touches.directions) {
      int64_t most = 0;
      std::vector<int64_t> bytes;
      for (size_t t = 0; t < touches.all.size(); ++t) {
        const Trace& trace = traces[t][descending];
        const size_t late = is_walked && touches.all[t].buffer == touches.written ? 1 : 0;
        bytes.resize(trace.size());
        for (size_t i = late; i < trace.size(); ++i) bytes[i] += trace[i - late].size();
      }
      for (const int64_t sum : bytes) most = std::max(most, sum);
      least = std::min(least, most);
    }
    if (!touches.all.empty()) bound_bytes_ = std::max(bound_bytes_, least + idle_bytes);
  }

  const integer::Program& program_;
  const bool ports_in_data_;
  std::vector<Touches> touches_;  // by command
  std::vector<LiveRange> ranges_;
  // By buffer, as of the command that is being taken: what has been stored, what will be read.
  std::vector<ByteRange> written_, needed_;
  PairDistances distances_;
  int64_t bound_bytes_ = 0;
};

// The buffers that are placed, as items.
struct RowItems {
  std::vector<int32_t> buffers;
  std::vector<PlacementItem> items;
  Distances distances;
  int64_t bound_bytes = 0;
};

RowItems RowItemsOf(const integer::Program& program, const RowLives& lives,
                    int64_t alignment_bytes) {
  RowItems result;
  std::vector<int32_t> item_of(program.buffers.size(), -1);
  result.bound_bytes = RoundUp(lives.bound_bytes(), alignment_bytes);
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const LiveRange& range = lives.RangeOf(static_cast<int32_t>(i));
    const int64_t size = RoundUp(program.buffers[i].size_bytes, alignment_bytes);
    if (range.empty() || size == 0) continue;
    item_of[i] = static_cast<int32_t>(result.items.size());
    result.buffers.push_back(static_cast<int32_t>(i));
    result.items.push_back({size, range});
    result.bound_bytes = std::max(result.bound_bytes, size);
  }
  result.distances.resize(result.items.size());
  // In any order: a placement takes all neighbours of an item at once.
  for (const auto& [pair, distance] : lives.distances()) {
    const int32_t first = item_of[pair.first];
    const int32_t second = item_of[pair.second];
    if (first < 0 || second < 0) continue;
    const int64_t second_above = RoundUp(distance.second_above, alignment_bytes);
    const int64_t first_above = RoundUp(distance.first_above, alignment_bytes);
    result.distances[first].push_back({second, first_above, second_above});
    result.distances[second].push_back({first, second_above, first_above});
  }
  return result;
}

// The inputs are stored before the first command, and the outputs are read behind the last one.
RowBorders BordersOfPorts(const integer::Program& program) {
  RowBorders borders;
  borders.stored.resize(program.buffers.size());
  borders.needed.resize(program.buffers.size());
  borders.stored[kInput] = {0, program.buffers[kInput].size_bytes};
  borders.needed[kOutput] = {0, program.buffers[kOutput].size_bytes};
  return borders;
}

// Ascending, unless the result lies over bytes that are read later only so.
void SetDirections(integer::Program& program) {
  for (integer::Command& command : program.commands) {
    const std::array<Operand, 2> operands = integer::OperandsOf(command.body);
    const Operand& d = integer::ResultOf(command.body).d;
    const Buffer& to = program.buffers[static_cast<size_t>(d.buffer.value())];
    const std::vector<Step> steps = integer::StepsOf(command.body);
    const auto clobbers = [&](size_t i) {
      if (!operands[i].present()) return false;
      const Buffer& from = program.buffers[static_cast<size_t>(operands[i].buffer.value())];
      const int64_t distance =
          to.offset_bytes + d.offset_bytes - from.offset_bytes - operands[i].offset_bytes;
      return from.slot == to.slot &&
             integer::Clobbers(command.body, steps, i, distance, /*descending=*/false);
    };
    command.descending = clobbers(0) || clobbers(1);
  }
}

}  // namespace

absl::StatusOr<MemoryPlanResult> PlanMemoryByRows(integer::Program& program,
                                                  int64_t alignment_bytes, bool ports_in_data) {
  RowLives lives(program, ports_in_data ? BordersOfPorts(program) : RowBorders(), ports_in_data);
  const bool fits = lives.Run();
  const RowItems items = RowItemsOf(program, lives, alignment_bytes);
  if (!fits || items.items.size() > kMaxItems) return PlanMemory(program, alignment_bytes);
  NodeBudget budget{kRowNodes};
  Offsets offsets;
  const bool is_optimal =
      PlaceByDistances(items.items, items.distances, items.bound_bytes, budget, offsets);
  if (ports_in_data) {
    program.buffers[kInput].slot = Slot::kData;
    program.buffers[kOutput].slot = Slot::kData;
  }
  for (Buffer& buffer : program.buffers) {
    if (buffer.slot == Slot::kData) buffer.offset_bytes = 0;
  }
  for (size_t i = 0; i < items.buffers.size(); ++i) {
    program.buffers[static_cast<size_t>(items.buffers[i])].offset_bytes = offsets[i];
  }
  if (ports_in_data) {
    program.input_offset = program.buffers[kInput].offset_bytes;
    program.output_offset = program.buffers[kOutput].offset_bytes;
  }
  program.data_bytes = ArenaOf(items.items, offsets);
  SetDirections(program);
  MemoryPlanResult result;
  result.arena_bytes = program.data_bytes;
  result.lower_bound_bytes = items.bound_bytes;
  result.method = is_optimal ? PlanMethod::kRowsOptimal : PlanMethod::kRowsEnded;
  result.search_nodes = kRowNodes - std::max<int64_t>(budget.nodes, 0);
  return result;
}

std::optional<int64_t> ArenaOfPart(const integer::Program& part, const RowBorders& borders,
                                   int64_t alignment_bytes, bool ports_in_data, int64_t max_nodes,
                                   absl::FunctionRef<bool(int64_t bound_bytes)> is_worth_it) {
  RowLives lives(part, borders, ports_in_data);
  if (!lives.Run()) return std::nullopt;
  const RowItems items = RowItemsOf(part, lives, alignment_bytes);
  if (items.items.size() > kMaxItems || !is_worth_it(items.bound_bytes)) return std::nullopt;
  NodeBudget budget{max_nodes};
  Offsets offsets;
  PlaceByDistances(items.items, items.distances, items.bound_bytes, budget, offsets);
  return ArenaOf(items.items, offsets);
}

}  // namespace npuc
