#include "compiler_core/memplan/order.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/cmd/access.h"
#include "compiler_core/ir/integer/access.h"

namespace npuc {
namespace {

constexpr size_t kBeamWidth = 8;
// Buffers that more layers touch keep the order of all of these.
constexpr size_t kMaxComparedTouches = 256;

// Commands of one layer that follow each other, and the bytes of data that they touch.
struct OrderedLayer {
  size_t first = 0;
  size_t end = 0;
  struct Touch {
    int32_t buffer = 0;
    int64_t begin = 0;
    int64_t end = 0;
    bool writes = false;
  };
  std::vector<Touch> touches;
  std::vector<int32_t> buffers;  // of the touches, each once
  std::vector<size_t> before;    // layers that must be done before this one
  std::vector<size_t> behind;    // layers that wait for this one
  // It frees nothing. The search does it right before the first layer that waits for it.
  bool is_delayed = false;
  std::vector<size_t> brings;  // delayed layers that must be done right before this one; ascending
};

bool MustKeepOrder(const OrderedLayer::Touch& a, const OrderedLayer::Touch& b) {
  return (a.writes || b.writes) && a.begin < b.end && b.begin < a.end;
}

// The layers, what waits for what, and how many bytes are alive once a set of layers is done.
class Net {
 public:
  Net(const CommandView& view, const OrderRules& rules) : view_(view), rules_(rules) {
    for (size_t i = 0; i < view.command_count; ++i) Take(i);
    touching_.resize(view.buffers.size());
    for (size_t i = 0; i < layers_.size(); ++i) {
      for (const int32_t buffer : layers_[i].buffers) touching_[buffer].push_back(i);
    }
  }

  // Finds which layers wait for which; all below stands on it.
  void FindDependences() {
    std::set<std::pair<size_t, size_t>> pairs;
    for (size_t i = 0; i < touching_.size(); ++i) {
      const std::vector<size_t>& layers = touching_[i];
      const bool compared = layers.size() <= kMaxComparedTouches;
      for (size_t second = 1; second < layers.size(); ++second) {
        for (size_t first = compared ? 0 : second - 1; first < second; ++first) {
          if (!compared || MustKeepOrder(layers[first], layers[second], static_cast<int32_t>(i))) {
            pairs.insert({layers[first], layers[second]});
          }
        }
      }
    }
    for (size_t i = 0; rules_.last_stays && i + 1 < layers_.size(); ++i) {
      pairs.insert({i, layers_.size() - 1});
    }
    for (const auto& [first, second] : pairs) {
      layers_[first].behind.push_back(second);
      layers_[second].before.push_back(first);
    }
  }

  // A layer that frees nothing only adds to what is alive. So some best order has it right before
  // the first layer that waits for it, and the search does not choose its place. Padding, copies of
  // slices and constants are such layers; each of them would double the sets of layers to look at.
  // Changes `before`, `behind` and `brings`.
  void DelayWhatFreesNothing() {
    for (OrderedLayer& layer : layers_) layer.is_delayed = FreesNothing(layer);
    for (OrderedLayer& layer : layers_) {
      std::set<size_t> before;
      std::set<size_t> brings;
      for (const size_t other : layer.before) {
        if (!layers_[other].is_delayed) {
          before.insert(other);
          continue;
        }
        brings.insert(other);
        brings.insert(layers_[other].brings.begin(), layers_[other].brings.end());
        before.insert(layers_[other].before.begin(), layers_[other].before.end());
      }
      layer.before.assign(before.begin(), before.end());
      layer.brings.assign(brings.begin(), brings.end());
      layer.behind.clear();
    }
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (layers_[i].is_delayed) continue;
      for (const size_t other : layers_[i].before) layers_[other].behind.push_back(i);
    }
  }

  const std::vector<OrderedLayer>& layers() const { return layers_; }

  size_t buffer_count() const { return touching_.size(); }
  // True where a buffer is alive once so many of the layers that touch it are done.
  bool IsAlive(int32_t buffer, size_t done) const {
    const Slot slot = view_.buffers[buffer].slot;
    const bool begun = slot == Slot::kInput || done > 0;
    const bool ended = slot != Slot::kOutput && done == touching_[buffer].size();
    return begun && !ended;
  }
  // Counts only memory that an order can save.
  int64_t SizeOf(int32_t buffer) const {
    const bool counts = view_.buffers[buffer].slot == Slot::kData || rules_.ports_in_data;
    return counts ? view_.buffers[buffer].size_bytes : 0;
  }

  int64_t AliveAtStart() const {
    int64_t bytes = 0;
    for (size_t i = 0; i < touching_.size(); ++i) {
      const auto buffer = static_cast<int32_t>(i);
      if (!touching_[i].empty() && IsAlive(buffer, 0)) bytes += SizeOf(buffer);
    }
    return bytes;
  }

  // The bytes that become alive when `layer` is done. touched: of each buffer, how many of the
  // layers that touch it are done before.
  int64_t Growth(size_t layer, const std::vector<uint32_t>& touched) const {
    int64_t bytes = 0;
    for (const int32_t buffer : layers_[layer].buffers) {
      const size_t done = touched[buffer];
      const int before = IsAlive(buffer, done) ? 1 : 0;
      const int behind = IsAlive(buffer, done + 1) ? 1 : 0;
      bytes += (behind - before) * SizeOf(buffer);
    }
    return bytes;
  }

  // True where nothing but layers that it brings must be done before it.
  bool IsReady(size_t layer, const std::vector<bool>& done) const {
    return !layers_[layer].is_delayed && !done[layer] && AreDone(layers_[layer].before, done);
  }
  bool BringsNothing(size_t layer, const std::vector<bool>& done) const {
    return AreDone(layers_[layer].brings, done);
  }

  // All that a layer reads of others is alive at once in every order, and all that it stores for
  // others. Asked for before layers are delayed.
  int64_t LowerBound() const {
    int64_t bound = AliveAtStart();
    for (const OrderedLayer& layer : layers_) {
      int64_t read = 0;
      int64_t stored = 0;
      for (const int32_t buffer : layer.buffers) {
        const bool is_input = view_.buffers[buffer].slot == Slot::kInput;
        if (is_input || AnyTouches(layer.before, buffer)) read += SizeOf(buffer);
        if (AnyTouches(layer.behind, buffer)) stored += SizeOf(buffer);
      }
      bound = std::max({bound, read, stored});
    }
    return bound;
  }

 private:
  static bool AreDone(const std::vector<size_t>& layers, const std::vector<bool>& done) {
    return std::all_of(layers.begin(), layers.end(), [&](size_t layer) { return done[layer]; });
  }

  // True where some layer waits for it and all memory that it touches is alive until one of these
  // is done.
  bool FreesNothing(const OrderedLayer& layer) const {
    return !layer.behind.empty() &&
           std::all_of(layer.buffers.begin(), layer.buffers.end(), [&](int32_t buffer) {
             return SizeOf(buffer) == 0 || AnyTouches(layer.behind, buffer);
           });
  }

  bool AnyTouches(const std::vector<size_t>& layers, int32_t buffer) const {
    return std::any_of(layers.begin(), layers.end(), [&](size_t layer) {
      const std::vector<size_t>& touching = touching_[buffer];
      return std::binary_search(touching.begin(), touching.end(), layer);
    });
  }

  void Take(size_t command) {
    if (layers_.empty() || view_.node(command) != view_.node(layers_.back().first)) {
      layers_.emplace_back().first = command;
    }
    OrderedLayer& layer = layers_.back();
    layer.end = command + 1;
    for (const Access& access : view_.accesses(command)) {
      if (!access.operand.present()) continue;
      const auto buffer = static_cast<size_t>(access.operand.buffer.value());
      if (view_.buffers[buffer].slot == Slot::kWeight) continue;
      const int64_t begin = access.operand.offset_bytes;
      const bool known = access.size_bytes != Access::kUnknown;
      Touch({access.operand.buffer.value(), known ? begin : 0,
             known ? begin + access.size_bytes : view_.buffers[buffer].size_bytes, access.writes},
            layer);
      const int32_t under = buffer < rules_.lies_over.size() ? rules_.lies_over[buffer] : -1;
      if (access.writes && under >= 0) {
        Touch({under, 0, view_.buffers[under].size_bytes, /*writes=*/true}, layer);
      }
    }
  }

  static void Touch(const OrderedLayer::Touch& touch, OrderedLayer& layer) {
    layer.touches.push_back(touch);
    if (std::find(layer.buffers.begin(), layer.buffers.end(), touch.buffer) ==
        layer.buffers.end()) {
      layer.buffers.push_back(touch.buffer);
    }
  }

  bool MustKeepOrder(size_t first, size_t second, int32_t buffer) const {
    for (const OrderedLayer::Touch& a : layers_[first].touches) {
      if (a.buffer != buffer) continue;
      for (const OrderedLayer::Touch& b : layers_[second].touches) {
        if (b.buffer == buffer && npuc::MustKeepOrder(a, b)) return true;
      }
    }
    return false;
  }

  const CommandView& view_;
  const OrderRules& rules_;
  std::vector<OrderedLayer> layers_;
  std::vector<std::vector<size_t>> touching_;  // by buffer: the layers, ascending
};

// Bytes that are alive behind an order's last layer, and the most of them on the way.
struct Cost {
  int64_t alive = 0;
  int64_t peak = 0;
};

// A set of layers that are done, and what the order that led there costs.
struct State {
  std::vector<bool> done;
  // By buffer: how many of the layers that touch it are done. Looked up each time, they were a
  // tenth of a small net's compile.
  std::vector<uint32_t> touched;
  std::vector<size_t> ready;  // ascending
  int64_t last_step = -1;     // of Search::steps_
  int64_t count = 0;          // layers done
  Cost cost;
};

class Search {
 public:
  explicit Search(const Net& net) : net_(net) {
    start_.done.resize(net.layers().size());
    start_.touched.resize(net.buffer_count());
    for (size_t i = 0; i < net.layers().size(); ++i) {
      if (net.IsReady(i, start_.done)) start_.ready.push_back(i);
    }
    start_.cost.alive = start_.cost.peak = net.AliveAtStart();
  }

  State InGivenOrder() {
    State state = start_;
    for (size_t i = 0; i < net_.layers().size(); ++i) DoAlone(i, state);
    return state;
  }

  // Expands the set with the smallest peak first: the first whole one is the best. None where the
  // budget ends.
  std::optional<State> BestFirst(int64_t max_nodes) {
    // By peak; the fullest set first, then the one found first.
    std::map<std::tuple<int64_t, int64_t, int64_t>, State> open;
    std::unordered_set<std::vector<bool>> seen;
    const auto add = [&](State state) {
      DoWhatFrees(state);
      open.emplace(std::tuple(state.cost.peak, -state.count, nodes_++), std::move(state));
    };
    add(start_);
    while (!open.empty() && nodes_ < max_nodes) {
      const State state = std::move(open.extract(open.begin()).mapped());
      if (IsWhole(state)) return state;
      if (!seen.insert(state.done).second) continue;
      for (const size_t layer : state.ready) {
        State next = state;
        Do(layer, next);
        add(std::move(next));
      }
    }
    return std::nullopt;
  }

  // Goes on, layer by layer, with the few sets of the smallest peaks.
  State Beam() {
    std::vector<State> beam = {start_};
    while (!IsWhole(beam.front())) {
      std::vector<Candidate> candidates;
      for (const State& state : beam) {
        for (const size_t layer : state.ready) {
          candidates.push_back({CostOf(layer, state), nodes_++, &state, layer});
        }
      }
      std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
        return std::tie(a.cost.peak, a.cost.alive, a.node) <
               std::tie(b.cost.peak, b.cost.alive, b.node);
      });
      std::vector<State> next;
      std::unordered_set<std::vector<bool>> seen;
      for (const Candidate& one : candidates) {
        if (next.size() == kBeamWidth) break;
        State state = *one.from;
        Do(one.layer, state);
        if (seen.insert(state.done).second) next.push_back(std::move(state));
      }
      beam = std::move(next);
    }
    return std::move(beam.front());
  }

  std::vector<size_t> OrderOf(const State& state) const {
    std::vector<size_t> order;
    for (int64_t at = state.last_step; at >= 0; at = steps_[static_cast<size_t>(at)].before) {
      order.push_back(steps_[static_cast<size_t>(at)].layer);
    }
    std::reverse(order.begin(), order.end());
    return order;
  }

  int64_t nodes() const { return nodes_; }

 private:
  struct Step {
    int64_t before = -1;
    size_t layer = 0;
  };

  // A layer that the beam may do next.
  struct Candidate {
    Cost cost;
    int64_t node = 0;
    const State* from = nullptr;
    size_t layer = 0;
  };

  bool IsWhole(const State& state) const {
    return static_cast<size_t>(state.count) == net_.layers().size();
  }

  void Add(size_t layer, std::vector<uint32_t>& touched, Cost& cost) const {
    cost.alive += net_.Growth(layer, touched);
    cost.peak = std::max(cost.peak, cost.alive);
    for (const int32_t buffer : net_.layers()[layer].buffers) ++touched[buffer];
  }

  // Tells the cost of Do(layer, state), which itself takes many times as long.
  Cost CostOf(size_t layer, const State& state) const {
    std::vector<uint32_t> touched = state.touched;
    Cost cost = state.cost;
    for (const size_t other : net_.layers()[layer].brings) {
      if (!state.done[other]) Add(other, touched, cost);
    }
    Add(layer, touched, cost);
    return cost;
  }

  void DoAlone(size_t layer, State& state) {
    Add(layer, state.touched, state.cost);
    state.done[layer] = true;
    ++state.count;
    steps_.push_back({state.last_step, layer});
    state.last_step = static_cast<int64_t>(steps_.size()) - 1;
  }

  void Do(size_t layer, State& state) {
    for (const size_t other : net_.layers()[layer].brings) {
      if (!state.done[other]) DoAlone(other, state);
    }
    DoAlone(layer, state);
    std::erase(state.ready, layer);
    for (const size_t behind : net_.layers()[layer].behind) {
      if (net_.IsReady(behind, state.done)) state.ready.push_back(behind);
    }
    std::sort(state.ready.begin(), state.ready.end());
  }

  // A layer behind which no more bytes are alive than before comes next in some best order: in each
  // order it changes the bytes by as much or by less, so that doing it at once adds to no peak.
  void DoWhatFrees(State& state) {
    for (size_t i = 0; i < state.ready.size();) {
      const size_t layer = state.ready[i];
      if (!net_.BringsNothing(layer, state.done) || net_.Growth(layer, state.touched) > 0) {
        ++i;
        continue;
      }
      Do(layer, state);
      i = 0;
    }
  }

  const Net& net_;
  State start_;
  std::vector<Step> steps_;  // of all orders that were begun
  int64_t nodes_ = 0;
};

}  // namespace

CommandOrder OrderForMemory(const CommandView& view, const OrderRules& rules, int64_t max_nodes) {
  Net net(view, rules);
  CommandOrder result;
  if (net.layers().size() > kMaxOrderedLayers) {
    for (size_t i = 0; i < view.command_count; ++i) result.commands.push_back(i);
    return result;
  }
  net.FindDependences();
  const int64_t bound = net.LowerBound();
  net.DelayWhatFreesNothing();
  Search search(net);
  State best = search.InGivenOrder();
  result.given_peak_bytes = best.cost.peak;
  result.is_optimal = best.cost.peak == bound;
  if (!result.is_optimal) {
    std::optional<State> found = search.BestFirst(max_nodes);
    result.is_optimal = found.has_value();
    if (!found.has_value()) found = search.Beam();
    if (found->cost.peak < best.cost.peak) best = *std::move(found);
    result.nodes = search.nodes();
  }
  result.peak_bytes = best.cost.peak;
  for (const size_t layer : search.OrderOf(best)) {
    const OrderedLayer& commands = net.layers()[layer];
    for (size_t i = commands.first; i < commands.end; ++i) result.commands.push_back(i);
  }
  return result;
}

namespace {

template <typename AnyProgram, typename Plan>
absl::StatusOr<MemoryPlanResult> PlanTheBetter(const CommandOrder& order, const Plan& plan,
                                               AnyProgram& program) {
  const bool is_worth_it = order.peak_bytes < order.given_peak_bytes;
  AnyProgram other;
  if (is_worth_it) {
    other = program;
    for (size_t i = 0; i < order.commands.size(); ++i) {
      other.commands[i] = program.commands[order.commands[i]];
    }
  }
  ASSIGN_OR_RETURN(MemoryPlanResult result, plan(program));
  if (is_worth_it) {
    ASSIGN_OR_RETURN(MemoryPlanResult other_result, plan(other));
    if (other_result.arena_bytes < result.arena_bytes) {
      result = other_result;
      result.is_reordered = true;
      program = std::move(other);
    }
  }
  if (order.is_optimal) result.order_bound_bytes = order.peak_bytes;
  return result;
}

}  // namespace

absl::StatusOr<MemoryPlanResult> PlanInBestOrder(Program& program, int64_t alignment_bytes) {
  // The commands of a step are one layer: only the first of them waits for what is before. The last
  // one stays, since a stream must end with a vector command.
  std::vector<std::string> steps;
  int count = 0;
  for (const Command& command : program.commands) {
    steps.push_back(absl::StrCat(command.waits ? ++count : count));
  }
  const auto accesses = [&](size_t i) { return AccessesOf(program.commands[i]); };
  const auto layer = [&](size_t i) -> absl::string_view { return steps[i]; };
  const CommandOrder order =
      OrderForMemory({absl::MakeSpan(program.buffers), program.commands.size(), accesses, layer},
                     {.last_stays = true, .lies_over = StatesUnderOutputs(program)});
  return PlanTheBetter(
      order, [&](Program& one) { return PlanMemory(one, alignment_bytes); }, program);
}

absl::StatusOr<MemoryPlanResult> PlanInBestOrder(integer::Program& program, int64_t alignment_bytes,
                                                 bool ports_in_data) {
  const auto accesses = [&](size_t i) { return integer::AccessesOf(program.commands[i].body); };
  const auto layer = [&](size_t i) -> absl::string_view { return program.commands[i].layer; };
  const CommandOrder order =
      OrderForMemory({absl::MakeSpan(program.buffers), program.commands.size(), accesses, layer},
                     {.ports_in_data = ports_in_data});
  return PlanTheBetter(
      order,
      [&](integer::Program& one) { return PlanMemoryByRows(one, alignment_bytes, ports_in_data); },
      program);
}

}  // namespace npuc
