#include "compiler_core/ops/pool.h"
#include "compiler_core/ops/window_lower.h"

namespace npuc {
namespace {

// The greatest element of each window; NaN where one is NaN. Padding does not count.
struct MaxPool {
  static constexpr OpTraits kTraits = {.layout = LayoutRule::kFixed,
                                       .integer = IntegerRule::kPool,
                                       .layer_type = "Pooling",
                                       .method = "MAX",
                                       .keeps_parameters = true};

  static absl::StatusOr<std::vector<TensorType>> InferShapes(const OpView& view) {
    return InferPool(view, /*integers=*/true);
  }
  static void Facts(const OpView& view, FactMap& facts) { PoolFacts(view, facts); }
  static absl::StatusOr<std::vector<Tensor>> Reference(const Node& node,
                                                       absl::Span<const Tensor> inputs) {
    return RunPool(node, inputs[0], [](auto codec, int64_t count, auto&& load) {
      auto best = load(0);
      for (int64_t i = 1; i < count; ++i) {
        const auto value = load(i);
        const bool is_nan = !(value <= best) && !(value > best);
        if (value > best || is_nan) best = value;
      }
      return best;
    });
  }
  static int64_t Work(const OpView& view, absl::Span<const TensorType> outputs) {
    return PoolWork(view, outputs);
  }
  static absl::Status Lower(const OpView& view, LowerContext& context) {
    return LowerPool(view, context, PoolKind::kMax);
  }
};

}  // namespace

NPUC_DEFINE_OP(MaxPool)

}  // namespace npuc
