// Convolutions of one to three spatial dimensions.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/onnx/node_import.h"
#include "compiler_core/frontends/onnx/window_attrs.h"

namespace npuc::onnx {
namespace {

ValueRef BiasOf(const NodeImporter& node) { return node.has(2) ? node.input(2) : nullptr; }

absl::Status CheckOperands(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 3));
  if (node.rank(0) >= 3 && node.rank(0) <= 5 && node.rank(1) == node.rank(0)) {
    return absl::OkStatus();
  }
  return node.FailMode(
      absl::StrCat("the operand is ", TypeToString(node.type(0)), " and the weight ",
                   TypeToString(node.type(1)), "; both must have one to three spatial dimensions"),
      "export the model with convolutions of that form");
}

absl::Status ImportConv(NodeImporter& node) {
  RETURN_IF_ERROR(CheckOperands(node));
  const Shape& in = node.shape(0);
  const Shape& kernel = node.shape(1);  // [o,c/groups,kernel...]
  ASSIGN_OR_RETURN(const int64_t groups, node.IntOr("group", 1));
  if (groups < 1 || groups > kMaxElements || kernel[1] * groups != in[1] ||
      kernel[0] % groups != 0) {
    return absl::InvalidArgumentError(absl::StrCat("the operand is ", TypeToString(node.type(0)),
                                                   ", the weight ", TypeToString(node.type(1)),
                                                   " and the groups are ", groups));
  }
  ASSIGN_OR_RETURN(const WindowAttrs w,
                   ReadWindow(node, absl::MakeConstSpan(in).subspan(2),
                              Shape(kernel.begin() + 2, kernel.end()), nullptr));
  ASSIGN_OR_RETURN(const ValueRef weight, WeightLast(node, node.input(1)));
  ASSIGN_OR_RETURN(const ValueRef x, ChannelsLast(node, node.input(0)));
  ASSIGN_OR_RETURN(const ValueRef y, Convolved(node, x, weight, BiasOf(node), w));
  return node.SetOutput(ChannelsFirst(node, y));
}

// The pads of a transposed convolution: the node's own, or what output_shape leaves of them, less
// what output_padding adds behind.
absl::Status TransposedPads(NodeImporter& node, absl::Span<const int64_t> spatial, WindowAttrs& w) {
  const size_t count = spatial.size();
  ASSIGN_OR_RETURN(std::vector<int64_t> extra,
                   node.IntsOr("output_padding", std::vector<int64_t>(count, 0)));
  RETURN_IF_ERROR(CheckSpatial(node, "output_padding", extra, count, 0));
  ASSIGN_OR_RETURN(const std::string auto_pad, node.StringOr("auto_pad", "NOTSET"));
  ASSIGN_OR_RETURN(std::vector<int64_t> wanted, node.IntsOr("output_shape", {}));
  if (wanted.size() == count + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (wanted.empty() && same) {
    for (size_t i = 0; i < count; ++i) wanted.push_back(spatial[i] * w.strides[i]);
  }
  if (!wanted.empty()) RETURN_IF_ERROR(CheckSpatial(node, "output_shape", wanted, count, 1));
  for (size_t i = 0; i < count; ++i) {
    const int64_t full = w.strides[i] * (spatial[i] - 1) + extra[i] + w.Extent(i);
    if (!wanted.empty()) {
      const int64_t total = full - wanted[i];
      w.before[i] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      if (!same) w.before[i] = total / 2;
      w.after[i] = total - w.before[i];
    }
    w.after[i] -= extra[i];
  }
  return absl::OkStatus();
}

absl::Status ImportConvTranspose(NodeImporter& node) {
  RETURN_IF_ERROR(CheckOperands(node));
  const Shape& in = node.shape(0);
  const Shape& kernel = node.shape(1);  // [c,o/groups,kernel...]
  ASSIGN_OR_RETURN(const int64_t groups, node.IntOr("group", 1));
  if (groups < 1 || groups > kMaxElements || kernel[0] != in[1] || kernel[0] % groups != 0) {
    return absl::InvalidArgumentError(absl::StrCat("the operand is ", TypeToString(node.type(0)),
                                                   ", the weight ", TypeToString(node.type(1)),
                                                   " and the groups are ", groups));
  }
  const absl::Span<const int64_t> spatial = absl::MakeConstSpan(in).subspan(2);
  ASSIGN_OR_RETURN(WindowAttrs w,
                   ReadWindow(node, spatial, Shape(kernel.begin() + 2, kernel.end()), nullptr));
  RETURN_IF_ERROR(TransposedPads(node, spatial, w));
  ASSIGN_OR_RETURN(const ValueRef x, ChannelsLast(node, node.input(0)));
  ASSIGN_OR_RETURN(const ValueRef y,
                   ConvolvedBack(node, x, node.input(1), BiasOf(node), groups, std::move(w)));
  return node.SetOutput(ChannelsFirst(node, y));
}

constexpr ImportRule kConvRules[] = {{"Conv", ImportConv}, {"ConvTranspose", ImportConvTranspose}};

}  // namespace

absl::Span<const ImportRule> ConvRules() { return kConvRules; }

}  // namespace npuc::onnx
