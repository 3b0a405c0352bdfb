#ifndef NPUC_COMPILER_CORE_OPS_LAYERS_H_
#define NPUC_COMPILER_CORE_OPS_LAYERS_H_

#include <optional>
#include <set>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/ir/graph/quantization.h"

namespace npuc {

// Groups a graph's nodes into the layers that integer cores compute as one and that people set
// parameters for. Every node but Const is in exactly one layer:
//   Placeholder                                                            an Input layer each
//   Conv2D, DepthwiseConv2D, MatMul of a constant weight, then an Add of a constant bias (one
//   number a result channel), then Relu or Relu6                           one layer
//   Add, Sub, Mul, AvgPool, MaxPool, then Relu or Relu6                    one layer
//   anything else                                                          a layer of its own
// Where `borders` are given, two forms more:
//   any of the above that takes an activation, then any clamps (ClampOf)   one layer
//   element-wise operators between one border and the next, whose other operands are single numbers
//   without integers (HardSwish as sums and products): one Activation layer, its root the last node
// A node joins the layer before it only where nothing else uses the value between and that value is
// not in `borders` (values that exist as integers whatever grouping says: those, and the constants,
// that a quantized model has parameters for). Layers come in the order of their last nodes, so each
// one's inputs are outputs of earlier layers. A layer is named after its root's source; a name that
// is taken gets "_2", "_3" ... behind it, one that is empty is the layer's type. Pure; linear in
// nodes.
std::vector<Layer> GroupLayers(const Graph& graph, const std::set<ValueId>& borders = {});

// A node that cuts its operand to a range: Relu, Relu6, or Maximum or Minimum with one number.
struct Clamp {
  ValueId operand;
  double low = 0;   // -infinity: none
  double high = 0;  // infinity: none
};
std::optional<Clamp> ClampOf(const Graph& graph, const Node& node);

// Whether a layer reads constants alone. Front ends and passes compute such nodes; what is left was
// too large for that, and no integer core has commands for it.
bool ReadsConstantsAlone(const Layer& layer);

// Compass's name of the layer type that an operator becomes: "Convolution", "Eltwise" ...; the
// operator's own name where Compass has none.
absl::string_view LayerTypeOf(const Graph& graph, const Node& node);

// Whether an operator's results are some of its operand's stored integers, so that they keep the
// operand's parameters: Reshape, Transpose, Slice, Split, Identity, MaxPool.
bool KeepsParameters(absl::string_view op);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_OPS_LAYERS_H_
