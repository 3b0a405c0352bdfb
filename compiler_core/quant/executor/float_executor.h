#ifndef NPUC_COMPILER_CORE_QUANT_EXECUTOR_FLOAT_EXECUTOR_H_
#define NPUC_COMPILER_CORE_QUANT_EXECUTOR_FLOAT_EXECUTOR_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/quant/executor/kernels.h"

namespace npuc {

// Runs a float graph fast enough to calibrate on: buffers planned once, float32 sums in one fixed
// order (the same bits with every compiler and however often it runs; within float32 rounding of
// the Reference kernels, which sum in double). Holds constants packed for its kernels.
//
// A step is a node, so a run may stop before a node and go on later, or from a copy of the arena:
// that is how many ways to quantize one value are compared without running what precedes it again.
//
// Nodes that differ in their activations alone, the steps of an unrolled loop say, share a kernel
// and so one packed weight.
//
// Thread-safe once made: any number of runs on arenas of their own. The graph must outlive it.
class FloatExecutor {
 public:
  // What a run keeps of values between steps. Copyable.
  struct Arena {
    std::vector<float> values;
    std::vector<float> scratch;
  };
  // Sees each value (graph inputs too) when it is there, and may change it.
  using Hook = std::function<void(ValueId id, absl::Span<float> value)>;

  // UNIMPLEMENTED where a value that is computed at run time is not f32; RESOURCE_EXHAUSTED beyond
  // kMaxArenaElements.
  static absl::StatusOr<FloatExecutor> Create(const Graph& graph);
  static constexpr int64_t kMaxArenaElements = int64_t{1} << 28;

  Arena MakeArena() const;
  const Graph& graph() const { return *graph_; }
  // Other values for a constant, f32 of the same shape; nodes that read it change their kernels.
  absl::Status SetConstant(ValueId id, const Tensor& value);
  const Tensor& constant(ValueId id) const { return constants_[id.value()]; }

  // Input k of the graph. Before the first step.
  void SetInput(Arena& arena, size_t k, absl::Span<const float> value) const;
  // Runs the nodes [first, last) in order.
  absl::Status Run(Arena& arena, int first, int last, const Hook& hook) const;
  absl::Status RunAll(Arena& arena, const Hook& hook) const {
    return Run(arena, 0, graph_->node_count(), hook);
  }
  // A value that is live where the run stopped; graph outputs are at the end.
  absl::Span<const float> ValueOf(const Arena& arena, ValueId id) const;

  // How many kernels its nodes share.
  int kernel_count() const;
  int64_t arena_bytes() const { return (arena_elements_ + scratch_elements_) * 4; }

 private:
  explicit FloatExecutor(const Graph* graph) : graph_(graph) {}
  absl::Status CheckTypes() const;
  absl::Status PlanArena();
  void FindTwins();
  std::string KernelKey(int node) const;
  absl::Status MakeKernelOf(int node);
  const float* Pointer(const Arena& arena, ValueId id) const;

  const Graph* graph_;
  std::vector<Tensor> constants_;  // by value id; an empty tensor where none
  std::vector<Kernel> kernels_;    // by node; empty for Const, Placeholder and those with a twin
  std::vector<int> twin_;          // by node: the first node of the same kernel, itself often
  std::vector<std::vector<int>> readers_;  // by value id of a constant: the kernels that read it
  std::vector<int64_t> offsets_;           // by value id; -1 for constants and what is never read
  int64_t arena_elements_ = 0;
  int64_t scratch_elements_ = 0;
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_EXECUTOR_FLOAT_EXECUTOR_H_
