#include "compiler_core/base/status.h"
#include "compiler_core/ops/lower_context.h"
#include "compiler_core/ops/shape_util.h"

namespace npuc {
namespace {

struct Identity {
  static constexpr OpTraits kTraits = {.layout = LayoutRule::kElementwise,
                                       .integer = IntegerRule::kReshape,
                                       .keeps_parameters = true};

  static absl::StatusOr<Types> InferShapes(const OpView& view) {
    RETURN_IF_ERROR(view.CheckInputCount(1, 1));
    return Types{view.inputs[0]};
  }
  static void Facts(const OpView& view, FactMap& facts) {}
  static absl::StatusOr<std::vector<Tensor>> Reference(const Node& node,
                                                       absl::Span<const Tensor> inputs) {
    return std::vector<Tensor>{inputs[0]};
  }
  static int64_t Work(const OpView& view, absl::Span<const TensorType> outputs) { return 0; }
  static absl::Status Lower(const OpView& view, LowerContext& context) {
    return context.AliasOutput(0, 0, 0);
  }
};

}  // namespace

NPUC_DEFINE_OP(Identity)

}  // namespace npuc
