#include <algorithm>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/ops/reduce.h"
#include "compiler_core/ops/vector_emit.h"

namespace npuc {
namespace {

// A run of adjacent dimensions that are all reduced.
struct AxisRun {
  int64_t outer = 1;
  int64_t middle = 1;
  int64_t inner = 1;
};

// The runs of reduced axes, last first; outer and inner are what is left around each when its turn
// comes.
std::vector<AxisRun> RunsOf(const Shape& shape, const std::vector<int64_t>& axes) {
  std::vector<AxisRun> runs;
  int64_t inner = 1;
  bool open = false;
  for (size_t i = shape.size(); i-- > 0;) {
    const bool reduced = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    if (reduced && !open) runs.push_back({1, 1, inner});
    if (reduced) runs.back().middle *= shape[i];
    if (!reduced) inner *= shape[i];
    open = reduced;
  }
  // What lies before a run is still whole when the run is reduced.
  for (size_t r = 0; r < runs.size(); ++r) {
    int64_t total = ElementCount(shape);
    for (size_t done = 0; done < r; ++done) total /= runs[done].middle;
    runs[r].outer = total / (runs[r].middle * runs[r].inner);
  }
  return runs;
}

}  // namespace

absl::Status LowerReduce(const OpView& view, LowerContext& context, Reduction reduction) {
  const Shape& shape = view.inputs[0].shape;
  ASSIGN_OR_RETURN(const std::vector<int64_t> axes, IntsAttr(view.node, "axes"));
  if (ElementCount(shape) == 0) {
    return absl::UnimplementedError("a reduction over an empty tensor has no commands");
  }
  std::vector<AxisRun> runs = RunsOf(shape, axes);
  runs.erase(
      std::remove_if(runs.begin(), runs.end(), [](const AxisRun& run) { return run.middle == 1; }),
      runs.end());
  if (runs.empty()) return context.AliasOutput(0, 0, 0);
  ASSIGN_OR_RETURN(Operand from, context.Input(0));
  for (size_t r = 0; r < runs.size(); ++r) {
    const AxisRun& run = runs[r];
    const bool last = r + 1 == runs.size();
    const Operand to = last ? context.Output(0) : context.Temp(run.outer * run.inner);
    if (reduction == Reduction::kMax) {
      RETURN_IF_ERROR(EmitMaxOverMiddle(context, from, to, run.outer, run.middle, run.inner));
    } else {
      // Each run takes its own share of a mean, so that no sum before the last overflows.
      const bool mean = reduction == Reduction::kMean;
      const float scale = mean ? 1.0f / static_cast<float>(run.middle) : 1.0f;
      EmitSumOverMiddle(context, from, to, run.outer, run.middle, run.inner, scale);
    }
    from = to;
  }
  return absl::OkStatus();
}

}  // namespace npuc
