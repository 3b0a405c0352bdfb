#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/lower_context.h"
#include "compiler_core/ops/shape_util.h"

namespace npuc {
namespace {

// Attribute shape: the new shape in full, without -1. Row-major order stays.
struct Reshape {
  static constexpr OpTraits kTraits = {
      .layout = LayoutRule::kReshape, .integer = IntegerRule::kReshape, .keeps_parameters = true};

  static absl::StatusOr<Types> InferShapes(const OpView& view) {
    RETURN_IF_ERROR(view.CheckInputCount(1, 1));
    ASSIGN_OR_RETURN(Shape shape, IntsAttr(view.node, "shape"));
    RETURN_IF_ERROR(CheckShape(shape));
    const TensorType& input = view.inputs[0];
    if (ElementCount(shape) != input.element_count()) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", ShapeToString(input.shape), " of ", input.element_count(),
                       " elements does not reshape to ", ShapeToString(shape)));
    }
    return Types{{input.dtype, std::move(shape)}};
  }
  static void Facts(const OpView& view, FactMap& facts) {}
  static absl::StatusOr<std::vector<Tensor>> Reference(const Node& node,
                                                       absl::Span<const Tensor> inputs) {
    ASSIGN_OR_RETURN(Shape shape, IntsAttr(node, "shape"));
    return std::vector<Tensor>{inputs[0].WithShape(std::move(shape))};
  }
  static int64_t Work(const OpView& view, absl::Span<const TensorType> outputs) { return 0; }
  static absl::Status Lower(const OpView& view, LowerContext& context) {
    return context.AliasOutput(0, 0, 0);
  }
};

}  // namespace

NPUC_DEFINE_OP(Reshape)

}  // namespace npuc
