#include "compiler_core/quant/kept/kept_scales.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/layers.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/ops/quantize.h"
#include "compiler_core/quant/kept/spread_params.h"

namespace npuc {
namespace {

constexpr int kTfliteMultiplierBits = 31;
// Operators that are computed once more for one value's second scale.
constexpr size_t kMaxComputedAgain = 64;

bool SameIntegers(const QuantParams& a, const QuantParams& b) {
  return a.dtype == b.dtype && a.scale == b.scale && a.zero_point == b.zero_point &&
         a.axis == b.axis;
}

// Which channel of the parameters an element belongs to.
struct Channels {
  int64_t inner = 1;
  int64_t count = 1;
  Channels(const QuantParams& params, const Shape& shape)
      : count(static_cast<int64_t>(params.scale.size())) {
    if (params.axis < 0) return;
    for (size_t d = static_cast<size_t>(params.axis) + 1; d < shape.size(); ++d) inner *= shape[d];
  }
  size_t Of(int64_t index) const { return static_cast<size_t>(index / inner % count); }
};

Tensor RealValues(const Tensor& integers, const QuantParams& params) {
  const Channels channels(params, integers.shape());
  std::vector<float> values(static_cast<size_t>(integers.element_count()));
  for (int64_t i = 0; i < integers.element_count(); ++i) {
    const size_t c = channels.Of(i);
    values[static_cast<size_t>(i)] = static_cast<float>(
        static_cast<double>(integers.int_at(i) - params.zero_point[c]) * params.scale[c]);
  }
  return Tensor::FromFloats(integers.shape(), values);
}

// Where a dimension of `from` is in `to`, which has as many elements: the dimension of equal size
// with as many elements behind it. -1 where there is none.
int AxisAfterReshape(int axis, const Shape& from, const Shape& to) {
  int64_t inner = 1;
  for (size_t d = static_cast<size_t>(axis) + 1; d < from.size(); ++d) inner *= from[d];
  int64_t behind = 1;
  for (int d = static_cast<int>(to.size()) - 1; d >= 0; --d) {
    const int64_t size = to[static_cast<size_t>(d)];
    if (behind == inner && size == from[static_cast<size_t>(axis)]) return d;
    behind *= size;
  }
  return -1;
}

template <typename T>
bool Fit(const std::vector<int64_t>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](int64_t value) { return value == static_cast<T>(value); });
}

// The same numbers with zero point 0, and `params` of that. They must Fit T.
template <typename T>
Tensor StoreAs(const std::vector<int64_t>& values, const Shape& shape, QuantParams& params) {
  params.dtype = sizeof(T) == 1 ? DType::kInt8 : DType::kInt16;
  constexpr int64_t kHalf = int64_t{1} << (8 * sizeof(T) - 1);
  params.qmin = -kHalf;
  params.qmax = kHalf - 1;
  std::fill(params.zero_point.begin(), params.zero_point.end(), 0);
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    const T value = static_cast<T>(values[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
  return Tensor({params.dtype, shape}, std::move(bytes));
}

class Keeper {
 public:
  explicit Keeper(const Graph& graph) : graph_(graph), value_(graph.value_count()) {}

  absl::StatusOr<KeptScales> Run() {
    kept_.graph.set_name(graph_.name());
    FindReadAsFloat();
    FindStoredMoves();
    RETURN_IF_ERROR(FindInputParams());
    for (const Node& node : graph_.nodes()) {
      if (node.op != Op::kDequantize || graph_.def(node.inputs[0]).op != Op::kPlaceholder) continue;
      stored_inputs_.insert(node.inputs[0]);
    }
    for (int i = 0; i < graph_.node_count(); ++i) RETURN_IF_ERROR(Take(graph_.node(NodeId(i))));
    for (const GraphOutput& output : graph_.outputs()) {
      kept_.graph.AddOutput({output.name, OutputValue(New(output.value)), output.fp16});
    }
    if (params_.empty()) return std::move(kept_);
    std::set<ValueId> borders;
    for (const auto& [value, params] : params_) borders.insert(value);
    AddMoved(borders);
    SpreadBackwards(kept_.graph, params_);
    StoreUnreadInputs();
    kept_.plan.values = std::move(params_);
    kept_.plan.layers = GroupLayers(kept_.graph, borders);
    SpreadForwards(kept_.graph, also_float_, kept_.plan, kept_.notes);
    for (const Layer& layer : kept_.plan.layers) {
      LayerQuant tflite;
      tflite.multiplier_bits = kTfliteMultiplierBits;
      const auto stated = layer.outputs.empty() ? stated_.end() : stated_.find(layer.outputs[0]);
      kept_.plan.settings.push_back(stated == stated_.end() ? tflite : stated->second);
      MakeSymmetric(layer);
    }
    return std::move(kept_);
  }

 private:
  ValueId New(ValueId old) const { return value_[static_cast<size_t>(old.value())]; }
  void Set(ValueId old, ValueId now) { value_[static_cast<size_t>(old.value())] = now; }

  absl::Status Take(const Node& node) {
    if (node.op == Op::kQuantize) return TakeQuantize(node);
    if (node.op == Op::kDequantize) return TakeDequantize(node);
    if (!node.inputs.empty() && integers_.contains(node.inputs[0])) return TakeIntegers(node);
    for (const ValueId input : node.inputs) RETURN_IF_ERROR(CheckFloat(input, node));
    if ((node.op == Op::kReshape || node.op == Op::kTranspose) && TakeMovedConstant(node)) {
      return absl::OkStatus();
    }
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(OperandOf(node, input));
    std::vector<TensorType> types;
    for (const ValueId output : node.outputs) types.push_back(graph_.type(output));
    NodeId id;
    if (node.op == Op::kPlaceholder) {
      const DType dtype =
          stored_inputs_.contains(node.outputs[0]) ? DType::kFloat32 : types[0].dtype;
      id = kept_.graph.value(kept_.graph.AddInput(node.source.name, {dtype, types[0].shape})).def;
    } else {
      id = kept_.graph.AddNode(node.op, std::move(inputs), node.attrs, std::move(types),
                               node.source);
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      Set(node.outputs[i], kept_.graph.node(id).outputs[i]);
      const auto input = input_params_.find(node.outputs[i]);
      if (input != input_params_.end()) params_.emplace(New(node.outputs[i]), input->second);
    }
    return absl::OkStatus();
  }

  // The graph input that a value is, moved alone; invalid where it is none.
  ValueId MovedInput(ValueId value) const {
    while (graph_.def(value).op != Op::kPlaceholder) {
      const Node& node = graph_.def(value);
      if (!TraitsOf(node.op).keeps_parameters || node.inputs.size() != 1) return {};
      value = node.inputs[0];
    }
    return value;
  }

  // The parameters of float inputs that are quantized by several.
  absl::Status FindInputParams() {
    std::map<ValueId, std::vector<QuantParams>> all;
    for (const Node& node : graph_.nodes()) {
      if (node.op != Op::kQuantize) continue;
      const ValueId input = MovedInput(node.inputs[0]);
      if (!input.valid()) continue;
      ASSIGN_OR_RETURN(QuantParams params, QuantParamsOf(node, graph_.type(node.outputs[0])));
      std::vector<QuantParams>& of_input = all[input];
      const bool is_new = std::none_of(of_input.begin(), of_input.end(), [&](const auto& other) {
        return SameIntegers(other, params);
      });
      if (is_new) of_input.push_back(std::move(params));
    }
    for (const auto& [input, params] : all) {
      const bool has_axis = std::any_of(params.begin(), params.end(),
                                        [](const QuantParams& one) { return one.axis >= 0; });
      if (params.size() > 1 && !has_axis) input_params_.emplace(input, ParamsForAll(input, params));
    }
    return absl::OkStatus();
  }

  // Parameters whose integers hold the ranges of all, in steps as fine as the finest: one of them,
  // or 16 bits. There the step is an odd part of the finest scale, so that rounding to it first
  // changes no rounding to the finest.
  QuantParams ParamsForAll(ValueId input, const std::vector<QuantParams>& all) {
    const auto lowest = [](const QuantParams& one) {
      return static_cast<double>(one.qmin - one.zero_point[0]) * one.scale[0];
    };
    const auto highest = [](const QuantParams& one) {
      return static_cast<double>(one.qmax - one.zero_point[0]) * one.scale[0];
    };
    double least = 0;
    double most = 0;
    double finest = all[0].scale[0];
    for (const QuantParams& one : all) {
      least = std::min(least, lowest(one));
      most = std::max(most, highest(one));
      finest = std::min(finest, one.scale[0]);
    }
    for (const QuantParams& one : all) {
      if (lowest(one) <= least && highest(one) >= most && one.scale[0] <= finest) return one;
    }
    double step = std::max(least / INT16_MIN, most / INT16_MAX);
    if (step <= finest) {
      const double parts = std::floor(finest / step);
      step = finest / (std::fmod(parts, 2) == 0 ? parts - 1 : parts);
    }
    const std::string& name = graph_.def(input).source.name;
    kept_.notes.push_back(absl::StrCat("input '", Printable(name), "' is quantized by ", all.size(),
                                       " scales; it is stored in 16 bits, of which each is made"));
    if (step / 2 > finest) kept_.coarse_inputs.push_back({name, step, finest});
    return {DType::kInt16, INT16_MIN, INT16_MAX, -1, {step}, {0}};
  }

  // A result that the model does not store, and that several clamps cut: it has no scale but those
  // of the clamps, so that each but the last has a copy of the operator.
  // A result that is stored behind a move and also read inside of another operator, as the rows
  // that two enlarged pictures share: the move has a copy of the operator, so that what is stored
  // is rounded once.
  ValueId OperandOf(const Node& node, ValueId operand) {
    const ValueId value = New(operand);
    const Op def = graph_.def(operand).op;
    if (def == Op::kDequantize || def == Op::kPlaceholder || def == Op::kConst) return value;
    if (also_inside_.contains(operand) && stored_moves_.contains(node.outputs[0])) {
      MarkAlsoFloat(value);
    } else if (!clamped_.contains(operand) || !IsClampOf(node, operand) ||
               --clamped_.at(operand) == 0) {
      return value;
    }
    const absl::StatusOr<ValueId> again = ComputedAgain(value);
    return again.ok() ? *again : value;
  }

  bool IsClampOf(const Node& node, ValueId operand) const {
    const std::optional<Clamp> clamp = ClampOf(graph_, node);
    return clamp.has_value() && clamp->operand == operand;
  }

  // Nothing computes with integers but moves, which leave them as they are.
  absl::Status CheckFloat(ValueId value, const Node& user) const {
    return integers_.contains(value) || stored_inputs_.contains(value)
               ? ComputesWithIntegers(value, user)
               : absl::OkStatus();
  }

  absl::Status ComputesWithIntegers(ValueId value, const Node& user) const {
    return absl::UnimplementedError(
        absl::StrCat("node '", Printable(user.source.name), "' (", NameOf(user.op),
                     ") computes with the integers of '", Printable(graph_.def(value).source.name),
                     "'; only a model whose integers go through Dequantize can keep its scales"));
  }

  // A node that moves integers without a Dequantize.
  absl::Status TakeIntegers(const Node& node) {
    const QuantParams params = integers_.at(node.inputs[0]);
    const bool moves = (TraitsOf(node.op).keeps_parameters || node.op == Op::kConcat) &&
                       params.axis < 0 &&
                       std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
                         const auto found = integers_.find(input);
                         return found != integers_.end() && SameIntegers(found->second, params);
                       });
    if (!moves) return ComputesWithIntegers(node.inputs[0], node);
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(New(input));
    std::vector<TensorType> types;
    for (const ValueId output : node.outputs) {
      types.push_back({DType::kFloat32, graph_.type(output).shape});
    }
    const NodeId id =
        kept_.graph.AddNode(node.op, std::move(inputs), node.attrs, std::move(types), node.source);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId value = kept_.graph.node(id).outputs[i];
      Set(node.outputs[i], value);
      params_.emplace(value, params);
      integers_.emplace(node.outputs[i], params);
    }
    return absl::OkStatus();
  }

  // Integers of 32 bits whose operand is stored, and of which 16 bits hold all but half a step at
  // the ends, have 16.
  void Narrow(const Node& quantize, QuantParams& params) {
    const auto operand = params_.find(New(quantize.inputs[0]));
    if (params.dtype != DType::kInt32 || params.axis >= 0 || operand == params_.end()) return;
    const QuantParams& from = operand->second;
    const double factor = from.scale[0] / params.scale[0];
    const double zero = static_cast<double>(params.zero_point[0]);
    const double low = static_cast<double>(from.qmin - from.zero_point[0]) * factor + zero;
    const double high = static_cast<double>(from.qmax - from.zero_point[0]) * factor + zero;
    if (low < INT16_MIN - 0.5 || high > INT16_MAX + 0.5) return;
    params.dtype = DType::kInt16;
    params.qmin = INT16_MIN;
    params.qmax = INT16_MAX;
    kept_.notes.push_back(absl::StrCat("the 32-bit integers of '", Printable(quantize.source.name),
                                       "' are stored in 16 bits, to half a step"));
  }

  absl::Status TakeQuantize(const Node& node) {
    ASSIGN_OR_RETURN(QuantParams params, QuantParamsOf(node, graph_.type(node.outputs[0])));
    Narrow(node, params);
    ASSIGN_OR_RETURN(const ValueId value, ValueStoredAs(node, params));
    params_.emplace(value, params);
    ASSIGN_OR_RETURN(const std::optional<LayerQuant> settings, LayerQuantOf(node));
    if (settings.has_value()) stated_.emplace(value, *settings);
    Set(node.outputs[0], value);
    integers_.emplace(node.outputs[0], params);
    return absl::OkStatus();
  }

  // Marks what something but a Quantize reads, and outputs; and what clamps alone read so.
  void FindReadAsFloat() {
    std::set<ValueId> others;  // of these
    for (const Node& node : graph_.nodes()) {
      if (node.op == Op::kQuantize) continue;
      read_as_float_.insert(node.inputs.begin(), node.inputs.end());
      for (const ValueId input : node.inputs) {
        if (IsClampOf(node, input)) {
          ++clamped_[input];
        } else {
          others.insert(input);
        }
      }
    }
    for (const GraphOutput& output : graph_.outputs()) {
      read_as_float_.insert(output.value);
      others.insert(output.value);
    }
    for (const ValueId value : others) clamped_.erase(value);
  }

  // Marks moves whose results are stored, by a Quantize or behind a further such move, and nothing
  // else reads; and results that such a move reads and something that stores nothing, too.
  void FindStoredMoves() {
    std::set<ValueId> read_otherwise, quantized;
    for (const GraphOutput& output : graph_.outputs()) read_otherwise.insert(output.value);
    std::set<ValueId> moved;
    for (int i = graph_.node_count() - 1; i >= 0; --i) {  // readers first
      const Node& node = graph_.node(NodeId(i));
      if (node.op == Op::kQuantize) {
        quantized.insert(node.inputs[0]);
        continue;
      }
      const bool moves =
          TraitsOf(node.op).keeps_parameters && node.inputs.size() == 1 && node.outputs.size() == 1;
      const bool is_stored =
          moves && !read_otherwise.contains(node.outputs[0]) &&
          (quantized.contains(node.outputs[0]) || moved.contains(node.outputs[0]));
      if (is_stored) {
        stored_moves_.insert(node.outputs[0]);
        moved.insert(node.inputs[0]);
      } else {
        read_otherwise.insert(node.inputs.begin(), node.inputs.end());
      }
    }
    for (const ValueId value : moved) {
      if (read_otherwise.contains(value) && !quantized.contains(value)) also_inside_.insert(value);
    }
  }

  // The value that a Quantize stores. Integers, and inputs, which come as integers, go from one
  // scale to the other. What an operator computed is computed again for each scale, and once more
  // for those that read it as a float: made from the first's integers, it would saturate where the
  // first does.
  absl::StatusOr<ValueId> ValueStoredAs(const Node& quantize, const QuantParams& params) {
    const ValueId value = New(quantize.inputs[0]);
    const Op def = graph_.def(quantize.inputs[0]).op;
    const bool is_stored = def == Op::kDequantize || def == Op::kPlaceholder ||
                           kept_.graph.ConstantOf(value) != nullptr;
    const auto found = params_.find(value);
    if (found != params_.end() && SameIntegers(found->second, params)) return value;
    const bool is_common = input_params_.contains(MovedInput(quantize.inputs[0]));
    const bool is_shared = !is_stored && read_as_float_.contains(quantize.inputs[0]);
    const bool is_first = !is_shared && !is_common;
    if (found == params_.end() && (is_first || IsMoved(value, params))) return value;
    if (is_stored || is_common) {
      return kept_.graph.AddValue(Op::kIdentity, {value}, {}, kept_.graph.type(value),
                                  quantize.source);
    }
    for (const ValueId copy : copies_[value]) {
      if (SameIntegers(params_.at(copy), params)) return copy;
    }
    if (found == params_.end()) MarkAlsoFloat(value);
    ASSIGN_OR_RETURN(const ValueId copy, ComputedAgain(value));
    copies_[value].push_back(copy);
    return copy;
  }

  // Marks a value, and those that it is moved from: its readers read them.
  void MarkAlsoFloat(ValueId value) {
    while (!params_.contains(value) && kept_.graph.ConstantOf(value) == nullptr) {
      also_float_.insert(value);
      const Node& node = kept_.graph.def(value);
      if (!TraitsOf(node.op).keeps_parameters || node.inputs.size() != 1) break;
      value = node.inputs[0];
    }
  }

  // Whether the integers of `value` are those of others, which are stored so, moved alone.
  bool IsMoved(ValueId value, const QuantParams& params) const {
    std::set<ValueId> seen = {value};
    std::vector<ValueId> open = {value};
    while (!open.empty()) {
      const ValueId one = open.back();
      open.pop_back();
      if (const auto found = params_.find(one); found != params_.end()) {
        if (!SameIntegers(found->second, params)) return false;
        continue;
      }
      const Node& node = kept_.graph.def(one);
      const bool moves =
          (TraitsOf(node.op).keeps_parameters && node.inputs.size() == 1) || node.op == Op::kConcat;
      if (!moves) return false;
      for (const ValueId input : node.inputs) {
        if (seen.insert(input).second) open.push_back(input);
      }
    }
    return true;
  }

  // Adds results that are integers of `borders`, moved alone. A pool's is none: clamps behind it
  // join its layer.
  void AddMoved(std::set<ValueId>& borders) const {
    for (const Node& node : kept_.graph.nodes()) {
      const OpTraits& traits = TraitsOf(node.op);
      if (traits.keeps_parameters && traits.integer != IntegerRule::kPool &&
          node.inputs.size() == 1 && borders.contains(node.inputs[0]) &&
          kept_.graph.ConstantOf(node.inputs[0]) == nullptr) {
        borders.insert(node.outputs.begin(), node.outputs.end());
      }
    }
  }

  // The operators that give `value`, back to what is stored, once more.
  absl::StatusOr<ValueId> ComputedAgain(ValueId value) {
    std::set<NodeId> needed;  // operands lie before what reads them
    std::vector<ValueId> open = {value};
    while (!open.empty()) {
      const NodeId id = kept_.graph.value(open.back()).def;
      open.pop_back();
      const Node& node = kept_.graph.node(id);
      if (!needed.insert(id).second) continue;
      if (needed.size() > kMaxComputedAgain) {
        return absl::UnimplementedError(
            absl::StrCat("node '", Printable(node.source.name), "' and ", kMaxComputedAgain,
                         " more have no scale before a value that is stored with two"));
      }
      for (const ValueId input : node.inputs) {
        const Op op = kept_.graph.def(input).op;
        if (!params_.contains(input) && op != Op::kConst && op != Op::kPlaceholder)
          open.push_back(input);
      }
    }
    std::map<ValueId, ValueId> again;
    for (const NodeId id : needed) {
      const Node node = kept_.graph.node(id);  // by value: the graph grows
      std::vector<ValueId> inputs;
      for (const ValueId input : node.inputs) {
        const auto copy = again.find(input);
        inputs.push_back(copy == again.end() ? input : copy->second);
      }
      std::vector<TensorType> types;
      for (const ValueId output : node.outputs) types.push_back(kept_.graph.type(output));
      const NodeId copy = kept_.graph.AddNode(node.op, std::move(inputs), node.attrs,
                                              std::move(types), node.source);
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        again[node.outputs[i]] = kept_.graph.node(copy).outputs[i];
      }
    }
    return again.at(value);
  }

  absl::Status TakeDequantize(const Node& node) {
    const ValueId integers = node.inputs[0];
    ASSIGN_OR_RETURN(const QuantParams params, QuantParamsOf(node, graph_.type(integers)));
    const Node& def = graph_.def(integers);
    if (def.op == Op::kConst) {
      const Tensor& stored = *graph_.ConstantOf(integers);
      AddConstant(node.outputs[0], stored, params, def.source);
      return absl::OkStatus();
    }
    if (def.op == Op::kPlaceholder) {  // an input of integers, which its first Dequantize explains
      integers_.emplace(integers, params);
      params_.emplace(New(integers), params);
    }
    const auto written = integers_.find(integers);
    if (written == integers_.end() || written->second.axis != params.axis ||
        written->second.scale != params.scale || written->second.zero_point != params.zero_point) {
      return absl::UnimplementedError(
          absl::StrCat("node '", Printable(node.source.name),
                       "' reads integers as others than they were written"));
    }
    Set(node.outputs[0], New(integers));
    return absl::OkStatus();
  }

  void AddConstant(ValueId old, const Tensor& stored, const QuantParams& params,
                   const NodeSource& source) {
    const ValueId value = kept_.graph.AddConst(RealValues(stored, params), source);
    params_.emplace(value, params);
    kept_.plan.constants.emplace(value, stored);
    Set(old, value);
  }

  // The integers of an output are the model's. A constant that is a weight, too, may get others
  // (MakeSymmetric), so that the output has a copy of it.
  ValueId OutputValue(ValueId value) {
    const auto stored = kept_.plan.constants.find(value);
    if (stored == kept_.plan.constants.end()) return value;
    const auto reads = [value](const Node& node) {
      return std::find(node.inputs.begin(), node.inputs.end(), value) != node.inputs.end();
    };
    const auto& nodes = kept_.graph.nodes();
    if (std::none_of(nodes.begin(), nodes.end(), reads)) return value;
    const NodeSource source = kept_.graph.def(value).source;
    const ValueId copy = kept_.graph.AddConst(*kept_.graph.ConstantOf(value), source);
    params_.emplace(copy, params_.at(value));
    kept_.plan.constants.emplace(copy, Tensor(stored->second));
    return copy;
  }

  // A constant's integers through a node that only moves them; false where there are none.
  bool TakeMovedConstant(const Node& node) {
    const ValueId operand = New(node.inputs[0]);
    const auto stored = kept_.plan.constants.find(operand);
    if (stored == kept_.plan.constants.end()) return false;
    const auto moved = DefOf(node.op).reference(node, std::vector<Tensor>{stored->second});
    if (!moved.ok()) return false;
    QuantParams params = params_.at(operand);
    if (params.axis >= 0 && node.op == Op::kTranspose) {
      const auto perm = IntsAttr(node, "perm");
      if (!perm.ok()) return false;
      params.axis =
          static_cast<int>(std::find(perm->begin(), perm->end(), params.axis) - perm->begin());
    } else if (params.axis >= 0) {
      const Shape& to = (*moved)[0].shape();
      const Shape& from = stored->second.shape();
      const int axis = AxisAfterReshape(params.axis, from, to);
      // A depthwise weight's last dimension may be cut in two: then it is its scales' that count.
      const bool is_last = params.axis + 1 == static_cast<int>(from.size());
      if (axis < 0 && params.scale.size() > 1 && !is_last) return false;
      params.axis = axis >= 0 ? axis : static_cast<int>(to.size()) - 1;
    }
    const NodeSource source = kept_.graph.def(operand).source;
    AddConstant(node.outputs[0], (*moved)[0], params, source);
    return true;
  }

  // An input that nothing reads has no scale in the model; it keeps its place in the header.
  void StoreUnreadInputs() {
    const std::vector<int> uses = kept_.graph.UseCounts();
    for (const ValueId input : kept_.graph.inputs()) {
      if (uses[static_cast<size_t>(input.value())] > 0 || params_.contains(input)) continue;
      params_.emplace(input, QuantParams{.dtype = DType::kInt8,
                                         .qmin = INT8_MIN,
                                         .qmax = INT8_MAX,
                                         .scale = {1.0},
                                         .zero_point = {0}});
      kept_.notes.push_back(absl::StrCat("nothing reads input '",
                                         Printable(kept_.graph.def(input).source.name),
                                         "'; it is stored in 8 bits"));
    }
  }

  // The weight of a convolution or a matrix product, less its zero point.
  void MakeSymmetric(const Layer& layer) {
    const Op op = kept_.graph.node(layer.root).op;
    const bool weighted = op == Op::kConv2D || op == Op::kDepthwiseConv2D || op == Op::kMatMul;
    if (!layer.weight.valid() || !weighted) return;
    const auto found = kept_.plan.values.find(layer.weight);
    const auto stored = kept_.plan.constants.find(layer.weight);
    if (found == kept_.plan.values.end() || stored == kept_.plan.constants.end()) return;
    QuantParams& params = found->second;
    const bool symmetric = std::all_of(params.zero_point.begin(), params.zero_point.end(),
                                       [](int64_t zero) { return zero == 0; });
    if (symmetric && (params.dtype == DType::kInt8 || params.dtype == DType::kInt16)) return;
    const Channels channels(params, stored->second.shape());
    std::vector<int64_t> values(static_cast<size_t>(stored->second.element_count()));
    for (int64_t i = 0; i < stored->second.element_count(); ++i) {
      values[static_cast<size_t>(i)] = stored->second.int_at(i) - params.zero_point[channels.Of(i)];
    }
    if (Fit<int8_t>(values)) {
      stored->second = StoreAs<int8_t>(values, stored->second.shape(), params);
    } else if (Fit<int16_t>(values)) {
      stored->second = StoreAs<int16_t>(values, stored->second.shape(), params);
      kept_.notes.push_back(absl::StrCat("the weight of layer '", Printable(layer.name),
                                         "' less its zero point needs more than 8 bits; it is "
                                         "stored in 16"));
    }
    // What needs more than 16 bits stays as it is; lowering refuses it.
  }

  const Graph& graph_;
  std::vector<ValueId> value_;  // in the new graph, by old id
  std::map<ValueId, QuantParams> params_;
  std::set<ValueId> read_as_float_;  // of graph_
  std::map<ValueId, int> clamped_;   // of graph_: clamps that read it and are to come
  std::map<ValueId, std::vector<ValueId>> copies_;  // of values that are stored with more scales
  std::set<ValueId> stored_moves_;                  // of graph_: results of them
  std::set<ValueId> also_inside_;                   // of graph_: FindStoredMoves
  std::set<ValueId> also_float_;  // of the new graph: computed again for their Quantize
  std::map<ValueId, QuantParams> input_params_;  // of graph_: inputs with several
  std::set<ValueId> stored_inputs_;              // old inputs of integers that a Dequantize reads
  std::map<ValueId, QuantParams> integers_;      // of old values that are integers, but constants
  std::map<ValueId, LayerQuant> stated_;         // settings, by the layer's result
  KeptScales kept_;
};

}  // namespace

absl::StatusOr<KeptScales> KeepScales(const Graph& graph) { return Keeper(graph).Run(); }

}  // namespace npuc
