#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_EMITTER_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_EMITTER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/common/import_state.h"
#include "compiler_core/frontends/common/stored_integers.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc::frontend {

// Emits the nodes of the IR that one node of a model becomes, whatever the framework, and reports
// its problems. A front end derives from it and adds how its operands are named. Functions that
// return a non-OK status have reported it as a diagnostic of this node, so callers just return it;
// a status from elsewhere is reported by the importer with ReportMismatch.
class Emitter {
 public:
  Emitter(ImportState* state, NodeSource source) : state_(state), source_(std::move(source)) {}
  virtual ~Emitter() = default;

  const NodeSource& source() const { return source_; }
  ImportState& state() { return *state_; }

  // Reports a problem of this node and returns it as a status.
  absl::Status Fail(DiagnosticKind kind, std::string message, std::string fix);
  absl::Status FailMode(std::string message, std::string fix);
  bool has_reported() const { return has_reported_; }
  // Reports what the node's rule returned, unless that was reported: its operands do not fit.
  void ReportMismatch(const absl::Status& status, std::string fix);
  // For a status that another emitter of this node has reported.
  absl::Status AlreadyReported(absl::Status status) {
    has_reported_ = true;
    return status;
  }

  // Applies an operator of the IR to values: computed at once where all are known, else a new node
  // of the graph. Stored integers that are only moved stay stored integers; anything else computes
  // with the floats that they stand for. Reports what the operator says where it does not fit.
  absl::StatusOr<std::vector<ValueRef>> EmitAll(absl::string_view op,
                                                absl::Span<const ValueRef> operands, AttrMap attrs);
  absl::StatusOr<ValueRef> Emit(absl::string_view op, absl::Span<const ValueRef> operands,
                                AttrMap attrs = {});
  ValueRef MakeConstant(Tensor tensor) { return ConstantValue(std::move(tensor), source_); }
  ValueRef Scalar(double value, DType dtype = DType::kFloat32);
  // A number as an operand beside another one.
  virtual ValueRef ScalarLike(const ValueRef& other, double value);
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
  absl::StatusOr<ValueRef> Joined(absl::Span<const ValueRef> values, int64_t axis);
  absl::StatusOr<ValueRef> Reduced(absl::string_view op, const ValueRef& value,
                                   std::vector<int64_t> axes, bool keep_dims);
  // The value in another type: constants alone, or where the type is the same.
  absl::StatusOr<ValueRef> Converted(const ValueRef& value, DType dtype);

  // A constant that stands for floats by these parameters, which fit its type (CHECKed).
  ValueRef MakeStored(StoredIntegers stored, NodeSource source);
  // The value through Quantize and Dequantize, and the integers alone.
  absl::StatusOr<ValueRef> Requantized(const ValueRef& value, const QuantParams& params);
  // The same between the parts of an operator, where only integers need it (kInsideOperator).
  absl::StatusOr<ValueRef> RequantizedInside(const ValueRef& value, const QuantParams& params);
  absl::StatusOr<ValueRef> Quantized(const ValueRef& value, const QuantParams& params);

  // Which operand of a formula's node is emitted first. Results do not depend on it, but the order
  // of the nodes does, and so do the bytes of compiled models.
  virtual bool EmitsLeftFirst() const { return false; }

  // The value's id in the graph; places a constant there first, unless it holds NaN: as the graph
  // holds it, or as it is beside booleans and integers that are computed at run time.
  absl::StatusOr<ValueId> Place(ImportValue& value, bool as_it_is = false);

 protected:
  // What a node that this one becomes counts as, and one that only brings data into another layout.
  virtual NodeSource SourceFor(absl::string_view op) const { return source_; }
  virtual NodeSource LayoutSourceFor(absl::string_view op) const { return SourceFor(op); }
  // Adds an error to the diagnostics.
  virtual void Report(DiagnosticKind kind, const NodeSource& source, std::string message,
                      std::string fix);
  // A constant as the graph holds it.
  virtual Tensor Placed(const Tensor& constant) const { return constant; }
  // An operator computed on known values, within the limits on memory and work.
  virtual absl::StatusOr<std::vector<ValueRef>> Fold(Op op, absl::Span<const ValueRef> operands,
                                                     AttrMap attrs);
  // Notes what a front end knows of an operator's results beside their types.
  virtual void NoteFacts(Op op, absl::Span<const ValueRef> operands,
                         std::vector<ValueRef>& results) const {}
  absl::StatusOr<std::vector<ValueRef>> EmitAllAs(NodeSource source, absl::string_view op,
                                                  absl::Span<const ValueRef> operands,
                                                  AttrMap attrs);
  absl::StatusOr<ValueRef> EmitAs(NodeSource source, absl::string_view op,
                                  absl::Span<const ValueRef> operands, AttrMap attrs);
  // The floats that stored integers stand for.
  absl::StatusOr<Tensor> FloatsOf(const StoredIntegers& stored);

 private:
  absl::StatusOr<std::vector<ValueRef>> AddNode(NodeSource source, Op op,
                                                absl::Span<const ValueRef> operands, AttrMap attrs);
  absl::StatusOr<std::vector<Tensor>> FoldTensors(const Node& node,
                                                  const std::vector<Tensor>& operands);

  ImportState* state_;
  NodeSource source_;
  bool has_reported_ = false;
};

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_EMITTER_H_
