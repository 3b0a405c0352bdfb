#include "compiler_core/ops/pool.h"
#include "compiler_core/ops/window_lower.h"

namespace npuc {
namespace {

// The mean of each window's elements. Padding does not count, as in TensorFlow.
struct AvgPool {
  static constexpr OpTraits kTraits = {.layout = LayoutRule::kFixed,
                                       .integer = IntegerRule::kPool,
                                       .layer_type = "Pooling",
                                       .method = "AVG",
                                       .fp16_error = {.roundings = 5, .of_terms = true}};

  static absl::StatusOr<std::vector<TensorType>> InferShapes(const OpView& view) {
    return InferPool(view, /*integers=*/false);
  }
  static void Facts(const OpView& view, FactMap& facts) { PoolFacts(view, facts); }
  static absl::StatusOr<std::vector<Tensor>> Reference(const Node& node,
                                                       absl::Span<const Tensor> inputs) {
    return RunPool(node, inputs[0], [](auto codec, int64_t count, auto&& load) {
      typename decltype(codec)::Wide sum = 0;
      for (int64_t i = 0; i < count; ++i) sum += load(i);
      return sum / static_cast<typename decltype(codec)::Wide>(count);
    });
  }
  static int64_t Work(const OpView& view, absl::Span<const TensorType> outputs) {
    return PoolWork(view, outputs);
  }
  static absl::Status Lower(const OpView& view, LowerContext& context) {
    return LowerPool(view, context, PoolKind::kAverage);
  }
};

}  // namespace

NPUC_DEFINE_OP(AvgPool)

}  // namespace npuc
