#include "compiler_core/base/status.h"
#include "compiler_core/ops/shape_util.h"

namespace npuc {
namespace {

// A model input: its type is what Graph::AddInput was told.
struct Placeholder {
  static constexpr OpTraits kTraits = {
      .layout = LayoutRule::kFixed, .integer = IntegerRule::kNone, .layer_type = "Input"};

  static absl::StatusOr<Types> InferShapes(const OpView& view) {
    RETURN_IF_ERROR(view.CheckInputCount(0, 0));
    if (view.outputs.size() != 1) {
      return absl::InvalidArgumentError("a Placeholder gets its one type when it is added");
    }
    return Types{view.outputs[0]};
  }
  static void Facts(const OpView& view, FactMap& facts) {}
  static absl::StatusOr<std::vector<Tensor>> Reference(const Node& node,
                                                       absl::Span<const Tensor> inputs) {
    return absl::InvalidArgumentError("a Placeholder has the value that the caller gives");
  }
};

}  // namespace

NPUC_DEFINE_OP(Placeholder)

}  // namespace npuc
