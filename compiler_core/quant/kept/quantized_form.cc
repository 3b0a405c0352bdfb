#include "compiler_core/quant/kept/quantized_form.h"

#include <map>
#include <utility>
#include <vector>

#include "compiler_core/ops/quantize.h"
#include "compiler_core/quant/params.h"

namespace npuc {
namespace {

class QuantizedFormer {
 public:
  QuantizedFormer(const Graph& graph, const QuantPlan& plan)
      : graph_(graph), plan_(plan), value_(static_cast<size_t>(graph.value_count())) {
    for (size_t i = 0; i < plan.layers.size() && i < plan.settings.size(); ++i) {
      for (const ValueId id : plan.layers[i].outputs) settings_[id] = &plan.settings[i];
    }
  }

  Graph Run() {
    out_.set_name(graph_.name());
    for (const Node& node : graph_.nodes()) Take(node);
    for (const GraphOutput& output : graph_.outputs()) {
      out_.AddOutput({output.name, New(output.value), output.fp16});
    }
    return std::move(out_);
  }

 private:
  ValueId New(ValueId old) const { return value_[static_cast<size_t>(old.value())]; }
  const QuantParams* ParamsOf(ValueId old) const {
    const auto found = plan_.values.find(old);
    return found == plan_.values.end() ? nullptr : &found->second;
  }

  ValueId Add(Op op, ValueId operand, AttrMap attrs, DType dtype, const NodeSource& source) {
    return out_.AddValue(op, {operand}, std::move(attrs), {dtype, out_.type(operand).shape},
                         source);
  }

  void Take(const Node& node) {
    if (node.op == Op::kConst) return TakeConstant(node);
    std::vector<ValueId> results;
    if (node.op == Op::kPlaceholder) {
      results = {out_.AddInput(node.source.name, graph_.type(node.outputs[0]))};
    } else {
      std::vector<ValueId> inputs;
      for (const ValueId input : node.inputs) inputs.push_back(New(input));
      std::vector<TensorType> types;
      for (const ValueId output : node.outputs) types.push_back(graph_.type(output));
      const NodeId id =
          out_.AddNode(node.op, std::move(inputs), node.attrs, std::move(types), node.source);
      results = out_.node(id).outputs;
    }
    for (size_t i = 0; i < results.size(); ++i) {
      const ValueId old = node.outputs[i];
      const QuantParams* params = ParamsOf(old);
      value_[static_cast<size_t>(old.value())] =
          params == nullptr ? results[i] : Border(old, results[i], *params, node.source);
    }
  }

  ValueId Border(ValueId old, ValueId value, const QuantParams& params, const NodeSource& source) {
    AttrMap attrs = QuantizeAttrs(params);
    const auto settings = settings_.find(old);
    if (settings != settings_.end()) AddLayerQuantAttrs(*settings->second, attrs);
    const ValueId integers = Add(Op::kQuantize, value, std::move(attrs), params.dtype, source);
    return Add(Op::kDequantize, integers, DequantizeAttrs(params), DType::kFloat32, source);
  }

  void TakeConstant(const Node& node) {
    const ValueId old = node.outputs[0];
    const Tensor& real = *graph_.ConstantOf(old);
    const QuantParams* params = ParamsOf(old);
    ValueId& now = value_[static_cast<size_t>(old.value())];
    if (params == nullptr) {
      now = out_.AddConst(real, node.source);
      return;
    }
    const auto given = plan_.constants.find(old);
    const ValueId integers = out_.AddConst(
        given != plan_.constants.end() ? given->second
                                       : QuantizeTensor(*params, real.ToFloats(), real.shape()),
        node.source);
    now = Add(Op::kDequantize, integers, DequantizeAttrs(*params), DType::kFloat32, node.source);
  }

  const Graph& graph_;
  const QuantPlan& plan_;
  std::vector<ValueId> value_;  // in the new graph, by old id
  std::map<ValueId, const LayerQuant*> settings_;
  Graph out_;
};

}  // namespace

Graph QuantizedForm(const Graph& graph, const QuantPlan& plan) {
  return QuantizedFormer(graph, plan).Run();
}

}  // namespace npuc
