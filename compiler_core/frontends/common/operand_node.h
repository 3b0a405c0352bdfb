#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_OPERAND_NODE_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_OPERAND_NODE_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/frontends/common/emitter.h"

namespace npuc::frontend {

// A node of a format whose nodes number their operands and results, as its rule sees it.
class OperandNode : public Emitter {
 public:
  OperandNode(ImportState* state, NodeSource source, std::vector<ValueRef> inputs)
      : Emitter(state, std::move(source)), inputs_(std::move(inputs)) {}

  int input_count() const { return static_cast<int>(inputs_.size()); }
  // Whether operand i is there: trailing ones may be missing, inner ones left out.
  bool has(int i) const { return i < input_count() && inputs_[static_cast<size_t>(i)] != nullptr; }
  const ValueRef& input(int i) const { return inputs_[static_cast<size_t>(i)]; }
  const TensorType& type(int i) const { return input(i)->type; }
  const Shape& shape(int i) const { return input(i)->type.shape; }
  int64_t rank(int i) const { return static_cast<int64_t>(shape(i).size()); }

  // lo operands must be there, hi may.
  absl::Status ExpectInputs(int lo, int hi);

  // Operand i as a constant (stored integers as the floats that they stand for), or a report that
  // it must be one. `what` says what it is, e.g. "shape".
  absl::StatusOr<Tensor> Constant(int i, absl::string_view what);
  // As Constant; the report says that npuc computes this operator of constants alone.
  absl::StatusOr<Tensor> KnownOperand(int i);
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

  // Sets the results. Emit-and-set for the common case of one result.
  absl::Status SetOutput(ValueRef value);
  absl::Status SetOutput(absl::StatusOr<ValueRef> value);
  absl::Status SetConstant(absl::StatusOr<Tensor> value);
  absl::Status SetOutputs(std::vector<ValueRef> values);
  absl::Status EmitOutput(absl::string_view op, absl::Span<const ValueRef> operands,
                          AttrMap attrs = {});
  const std::vector<ValueRef>& outputs() const { return outputs_; }

 private:
  std::vector<ValueRef> inputs_;
  std::vector<ValueRef> outputs_;
};

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_OPERAND_NODE_H_
