#ifndef NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_NODE_IMPORT_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_NODE_IMPORT_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/tensorflow/graphdef.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/ops/graph_builder.h"

namespace npuc::tf {

// What the importer knows of one tensor of the TensorFlow graph: its type, and either its value
// (then it may have no node in our graph yet) or the node output that computes it.
struct DilationGroup;  // import_dilation.h
struct ImportValue {
  TensorType type;
  std::optional<Tensor> constant;
  ValueId id;         // invalid for a constant that no node of our graph uses yet
  NodeSource source;  // who made it
  // Set where the value is not in the graph yet and may never be: computes it as nodes of the
  // graph. Part of a SpaceToBatchND group, of which import_dilation.cc makes one dilated
  // convolution.
  std::function<absl::StatusOr<std::shared_ptr<ImportValue>>()> compute;
  std::shared_ptr<const DilationGroup> group;
  // A Switch gives its value on one side only; what depends on the other side never runs.
  bool is_dead = false;
  // A TensorArray: which of ImportState::arrays it is (then it has neither type nor value), and of
  // its flow, which of ImportState::array_versions holds its elements.
  int array = -1;
  int array_version = -1;
};
using ValueRef = std::shared_ptr<ImportValue>;

// All constants of a model together may take this much, as may any one that is computed.
inline constexpr int64_t kMaxConstantBytes = int64_t{1} << 28;
// Multiply-adds or moves that may be spent on computing one constant.
inline constexpr int64_t kMaxFoldWork = int64_t{1} << 27;

// A TensorArray as declared, and its elements after some writes: those of the version before and
// the ones set here. Versions never change, so loops may fork them.
struct TensorArray {
  int64_t size = 0;
  bool is_dynamic = false;  // grows where it is written beyond its size
};
struct ArrayVersion {
  int array = 0;
  int before = -1;
  std::map<int64_t, ValueRef> elements = {};
  int64_t size = 0;
};

// What all nodes of one import share.
struct ImportState {
  ImportState(Graph* graph, Diagnostics* diagnostics) : builder(graph), diagnostics(diagnostics) {}

  GraphBuilder builder;
  Diagnostics* diagnostics;
  std::string file;
  int producer_version = 0;
  int64_t constant_bytes_left = kMaxConstantBytes;
  int64_t fold_work_left = 2 * kMaxFoldWork;
  std::vector<TensorArray> arrays;
  std::vector<ArrayVersion> array_versions;
};

// What the import function of an operator sees and does for one node. Functions that return a
// non-OK status have reported it as a diagnostic of this node, so callers just hand it on; a status
// from elsewhere is reported by the caller as OperandMismatch.
class NodeImporter {
 public:
  NodeImporter(ImportState* state, const NodeView* node, std::vector<ValueRef> inputs);

  const NodeView& node() const { return *node_; }
  const NodeSource& source() const { return source_; }
  ImportState& state() { return *state_; }
  int input_count() const { return static_cast<int>(inputs_.size()); }
  const ValueRef& input(int i) const { return inputs_[i]; }
  const TensorType& type(int i) const { return inputs_[i]->type; }
  const Shape& shape(int i) const { return inputs_[i]->type.shape; }
  int rank(int i) const { return static_cast<int>(shape(i).size()); }

  // Reports a problem of this node and returns it as a status.
  absl::Status Fail(DiagnosticKind kind, std::string message, std::string fix);
  absl::Status FailMode(std::string message, std::string fix);
  bool has_reported() const { return has_reported_; }

  absl::Status ExpectInputs(int lo, int hi);
  // Attributes; the Or forms give the fallback where the attribute is absent.
  absl::StatusOr<bool> BoolOr(absl::string_view name, bool fallback);
  absl::StatusOr<int64_t> IntOr(absl::string_view name, int64_t fallback);
  absl::StatusOr<double> FloatOr(absl::string_view name, double fallback);
  absl::StatusOr<std::string> StringOr(absl::string_view name, std::string fallback);
  absl::StatusOr<std::vector<int64_t>> IntsOr(absl::string_view name,
                                              std::vector<int64_t> fallback);
  absl::StatusOr<std::vector<int64_t>> RequiredInts(absl::string_view name);
  absl::StatusOr<int64_t> RequiredInt(absl::string_view name);
  absl::StatusOr<int> RequiredType(absl::string_view name);
  // data_format: true for NHWC, false for NCHW, an error for anything else.
  absl::StatusOr<bool> IsNhwc();

  // Operand i as a constant, or a report that it must be one. `what` says what it is, e.g. "shape".
  absl::StatusOr<Tensor> Constant(int i, absl::string_view what);
  absl::StatusOr<std::vector<int64_t>> ConstantInts(int i, absl::string_view what);
  absl::StatusOr<int64_t> ConstantInt(int i, absl::string_view what);
  bool IsConstant(int i) const { return inputs_[i]->constant.has_value(); }
  bool AllConstant() const;

  // axis in -rank..rank-1 -> 0..rank-1, or a report.
  absl::StatusOr<int64_t> Axis(int64_t axis, int64_t rank);
  // Every axis made non-negative, sorted, unique.
  absl::StatusOr<std::vector<int64_t>> Axes(std::vector<int64_t> axes, int64_t rank);

  // From here on the nodes that this one becomes count as the operators that it is rewritten in,
  // which the core's list may hold where it lacks this one.
  void SetRewritten() { is_rewritten_ = true; }
  // Applies an operator of the IR to values: computed at once where all are constants, else a new
  // node of the graph. Reports what the operator says where it does not fit.
  absl::StatusOr<std::vector<ValueRef>> EmitAll(absl::string_view op,
                                                absl::Span<const ValueRef> operands, AttrMap attrs);
  absl::StatusOr<ValueRef> Emit(absl::string_view op, absl::Span<const ValueRef> operands,
                                AttrMap attrs = {});
  ValueRef MakeConstant(Tensor tensor);
  // The value under a new shape of equal element count, and with its axes permuted.
  absl::StatusOr<ValueRef> Reshaped(const ValueRef& value, Shape shape);
  absl::StatusOr<ValueRef> Transposed(const ValueRef& value, std::vector<int64_t> perm);

  // The value's id in the graph; places a constant there first, unless it holds NaN.
  absl::StatusOr<ValueId> Place(ImportValue& value);

  // Sets the results. Emit-and-set for the common case of one result.
  void SetOutput(ValueRef value) { outputs_ = {std::move(value)}; }
  void SetOutputs(std::vector<ValueRef> values) { outputs_ = std::move(values); }
  absl::Status EmitOutput(absl::string_view op, absl::Span<const ValueRef> operands,
                          AttrMap attrs = {});
  const std::vector<ValueRef>& outputs() const { return outputs_; }

 private:
  absl::Status ReportAttr(const absl::Status& status);
  absl::StatusOr<std::vector<ValueRef>> Fold(absl::string_view op,
                                             absl::Span<const ValueRef> operands, AttrMap attrs);
  ImportState* state_;
  const NodeView* node_;
  NodeSource source_;
  std::vector<ValueRef> inputs_;
  std::vector<ValueRef> outputs_;
  bool has_reported_ = false;
  bool is_rewritten_ = false;
};

// The rule for one TensorFlow operator: sets the importer's outputs.
using ImportFunction = absl::Status (*)(NodeImporter& node);
struct ImportRule {
  absl::string_view op;
  ImportFunction import;
};

// The rules of each family, in import_<family>.cc.
absl::Span<const ImportRule> BasicRules();
absl::Span<const ImportRule> ElementwiseRules();
absl::Span<const ImportRule> LinearRules();
absl::Span<const ImportRule> ConvRules();
absl::Span<const ImportRule> PoolRules();
absl::Span<const ImportRule> ShapeRules();
absl::Span<const ImportRule> SliceRules();
absl::Span<const ImportRule> ReduceRules();
absl::Span<const ImportRule> ControlRules();
absl::Span<const ImportRule> DilationRules();
absl::Span<const ImportRule> TensorArrayRules();

// Whether the operator may have a TensorArray as an operand.
bool TakesHandles(absl::string_view op);

}  // namespace npuc::tf

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_NODE_IMPORT_H_
