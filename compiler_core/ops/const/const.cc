#include <variant>

#include "compiler_core/base/status.h"
#include "compiler_core/ops/shape_util.h"

namespace npuc {
namespace {

absl::StatusOr<Tensor> ValueOf(const Node& node) {
  const auto it = node.attrs.find("value");
  const Tensor* value = it == node.attrs.end() ? nullptr : std::get_if<Tensor>(&it->second);
  if (value == nullptr) return absl::InvalidArgumentError("a Const needs a tensor 'value'");
  return *value;
}

// Attribute value: the tensor.
struct Const {
  static constexpr OpTraits kTraits = {.layout = LayoutRule::kFixed, .integer = IntegerRule::kNone};

  static absl::StatusOr<Types> InferShapes(const OpView& view) {
    RETURN_IF_ERROR(view.CheckInputCount(0, 0));
    ASSIGN_OR_RETURN(const Tensor value, ValueOf(view.node));
    return Types{value.type()};
  }
  static void Facts(const OpView& view, FactMap& facts) {}
  static absl::StatusOr<std::vector<Tensor>> Reference(const Node& node,
                                                       absl::Span<const Tensor> inputs) {
    ASSIGN_OR_RETURN(Tensor value, ValueOf(node));
    return std::vector<Tensor>{std::move(value)};
  }
};

}  // namespace

NPUC_DEFINE_OP(Const)

}  // namespace npuc
