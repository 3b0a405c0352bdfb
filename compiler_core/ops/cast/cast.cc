#include <string>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/ops/shape_util.h"

namespace npuc {
namespace {

// x [...] -> [...] of attribute dtype ("i32"), as CastTensor does: floats to integers towards zero,
// clamped; integers to integers wrap; to bool != 0.
struct Cast {
  static constexpr OpTraits kTraits = {.layout = LayoutRule::kFixed, .integer = IntegerRule::kNone};

  static absl::StatusOr<DType> ResultOf(const Node& node) {
    RETURN_IF_ERROR(StringAttr(node, "dtype").status());
    return DTypeAttr(node, "dtype", DType::kInvalid);
  }
  static absl::StatusOr<Types> InferShapes(const OpView& view) {
    RETURN_IF_ERROR(view.CheckInputCount(1, 1));
    ASSIGN_OR_RETURN(const DType dtype, ResultOf(view.node));
    return Types{{dtype, view.inputs[0].shape}};
  }
  static void Facts(const OpView& view, FactMap& facts) {}
  static absl::StatusOr<std::vector<Tensor>> Reference(const Node& node,
                                                       absl::Span<const Tensor> inputs) {
    ASSIGN_OR_RETURN(const DType dtype, ResultOf(node));
    return std::vector<Tensor>{CastTensor(inputs[0], dtype)};
  }
};

}  // namespace

NPUC_DEFINE_OP(Cast)

}  // namespace npuc
