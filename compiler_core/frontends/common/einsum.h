#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_EINSUM_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_EINSUM_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/frontends/common/emitter.h"

namespace npuc::frontend {

// Einstein's sum as numpy, ONNX and PyTorch write it, "bij,bjk->bik", of one operand or more, from
// the left to the right: transposes and reshapes around one matrix product, or one product by
// element where nothing is summed, for each pair. "..." stands for leading dimensions. A letter
// that one operand has twice is reported, since no operator of the IR takes a diagonal.
// Errors: INVALID_ARGUMENT for an equation that is none or does not fit the operands.
absl::StatusOr<ValueRef> Einsum(Emitter& node, absl::string_view equation,
                                absl::Span<const ValueRef> operands);

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_EINSUM_H_
