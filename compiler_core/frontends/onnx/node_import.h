#ifndef NPUC_COMPILER_CORE_FRONTENDS_ONNX_NODE_IMPORT_H_
#define NPUC_COMPILER_CORE_FRONTENDS_ONNX_NODE_IMPORT_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/onnx/model_file.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/ops/graph_builder.h"

namespace npuc::onnx {

// What the importer knows of one tensor: its type, and either its value (then it may have no node
// in our graph yet) or the node output that computes it.
struct ImportValue {
  TensorType type;
  std::optional<Tensor> constant;
  ValueId id;         // invalid for a constant that no node of our graph uses yet
  NodeSource source;  // who made it
};
using ValueRef = std::shared_ptr<ImportValue>;  // null: an optional operand that is left out

// All constants of a model together may take this much, as may any one that is computed.
inline constexpr int64_t kMaxConstantBytes = int64_t{1} << 28;
// Multiply-adds or moves that may be spent on computing one constant.
inline constexpr int64_t kMaxFoldWork = int64_t{1} << 27;
// Nodes of our graph that one model may become.
inline constexpr int kMaxGraphNodes = 1 << 18;

// What all nodes of one import share.
struct ImportState {
  ImportState(Graph* graph, Diagnostics* diagnostics) : builder(graph), diagnostics(diagnostics) {}

  GraphBuilder builder;
  Diagnostics* diagnostics;
  std::string file;
  int64_t opset = 0;
  int64_t constant_bytes_left = kMaxConstantBytes;
  int64_t fold_work_left = 2 * kMaxFoldWork;
};

// What the import function of an operator sees and does for one node. Functions that return a
// non-OK status have reported it as a diagnostic of this node, so callers just hand it on; a status
// from elsewhere is reported by the caller as OperandMismatch.
class NodeImporter {
 public:
  NodeImporter(ImportState* state, const NodeView* node, std::vector<ValueRef> inputs);

  const NodeView& node() const { return *node_; }
  absl::string_view op() const { return node_->op(); }
  const NodeSource& source() const { return source_; }
  ImportState& state() { return *state_; }
  int64_t opset() const { return state_->opset; }
  int input_count() const { return static_cast<int>(inputs_.size()); }
  // Whether operand i is there: trailing ones may be missing, inner ones left out.
  bool has(int i) const { return i < input_count() && inputs_[static_cast<size_t>(i)] != nullptr; }
  const ValueRef& input(int i) const { return inputs_[static_cast<size_t>(i)]; }
  const TensorType& type(int i) const { return input(i)->type; }
  const Shape& shape(int i) const { return input(i)->type.shape; }
  int64_t rank(int i) const { return static_cast<int64_t>(shape(i).size()); }
  // Whether someone may use result i.
  bool WantsOutput(int i) const { return i < node_->output_count() && !node_->output(i).empty(); }

  // Reports a problem of this node and returns it as a status.
  absl::Status Fail(DiagnosticKind kind, std::string message, std::string fix);
  absl::Status FailMode(std::string message, std::string fix);
  bool has_reported() const { return has_reported_; }

  // lo operands must be there, hi may.
  absl::Status ExpectInputs(int lo, int hi);
  // Attributes; the fallback counts where the attribute is absent.
  absl::StatusOr<bool> BoolOr(absl::string_view name, bool fallback);
  absl::StatusOr<int64_t> IntOr(absl::string_view name, int64_t fallback);
  absl::StatusOr<double> FloatOr(absl::string_view name, double fallback);
  absl::StatusOr<std::string> StringOr(absl::string_view name, std::string fallback);
  absl::StatusOr<std::vector<int64_t>> IntsOr(absl::string_view name,
                                              std::vector<int64_t> fallback);
  absl::StatusOr<std::vector<double>> FloatsOr(absl::string_view name,
                                               std::vector<double> fallback);
  absl::StatusOr<std::vector<std::string>> StringsOr(absl::string_view name,
                                                     std::vector<std::string> fallback);
  absl::StatusOr<int64_t> RequiredInt(absl::string_view name);
  absl::StatusOr<std::vector<int64_t>> RequiredInts(absl::string_view name);
  absl::Status BadAttribute(const absl::Status& status);

  // Operand i as a constant, or a report that it must be one. `what` says what it is, e.g. "shape".
  absl::StatusOr<Tensor> Constant(int i, absl::string_view what);
  absl::StatusOr<std::vector<int64_t>> ConstantInts(int i, absl::string_view what);
  absl::StatusOr<int64_t> ConstantInt(int i, absl::string_view what);
  absl::StatusOr<std::vector<double>> ConstantFloats(int i, absl::string_view what);
  absl::StatusOr<double> ConstantFloat(int i, absl::string_view what);
  bool IsConstant(int i) const { return input(i)->constant.has_value(); }
  bool AllConstant() const;
  // An integer list that was an attribute before an operator set and is operand i since then;
  // nullopt where it is not given.
  absl::StatusOr<std::optional<std::vector<int64_t>>> IntsAt(int i, absl::string_view name);

  // axis in -rank..rank-1 -> 0..rank-1, or a report.
  absl::StatusOr<int64_t> Axis(int64_t axis, int64_t rank);
  // Every axis made non-negative, sorted, unique.
  absl::StatusOr<std::vector<int64_t>> Axes(std::vector<int64_t> axes, int64_t rank);

  // Applies an operator of the IR to values: computed at once where all are constants, else a new
  // node of the graph. Reports what the operator says where it does not fit.
  absl::StatusOr<std::vector<ValueRef>> EmitAll(absl::string_view op,
                                                absl::Span<const ValueRef> operands, AttrMap attrs);
  absl::StatusOr<ValueRef> Emit(absl::string_view op, absl::Span<const ValueRef> operands,
                                AttrMap attrs = {});
  ValueRef MakeConstant(Tensor tensor);
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

  // The value's id in the graph; places a constant there first, unless it holds NaN.
  absl::StatusOr<ValueId> Place(ImportValue& value);

  // Sets the results. Emit-and-set for the common case of one result.
  absl::Status SetOutput(ValueRef value);
  absl::Status SetOutput(absl::StatusOr<ValueRef> value);
  absl::Status SetOutputs(std::vector<ValueRef> values);
  absl::Status EmitOutput(absl::string_view op, absl::Span<const ValueRef> operands,
                          AttrMap attrs = {});
  const std::vector<ValueRef>& outputs() const { return outputs_; }

 private:
  absl::StatusOr<std::vector<ValueRef>> Fold(absl::string_view op,
                                             absl::Span<const ValueRef> operands, AttrMap attrs);
  ImportState* state_;
  const NodeView* node_;
  NodeSource source_;
  std::vector<ValueRef> inputs_;
  std::vector<ValueRef> outputs_;
  bool has_reported_ = false;
};

// The rule for one ONNX operator: sets the importer's outputs.
using ImportFunction = absl::Status (*)(NodeImporter& node);
struct ImportRule {
  absl::string_view op;
  ImportFunction import;
};

// The rules of each family, in import_<family>.cc.
absl::Span<const ImportRule> BasicRules();
absl::Span<const ImportRule> ElementwiseRules();
absl::Span<const ImportRule> ActivationRules();
absl::Span<const ImportRule> LinearRules();
absl::Span<const ImportRule> ConvRules();
absl::Span<const ImportRule> PoolRules();
absl::Span<const ImportRule> NormRules();
absl::Span<const ImportRule> ShapeRules();
absl::Span<const ImportRule> GatherRules();
absl::Span<const ImportRule> ReduceRules();
absl::Span<const ImportRule> ResizeRules();
absl::Span<const ImportRule> RecurrentRules();
absl::Span<const ImportRule> LossRules();

}  // namespace npuc::onnx

#endif  // NPUC_COMPILER_CORE_FRONTENDS_ONNX_NODE_IMPORT_H_
