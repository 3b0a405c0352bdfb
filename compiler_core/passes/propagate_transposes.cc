// Transposes are moved by choosing, for whole regions of a graph, in which order values are stored.
//
// A transpose, seen as storage, says that its result may be had without moving anything if its
// users take it as its operand is stored. From there a region grows: every node that can compute on
// values stored so (layout_rules.h), its other operands and results, their nodes, and so on. Which
// of these nodes are in the end relaid is a cut through the region: each edge between a relaid node
// and one that is not costs a transpose of the value, each transpose that becomes superfluous saves
// one, and the cheapest cut is a minimum cut. It is taken only where fewer elements are transposed
// in the whole graph afterwards, so this ends.

#include <algorithm>
#include <compare>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/passes/apply.h"
#include "compiler_core/passes/layout.h"
#include "compiler_core/passes/layout_rules.h"
#include "compiler_core/passes/min_cut.h"
#include "compiler_core/passes/rewriter.h"

namespace npuc {
namespace {

constexpr size_t kMaxRegionNodes = 4096;
// Nodes looked at in all regions of all rounds; real models stay far below.
constexpr int64_t kMaxVisits = int64_t{1} << 21;
// A new permutation may not take more copy commands than this; the lowering refuses 2^16.
constexpr int64_t kMaxMoveCommands = int64_t{1} << 12;

const std::vector<int64_t>& PermOf(const Node& node) {
  return std::get<std::vector<int64_t>>(node.attrs.find("perm")->second);
}

// What the transposes of a graph come to. One of too many commands may stay, but none may be made,
// so those count first.
struct Load {
  int64_t with_many_commands = 0;
  int64_t elements = 0;
  auto operator<=>(const Load&) const = default;
};

// A transpose that moves only dimensions of 1 moves nothing.
Load TransposeLoad(const Graph& graph) {
  Load load;
  for (const Node& node : graph.nodes()) {
    load.elements += HiddenTransposeElements(graph, node);
    if (node.op != Op::kTranspose) continue;
    const Shape& shape = graph.type(node.inputs[0]).shape;
    const int64_t count = ElementCount(shape);
    const std::optional<Layout> layout =
        ThroughTranspose(NaturalLayout(count), shape, PermOf(node));
    if (!layout.has_value() || layout->natural()) continue;  // null: no elements at all
    load.elements += count;
    const std::optional<Conversion> conversion = ConversionOf(*layout, NaturalLayout(count));
    if (CommandsOf(*conversion) > kMaxMoveCommands) ++load.with_many_commands;
  }
  return load;
}

// Elements that a conversion moves; infinite where it should not be made.
int64_t ConversionCost(const Layout& from, const Layout& to) {
  if (from == to) return 0;  // often
  const std::optional<Conversion> conversion = ConversionOf(from, to);
  if (!conversion.has_value()) return MinCut::kInfinite;
  if (!conversion->moves()) return 0;
  if (CommandsOf(*conversion) > kMaxMoveCommands) return MinCut::kInfinite;
  return ElementCount(conversion->shape);
}

// A graph with what the search asks about it again and again.
struct Indexed {
  explicit Indexed(const Graph& g) : graph(g), use_counts(g.UseCounts()), users(g.value_count()) {
    for (int i = 0; i < g.node_count(); ++i) {
      for (const ValueId input : g.nodes()[i].inputs) {
        std::vector<int>& list = users[input.value()];
        if (list.empty() || list.back() != i) list.push_back(i);
      }
    }
    is_output.assign(g.value_count(), false);
    for (const GraphOutput& output : g.outputs()) is_output[output.value.value()] = true;
  }
  const Node& node(int i) const { return graph.nodes()[i]; }
  int producer(ValueId value) const { return graph.value(value).def.value(); }
  bool is_constant(ValueId value) const { return graph.ConstantOf(value) != nullptr; }
  const Shape& shape(ValueId value) const { return graph.type(value).shape; }
  Layout natural(ValueId value) const { return NaturalLayout(ElementCount(shape(value))); }
  LayoutNode layout_node(int i) const {
    const Node& n = node(i);
    const bool sole = n.op == Op::kMatMul && use_counts[n.inputs[1].value()] == 1;
    return {graph, n, sole};
  }

  const Graph& graph;
  std::vector<int> use_counts;          // by value
  std::vector<std::vector<int>> users;  // by value: node indices, each once
  std::vector<bool> is_output;
};

// ---- the region ---------------------------------------------------------------------------------

// Nodes that could be relaid together, and the layouts that their values would have. Values that
// would stay natural are among them; constants are not.
struct Region {
  std::map<int, Layout> layouts;  // by value id
  std::map<int, int> nodes;       // node index -> position in the cut
};

class RegionGrower {
 public:
  RegionGrower(const Indexed& graph, int64_t& visits) : graph_(graph), visits_(visits) {}

  Region Grow(ValueId value, const Layout& layout) {
    if (layout.natural()) return {};
    region_.layouts[value.value()] = layout;
    std::vector<ValueId> queue = {value};
    for (size_t i = 0; i < queue.size(); ++i) {
      const ValueId at = queue[i];
      Try(graph_.producer(at), queue);
      for (const int user : graph_.users[at.value()]) Try(user, queue);
    }
    return std::move(region_);
  }

 private:
  void Try(int index, std::vector<ValueId>& queue) {
    const Node& node = graph_.node(index);
    if (node.op == Op::kTranspose || node.op == Op::kPlaceholder || node.op == Op::kConst ||
        region_.nodes.contains(index) || region_.nodes.size() >= kMaxRegionNodes || --visits_ < 0) {
      return;
    }
    const LayoutNode n = graph_.layout_node(index);
    NodeLayouts layouts(n.value_count());
    for (size_t i = 0; i < layouts.size(); ++i) {
      const auto it = region_.layouts.find(n.value(i).value());
      if (it != region_.layouts.end()) layouts[i] = it->second;
    }
    if (!CompleteLayouts(n, layouts)) return;
    region_.nodes.emplace(index, static_cast<int>(region_.nodes.size()));
    for (size_t i = 0; i < layouts.size(); ++i) {
      const ValueId value = n.value(i);
      if (graph_.is_constant(value)) continue;
      const bool added = region_.layouts.emplace(value.value(), *layouts[i]).second;
      if (added && !layouts[i]->natural()) queue.push_back(value);
    }
  }

  const Indexed& graph_;
  int64_t& visits_;
  Region region_;
};

// ---- the cut ------------------------------------------------------------------------------------

// On the source's side are the nodes to relay.
class RegionCut {
 public:
  RegionCut(const Indexed& graph, const Region& region) : graph_(graph), region_(region) {
    for (size_t i = 0; i < region.nodes.size(); ++i) cut_.AddNode();
    for (const auto& [index, position] : region.nodes) {
      // Where the node stays it transposes by itself.
      Edge(MinCut::kSource, CutNode(position),
           HiddenTransposeElements(graph.graph, graph.node(index)));
    }
    for (const auto& [value, layout] : region.layouts) {
      if (!layout.natural()) AddValue(ValueId(value), layout);
    }
  }

  // The nodes to relay; none where that would not save anything.
  std::vector<int> Solve() {
    const int64_t cost = cut_.Solve();
    std::vector<int> relaid;
    if (cost >= stay_cost_) return relaid;
    for (const auto& [index, position] : region_.nodes) {
      if (cut_.OnSourceSide(CutNode(position))) relaid.push_back(index);
    }
    return relaid;
  }

 private:
  static int CutNode(int position) { return position + 2; }

  void Edge(int from, int to, int64_t capacity) {
    if (from == MinCut::kSource) stay_cost_ += capacity;
    cut_.AddEdge(from, to, capacity);
  }

  // A node that is relaid as soon as one of `members` is.
  int AnyRelaid(const std::vector<int>& members) {
    const int node = cut_.AddNode();
    for (const int member : members) cut_.AddEdge(member, node, MinCut::kInfinite);
    return node;
  }
  // A node that stays as soon as one of `members` does.
  int AnyStays(const std::vector<int>& members) {
    const int node = cut_.AddNode();
    for (const int member : members) cut_.AddEdge(node, member, MinCut::kInfinite);
    return node;
  }

  void AddValue(ValueId value, const Layout& layout) {
    const int64_t elements = ElementCount(graph_.shape(value));
    // A Quantize and the Dequantize of its integers stay side by side.
    const bool is_movable = graph_.node(graph_.producer(value)).op != Op::kQuantize;
    const int64_t there =
        is_movable ? ConversionCost(graph_.natural(value), layout) : MinCut::kInfinite;
    const int64_t back =
        is_movable ? ConversionCost(layout, graph_.natural(value)) : MinCut::kInfinite;
    std::vector<int> users;
    bool wanted_natural = graph_.is_output[value.value()];
    std::vector<int> transposes;
    for (const int user : graph_.users[value.value()]) {
      const auto it = region_.nodes.find(user);
      if (it != region_.nodes.end()) {
        users.push_back(CutNode(it->second));
      } else if (graph_.node(user).op == Op::kTranspose) {
        transposes.push_back(user);
      } else {
        wanted_natural = true;
      }
    }
    const int producer = graph_.producer(value);
    const auto it = region_.nodes.find(producer);
    if (it != region_.nodes.end()) {
      const int node = CutNode(it->second);
      if (!users.empty()) cut_.AddEdge(AnyRelaid(users), node, there);
      std::vector<int> natural = users;
      if (wanted_natural) natural.push_back(MinCut::kSink);
      if (!natural.empty()) cut_.AddEdge(node, AnyStays(natural), back);
      for (const int transpose : transposes) AddTransposeOf(value, layout, transpose, node);
      return;
    }
    if (users.empty()) return;
    const Node& def = graph_.node(producer);
    if (def.op != Op::kTranspose) {
      cut_.AddEdge(AnyRelaid(users), MinCut::kSink, there);
      return;
    }
    // A transpose serves the users that stay with its result, the others with its operand.
    if (!wanted_natural) Edge(MinCut::kSource, AnyStays(users), elements);
    const std::optional<Layout> from =
        ThroughTranspose(graph_.natural(def.inputs[0]), graph_.shape(def.inputs[0]), PermOf(def));
    cut_.AddEdge(AnyRelaid(users), MinCut::kSink,
                 from.has_value() ? ConversionCost(*from, layout) : MinCut::kInfinite);
  }

  // A transpose of a value of the region: what it costs depends on how the value is stored.
  void AddTransposeOf(ValueId value, const Layout& layout, int transpose, int producer) {
    const Node& node = graph_.node(transpose);
    const std::optional<Layout> seen = ThroughTranspose(layout, graph_.shape(value), PermOf(node));
    const int64_t relaid = seen.has_value() ? ConversionCost(*seen, graph_.natural(node.outputs[0]))
                                            : MinCut::kInfinite;
    Edge(MinCut::kSource, producer, ElementCount(graph_.shape(value)));
    cut_.AddEdge(producer, MinCut::kSink, relaid);
  }

  const Indexed& graph_;
  const Region& region_;
  MinCut cut_;
  int64_t stay_cost_ = 0;
};

// ---- writing the graph anew ---------------------------------------------------------------------

// The permuted bytes of a constant, dense, in whatever shape has as many elements.
Tensor Permuted(const Tensor& tensor, const Layout& layout) {
  const std::optional<Conversion> conversion =
      ConversionOf(NaturalLayout(tensor.element_count()), layout);
  NPUC_CHECK(conversion.has_value());
  if (!conversion->moves()) return tensor;
  const Node node{Op::kTranspose, {}, {}, {{"perm", conversion->perm}}, {}};
  absl::StatusOr<std::vector<Tensor>> result =
      DefOf(Op::kTranspose).reference(node, {tensor.WithShape(conversion->shape)});
  NPUC_CHECK(result.ok());
  return std::move((*result)[0]);
}

class Relayer {
 public:
  Relayer(const Indexed& old, const Region& region, const std::vector<bool>& relaid)
      : old_(old),
        region_(region),
        relaid_(relaid),
        natural_(old.graph.value_count()),
        stored_(old.graph.value_count()) {}

  Graph Run() {
    graph_.set_name(old_.graph.name());
    graph_.Reserve(old_.graph.node_count(), old_.graph.value_count());
    for (int i = 0; i < old_.graph.node_count(); ++i) {
      const Node& node = old_.node(i);
      if (relaid_[i]) {
        Relay(i);
      } else if (node.op != Op::kTranspose) {
        Copy(node);
      } else if (old_.graph.def(node.inputs[0]).op == Op::kTranspose) {
        Natural(node.inputs[0]);  // so that transposes of transposes do not wait for each other
      }
    }
    for (const GraphOutput& output : old_.graph.outputs()) {
      graph_.AddOutput({output.name, Natural(output.value), output.fp16});
    }
    return std::move(graph_);
  }

 private:
  class Emitter : public LayoutEmitter {
   public:
    Emitter(Relayer& relayer, const Node& node, const NodeLayouts& layouts)
        : relayer_(relayer), node_(node), layouts_(layouts) {}
    Graph& graph() override { return relayer_.graph_; }
    ValueId Operand(size_t i, const Shape& shape) override {
      const ValueId value = node_.inputs[i];
      if (const Tensor* constant = relayer_.old_.graph.ConstantOf(value)) {
        return Constant(value, Permuted(*constant, *layouts_[i]).WithShape(shape));
      }
      return relayer_.Reshaped(relayer_.Stored(value), shape, node_.source);
    }
    ValueId PermutedWeight(size_t i) override {
      const ValueId value = node_.inputs[i];
      if (layouts_[i]->natural()) return relayer_.Natural(value);
      const Tensor& constant = *relayer_.old_.graph.ConstantOf(value);
      return Constant(value, Permuted(constant, *layouts_[i]).WithShape(constant.shape()));
    }

   private:
    ValueId Constant(ValueId value, Tensor tensor) {
      return relayer_.graph_.AddConst(std::move(tensor), relayer_.old_.graph.def(value).source);
    }
    Relayer& relayer_;
    const Node& node_;
    const NodeLayouts& layouts_;
  };

  const Layout* RegionLayout(ValueId value) const {
    const auto it = region_.layouts.find(value.value());
    return it == region_.layouts.end() || it->second.natural() ? nullptr : &it->second;
  }

  void Copy(const Node& node) {
    std::vector<ValueId> inputs;
    std::vector<TensorType> types;
    for (const ValueId input : node.inputs) inputs.push_back(Natural(input));
    for (const ValueId output : node.outputs) types.push_back(old_.graph.type(output));
    const NodeId id =
        graph_.AddNode(node.op, std::move(inputs), node.attrs, std::move(types), node.source);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      natural_[node.outputs[i].value()] = graph_.node(id).outputs[i];
    }
  }

  void Relay(int index) {
    const LayoutNode n = old_.layout_node(index);
    NodeLayouts layouts(n.value_count());
    for (size_t i = 0; i < layouts.size(); ++i) {
      const auto it = region_.layouts.find(n.value(i).value());
      if (it != region_.layouts.end()) layouts[i] = it->second;
    }
    NPUC_CHECK(CompleteLayouts(n, layouts));
    Emitter emitter(*this, n.node, layouts);
    const std::vector<ValueId> results = EmitRelaid(n, layouts, emitter);
    for (size_t i = 0; i < results.size(); ++i) {
      const ValueId output = n.node.outputs[i];
      const Layout* layout = RegionLayout(output);
      const Shape& shape = old_.shape(output);
      const Shape stored = layout == nullptr ? shape : *StorageShape(*layout, shape);
      (layout == nullptr ? natural_ : stored_)[output.value()] =
          Reshaped(results[i], stored, n.node.source);
    }
  }

  ValueId Reshaped(ValueId value, const Shape& shape, const NodeSource& source) {
    if (graph_.type(value).shape == shape) return value;
    return graph_.AddValue(Op::kReshape, {value}, {{"shape", shape}},
                           {graph_.type(value).dtype, shape}, DerivedSource(source, "reshape"));
  }

  // An old value in its own order.
  ValueId Natural(ValueId value) {
    ValueId& result = natural_[value.value()];
    if (result.valid()) return result;
    const Node& def = old_.graph.def(value);
    if (def.op != Op::kTranspose) {
      const Layout& layout = *RegionLayout(value);
      return result = Convert(stored_[value.value()], layout, old_.natural(value),
                              old_.shape(value), DerivedSource(def.source, "transpose"));
    }
    const ValueId x = def.inputs[0];
    if (!natural_[x.value()].valid() && stored_[x.value()].valid()) {
      return result = Convert(stored_[x.value()], SeenThrough(def), old_.natural(value),
                              old_.shape(value), def.source);
    }
    const ValueId operand = Natural(x);
    return result = graph_.AddValue(Op::kTranspose, {operand}, def.attrs, old_.graph.type(value),
                                    def.source);
  }

  // The layout of a transpose's result where its operand is left as it lies.
  Layout SeenThrough(const Node& transpose) const {
    const ValueId x = transpose.inputs[0];
    const bool moved = !natural_[x.value()].valid() && stored_[x.value()].valid();
    const std::optional<Layout> layout = ThroughTranspose(
        moved ? *RegionLayout(x) : old_.natural(x), old_.shape(x), PermOf(transpose));
    NPUC_CHECK(layout.has_value());
    return *layout;
  }

  // An old value as the region stores it.
  ValueId Stored(ValueId value) {
    const Layout* layout = RegionLayout(value);
    if (layout == nullptr) return Natural(value);
    ValueId& result = stored_[value.value()];
    if (result.valid()) return result;
    const Node& def = old_.graph.def(value);
    const Shape shape = *StorageShape(*layout, old_.shape(value));
    if (def.op != Op::kTranspose) {
      const ValueId natural = Natural(value);
      return result = Convert(natural, old_.natural(value), *layout, shape,
                              DerivedSource(def.source, "transpose"));
    }
    const Layout from = SeenThrough(def);
    if (ConversionCost(from, *layout) == MinCut::kInfinite) {
      const ValueId natural = Natural(value);
      return result = Convert(natural, old_.natural(value), *layout, shape,
                              DerivedSource(def.source, "transpose"));
    }
    const ValueId x = def.inputs[0];
    const ValueId operand = natural_[x.value()].valid() || !stored_[x.value()].valid()
                                ? Natural(x)
                                : stored_[x.value()];
    return result = Convert(operand, from, *layout, shape, DerivedSource(def.source, "transpose"));
  }

  // Permutes a value that is stored by `from` so that it is stored by `to`, in the given shape.
  ValueId Convert(ValueId value, const Layout& from, const Layout& to, const Shape& shape,
                  const NodeSource& source) {
    const std::optional<Conversion> conversion = ConversionOf(from, to);
    NPUC_CHECK(conversion.has_value());
    if (!conversion->moves()) return Reshaped(value, shape, source);
    // By the dimensions that are there, where they are those of the conversion or finer ones.
    const Shape current = graph_.type(value).shape;
    if (const auto perm = DirectPermutation(current, shape, *conversion)) {
      return graph_.AddValue(Op::kTranspose, {value}, {{"perm", *perm}},
                             {graph_.type(value).dtype, shape}, source);
    }
    const ValueId flat = Reshaped(value, conversion->shape, source);
    Shape moved;
    for (const int64_t axis : conversion->perm) moved.push_back(conversion->shape[axis]);
    const ValueId result = graph_.AddValue(Op::kTranspose, {flat}, {{"perm", conversion->perm}},
                                           {graph_.type(value).dtype, std::move(moved)}, source);
    return Reshaped(result, shape, source);
  }

  // The conversion as a permutation of the dimensions of `from` that gives `to`, where there is
  // one: dimensions of 1 keep their order.
  static std::optional<std::vector<int64_t>> DirectPermutation(const Shape& from, const Shape& to,
                                                               const Conversion& conversion) {
    if (from.size() != to.size()) return std::nullopt;
    std::vector<std::vector<int64_t>> parts;  // by dimension of the conversion: those of `from`
    std::vector<int64_t> ones;
    size_t next = 0;
    for (const int64_t dim : conversion.shape) {
      parts.emplace_back();
      for (int64_t left = dim; left > 1; ++next) {
        if (next == from.size() || left % from[next] != 0) return std::nullopt;
        if (from[next] == 1) continue;
        parts.back().push_back(static_cast<int64_t>(next));
        left /= from[next];
      }
    }
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i] == 1) ones.push_back(static_cast<int64_t>(i));
    }
    std::vector<int64_t> moved;
    for (const int64_t axis : conversion.perm) {
      moved.insert(moved.end(), parts[axis].begin(), parts[axis].end());
    }
    std::vector<int64_t> perm;
    size_t one = 0;
    size_t other = 0;
    for (const int64_t dim : to) {
      std::vector<int64_t>& list = dim == 1 ? ones : moved;
      size_t& at = dim == 1 ? one : other;
      if (at == list.size() || from[list[at]] != dim) return std::nullopt;
      perm.push_back(list[at++]);
    }
    return perm;
  }

  const Indexed& old_;
  const Region& region_;
  const std::vector<bool>& relaid_;
  Graph graph_;
  std::vector<ValueId> natural_;  // by old value: the new one in its own order
  std::vector<ValueId> stored_;   // the new one as the region stores it
};

// ---- where regions begin ------------------------------------------------------------------------

struct Seed {
  ValueId value;
  Layout layout;
};

// From a transpose on to its users, and back to where its operand comes from.
std::vector<Seed> SeedsOf(const Indexed& graph, const Node& node) {
  std::vector<Seed> seeds;
  const auto add = [&](ValueId value, const std::optional<Layout>& layout) {
    if (layout.has_value() && !layout->natural()) seeds.push_back({value, *layout});
  };
  if (node.op == Op::kTranspose) {
    const ValueId x = node.inputs[0];
    const ValueId y = node.outputs[0];
    add(y, ThroughTranspose(graph.natural(x), graph.shape(x), PermOf(node)));
    add(x, ThroughTranspose(graph.natural(y), graph.shape(y), InversePermutation(PermOf(node))));
  } else if (HiddenTransposeElements(graph.graph, node) > 0) {
    const ValueId x = node.inputs[0];
    const Shape& shape = graph.shape(x);
    std::vector<int64_t> swap(shape.size());
    for (size_t i = 0; i < swap.size(); ++i) swap[i] = static_cast<int64_t>(i);
    std::swap(swap[swap.size() - 1], swap[swap.size() - 2]);
    Shape moved = shape;
    std::swap(moved[moved.size() - 1], moved[moved.size() - 2]);
    add(x, ThroughTranspose(graph.natural(x), moved, swap));
  }
  return seeds;
}

// The regions of one sweep over the graph that are worth relaying. They share no value that either
// of them moves, so that all can be relaid at once.
class Sweep {
 public:
  Sweep(const Indexed& graph, int64_t& visits) : graph_(graph), visits_(visits) {
    for (const Node& node : graph.graph.nodes()) {
      if (node.op != Op::kTranspose && node.op != Op::kMatMul) continue;
      for (const Seed& seed : SeedsOf(graph, node)) Try(seed);
    }
  }

  // The graph with all of them relaid or, where they were in each other's way, with the first that
  // helps by itself; null where none does.
  std::optional<Graph> Apply(const Load& before) const {
    if (found_.empty()) return std::nullopt;
    Choice all;
    for (const Choice& choice : found_) {
      all.region.layouts.insert(choice.region.layouts.begin(), choice.region.layouts.end());
      all.relaid.insert(all.relaid.end(), choice.relaid.begin(), choice.relaid.end());
    }
    if (std::optional<Graph> result = Relaid(all, before)) return result;
    for (size_t i = 0; i < found_.size() && found_.size() > 1; ++i) {
      if (std::optional<Graph> result = Relaid(found_[i], before)) return result;
    }
    return std::nullopt;
  }

 private:
  struct Choice {
    Region region;
    std::vector<int> relaid;
  };

  void Try(const Seed& seed) {
    if (visits_ < 0) return;
    // From elsewhere in a region that was looked at before, the same one would grow.
    const auto grown = grown_.find(seed.value.value());
    if (grown != grown_.end() && grown->second == seed.layout) return;
    Region region = RegionGrower(graph_, visits_).Grow(seed.value, seed.layout);
    if (region.nodes.empty()) return;
    grown_.insert(region.layouts.begin(), region.layouts.end());
    std::vector<int> relaid = RegionCut(graph_, region).Solve();
    if (relaid.empty() || !Fits(region)) return;
    taken_.insert(region.layouts.begin(), region.layouts.end());
    found_.push_back({std::move(region), std::move(relaid)});
  }

  bool Fits(const Region& region) const {
    return std::all_of(region.layouts.begin(), region.layouts.end(), [&](const auto& entry) {
      const auto it = taken_.find(entry.first);
      return it == taken_.end() || (it->second.natural() && entry.second.natural());
    });
  }

  std::optional<Graph> Relaid(const Choice& choice, const Load& before) const {
    std::vector<bool> relaid(graph_.graph.node_count(), false);
    for (const int index : choice.relaid) relaid[index] = true;
    Graph result = Relayer(graph_, choice.region, relaid).Run();
    if (!(TransposeLoad(result) < before)) return std::nullopt;
    return result;
  }

  const Indexed& graph_;
  int64_t& visits_;
  std::map<int, Layout> grown_;  // by value: the first layout that it was looked at with
  std::map<int, Layout> taken_;  // by value, of the regions found
  std::vector<Choice> found_;
};

}  // namespace

Graph ApplyPropagateTransposes(Graph graph) {
  int64_t visits = kMaxVisits;
  while (true) {
    const Load before = TransposeLoad(graph);
    if (before == Load()) return graph;
    const Indexed indexed(graph);
    std::optional<Graph> better = Sweep(indexed, visits).Apply(before);
    if (!better.has_value()) return graph;
    graph = *std::move(better);
  }
}

}  // namespace npuc
