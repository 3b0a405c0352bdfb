// Operators on images beside convolutions and pooling: blocks, resizing, transposed convolution.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/image.h"
#include "compiler_core/frontends/tensorflow/node_import.h"
#include "compiler_core/frontends/tensorflow/window_attrs.h"

namespace npuc::tf {
namespace {

// SpaceToDepth and DepthToSpace. NCHW goes through NHWC, whose channels have the same order.
absl::Status ImportBlocks(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const bool is_nhwc, node.IsNhwc());
  ASSIGN_OR_RETURN(const int64_t block, node.RequiredInt("block_size"));
  if (node.rank(0) != 4) {
    return absl::InvalidArgumentError(
        absl::StrCat("the operand is ", TypeToString(node.type(0)), "; it must have rank 4"));
  }
  node.SetRewritten();
  ASSIGN_OR_RETURN(ValueRef x, AsNhwc(node, node.input(0), is_nhwc));
  ASSIGN_OR_RETURN(x, node.node().op() == "SpaceToDepth" ? frontend::SpaceToDepth(node, x, block)
                                                         : frontend::DepthToSpace(node, x, block));
  return node.SetOutput(FromNhwc(node, x, is_nhwc));
}

absl::Status ImportResize(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const std::vector<int64_t> size, node.ConstantInts(1, "size"));
  if (size.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("the size has ", size.size(), " entries; it must have two"));
  }
  frontend::ImageResize resize{.size = {size[0], size[1]}};
  resize.is_linear = node.node().op() == "ResizeBilinear";
  ASSIGN_OR_RETURN(resize.align_corners, node.BoolOr("align_corners", false));
  ASSIGN_OR_RETURN(resize.half_pixel_centers, node.BoolOr("half_pixel_centers", false));
  node.SetRewritten();
  return node.SetOutput(frontend::ResizedImage(node, node.input(0), resize));
}

// tf.nn.conv2d_transpose. Operands: the result's shape, weight [H,W,O,I], the image.
absl::Status ImportConv2DBackpropInput(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(3, 3));
  ASSIGN_OR_RETURN(const bool is_nhwc, node.IsNhwc());
  ASSIGN_OR_RETURN(Shape result, node.ConstantInts(0, "result's shape"));
  if (node.rank(1) != 4 || node.rank(2) != 4 || (result.size() != 4 && result.size() != 2)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the weight is ", TypeToString(node.type(1)), ", the image ", TypeToString(node.type(2)),
        ", the result's shape has ", result.size(), " entries; all must have rank 4"));
  }
  if (result.size() == 4 && !is_nhwc) result = {result[0], result[2], result[3], result[1]};
  if (result.size() == 2) result = {1, result[0], result[1], node.shape(1)[2]};
  ASSIGN_OR_RETURN(const WindowAttrs window,
                   ReadWindow(node, is_nhwc, result, {node.shape(1)[0], node.shape(1)[1]}));
  node.SetRewritten();
  const frontend::TransposedConv conv{.stride = {window.strides[0], window.strides[1]},
                                      .dilation = {window.dilations[0], window.dilations[1]},
                                      .result = {result[1], result[2]},
                                      .pads_before = {window.pads[0], window.pads[2]}};
  ASSIGN_OR_RETURN(const ValueRef weight, node.Transposed(node.input(1), {0, 1, 3, 2}));
  ASSIGN_OR_RETURN(ValueRef x, AsNhwc(node, node.input(2), is_nhwc));
  ASSIGN_OR_RETURN(x, frontend::ConvolvedTransposed(node, std::move(x), weight, conv));
  return node.SetOutput(FromNhwc(node, x, is_nhwc));
}

constexpr ImportRule kImageRules[] = {
    {"Conv2DBackpropInput", ImportConv2DBackpropInput},
    {"DepthToSpace", ImportBlocks},
    {"ResizeBilinear", ImportResize},
    {"ResizeNearestNeighbor", ImportResize},
    {"SpaceToDepth", ImportBlocks},
};

}  // namespace

absl::Span<const ImportRule> ImageRules() { return kImageRules; }

}  // namespace npuc::tf
