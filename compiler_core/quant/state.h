#ifndef NPUC_COMPILER_CORE_QUANT_STATE_H_
#define NPUC_COMPILER_CORE_QUANT_STATE_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/graph/quantization.h"
#include "compiler_core/quant/evaluate.h"
#include "compiler_core/quant/executor/float_executor.h"
#include "compiler_core/quant/settings.h"
#include "compiler_core/quant/statistics.h"

namespace npuc {

// What the steps of a quantizing run share. Each step reads all and writes the part that is its
// own; quantize.cc has their order.
struct QuantState {
  const Graph* graph = nullptr;
  const QuantOptions* options = nullptr;
  std::vector<Layer> layers;
  std::vector<LayerSettings> settings;              // one a layer
  std::map<ValueId, ValueRange> in_ir;              // what the model says of its own values
  std::map<ValueId, ValueRange> stated;             // bounds, reached by samples or not
  bool fixed_point = false;                         // scales are powers of two
  std::vector<std::pair<ValueId, ValueId>> states;  // a graph input, and what is fed back as it
  std::vector<int> producer;                // layer by value id, -1: a constant or inside a layer
  std::vector<std::vector<int>> consumers;  // layers by value id

  std::optional<FloatExecutor> executor;           // the float model
  std::map<ValueId, TensorStatistics> statistics;  // of every layer's outputs
  std::map<ValueId, double> least_tops;            // by a Softmax's operand: SoftmaxRows
  std::map<ValueId, ValueRange> read_ranges;       // read_ranges.h

  std::optional<FloatExecutor> quantized;  // with weights and biases as integers give them
  std::map<ValueId, QuantParams> values;   // activations, then weights and biases too
  std::map<ValueId, Tensor> constants;     // integers of weights and biases
  // Corrected biases, float, where bias correction changed them.
  std::map<ValueId, Tensor> float_biases;

  const Node& root(int layer) const { return graph->node(layers[layer].root); }
  // The value whose parameters this one has: that of a layer which only moves values is its
  // operand's.
  ValueId SourceOf(ValueId id) const;
  // Whether the value exists as integers: it is left alone where the layer that makes it and all
  // that read it run in float.
  bool IsQuantized(ValueId id) const;
};

// The least range that holds both.
ValueRange Union(ValueRange a, ValueRange b);
// The range that holds `range` and what is stated of the value.
ValueRange WithStated(const QuantState& state, ValueId id, ValueRange range);
// The range of a layer result by its layer's strategy, with the bounds that are stated of it, and
// without what no reader can tell apart.
// INVALID_ARGUMENT where the strategy is in_ir and the model gives no range; such a range is whole.
absl::StatusOr<ValueRange> RangeOfValue(const QuantState& state, ValueId id,
                                        const QuantStrategy& strategy);
// The parameters of every layer result by their layers' settings, which hold no auto; scales of
// concatenated values unified where the options ask for it.
absl::StatusOr<std::map<ValueId, QuantParams>> ChooseActivationParams(const QuantState& state);
// With 14 bits and more the range is taken twice as wide, unless the model gives it: data beyond
// what calibration saw then is not clipped, which would cost far more than one of so many bits.
// (Powers of two have headroom by themselves.)
QuantParams ParamsForRange(const QuantState& state, ValueId id, ValueRange range);
FakeQuants QuantsOf(const QuantState& state, const std::map<ValueId, QuantParams>& values);

// A layer's result that is not finite, so that no integers can stand for it.
struct NotFinite {
  int layer = 0;
  int64_t sample = 0;
  float value = 0;  // the first such element
};
// Runs the float model over all samples and fills state.statistics and state.least_tops; or stops
// at the first sample that makes a result which is not finite, and returns the first layer that it
// comes from.
absl::StatusOr<std::optional<NotFinite>> Calibrate(QuantState& state, const SampleSet& samples);
// The names that statistics files have for values: a layer's name, ":k" behind it for output k > 0.
std::map<ValueId, std::string> NamesOfValues(const QuantState& state);

// Settles every auto by measured error at the outputs: all strategies over the whole net on all
// samples, then tensor by tensor those that lower the error of the search's samples. The latter are
// kept only where they are clearly better than the best single strategy on the other samples too.
// `log` gets a line a strategy. Needs weights.
absl::Status ChooseStrategies(QuantState& state, Evaluators& evaluators,
                              std::vector<std::string>& log);

// Quantizes the weights of a layer by its settings, with AdaRound where asked for and `samples` is
// there, and puts them into state.quantized.
absl::Status QuantizeWeight(QuantState& state, int layer, const SampleSet* samples);
// The bias in units of input scale * weight scale. Needs state.values of the layer's operands.
// Where sums have 48 bits it gets as many bits as it needs; else those of the settings.
absl::Status QuantizeBias(QuantState& state, int layer);
// Behind the last of those: puts the bits that biases got into the settings, with a line of log,
// and a warning for each layer whose bias does not fit.
void ReportBiases(QuantState& state, const std::string& model_name, std::vector<std::string>& log,
                  Diagnostics& diagnostics);

// Adds to each layer's bias the mean error of its sums, layer by layer over the evaluator's
// samples, each with those before corrected. Source: Nagel et al., Data-free quantization through
// weight equalization and bias correction, 2019, section 4.2, with measured means.
absl::Status CorrectBiases(QuantState& state, Evaluator& evaluator);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_STATE_H_
