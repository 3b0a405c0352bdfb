#ifndef NPUC_COMPILER_CORE_QUANT_EXECUTOR_KERNELS_H_
#define NPUC_COMPILER_CORE_QUANT_EXECUTOR_KERNELS_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler_core/ops/op.h"

namespace npuc {

// What a step of the float executor has at hand: f32 operands (null for constants that the kernel
// keeps for itself), f32 results, and room for intermediates that it asked for.
struct KernelArgs {
  absl::Span<const float* const> inputs;
  absl::Span<float* const> outputs;
  float* scratch;
};

struct Kernel {
  std::function<absl::Status(const KernelArgs&)> run;
  int64_t scratch_elements = 0;
};

// The fastest kernel there is for a node, which view describes: types and constants of its
// operands, types of its results. Operators without a kernel of their own run their Reference. The
// node must outlive the kernel. INVALID_ARGUMENT where the node has not passed its InferShapes.
absl::StatusOr<Kernel> MakeKernel(const OpView& view);

// The Reference alone: what kernels are checked against.
Kernel MakeReferenceKernel(const OpView& view);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_EXECUTOR_KERNELS_H_
