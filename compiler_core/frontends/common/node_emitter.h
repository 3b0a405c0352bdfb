#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_NODE_EMITTER_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_NODE_EMITTER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/common/stored_integers.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/ops/graph_builder.h"

namespace npuc::frontend {

// What an importer knows of one tensor: its type, and either its value (then it may have no node in
// our graph yet) or the node output that computes it. A constant of stored integers is neither: it
// becomes a Dequantize of them once a node uses it, and `constant` stays empty.
struct ImportValue {
  // What one front end alone knows of its values; each reads no other's.
  struct Facts {
    virtual ~Facts() = default;
  };
  TensorType type;
  std::optional<Tensor> constant;
  ValueId id = {};         // invalid for a constant that no node of our graph uses yet
  NodeSource source = {};  // who made it
  std::optional<StoredIntegers> stored = {};
  std::shared_ptr<const Facts> facts = {};
  // Set where the value is not in the graph yet and may never be: computes it, or reports why not.
  std::function<absl::StatusOr<std::shared_ptr<ImportValue>>()> compute = {};
};
using ValueRef = std::shared_ptr<ImportValue>;  // null: an optional operand that is left out

ValueRef ConstantValue(Tensor tensor, NodeSource source);
// Whether the value is known now, as itself or as stored integers.
bool IsKnown(const ValueRef& value);
// The results of a node of our graph.
std::vector<ValueRef> ResultValues(const GraphBuilder& builder, absl::Span<const ValueId> ids,
                                   const NodeSource& source);
// What a graph output is made of: a constant of another type than float as float32 (it is known at
// compile time, so its type is only a matter of how it is written down), all else as it is.
ValueRef WrittenAsFloat(ValueRef value);

// All constants of a model together may take this much, as may any one that is computed.
inline constexpr int64_t kMaxConstantBytes = int64_t{1} << 28;
// Multiply-adds or moves that may be spent on computing one constant.
inline constexpr int64_t kMaxFoldWork = int64_t{1} << 27;
// Nodes of our graph that one model may become.
inline constexpr int kMaxGraphNodes = 1 << 18;
// Integers in a list that an operand states.
inline constexpr int64_t kMaxListEntries = 1 << 12;

// What all nodes of one import share.
struct ImportState {
  // `constant_fix`: what a diagnostic tells to do where an operand must be known while compiling.
  ImportState(Graph* graph, Diagnostics* diagnostics, std::string file, std::string constant_fix)
      : builder(graph),
        diagnostics(diagnostics),
        file(std::move(file)),
        constant_fix(std::move(constant_fix)) {}

  // An error of a node, or of no single one ({}).
  void AddError(DiagnosticKind kind, NodeSource source, std::string message, std::string fix);
  ValueRef AddInput(const std::string& name, const TensorType& type, std::string op = "");
  // Known integers are written as floats; a value that cannot be placed is reported.
  void AddOutput(std::string name, ValueRef value, bool fp16);
  // False, and reported at the node that went too far: the model's constants are too large.
  bool ConstantsFit(NodeSource source);

  GraphBuilder builder;
  Diagnostics* diagnostics;
  std::string file;
  std::string constant_fix;
  int64_t constant_bytes_left = kMaxConstantBytes;
  int64_t fold_work_left = 2 * kMaxFoldWork;
};

// What the rule of an operator sees and does for one node of a model, whatever the framework: its
// operands, the nodes of the IR that it becomes, its diagnostics. Functions that return a non-OK
// status have reported it as a diagnostic of this node, so callers just hand it on; a status from
// elsewhere is reported by the caller as OperandMismatch.
class NodeEmitter {
 public:
  NodeEmitter(ImportState* state, NodeSource source, std::vector<ValueRef> inputs);
  virtual ~NodeEmitter() = default;

  const NodeSource& source() const { return source_; }
  ImportState& state() { return *state_; }
  int input_count() const { return static_cast<int>(inputs_.size()); }
  // Whether operand i is there: trailing ones may be missing, inner ones left out.
  bool has(int i) const { return i < input_count() && inputs_[static_cast<size_t>(i)] != nullptr; }
  const ValueRef& input(int i) const { return inputs_[static_cast<size_t>(i)]; }
  const TensorType& type(int i) const { return input(i)->type; }
  const Shape& shape(int i) const { return input(i)->type.shape; }
  int64_t rank(int i) const { return static_cast<int64_t>(shape(i).size()); }

  // Reports a problem of this node and returns it as a status.
  absl::Status Fail(DiagnosticKind kind, std::string message, std::string fix);
  absl::Status FailMode(std::string message, std::string fix);
  bool has_reported() const { return has_reported_; }
  // What the node's rule gave where it is no report yet: its operands do not fit.
  void ReportMismatch(const absl::Status& status, std::string fix);
  // For a status that another emitter of this node has reported.
  absl::Status AlreadyReported(absl::Status status) {
    has_reported_ = true;
    return status;
  }

  // lo operands must be there, hi may.
  absl::Status ExpectInputs(int lo, int hi);

  // Operand i as a constant (stored integers as the floats that they stand for), or a report that
  // it must be one. `what` says what it is, e.g. "shape".
  absl::StatusOr<Tensor> Constant(int i, absl::string_view what);
  absl::StatusOr<std::vector<int64_t>> ConstantInts(int i, absl::string_view what);
  absl::StatusOr<int64_t> ConstantInt(int i, absl::string_view what);
  absl::StatusOr<std::vector<double>> ConstantFloats(int i, absl::string_view what);
  absl::StatusOr<double> ConstantFloat(int i, absl::string_view what);
  bool IsConstant(int i) const { return input(i)->constant.has_value(); }
  bool AllConstant() const;

  // axis in -rank..rank-1 -> 0..rank-1, or a report.
  absl::StatusOr<int64_t> Axis(int64_t axis, int64_t rank);
  // Every axis made non-negative, sorted, unique.
  absl::StatusOr<std::vector<int64_t>> Axes(std::vector<int64_t> axes, int64_t rank);

  // Operand 0's shape without the named dimensions (sorted), each of which must be 1; `all`:
  // without every one that is 1.
  absl::StatusOr<Shape> SqueezedShape(const std::vector<int64_t>& axes, bool all);

  // Applies an operator of the IR to values: computed at once where all are known, else a new node
  // of the graph. Stored integers that are only moved stay stored integers; anything else computes
  // with the floats that they stand for. Reports what the operator says where it does not fit.
  absl::StatusOr<std::vector<ValueRef>> EmitAll(absl::string_view op,
                                                absl::Span<const ValueRef> operands, AttrMap attrs);
  absl::StatusOr<ValueRef> Emit(absl::string_view op, absl::Span<const ValueRef> operands,
                                AttrMap attrs = {});
  ValueRef MakeConstant(Tensor tensor) { return ConstantValue(std::move(tensor), source_); }
  ValueRef Scalar(double value, DType dtype);
  ValueRef Floats(Shape shape, const std::vector<double>& values, DType dtype);
  // The value under a new shape of equal element count, and with its axes permuted.
  absl::StatusOr<ValueRef> Reshaped(const ValueRef& value, Shape shape);
  absl::StatusOr<ValueRef> Transposed(const ValueRef& value, std::vector<int64_t> perm);
  // `size` elements of one axis from `begin`, `stride` apart.
  absl::StatusOr<ValueRef> Sliced(const ValueRef& value, int64_t axis, int64_t begin, int64_t size,
                                  int64_t stride = 1);
  // paddings: before, after of each axis; negative ones cut.
  absl::StatusOr<ValueRef> Padded(const ValueRef& value, std::vector<int64_t> paddings,
                                  double fill);
  absl::StatusOr<ValueRef> Joined(const std::vector<ValueRef>& values, int64_t axis);
  absl::StatusOr<ValueRef> Reduced(absl::string_view op, const ValueRef& value,
                                   std::vector<int64_t> axes, bool keep_dims);
  // The value in another type: constants alone, or where the type is the same.
  absl::StatusOr<ValueRef> Converted(const ValueRef& value, DType dtype);

  // A constant that stands for floats by these parameters, which fit its type (CHECKed).
  ValueRef MakeStored(StoredIntegers stored, NodeSource source);
  // The value through Quantize and Dequantize, and the integers alone.
  absl::StatusOr<ValueRef> Requantized(const ValueRef& value, const QuantParams& params);
  absl::StatusOr<ValueRef> Quantized(const ValueRef& value, const QuantParams& params);

  // The value's id in the graph; places a constant there first, unless it holds NaN.
  absl::StatusOr<ValueId> Place(ImportValue& value);

  // Sets the results. Emit-and-set for the common case of one result.
  absl::Status SetOutput(ValueRef value);
  absl::Status SetOutput(absl::StatusOr<ValueRef> value);
  absl::Status SetConstant(absl::StatusOr<Tensor> value);
  absl::Status SetOutputs(std::vector<ValueRef> values);
  absl::Status EmitOutput(absl::string_view op, absl::Span<const ValueRef> operands,
                          AttrMap attrs = {});
  const std::vector<ValueRef>& outputs() const { return outputs_; }

 protected:
  // What a node that this one becomes counts as.
  virtual NodeSource SourceFor(absl::string_view op) const { return source_; }

 private:
  // The floats that stored integers stand for.
  absl::StatusOr<Tensor> FloatsOf(const StoredIntegers& stored);
  // An operator computed on known values, within the limits on memory and work.
  absl::StatusOr<std::vector<ValueRef>> Fold(Op op, absl::Span<const ValueRef> operands,
                                             AttrMap attrs);
  absl::StatusOr<std::vector<Tensor>> FoldTensors(const Node& node,
                                                  const std::vector<Tensor>& operands);
  ImportState* state_;
  NodeSource source_;
  std::vector<ValueRef> inputs_;
  std::vector<ValueRef> outputs_;
  bool has_reported_ = false;
};

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_NODE_EMITTER_H_
