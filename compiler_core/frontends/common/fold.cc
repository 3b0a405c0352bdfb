#include "compiler_core/frontends/common/fold.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/op.h"

namespace npuc {

absl::StatusOr<std::vector<Tensor>> FoldOperator(Op op, absl::Span<const Tensor> operands,
                                                 AttrMap attrs, const NodeSource& source,
                                                 FoldLimits& limits) {
  const OpDef& def = DefOf(op);
  Node node;
  node.op = op;
  node.attrs = std::move(attrs);
  node.source = source;
  std::vector<TensorType> types;
  std::vector<const Tensor*> constants;
  int64_t elements = 0;
  for (const Tensor& operand : operands) {
    types.push_back(operand.type());
    constants.push_back(&operand);
    elements += operand.element_count();
  }
  ASSIGN_OR_RETURN(const std::vector<TensorType> results, def.infer({node, types, constants}));
  int64_t bytes = 0;
  for (const TensorType& result : results) {
    RETURN_IF_ERROR(CheckShape(result.shape));
    bytes += result.size_bytes();
    elements += result.element_count();
  }
  const int64_t work = def.work == nullptr ? elements : def.work({node, types, constants}, results);
  const int64_t work_left = std::min(limits.work_each, limits.work);
  if (bytes > limits.bytes || work > work_left) {
    return absl::ResourceExhaustedError(
        absl::StrCat("computing this constant takes ", bytes, " bytes and about ", work,
                     " steps; allowed are ", limits.bytes, " and ", work_left));
  }
  limits.work -= work;
  return def.reference(node, operands);
}

}  // namespace npuc
