// Convolutions and batch normalisation.
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/tensorflow/import_dilation.h"
#include "compiler_core/frontends/tensorflow/node_import.h"
#include "compiler_core/frontends/tensorflow/window_attrs.h"

namespace npuc::tf {
namespace {

absl::Status Convolve(NodeImporter& node, absl::string_view op) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const bool is_nhwc, node.IsNhwc());
  if (node.rank(0) != 4 || node.rank(1) != 4) {
    return absl::InvalidArgumentError(absl::StrCat("the operand is ", TypeToString(node.type(0)),
                                                   " and the weight ", TypeToString(node.type(1)),
                                                   "; both must have rank 4"));
  }
  const std::array<int64_t, 2> kernel = {node.shape(1)[0], node.shape(1)[1]};
  Shape input = node.shape(0);
  if (!is_nhwc) input = {input[0], input[2], input[3], input[1]};
  ASSIGN_OR_RETURN(WindowAttrs window, ReadWindow(node, is_nhwc, input, kernel));
  AttrMap attrs = {
      {"strides", window.strides}, {"pads", window.pads}, {"dilations", window.dilations}};
  if (is_nhwc && FactsOf(*node.input(0)).group != nullptr) {
    return ConvolveInGroup(node, op, std::move(attrs));
  }
  ASSIGN_OR_RETURN(const ValueRef x, AsNhwc(node, node.input(0), is_nhwc));
  ASSIGN_OR_RETURN(ValueRef y, node.Emit(op, {x, node.input(1)}, std::move(attrs)));
  return node.SetOutput(FromNhwc(node, y, is_nhwc));
}

absl::Status ImportConv2D(NodeImporter& node) { return Convolve(node, "Conv2D"); }
absl::Status ImportDepthwiseConv2D(NodeImporter& node) { return Convolve(node, "DepthwiseConv2D"); }

// Inference only: mean and variance are operands.
absl::Status ImportFusedBatchNorm(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(5, 5));
  ASSIGN_OR_RETURN(const bool is_training, node.BoolOr("is_training", true));
  if (is_training) {
    return node.FailMode("is_training is true: mean and variance would come from the batch",
                         "freeze the model in inference mode (training=False)");
  }
  ASSIGN_OR_RETURN(const bool is_nhwc, node.IsNhwc());
  ASSIGN_OR_RETURN(const double epsilon, node.FloatOr("epsilon", 1e-4));
  ASSIGN_OR_RETURN(const ValueRef x, AsNhwc(node, node.input(0), is_nhwc));
  ASSIGN_OR_RETURN(
      ValueRef y,
      node.Emit("BatchNorm", {x, node.input(1), node.input(2), node.input(3), node.input(4)},
                {{"epsilon", epsilon}}));
  ASSIGN_OR_RETURN(y, FromNhwc(node, y, is_nhwc));
  return node.SetOutputs({std::move(y), node.input(3), node.input(4)});
}

constexpr ImportRule kConvRules[] = {
    {"Conv2D", ImportConv2D},
    {"DepthwiseConv2dNative", ImportDepthwiseConv2D},
    {"FusedBatchNorm", ImportFusedBatchNorm},
    {"FusedBatchNormV2", ImportFusedBatchNorm},
    {"FusedBatchNormV3", ImportFusedBatchNorm},
};

}  // namespace

absl::Span<const ImportRule> ConvRules() { return kConvRules; }

}  // namespace npuc::tf
