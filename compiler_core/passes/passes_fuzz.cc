// Whatever graph parses and verifies: every pass gives a graph that verifies, and run again on its
// result changes nothing.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/graph/text.h"
#include "compiler_core/passes/passes.h"
#include "compiler_core/passes/rewriter.h"

namespace {

constexpr npuc::FoldBudget kBudget = {
    .elements_per_value = 1 << 12, .elements = 1 << 16, .work = 1 << 18};

absl::StatusOr<npuc::Graph> Fold(const npuc::Graph& graph) {
  return npuc::ConstantFold(graph, kBudget);
}

absl::StatusOr<npuc::Graph> All(const npuc::Graph& graph) {
  return npuc::RunPasses(
      graph,
      {.fuse_batch_norm = true, .fuse_bias = true, .log_of_squares = true, .fold_budget = kBudget});
}

using Pass = absl::StatusOr<npuc::Graph> (*)(const npuc::Graph&);
constexpr Pass kPasses[] = {&Fold,
                            &npuc::DeadCode,
                            &npuc::RemoveIdentity,
                            &npuc::Cse,
                            &npuc::Canonicalize,
                            &npuc::PropagateTransposes,
                            &npuc::RewriteSoftmax,
                            &npuc::LogOfSquares,
                            &npuc::RewriteBatchNorm,
                            &npuc::FuseBatchNorm,
                            &npuc::FuseBias,
                            &npuc::RemoveDeadChannels,
                            &All};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<npuc::Graph> graph = npuc::ParseGraph(text, {.max_constant_bytes = 1 << 16});
  if (!graph.ok() || !npuc::VerifyGraph(*graph).ok()) return 0;
  for (const Pass pass : kPasses) {
    const absl::StatusOr<npuc::Graph> once = pass(*graph);
    NPUC_CHECK(once.ok() && npuc::VerifyGraph(*once).ok());
    const absl::StatusOr<npuc::Graph> twice = pass(*once);
    NPUC_CHECK(twice.ok() && npuc::SameGraph(*once, *twice));
  }
  return 0;
}
