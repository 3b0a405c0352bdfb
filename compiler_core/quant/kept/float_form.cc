#include "compiler_core/quant/kept/float_form.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/layers.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/ops/quantize.h"
#include "compiler_core/quant/kept/coarse_steps.h"
#include "compiler_core/quant/params.h"

namespace npuc {
namespace {

// An interval that holds every element of a value.
struct Bounds {
  double low = -HUGE_VAL;
  double high = HUGE_VAL;
};

Bounds Union(Bounds a, Bounds b) { return {std::min(a.low, b.low), std::max(a.high, b.high)}; }

Bounds Clamped(Bounds x, double low, double high) {
  return {std::clamp(x.low, low, high), std::clamp(x.high, low, high)};
}

Bounds BoundsOfConstant(const Tensor& tensor) {
  if (tensor.dtype() != DType::kFloat32 || tensor.element_count() == 0) return {};
  const absl::Span<const float> values = tensor.as<float>();
  Bounds bounds{values[0], values[0]};
  for (const float value : values) {
    if (std::isnan(value)) return {};
    bounds = Union(bounds, {value, value});
  }
  return bounds;
}

// What an operator makes of operands within `inputs`; the whole line where nothing is known.
Bounds BoundsOfResult(const Node& node, absl::Span<const Bounds> inputs) {
  const Op op = node.op;
  Bounds all;
  if (!inputs.empty()) all = inputs[0];
  for (const Bounds& input : inputs) all = Union(all, input);
  if (TraitsOf(op).keeps_parameters || op == Op::kConcat || op == Op::kAvgPool ||
      op == Op::kReduceMax || op == Op::kReduceMean) {
    return all;
  }
  if (op == Op::kPad) {
    const double filled = FloatAttrOr(node, "value", 0);
    return Union(all, {filled, filled});
  }
  if (op == Op::kRelu) return Clamped(all, 0, HUGE_VAL);
  if (op == Op::kRelu6) return Clamped(all, 0, 6);
  if (op == Op::kSigmoid || op == Op::kSoftmax) return {0, 1};
  if (op == Op::kTanh) return {-1, 1};
  if (op == Op::kMaximum && inputs.size() == 2) {
    return {std::max(inputs[0].low, inputs[1].low), std::max(inputs[0].high, inputs[1].high)};
  }
  if (op == Op::kMinimum && inputs.size() == 2) {
    return {std::min(inputs[0].low, inputs[1].low), std::min(inputs[0].high, inputs[1].high)};
  }
  return {};
}

class FloatFormer {
 public:
  explicit FloatFormer(const Graph& graph)
      : graph_(graph),
        value_(static_cast<size_t>(graph.value_count())),
        coarse_(CoarseSteps(graph)) {}

  absl::StatusOr<FloatForm> Run() {
    form_.graph.set_name(graph_.name());
    RETURN_IF_ERROR(FindStoredInputs());
    for (const Node& node : graph_.nodes()) RETURN_IF_ERROR(Take(node));
    for (const GraphOutput& output : graph_.outputs()) {
      form_.graph.AddOutput({output.name, New(output.value), output.fp16});
    }
    return std::move(form_);
  }

 private:
  ValueId New(ValueId old) const { return value_[static_cast<size_t>(old.value())]; }
  void Set(ValueId old, ValueId now) { value_[static_cast<size_t>(old.value())] = now; }
  const Tensor* Constant(ValueId now) const { return form_.graph.ConstantOf(now); }

  // Inputs of integers, which their first Dequantize explains.
  absl::Status FindStoredInputs() {
    for (const Node& node : graph_.nodes()) {
      if (node.op != Op::kDequantize || graph_.def(node.inputs[0]).op != Op::kPlaceholder) continue;
      ASSIGN_OR_RETURN(const QuantParams params, QuantParamsOf(node, graph_.type(node.inputs[0])));
      integers_.emplace(node.inputs[0], params);
    }
    return absl::OkStatus();
  }

  static Bounds BoundsOfIntegers(const QuantParams& params) {
    Bounds bounds{HUGE_VAL, -HUGE_VAL};
    for (size_t c = 0; c < params.scale.size(); ++c) {
      const auto real = [&](int64_t q) {
        return static_cast<double>(q - params.zero_point[c]) * params.scale[c];
      };
      bounds = Union(bounds, {real(params.qmin), real(params.qmax)});
    }
    return bounds;
  }

  // Moves leave integers as they are; Concat takes those of unlike parameters and constants, too,
  // and brings them to the parameters of the first. A wider type and a known factor keep them.
  absl::Status TakeIntegers(const Node& node) {
    const auto first = std::find_if(node.inputs.begin(), node.inputs.end(),
                                    [&](ValueId input) { return integers_.contains(input); });
    const QuantParams params = integers_.at(*first);
    const bool is_cast = node.op == Op::kCast && IsInteger(graph_.type(node.outputs[0]).dtype);
    const bool is_scaled =
        node.op == Op::kMul && params.axis < 0 && params.zero_point[0] == 0 &&
        IsKnownFactor(*first == node.inputs[0] ? node.inputs[1] : node.inputs[0]);
    if (node.op == Op::kConcat) {
      for (const ValueId input : node.inputs) RETURN_IF_ERROR(CheckAligned(node, input, params));
    } else if (!TraitsOf(node.op).keeps_parameters && !is_cast && !is_scaled) {
      return ComputesWithIntegers(node);
    }
    for (const ValueId output : node.outputs) integers_.emplace(output, params);
    return absl::OkStatus();
  }

  static absl::Status ComputesWithIntegers(const Node& node) {
    return absl::UnimplementedError(absl::StrCat("node '", Printable(node.source.name), "' (",
                                                 NameOf(node.op), ") computes with integers"));
  }

  bool IsKnownFactor(ValueId value) const {
    const Tensor* constant = graph_.ConstantOf(value);
    return constant != nullptr && IsInteger(constant->dtype());
  }

  absl::Status CheckAligned(const Node& node, ValueId input, const QuantParams& params) const {
    const auto written = integers_.find(input);
    if (written != integers_.end() && written->second == params) return absl::OkStatus();
    const bool is_single =
        params.axis < 0 &&
        (written == integers_.end() ? IsKnownFactor(input) : written->second.axis < 0);
    return is_single ? absl::OkStatus() : ComputesWithIntegers(node);
  }

  // The floats in the place of an operand of a node whose integers are of these parameters.
  ValueId Aligned(const Node& node, ValueId input, const QuantParams& params) {
    const auto written = integers_.find(input);
    if (written != integers_.end()) {
      return written->second == params ? New(input) : Reread(input, written->second, params, node);
    }
    const Tensor& stored = *graph_.ConstantOf(input);
    if (node.op == Op::kConcat) {
      return AddConstant(DequantizeTensor(params, stored), graph_.def(input).source);
    }
    return AddConstant(CastTensor(stored, DType::kFloat32), graph_.def(input).source);
  }

  // Integers of one scale and zero point each, read as ones of another: q = x / s + z is
  // (q - z') * s', which is x * (s' / s) + (z - z') * s'.
  ValueId Reread(ValueId integers, const QuantParams& written, const QuantParams& read,
                 const Node& node) {
    const TensorType type{DType::kFloat32, graph_.type(integers).shape};
    const Shape one(type.shape.empty() ? 0 : 1, 1);
    const auto apply = [&](Op op, ValueId x, double by) {
      const Tensor constant = Tensor::FromFloats(one, {static_cast<float>(by)});
      const ValueId operand = AddConstant(constant, node.source);
      return form_.graph.node(Add(op, {x, operand}, {}, {type}, node.source, {})).outputs[0];
    };
    ValueId value = New(integers);
    if (read.scale[0] != written.scale[0]) {
      value = apply(Op::kMul, value, read.scale[0] / written.scale[0]);
    }
    const int64_t shift = written.zero_point[0] - read.zero_point[0];
    return shift == 0 ? value : apply(Op::kAdd, value, static_cast<double>(shift) * read.scale[0]);
  }

  absl::Status Take(const Node& node) {
    if (node.op == Op::kQuantize) return TakeQuantize(node);
    if (node.op == Op::kDequantize) return TakeDequantize(node);
    const bool reads_integers =
        std::any_of(node.inputs.begin(), node.inputs.end(),
                    [&](ValueId input) { return integers_.contains(input); });
    if (reads_integers) RETURN_IF_ERROR(TakeIntegers(node));
    if (TakeMovedConstant(node)) return absl::OkStatus();
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) {
      inputs.push_back(reads_integers ? Aligned(node, input, integers_.at(node.outputs[0]))
                                      : New(input));
    }
    if (reads_integers && node.op == Op::kCast) {
      Set(node.outputs[0], inputs[0]);
      return absl::OkStatus();
    }
    std::vector<TensorType> types;
    for (const ValueId output : node.outputs) {
      const TensorType& type = graph_.type(output);
      types.push_back({integers_.contains(output) ? DType::kFloat32 : type.dtype, type.shape});
    }
    if (node.op == Op::kPlaceholder) {
      const ValueId input = form_.graph.AddInput(node.source.name, types[0]);
      form_.graph.mutable_node(form_.graph.value(input).def).attrs = node.attrs;  // facts
      Set(node.outputs[0], input);
      const auto stored = integers_.find(node.outputs[0]);
      bounds_.push_back(stored == integers_.end() ? Bounds() : BoundsOfIntegers(stored->second));
      return absl::OkStatus();
    }
    Add(node.op, inputs, node.attrs, types, node.source, node.outputs);
    return absl::OkStatus();
  }

  // Adds a node, with what is known of its results; `outputs`: the old values that they are.
  NodeId Add(Op op, const std::vector<ValueId>& inputs, const AttrMap& attrs,
             const std::vector<TensorType>& types, const NodeSource& source,
             absl::Span<const ValueId> outputs) {
    const NodeId id = form_.graph.AddNode(op, inputs, attrs, types, source);
    const Node& node = form_.graph.node(id);
    std::vector<Bounds> operands;
    for (const ValueId input : node.inputs) operands.push_back(BoundsOf(input));
    bounds_.resize(static_cast<size_t>(form_.graph.value_count()),
                   op == Op::kConst ? BoundsOfConstant(*Constant(node.outputs[0]))
                                    : BoundsOfResult(node, operands));
    for (size_t i = 0; i < outputs.size(); ++i) Set(outputs[i], node.outputs[i]);
    return id;
  }

  const Bounds& BoundsOf(ValueId now) const { return bounds_[static_cast<size_t>(now.value())]; }

  ValueId AddConstant(Tensor value, const NodeSource& source) {
    const Bounds bounds = BoundsOfConstant(value);
    const ValueId id = form_.graph.AddConst(std::move(value), source);
    bounds_.resize(static_cast<size_t>(form_.graph.value_count()), bounds);
    return id;
  }

  // A constant through a node that only moves it, so that a weight stays one; false where there is
  // none.
  bool TakeMovedConstant(const Node& node) {
    if (node.op != Op::kReshape && node.op != Op::kTranspose) return false;
    const ValueId operand = New(node.inputs[0]);
    const Tensor* constant = Constant(operand);
    if (constant == nullptr) return false;
    absl::StatusOr<std::vector<Tensor>> moved =
        DefOf(node.op).reference(node, std::vector<Tensor>{*constant});
    if (!moved.ok()) return false;
    const NodeSource source = form_.graph.def(operand).source;  // the weight keeps its name
    Set(node.outputs[0], AddConstant(std::move((*moved)[0]), source));
    return true;
  }

  absl::Status TakeQuantize(const Node& node) {
    ASSIGN_OR_RETURN(const QuantParams params, QuantParamsOf(node, graph_.type(node.outputs[0])));
    const ValueId operand = New(node.inputs[0]);
    if (BoolAttrOr(node, kInsideOperator, false)) {
      Set(node.outputs[0], operand);
      integers_.emplace(node.outputs[0], params);
      return absl::OkStatus();
    }
    std::vector<float> lows;
    std::vector<float> highs;
    for (size_t c = 0; c < params.scale.size(); ++c) {
      const auto real = [&](int64_t q) {
        return static_cast<float>(static_cast<double>(q - params.zero_point[c]) * params.scale[c]);
      };
      lows.push_back(real(params.qmin));
      highs.push_back(real(params.qmax));
    }
    ValueId value = Clamp(Op::kMaximum, operand, lows, params, node.source);
    value = Clamp(Op::kMinimum, value, highs, params, node.source);
    if (coarse_.contains(node.outputs[0]) && FitsHalf(params.scale[0])) {
      value = Rounded(value, params, node.source);
    }
    Set(node.outputs[0], value);
    integers_.emplace(node.outputs[0], params);
    if (params.axis >= 0 || Constant(value) != nullptr) return absl::OkStatus();
    const ValueRange range{lows[0], highs[0]};
    form_.ranges[value] = range;
    form_.ranges.emplace(operand, range);
    return absl::OkStatus();
  }

  // True where fp16 holds the factor and its reciprocal with all their bits.
  static bool FitsHalf(double factor) {
    constexpr double kLeast = 0x1p-14;
    return factor >= kLeast && factor <= 1 / kLeast;
  }

  // The nearest of the numbers that integers of one scale stand for.
  ValueId Rounded(ValueId value, const QuantParams& params, const NodeSource& source) {
    const TensorType type = form_.graph.type(value);
    const Shape one(type.shape.empty() ? 0 : 1, 1);
    const auto times = [&](ValueId x, double factor) {
      const Tensor constant = Tensor::FromFloats(one, {static_cast<float>(factor)});
      const ValueId operand = AddConstant(constant, source);
      return form_.graph.node(Add(Op::kMul, {x, operand}, {}, {type}, source, {})).outputs[0];
    };
    const ValueId steps = times(value, 1 / params.scale[0]);
    const NodeId round = Add(Op::kRound, {steps}, {}, {type}, source, {});
    return times(form_.graph.node(round).outputs[0], params.scale[0]);
  }

  // `value` behind a Maximum or a Minimum of `limits`: one, or one for each index of params.axis.
  ValueId Clamp(Op op, ValueId value, const std::vector<float>& limits, const QuantParams& params,
                const NodeSource& source) {
    const bool is_low = op == Op::kMaximum;
    const Bounds& known = BoundsOf(value);
    const bool is_inside = std::all_of(limits.begin(), limits.end(), [&](float limit) {
      return is_low ? known.low >= limit : known.high <= limit;
    });
    if (is_inside) return value;
    const TensorType type = form_.graph.type(value);
    Shape shape(type.shape.empty() ? 0 : 1, 1);
    if (params.axis >= 0) {
      shape.assign(type.shape.size() - static_cast<size_t>(params.axis), 1);
      shape[0] = static_cast<int64_t>(limits.size());
    }
    const Tensor limit_values = Tensor::FromFloats(shape, limits);
    if (Constant(value) != nullptr) {
      Node clamp;
      clamp.op = op;
      const auto clamped =
          DefOf(op).reference(clamp, std::vector<Tensor>{*Constant(value), limit_values});
      if (clamped.ok()) return AddConstant((*clamped)[0], form_.graph.def(value).source);
    }
    const ValueId limit = AddConstant(limit_values, source);
    return form_.graph.node(Add(op, {value, limit}, {}, {type}, source, {})).outputs[0];
  }

  absl::Status TakeDequantize(const Node& node) {
    const ValueId integers = node.inputs[0];
    ASSIGN_OR_RETURN(const QuantParams params, QuantParamsOf(node, graph_.type(integers)));
    const auto written = integers_.find(integers);
    if (written != integers_.end() && written->second.axis == params.axis &&
        written->second.scale == params.scale && written->second.zero_point == params.zero_point) {
      Set(node.outputs[0], New(integers));
      return absl::OkStatus();
    }
    if (written != integers_.end() && written->second.axis < 0 && params.axis < 0) {
      Set(node.outputs[0], Reread(integers, written->second, params, node));
      return absl::OkStatus();
    }
    const Tensor* stored = graph_.ConstantOf(integers);
    if (stored == nullptr) {
      return absl::UnimplementedError(
          absl::StrCat("node '", Printable(node.source.name),
                       "' reads integers as others than they were written"));
    }
    const NodeSource& source = graph_.def(integers).source;
    Set(node.outputs[0], AddConstant(DequantizeTensor(params, *stored), source));
    return absl::OkStatus();
  }

  const Graph& graph_;
  std::vector<ValueId> value_;               // in the new graph, by old id
  const std::set<ValueId> coarse_;           // old integers whose rounding stays
  std::vector<Bounds> bounds_;               // by new id
  std::map<ValueId, QuantParams> integers_;  // old values that are integers of activations
  FloatForm form_;
};

}  // namespace

absl::StatusOr<FloatForm> MakeFloatForm(const Graph& graph) { return FloatFormer(graph).Run(); }

}  // namespace npuc
