// Pooling over windows.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/tensorflow/node_import.h"
#include "compiler_core/frontends/tensorflow/window_attrs.h"

namespace npuc::tf {
namespace {

absl::Status ImportPool(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const bool is_nhwc, node.IsNhwc());
  if (node.rank(0) != 4) {
    return absl::InvalidArgumentError(
        absl::StrCat("the operand is ", TypeToString(node.type(0)), "; it must have rank 4"));
  }
  ASSIGN_OR_RETURN(const auto kernel, ReadHw(node, "ksize", is_nhwc, /*is_required=*/true));
  Shape input = node.shape(0);
  if (!is_nhwc) input = {input[0], input[2], input[3], input[1]};
  ASSIGN_OR_RETURN(WindowAttrs window, ReadWindow(node, is_nhwc, input, kernel));
  ASSIGN_OR_RETURN(const ValueRef x, AsNhwc(node, node.input(0), is_nhwc));
  ASSIGN_OR_RETURN(ValueRef y, node.Emit(node.node().op(), {x},
                                         {{"kernel", std::vector<int64_t>{kernel[0], kernel[1]}},
                                          {"strides", std::move(window.strides)},
                                          {"pads", std::move(window.pads)}}));
  return node.SetOutput(FromNhwc(node, y, is_nhwc));
}

constexpr ImportRule kPoolRules[] = {{"AvgPool", ImportPool}, {"MaxPool", ImportPool}};

}  // namespace

absl::Span<const ImportRule> PoolRules() { return kPoolRules; }

}  // namespace npuc::tf
