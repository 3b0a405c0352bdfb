#ifndef NPUC_COMPILER_CORE_OPS_LAYERS_H_
#define NPUC_COMPILER_CORE_OPS_LAYERS_H_

#include <cmath>
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
//   Conv2D, DepthwiseConv2D, MatMul by a constant matrix, then an Add of a constant bias (one
//   number a result channel), then clamps                                  one layer
//   other MatMuls, Add, Sub, Mul, Maximum, Minimum, AvgPool, MaxPool, then clamps         one layer
//   anything else                                                          a layer of its own
// Where `borders` are given, one form more:
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

// True for a matrix product by one constant matrix, as a fully connected layer is. Other
// products have two activations, a stack of matrices, or the constant in front.
bool MultipliesByMatrix(const Graph& graph, const Node& node);

// Along which dimension a layer's weight has a scale a result channel; -1: it can have but one.
int ChannelAxis(const Graph& graph, const Layer& layer);

// Whether a layer reads constants alone. Front ends and passes compute such nodes; what is left was
// too large for that, and no integer core has commands for it.
bool ReadsConstantsAlone(const Layer& layer);

// What the clamps behind a layer's root leave: each number becomes the nearest one within.
struct ClampRange {
  double low = -HUGE_VAL;
  double high = HUGE_VAL;
  bool operator==(const ClampRange&) const = default;
};
ClampRange ClampsOf(const Graph& graph, const Layer& layer);
inline constexpr ClampRange kReluRange = {0, HUGE_VAL};
inline constexpr ClampRange kRelu6Range = {0, 6};

// Whether a layer has TFLite's arithmetic, with its factors and roundings.
inline bool FollowsTflite(const LayerQuant& settings) { return settings.multiplier_bits == 31; }

// The integer that a layer stores for `x` (no number: 0): to nearest, ties as the layer has them
// (FollowsTflite), cut to the parameters' range. `channel`: of parameters by channel.
int64_t StoredOf(double x, const QuantParams& params, size_t channel, const LayerQuant& settings);

// The integers of a layer result that its clamps leave.
struct StoredRange {
  int64_t min = 0;
  int64_t max = 0;
};
StoredRange StoredClamps(const ClampRange& clamps, const QuantParams& params,
                         const LayerQuant& settings);

// Compass's name of the layer type that an operator becomes: "Convolution", "Eltwise" ...; the
// operator's own name where Compass has none.
absl::string_view LayerTypeOf(const Graph& graph, const Node& node);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_OPS_LAYERS_H_
