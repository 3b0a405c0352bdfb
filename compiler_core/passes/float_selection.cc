#include "compiler_core/passes/float_selection.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/fp16.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/facts.h"
#include "compiler_core/ops/graph_builder.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/ops/quantize.h"
#include "compiler_core/ops/shape_util.h"
#include "compiler_core/passes/passes.h"
#include "compiler_core/passes/rewriter.h"
#include "compiler_core/passes/value_range.h"

namespace npuc {
namespace {

constexpr int64_t kMaxExactInFloat = int64_t{1} << 24;
// Elements of the rows that one Gather compares its indices with.
constexpr int64_t kMaxRows = int64_t{1} << 20;
// A whole number counts as another one where it is less than this off: what cores round.
constexpr double kSlope = 4;

bool IsWholeType(DType dtype) { return dtype == DType::kBool || IsInteger(dtype); }

// Operators that give whole numbers of whole numbers, as they give floats of floats.
bool KeepsWhole(Op op) {
  constexpr Op kOps[] = {Op::kAbs,     Op::kAdd,       Op::kConcat,    Op::kIdentity,
                         Op::kMaximum, Op::kMinimum,   Op::kMul,       Op::kNeg,
                         Op::kPad,     Op::kReduceMax, Op::kReduceSum, Op::kRelu,
                         Op::kRelu6,   Op::kReshape,   Op::kSlice,     Op::kSplit,
                         Op::kSquare,  Op::kSub,       Op::kTranspose, Op::kSquaredDifference};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

// Operators that stand for others, whatever they compute with.
bool IsSelection(Op op) {
  return op == Op::kArgMax || op == Op::kEqual || op == Op::kGather || op == Op::kGreaterEqual ||
         op == Op::kSelect;
}

// True: all values of the range, their fractions dropped, are numbers of the type.
bool Holds(DType dtype, const Interval& range) {
  const auto is_within = [&](double least, double most) {
    return range.least > least - 1 && range.most < most + 1;
  };
  switch (dtype) {
    case DType::kInt8:
      return is_within(INT8_MIN, INT8_MAX);
    case DType::kInt16:
      return is_within(INT16_MIN, INT16_MAX);
    case DType::kUint8:
      return is_within(0, UINT8_MAX);
    case DType::kUint16:
      return is_within(0, UINT16_MAX);
    case DType::kUint32:
      return is_within(0, UINT32_MAX);
    default:
      return false;
  }
}

bool BoundsInfinity(const Node& node) { return BoolAttrOr(node, kBoundsInfinityFact, false); }

bool IsMove(Op op) {
  return TraitsOf(op).keeps_parameters || op == Op::kConcat || op == Op::kIdentity ||
         op == Op::kPad;
}

// Operators between a choice and the operators that make its values not finite.
constexpr int kMaxChoiceDepth = 8;
// The largest number whose exponential fits fp16.
constexpr double kLargestExponent = 11;

// Operators whose results' elements depend on the operands' elements in the same place alone.
bool IsElementwise(Op op) {
  const LayoutRule rule = TraitsOf(op).layout;
  return rule == LayoutRule::kElementwise || rule == LayoutRule::kBroadcast;
}

// An operand that makes an operator's result infinite or no number where it has some values.
struct Danger {
  size_t operand = 0;
  double harmless = 0;  // a value of the operand that gives a finite result
};

// True where each power of a number is a product of the number with itself.
bool HasWholeExponents(const Graph& graph, const Node& power) {
  const Tensor* constant = graph.ConstantOf(power.inputs[1]);
  if (constant == nullptr) return false;
  const std::vector<float> exponents = constant->ToFloats();
  return std::all_of(exponents.begin(), exponents.end(),
                     [](float e) { return e >= 0 && e == std::floor(e); });
}

// The danger of a node, if the operand's range does not exclude it.
std::optional<Danger> DangerOf(const Graph& graph, const Node& node) {
  const auto range = [&](size_t operand) { return RangeOf(graph, node.inputs[operand]); };
  switch (node.op) {
    case Op::kLog:
    case Op::kReciprocal:
    case Op::kRsqrt:
      return range(0).least > 0 ? std::nullopt : std::optional(Danger{0, 1});
    case Op::kSqrt:
      return range(0).least >= 0 ? std::nullopt : std::optional(Danger{0, 1});
    case Op::kExp:
      return range(0).most <= kLargestExponent ? std::nullopt : std::optional(Danger{0, 0});
    case Op::kDiv:
      return range(1).least > 0 || range(1).most < 0 ? std::nullopt : std::optional(Danger{1, 1});
    case Op::kPow:
      if (graph.ConstantOf(node.inputs[0]) != nullptr) return Danger{1, 0};
      return range(0).least > 0 || HasWholeExponents(graph, node) ? std::nullopt
                                                                  : std::optional(Danger{0, 1});
    default:
      return std::nullopt;
  }
}

// Adds the nodes that one node becomes. After a failure every further value is that failure.
class Composer {
 public:
  Composer(Graph& graph, const NodeSource& source, bool stores)
      : builder_(&graph), source_(source), first_(graph.value_count()), stores_(stores) {}

  Graph& graph() { return builder_.graph(); }
  const absl::Status& status() const { return status_; }
  const Shape& ShapeOf(ValueId x) { return builder_.type(x).shape; }

  ValueId Add(Op op, std::vector<ValueId> inputs, AttrMap attrs = {}) {
    if (!status_.ok()) return inputs[0];
    const NodeSource part = DerivedSource(source_, absl::StrCat("select_", ++parts_));
    absl::StatusOr<ValueId> value = builder_.AddOne(op, inputs, std::move(attrs), part);
    if (value.ok()) return *value;
    status_ = absl::InternalError(value.status().message());
    return inputs[0];
  }
  ValueId Number(double value) {
    return builder_.Const(Tensor::ScalarFloat(static_cast<float>(value)), source_);
  }
  ValueId Constant(Shape shape, const std::vector<float>& values) {
    return builder_.Const(Tensor::FromFloats(std::move(shape), values), source_);
  }
  ValueId Relu(ValueId x) { return Add(Op::kRelu, {x}); }
  ValueId OneMinus(ValueId x) { return Bounded(Add(Op::kSub, {Number(1), x}), 0, 1); }
  // 1 where a > b, of floats.
  ValueId Greater(ValueId a, ValueId b) {
    return Bounded(Add(Op::kGreater, {a, b}, {{"dtype", std::string("f32")}}), 0, 1);
  }
  // 1 where a <> b, of floats.
  ValueId Differs(ValueId a, ValueId b) {
    const ValueId above = Greater(a, b);
    return Bounded(Add(Op::kAdd, {above, Greater(b, a)}), 0, 1);
  }
  // 1 where the whole number d is at most `most`.
  ValueId AtMost(ValueId d, double most) {
    const ValueId scaled = Add(Op::kMul, {d, Number(kSlope)});
    const ValueId excess = Relu(Add(Op::kSub, {scaled, Number(kSlope * (most + 0.5) - 0.5)}));
    return Bounded(Relu(OneMinus(excess)), 0, 1);
  }
  ValueId Reshaped(ValueId x, Shape shape) {
    return Add(Op::kReshape, {x}, {{"shape", std::move(shape)}});
  }

  // States the bounds of a value that this composer made.
  ValueId Bounded(ValueId x, int64_t least, int64_t most) {
    if (!status_.ok() || x.value() < first_) return x;
    Bound(graph(), x, least, most);
    if (!stores_ || least != 0 || most > UINT8_MAX) return x;
    const QuantParams params = {.dtype = DType::kUint8,
                                .qmin = 0,
                                .qmax = UINT8_MAX,
                                .scale = {static_cast<double>(most) / UINT8_MAX},
                                .zero_point = {0}};
    const ValueId stored = Add(Op::kQuantize, {x}, QuantizeAttrs(params));
    return Add(Op::kDequantize, {stored}, DequantizeAttrs(params));
  }
  static void Bound(Graph& graph, ValueId x, int64_t least, int64_t most) {
    Node& node = graph.mutable_node(graph.value(x).def);
    if (node.op == Op::kConst || node.outputs.size() != 1) return;
    node.attrs[kLeastFact] = least;
    node.attrs[kMostFact] = most;
  }
  // The node that stands for the old one takes its name.
  ValueId Named(ValueId x) {
    const NodeId def = graph().value(x).def;
    if (x.value() >= first_ && graph().node(def).op != Op::kConst) {
      graph().set_source(def, source_);
    }
    return x;
  }

 private:
  GraphBuilder builder_;
  const NodeSource source_;
  const int first_;    // values from here on were made here
  const bool stores_;  // gives bounded values scales
  int parts_ = 0;
  absl::Status status_;
};

class Selector {
 public:
  Selector(Graph graph, const FloatSelectionOptions& options)
      : options_(options), is_whole_(static_cast<size_t>(graph.value_count())) {
    for (int i = 0; i < graph.value_count(); ++i) types_.push_back(graph.type(ValueId(i)));
    stores_ = options.stores_bounded && HasOp(graph, {Op::kQuantize});
    FindWhole(graph);
    FindPositions(graph);
    rewriter_.emplace(std::move(graph));
  }

  absl::StatusOr<FloatSelection> Run() {
    for (int i = 0; i < rewriter_->old().node_count(); ++i) {
      const std::vector<ValueId> operands = rewriter_->old().node(NodeId(i)).inputs;
      Node node = rewriter_->Take(i);
      const bool computes =
          node.op != Op::kConst && (IsSelection(node.op) || Concerns(operands, node.outputs));
      if (BoundsInfinity(node)) {
        rewriter_->Set(node.outputs[0], node.inputs[0]);
      } else if (!computes) {
        rewriter_->Append(std::move(node));
      } else if (node.op == Op::kPlaceholder) {
        TakeInput(node);
      } else {
        RETURN_IF_ERROR(Take(operands, node));
      }
    }
    result_.graph = rewriter_->Finish();
    return std::move(result_);
  }

 private:
  bool IsWhole(ValueId old) const { return is_whole_[static_cast<size_t>(old.value())]; }
  const TensorType& type(ValueId old) const { return types_[static_cast<size_t>(old.value())]; }
  Graph& graph() { return rewriter_->graph(); }

  // Results of other types than float are whole numbers, but for the integers that floats are
  // stored as, and what is computed of those.
  void FindWhole(const Graph& graph) {
    std::vector<bool> is_stored(is_whole_.size());
    const auto at = [](ValueId id) { return static_cast<size_t>(id.value()); };
    for (const Node& node : graph.nodes()) {
      if (node.op == Op::kDequantize && graph.def(node.inputs[0]).op == Op::kPlaceholder) {
        is_stored[at(node.inputs[0])] = true;
      }
    }
    for (const Node& node : graph.nodes()) {
      bool stored = node.op == Op::kQuantize;
      for (const ValueId input : node.inputs) {
        stored |= is_stored[at(input)] && node.op != Op::kDequantize;
      }
      for (const ValueId output : node.outputs) {
        const bool whole = IsWholeType(graph.type(output).dtype);
        is_stored[at(output)] = is_stored[at(output)] || (stored && whole);
        is_whole_[at(output)] = whole && !is_stored[at(output)];
      }
    }
  }

  // By old value: so many positions that a Gather has, where the value is its index, or a move
  // gives that of it, or a choice between it and it plus a constant, as negative ones are counted
  // from the end; 0: none.
  void FindPositions(const Graph& graph) {
    positions_.assign(static_cast<size_t>(graph.value_count()), 0);
    const auto at = [&](ValueId id) -> int64_t& {
      return positions_[static_cast<size_t>(id.value())];
    };
    for (int i = graph.node_count() - 1; i >= 0; --i) {  // readers first
      const Node& node = graph.node(NodeId(i));
      if (node.op == Op::kGather) {
        const Shape& shape = graph.type(node.inputs[0]).shape;
        const int64_t axis = IntAttrOr(node, "axis", 0);
        const int64_t rank = static_cast<int64_t>(shape.size());
        int64_t& count = at(node.inputs[1]);
        count = std::max(count, shape[static_cast<size_t>(axis < 0 ? axis + rank : axis)]);
        continue;
      }
      if (node.outputs.size() != 1) continue;
      const int64_t count = at(node.outputs[0]);
      if (node.op == Op::kSelect) {
        for (const size_t k : {1, 2}) {
          const Node& other = graph.def(node.inputs[3 - k]);
          const bool counts_back = other.op == Op::kAdd && other.inputs[0] == node.inputs[k] &&
                                   graph.ConstantOf(other.inputs[1]) != nullptr;
          if (counts_back) at(node.inputs[k]) = std::max(at(node.inputs[k]), count);
        }
      }
      if (!IsMove(node.op) && node.op != Op::kCast) continue;
      for (const ValueId input : node.inputs) at(input) = std::max(at(input), count);
    }
  }

  // True where a whole number is among a node's results or computed operands.
  bool Concerns(const std::vector<ValueId>& operands, const std::vector<ValueId>& results) {
    const auto computed = [&](ValueId old) {
      return IsWhole(old) && graph().ConstantOf(rewriter_->Map(old)) == nullptr;
    };
    return std::any_of(operands.begin(), operands.end(), computed) ||
           std::any_of(results.begin(), results.end(), [&](ValueId old) { return IsWhole(old); });
  }

  void TakeInput(const Node& node) {
    const TensorType& from = type(node.outputs[0]);
    const ValueId input = graph().AddInput(node.source.name, {DType::kFloat32, from.shape});
    graph().set_source(graph().value(input).def, node.source);
    if (from.dtype == DType::kBool) Composer::Bound(graph(), input, 0, 1);
    if (from.dtype == DType::kUint8) Composer::Bound(graph(), input, 0, UINT8_MAX);
    const int64_t count = positions_[static_cast<size_t>(node.outputs[0].value())];
    if (count > 0 && from.dtype != DType::kBool && from.dtype != DType::kUint8) {
      // Negative ones count from the end. Bytes in steps of 1, as BoundFor has them.
      const int64_t reach = std::max<int64_t>(count, -INT8_MIN);
      Composer::Bound(graph(), input, -reach, reach == -INT8_MIN ? INT8_MAX : reach);
    }
    rewriter_->Set(node.outputs[0], input);
    result_.inputs.push_back(node.source.name);
    ++result_.values;
  }

  void Refuse(const Node& node, std::string message) {
    result_.refusals.push_back(
        {node.source, std::move(message),
         "name the node behind it as an input in INPUT_OPS, or the one before it in OUTPUT_OPS, "
         "and compute this one on the CPU"});
  }

  // A constant as floats.
  absl::StatusOr<ValueId> FloatsOf(const Node& node, const Tensor& constant) {
    std::vector<float> values;
    for (int64_t i = 0; i < constant.element_count(); ++i) {
      if (std::fabs(constant.at(i)) > kMaxExactInFloat) {
        return absl::UnimplementedError(
            absl::StrCat("the constant ", constant.int_at(i), " is no exact float"));
      }
      values.push_back(static_cast<float>(constant.at(i)));
    }
    return graph().AddConst(Tensor::FromFloats(constant.shape(), values), node.source);
  }

  absl::Status Take(const std::vector<ValueId>& operands, Node& node) {
    for (ValueId& input : node.inputs) {
      const Tensor* constant = graph().ConstantOf(input);
      if (constant == nullptr || !IsWholeType(constant->dtype())) continue;
      absl::StatusOr<ValueId> floats = FloatsOf(node, *constant);
      if (!floats.ok()) {
        Refuse(node, std::string(floats.status().message()));
        floats = graph().AddConst(Tensor::Zeros({DType::kFloat32, constant->shape()}), {});
      }
      input = *floats;
    }
    result_.values += static_cast<int>(std::count_if(node.outputs.begin(), node.outputs.end(),
                                                     [&](ValueId old) { return IsWhole(old); }));
    const double fill = node.op == Op::kPad ? FloatAttrOr(node, "value", 0.0) : 0.0;
    if (std::fabs(fill) > kMaxExactInFloat) {
      Refuse(node,
             absl::StrCat("the padding value ", static_cast<int64_t>(fill), " is no exact float"));
    }
    if (KeepsWhole(node.op)) return TakeKept(operands, node);
    const size_t refused = result_.refusals.size();
    Composer compose(graph(), node.source, stores_);
    const ValueId value = Composed(operands, node, compose);
    RETURN_IF_ERROR(compose.status());
    if (result_.refusals.size() == refused && value.valid()) {
      rewriter_->Set(node.outputs[0], compose.Named(value));
    } else {
      StandIn(node);
    }
    return absl::OkStatus();
  }

  // So that the nodes behind a refused one are judged, too.
  void StandIn(const Node& node) {
    for (const ValueId output : node.outputs) {
      rewriter_->Set(output, graph().AddConst(Tensor::Zeros({DType::kFloat32, type(output).shape}),
                                              node.source));
    }
  }

  absl::Status TakeKept(const std::vector<ValueId>& operands, Node& node) {
    const DType dtype = type(node.outputs[0]).dtype;
    const bool wraps = dtype != DType::kInt32 && dtype != DType::kInt64;
    if (wraps && !IsMove(node.op)) {
      Refuse(node, absl::StrCat("computes with ", std::string(NameOf(dtype)),
                                " values, which wrap around; allowed are i32 and i64"));
      StandIn(node);
      return absl::OkStatus();
    }
    std::vector<TensorType> types;
    for (const ValueId output : node.outputs) {
      types.push_back({DType::kFloat32, type(output).shape});
    }
    const NodeId id = graph().AddNode(node.op, std::move(node.inputs), std::move(node.attrs),
                                      std::move(types), node.source);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      rewriter_->Set(node.outputs[i], graph().node(id).outputs[i]);
    }
    return absl::OkStatus();
  }

  // The value that a node becomes; invalid where it was refused.
  ValueId Composed(const std::vector<ValueId>& operands, const Node& node, Composer& compose) {
    const std::vector<ValueId>& in = node.inputs;
    switch (node.op) {
      case Op::kCast:
        return ComposedCast(operands, node, compose);
      case Op::kEqual:
        return ComposedEqual(operands, node, compose);
      case Op::kGreater:
        if (!IsWholeType(type(operands[0]).dtype)) return compose.Greater(in[0], in[1]);
        return compose.AtMost(Difference(in[1], in[0], compose), -1);
      case Op::kGreaterEqual:
        if (!IsWholeType(type(operands[0]).dtype)) {
          return compose.OneMinus(compose.Greater(in[1], in[0]));
        }
        return compose.AtMost(Difference(in[1], in[0], compose), 0);
      case Op::kSelect:
        return ComposedSelect(node, compose);
      case Op::kGather:
        return ComposedGather(node, compose);
      case Op::kArgMax:
        return ComposedArgMax(operands, node, compose);
      case Op::kFloor:
      case Op::kRound:
        return in[0];
      default:
        Refuse(node, absl::StrCat("computes with integers at run time; ", NameOf(node.op),
                                  " of integers has no exact form in floats"));
        return {};
    }
  }

  ValueId Difference(ValueId a, ValueId b, Composer& compose) {
    constexpr int kReach = 3;  // half of Relu6's range
    if (!options_.narrows_differences) return compose.Add(Op::kSub, {a, b});
    const ValueId raised = compose.Add(Op::kAdd, {a, compose.Number(kReach)});
    const ValueId cut = compose.Bounded(
        compose.Add(Op::kRelu6, {compose.Add(Op::kSub, {raised, b})}), 0, 2 * kReach);
    return compose.Add(Op::kSub, {cut, compose.Number(kReach)});
  }

  ValueId EqualWhole(ValueId a, ValueId b, Composer& compose) {
    return compose.AtMost(compose.Add(Op::kAbs, {Difference(a, b, compose)}), 0);
  }

  ValueId ComposedEqual(const std::vector<ValueId>& operands, const Node& node, Composer& compose) {
    const std::vector<ValueId>& in = node.inputs;
    const DType dtype = type(operands[0]).dtype;
    if (!IsWholeType(dtype)) return compose.OneMinus(compose.Differs(in[0], in[1]));
    const Tensor* constant = graph().ConstantOf(in[1]);
    if (dtype == DType::kBool && constant != nullptr && constant->shape().empty()) {
      return constant->at(0) == 0 ? compose.OneMinus(in[0]) : in[0];  // not, and itself
    }
    return EqualWhole(in[0], in[1], compose);
  }

  // True for floats that are known to be whole: roundings, behind moves and bounds of one number.
  bool IsRounded(ValueId x) {
    constexpr Op kKeeps[] = {Op::kAbs, Op::kMaximum, Op::kMinimum, Op::kNeg, Op::kRelu, Op::kRelu6};
    constexpr int kMostNodes = 16;
    for (int i = 0; i < kMostNodes; ++i) {
      const Node& node = graph().def(x);
      if (node.op == Op::kRound || node.op == Op::kFloor) return true;
      const bool keeps =
          std::find(std::begin(kKeeps), std::end(kKeeps), node.op) != std::end(kKeeps) ||
          (IsMove(node.op) && node.op != Op::kPad);
      if (!keeps) return false;
      ValueId operand;
      for (const ValueId input : node.inputs) {
        const Tensor* constant = graph().ConstantOf(input);
        if (constant == nullptr && operand.valid() && operand != input) return false;
        if (constant == nullptr) {
          operand = input;
        } else if (constant->element_count() != 1 ||
                   constant->at(0) != std::floor(constant->at(0))) {
          return false;
        }
      }
      if (!operand.valid()) return false;
      x = operand;
    }
    return false;
  }

  ValueId ComposedCast(const std::vector<ValueId>& operands, const Node& node, Composer& compose) {
    const ValueId x = node.inputs[0];
    const DType from = type(operands[0]).dtype;
    const DType to = type(node.outputs[0]).dtype;
    if (to == DType::kFloat32 || from == to) return x;
    if (to == DType::kBool && !IsWholeType(from)) return compose.Differs(x, compose.Number(0));
    if (to == DType::kBool) return compose.OneMinus(EqualWhole(x, compose.Number(0), compose));
    const bool is_wide = to == DType::kInt32 || to == DType::kInt64;
    if (is_wide && BoolAttrOr(node, kWholeFact, false)) return x;
    if (from == DType::kBool || (is_wide && IsInteger(from))) return x;
    if (!is_wide && !Holds(to, RangeOf(graph(), x))) {
      Refuse(node, absl::StrCat("a cast of values that are computed at run time to ",
                                std::string(NameOf(to)), ", which wraps around"));
      return {};
    }
    if (IsInteger(from) || IsRounded(x)) return x;
    const ValueId above = compose.Add(Op::kFloor, {compose.Relu(x)});
    const ValueId negated = compose.Add(Op::kNeg, {x});
    return compose.Add(Op::kSub, {above, compose.Add(Op::kFloor, {compose.Relu(negated)})});
  }

  // 1 where a choice counts, 0 where the other one does; and the opposite, invalid where the graph
  // does not have it yet.
  struct Shares {
    ValueId own, other;
  };

  // The choice where its share is 1, and a finite number where it is 0, since 0 times another is
  // not 0: operators that may give others get a harmless operand there, log(c * x + 1 - c).
  ValueId Finite(ValueId choice, const Shares& shares, Composer& compose, int depth = 0) {
    const Node node = graph().def(choice);
    if (node.inputs.empty() || depth == kMaxChoiceDepth || finite_.contains(choice)) return choice;
    const std::optional<Danger> danger = DangerOf(graph(), node);
    if (!danger.has_value() && !IsElementwise(node.op)) return choice;
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) {
      inputs.push_back(Finite(input, shares, compose, depth + 1));
    }
    if (danger.has_value()) {
      ValueId& operand = inputs[danger->operand];
      operand = compose.Add(Op::kMul, {operand, shares.own});
      if (danger->harmless == 1) {
        const ValueId other = shares.other.valid() ? shares.other : compose.OneMinus(shares.own);
        operand = compose.Add(Op::kAdd, {operand, other});
      }
    }
    if (inputs == node.inputs) return choice;
    const ValueId finite = compose.Add(node.op, std::move(inputs), node.attrs);
    finite_.insert(finite);
    return finite;
  }

  // The product of a choice and its share; invalid: 0. Infinite constants become the largest
  // number, since 0 times infinity is none.
  ValueId Share(const Shares& shares, ValueId choice, Composer& compose) {
    const ValueId share = shares.own;
    const Tensor* constant = graph().ConstantOf(choice);
    if (constant == nullptr) {
      return compose.Add(Op::kMul, {Finite(choice, shares, compose), share});
    }
    std::vector<float> values = constant->ToFloats();
    bool is_zero = true;
    for (float& value : values) {
      value = static_cast<float>(std::clamp<double>(value, -kLargestHalf, kLargestHalf));
      is_zero = is_zero && value == 0;
    }
    const bool is_one = values.size() == 1 && values[0] == 1;
    if (is_zero && constant->shape().empty()) return {};
    if (is_one && constant->shape().empty()) return share;
    const ValueId bounded = compose.Constant(constant->shape(), values);
    return compose.Add(Op::kMul, {share, bounded});
  }

  ValueId ComposedSelect(const Node& node, Composer& compose) {
    const ValueId condition = node.inputs[0];
    const Shape& shape = type(node.outputs[0]).shape;
    const ValueId a = Share({condition, ValueId()}, node.inputs[1], compose);
    const ValueId b = Share({compose.OneMinus(condition), condition}, node.inputs[2], compose);
    ValueId sum = a.valid() ? a : b;
    if (a.valid() && b.valid()) sum = compose.Add(Op::kAdd, {a, b});
    if (sum.valid() && compose.ShapeOf(sum) == shape) return sum;
    const ValueId zeros =
        compose.Constant(shape, std::vector<float>(static_cast<size_t>(ElementCount(shape)), 0));
    return sum.valid() ? compose.Add(Op::kAdd, {sum, zeros}) : zeros;
  }

  // [..., n]: 1 where an index [...] is the position along the last axis.
  ValueId Rows(ValueId indices, int64_t n, Composer& compose) {
    std::vector<float> positions(static_cast<size_t>(n));
    std::iota(positions.begin(), positions.end(), 0.0f);
    Composer::Bound(graph(), indices, 0, BoundFor(n));
    const int64_t count = ElementCount(compose.ShapeOf(indices));
    return EqualWhole(compose.Constant({n}, positions), compose.Reshaped(indices, {count, 1}),
                      compose);
  }

  // The upper bound that is stated for numbers below n: that of a byte where it suffices, so that a
  // step of 8 bits is 1.
  static int64_t BoundFor(int64_t n) { return n <= UINT8_MAX + 1 ? UINT8_MAX : n; }

  bool FitsIndex(const Node& node, int64_t n) {
    if (n - 1 <= options_.largest_index) return true;
    Refuse(node, absl::StrCat("an index of ", n,
                              " positions that is computed at run time; the "
                              "core's numbers are exact up to ",
                              options_.largest_index));
    return false;
  }

  ValueId ComposedGather(const Node& node, Composer& compose) {
    const ValueId data = node.inputs[0];
    const ValueId indices = node.inputs[1];
    const Shape from = compose.ShapeOf(data);
    const int64_t axis = IntAttrOr(node, "axis", 0);
    const int64_t rank = static_cast<int64_t>(from.size());
    const size_t at = static_cast<size_t>(axis < 0 ? axis + rank : axis);
    const int64_t n = from[at];
    const int64_t count = ElementCount(compose.ShapeOf(indices));
    if (!FitsIndex(node, n)) return {};
    if (count * n > kMaxRows) {
      Refuse(node, absl::StrCat("a lookup of ", count, " rows among ", n, ", which would be ",
                                count * n, " comparisons; allowed are ", kMaxRows));
      return {};
    }
    std::vector<int64_t> perm = {static_cast<int64_t>(at)};
    std::vector<int64_t> back;
    for (int64_t i = 0; i < rank; ++i) {
      if (i != perm[0]) perm.push_back(i);
      back.push_back(i < perm[0] ? i + 1 : (i == perm[0] ? 0 : i));
    }
    ValueId table = at == 0 ? data : compose.Add(Op::kTranspose, {data}, {{"perm", perm}});
    Shape rest = from;
    rest.erase(rest.begin() + static_cast<int64_t>(at));
    table = compose.Reshaped(table, {n, ElementCount(rest)});
    ValueId picked =
        compose.Add(Op::kMatMul, {Rows(indices, n, compose), table}, {{kPicksRowsFact, true}});
    if (at != 0) {
      Shape moved = {count};
      moved.insert(moved.end(), rest.begin(), rest.end());
      picked = compose.Add(Op::kTranspose, {compose.Reshaped(picked, moved)}, {{"perm", back}});
    }
    return compose.Reshaped(picked, type(node.outputs[0]).shape);
  }

  // The largest along an axis, which stays with size 1. A pool keeps an integer core's scale, so
  // that the largest is stored as the same integer as the value that it is; a ReduceMax has its
  // own.
  ValueId Largest(ValueId x, size_t axis, Composer& compose) {
    Shape shape = compose.ShapeOf(x);
    const int64_t n = shape[axis];
    if (!options_.narrows_differences) {
      return compose.Add(
          Op::kReduceMax, {x},
          {{"axes", std::vector<int64_t>{static_cast<int64_t>(axis)}}, {"keep_dims", true}});
    }
    const auto middle = shape.begin() + static_cast<int64_t>(axis);
    const int64_t before = ElementCount(Shape(shape.begin(), middle));
    const int64_t behind = ElementCount(Shape(middle + 1, shape.end()));
    const ValueId pooled = compose.Add(Op::kMaxPool, {compose.Reshaped(x, {before, n, 1, behind})},
                                       {{"kernel", std::vector<int64_t>{n, 1}},
                                        {"strides", std::vector<int64_t>{1, 1}},
                                        {"pads", std::vector<int64_t>{0, 0, 0, 0}}});
    shape[axis] = 1;
    return compose.Reshaped(pooled, shape);
  }

  ValueId ComposedArgMax(const std::vector<ValueId>& operands, const Node& node,
                         Composer& compose) {
    const ValueId x = node.inputs[0];
    const Shape shape = compose.ShapeOf(x);
    const int64_t rank = static_cast<int64_t>(shape.size());
    const int64_t stated = IntAttrOr(node, "axis", -1);
    const int64_t axis = stated < 0 ? stated + rank : stated;
    const int64_t n = shape[static_cast<size_t>(axis)];
    if (!FitsIndex(node, n)) return {};
    const AttrMap along = {{"axes", std::vector<int64_t>{axis}}, {"keep_dims", true}};
    const ValueId most = Largest(x, static_cast<size_t>(axis), compose);
    const ValueId holds = IsWholeType(type(operands[0]).dtype)
                              ? compose.AtMost(Difference(most, x, compose), 0)
                              : compose.OneMinus(compose.Greater(most, x));
    std::vector<float> rank_from_behind(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) rank_from_behind[static_cast<size_t>(i)] = n - i;
    Shape weights(shape.size(), 1);
    weights[static_cast<size_t>(axis)] = n;
    const ValueId scores =
        compose.Bounded(compose.Add(Op::kMul, {holds, compose.Constant(weights, rank_from_behind)}),
                        0, BoundFor(n));
    AttrMap away = along;
    away["keep_dims"] = false;
    const ValueId first =
        compose.Bounded(compose.Add(Op::kReduceMax, {scores}, away), 0, BoundFor(n));
    return compose.Bounded(compose.Add(Op::kSub, {compose.Number(static_cast<double>(n)), first}),
                           0, BoundFor(n));
  }

  const FloatSelectionOptions options_;
  bool stores_ = false;
  std::vector<TensorType> types_;   // of the old graph's values
  std::vector<bool> is_whole_;      // by old value
  std::vector<int64_t> positions_;  // FindPositions
  std::set<ValueId> finite_;        // of the new graph: what Finite made
  std::optional<Rewriter> rewriter_;
  FloatSelection result_;
};

}  // namespace

absl::StatusOr<FloatSelection> SelectInFloats(Graph graph, const FloatSelectionOptions& options) {
  const bool has_whole =
      std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node& node) {
        if (node.op == Op::kConst || node.op == Op::kQuantize) return false;
        return IsSelection(node.op) || BoundsInfinity(node) ||
               std::any_of(node.outputs.begin(), node.outputs.end(),
                           [&](ValueId output) { return IsWholeType(graph.type(output).dtype); });
      });
  if (!has_whole) return FloatSelection{.graph = std::move(graph)};
  ASSIGN_OR_RETURN(Graph needed, DeadCode(graph));
  return Selector(std::move(needed), options).Run();
}

}  // namespace npuc
