#include "compiler_core/ops/layer_function.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/op.h"

namespace npuc {
namespace {

// One node of a function, by the values that are known: constants and earlier results.
absl::Status Evaluate(const Graph& graph, const Node& node, std::map<ValueId, Tensor>& values) {
  std::vector<Tensor> inputs;
  for (const ValueId input : node.inputs) {
    const Tensor* constant = graph.ConstantOf(input);
    if (constant == nullptr) {
      inputs.push_back(values.at(input));
    } else if (constant->element_count() == 1) {
      inputs.push_back(constant->WithShape({}));
    } else {
      return absl::UnimplementedError(
          absl::StrCat(NameOf(node.op), " with a constant that is not one number"));
    }
  }
  ASSIGN_OR_RETURN(std::vector<Tensor> results, DefOf(node.op).reference(node, inputs));
  values.insert_or_assign(node.outputs[0], std::move(results[0]));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<double>> EvaluateFunction(const Graph& graph, const Layer& layer,
                                                     absl::Span<const float> points) {
  NPUC_CHECK(layer.inputs.size() == 1 && layer.outputs.size() == 1);
  const Shape shape = {static_cast<int64_t>(points.size())};
  std::map<ValueId, Tensor> known = {{layer.inputs[0], Tensor::FromFloats(shape, points)}};
  for (const NodeId id : layer.nodes) {
    RETURN_IF_ERROR(Evaluate(graph, graph.node(id), known));
  }
  const Tensor& result = known.at(layer.outputs[0]);
  std::vector<double> values;
  values.reserve(points.size());
  for (int64_t i = 0; i < result.element_count(); ++i) values.push_back(result.at(i));
  return values;
}

}  // namespace npuc
