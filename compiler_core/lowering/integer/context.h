#ifndef NPUC_COMPILER_CORE_LOWERING_INTEGER_CONTEXT_H_
#define NPUC_COMPILER_CORE_LOWERING_INTEGER_CONTEXT_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/ir/graph/quantization.h"
#include "compiler_core/ir/integer/command.h"
#include "compiler_core/ops/layers.h"
#include "compiler_core/ops/stored_table.h"

namespace npuc {

// Numbers that are to be multiplied by `value`: none is larger in size than `largest`.
struct Scaling {
  double value = 0;
  int64_t largest = 0;
};

// A field of a command; what the core holds fits.
inline int32_t Number(int64_t value) { return static_cast<int32_t>(value); }

// The largest size of a stored number less its zero point.
int64_t LargestOf(const QuantParams& params);

// What the lowering of one layer sees: where values lie, their parameters, where constants go.
// Folder-internal. Statuses are UNIMPLEMENTED or FAILED_PRECONDITION with a reason for people; the
// caller adds the node.
class IntegerContext {
 public:
  // `diagnostics`: where warnings go; null: nowhere.
  IntegerContext(const Graph& graph, const QuantPlan& plan, integer::Program& program,
                 Diagnostics* diagnostics = nullptr, absl::string_view model_name = "")
      : graph_(graph),
        plan_(plan),
        program_(program),
        diagnostics_(diagnostics),
        model_name_(model_name) {}

  const Graph& graph() const { return graph_; }
  void Begin(const Layer& layer, const LayerQuant& settings);
  const Layer& layer() const { return *layer_; }
  const LayerQuant& settings() const { return *settings_; }
  const Node& root() const { return graph_.node(layer_->root); }
  // Whether the layer follows TFLite's arithmetic.
  bool exact() const { return FollowsTflite(*settings_); }

  // A value's parameters: one scale, a type of 8 or 16 bits.
  absl::StatusOr<QuantParams> ActivationParams(ValueId value) const;
  // A constant as integers of these parameters: the plan's own where it has them, else the float
  // one rounded.
  absl::StatusOr<Tensor> Integers(ValueId constant, const QuantParams& params) const;
  const QuantParams* FindParams(ValueId value) const;
  const Tensor* FindIntegers(ValueId constant) const;

  // The result of a layer: `type`, zero point, and the range that its activation leaves.
  integer::Result ResultFor(const QuantParams& params, Operand d) const;

  absl::StatusOr<Operand> Input(ValueId value) const;
  // A place for a layer's result: in the output struct where it is a model output, else in data.
  Operand Output(ValueId value, const QuantParams& params);
  void Alias(ValueId value, Operand place) { places_[value] = place; }
  bool has_place(ValueId value) const { return places_.contains(value); }
  Operand Temporary(int64_t size_bytes);
  // Bytes in slot kWeight; equal ones are stored once.
  Operand Constant(const std::vector<uint8_t>& bytes);
  // The lowest `bytes_each` bytes of each number.
  Operand Constant(const std::vector<int64_t>& numbers, int64_t bytes_each);
  Operand Factors(absl::Span<const Factor> factors);
  void Emit(integer::Body body);
  // A warning about the layer.
  void Warn(DiagnosticKind kind, std::string message, std::string fix);
  void DeclarePorts();

  // The factor nearest to `value` and the rounding that goes with it, by the layer's settings: of
  // sums of products. wide: of 16-bit operands, whose sums have 48 bits.
  std::pair<Factor, Rounding> FactorFor(double value, bool wide) const;
  // Factors that share a rounding, of numbers whose size is known. Where the layer follows TFLite,
  // that is its arithmetic of 32 bits, or, where a number would leave them, a single rounding.
  std::pair<std::vector<Factor>, Rounding> FactorsFor(absl::Span<const Scaling> scalings) const;

 private:
  void AddPort(const std::string& name, ValueId value, std::vector<PortTensor>& ports,
               int64_t& offset) const;

  const Graph& graph_;
  const QuantPlan& plan_;
  integer::Program& program_;
  Diagnostics* diagnostics_;
  const std::string model_name_;
  const Layer* layer_ = nullptr;
  const LayerQuant* settings_ = nullptr;
  std::map<ValueId, Operand> places_;
  std::map<ValueId, Operand> output_places_;  // of model outputs that no layer has taken yet
  std::map<std::string, int64_t> constants_;  // offsets by contents
  BufferId weights_;
};

// An operand of a command: an activation, or a constant laid with the weights.
struct Side {
  Operand place;
  QuantParams params;
};
absl::StatusOr<Side> TakeSide(IntegerContext& context, ValueId value);

// One function a family of operators; each emits the commands of the context's layer.
absl::Status LowerWeighted(IntegerContext& context);     // Conv2D, DepthwiseConv2D, MatMul
absl::Status LowerProduct(IntegerContext& context);      // MatMul of any other operands
absl::Status LowerPool(IntegerContext& context);         // AvgPool, MaxPool
absl::Status LowerReduction(IntegerContext& context);    // ReduceMean, ReduceSum, ReduceMax
absl::Status LowerCombine(IntegerContext& context);      // Add, Sub, Mul, Div, Maximum, Minimum
absl::Status LowerFunction(IntegerContext& context);     // functions of one value, by table
absl::Status LowerActivation(IntegerContext& context);   // as that, but clamps alone: by a Move
absl::Status LowerSoftmaxRows(IntegerContext& context);  // Softmax, LogSoftmax
absl::Status LowerReshape(IntegerContext& context);      // Reshape, Identity
absl::Status LowerClamps(IntegerContext& context);       // clamps that stand alone
absl::Status LowerTranspose(IntegerContext& context);
absl::Status LowerSlice(IntegerContext& context);
absl::Status LowerSplit(IntegerContext& context);
absl::Status LowerConcat(IntegerContext& context);
absl::Status LowerPad(IntegerContext& context);

// A walk of any rank as a command's six extents: neighbours that go on in every operand are merged.
// UNIMPLEMENTED where more than six are left.
struct StridedWalk {
  integer::Extents extents = {1, 1, 1, 1, 1, 1};
  std::vector<integer::Extents> strides;  // one an operand
};
absl::StatusOr<StridedWalk> MakeWalk(const Shape& extents, const std::vector<Shape>& strides);

// Emits a Move of `walk` (strides of a and d), requantizing where the parameters differ.
void EmitMove(IntegerContext& context, Operand a, const QuantParams& from, integer::Result result,
              const QuantParams& to, const StridedWalk& walk);

// One number for each dimension, extents or strides, in the order `perm` of the dimensions.
Shape Permuted(const Shape& numbers, absl::Span<const int64_t> perm);

// A copy of the layer's operand, of `shape` and these parameters, with its dimensions in the order
// `perm`.
absl::StatusOr<Operand> PermutedInput(IntegerContext& context, const QuantParams& params,
                                      const Shape& shape, absl::Span<const int64_t> perm);

// The factors of a Combine of operands a and b into d, by its kind and their scales. Source:
// TFLite's kernels, which shift operands of 8 bits by 20 and those of 16 bits by 15. A result of
// much finer steps than theirs needs more.
void SetCombineFactors(IntegerContext& context, const QuantParams& a, const QuantParams& b,
                       const QuantParams& d, integer::Combine& c);

// The entries of the layer's table of a function of `from`, `entry_bytes` each, as a constant.
// Warns where the table is too coarse for the function.
Operand TableConstant(IntegerContext& context, const StoredTable& table, int64_t entry_bytes);

// Whether stored integers mean the same.
bool SameParams(const QuantParams& a, const QuantParams& b);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_LOWERING_INTEGER_CONTEXT_H_
