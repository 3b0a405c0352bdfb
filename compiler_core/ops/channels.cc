#include "compiler_core/ops/channels.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "compiler_core/ops/layers.h"
#include "compiler_core/ops/op.h"

namespace npuc {
namespace {

using Links = std::optional<std::vector<ChannelLink>>;

// 0 where there is no last dimension.
int64_t ChannelCount(const Shape& shape) { return shape.empty() ? 0 : shape.back(); }

// Channel c of operand `operand` goes with channel c of result `output`.
void LinkAll(size_t operand, int64_t channels, size_t output, std::vector<ChannelLink>& links) {
  for (int64_t c = 0; c < channels; ++c) links.push_back({operand, c, output, c});
}

// One activation, one result, as many channels.
Links LinkOne(const Graph& graph, const Node& node) {
  const int64_t channels = ChannelCount(graph.type(node.inputs[0]).shape);
  if (channels == 0 || channels != ChannelCount(graph.type(node.outputs[0]).shape)) {
    return std::nullopt;
  }
  std::vector<ChannelLink> links;
  LinkAll(0, channels, 0, links);
  return links;
}

// Element-wise operators: an operand has all channels, or is a constant that is repeated.
Links LinkBroadcast(const Graph& graph, const Node& node) {
  const int64_t channels = ChannelCount(graph.type(node.outputs[0]).shape);
  if (channels == 0) return std::nullopt;
  std::vector<ChannelLink> links;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (graph.ConstantOf(node.inputs[i]) != nullptr) continue;
    if (ChannelCount(graph.type(node.inputs[i]).shape) != channels) return std::nullopt;
    LinkAll(i, channels, 0, links);
  }
  return links.empty() ? std::nullopt : Links(std::move(links));
}

Links LinkDepthwise(const Graph& graph, const Node& node) {
  const Tensor* weight = graph.ConstantOf(node.inputs[1]);
  if (weight == nullptr) return std::nullopt;
  if (node.inputs.size() > 2 && graph.ConstantOf(node.inputs[2]) == nullptr) return std::nullopt;
  const int64_t multiplier = weight->shape()[3];
  std::vector<ChannelLink> links;
  for (int64_t o = 0; o < weight->shape()[2] * multiplier; ++o) {
    links.push_back({0, o / multiplier, 0, o});
  }
  return links;
}

// A Reshape that leaves whole rows of channels: each row of the result is some of the operand's.
Links LinkReshape(const Graph& graph, const Node& node) {
  const int64_t channels = ChannelCount(graph.type(node.inputs[0]).shape);
  const int64_t results = ChannelCount(graph.type(node.outputs[0]).shape);
  if (channels == 0 || results == 0 || results % channels != 0) return std::nullopt;
  std::vector<ChannelLink> links;
  for (int64_t c = 0; c < results; ++c) links.push_back({0, c % channels, 0, c});
  return links;
}

Links LinkReduction(const Graph& graph, const Node& node) {
  const int64_t last = static_cast<int64_t>(graph.type(node.inputs[0]).shape.size()) - 1;
  const absl::StatusOr<std::vector<int64_t>> axes = IntsAttr(node, "axes");
  if (!axes.ok()) return std::nullopt;
  for (const int64_t axis : *axes) {
    if (axis < 0 || axis == last) return std::nullopt;
  }
  return LinkOne(graph, node);
}

Links LinkPad(const Graph& graph, const Node& node) {
  const absl::StatusOr<std::vector<int64_t>> paddings = IntsAttr(node, "paddings");
  if (!paddings.ok() || paddings->size() < 2) return std::nullopt;
  if (paddings->back() != 0 || (*paddings)[paddings->size() - 2] != 0) return std::nullopt;
  return LinkOne(graph, node);
}

Links LinkSlice(const Graph& graph, const Node& node) {
  const absl::StatusOr<std::vector<int64_t>> begin = IntsAttr(node, "begin");
  const absl::StatusOr<std::vector<int64_t>> strides = IntsAttr(node, "strides");
  if (!begin.ok() || !strides.ok() || begin->empty() || strides->empty()) return std::nullopt;
  if (begin->back() != 0 || strides->back() != 1) return std::nullopt;
  return LinkOne(graph, node);
}

// The axis of a Concat or Split, from the front; -1 where it is not stated.
int64_t AxisOf(const Graph& graph, const Node& node) {
  const int64_t rank = static_cast<int64_t>(graph.type(node.inputs[0]).shape.size());
  const absl::StatusOr<int64_t> axis = IntAttr(node, "axis");
  if (!axis.ok()) return -1;
  return *axis < 0 ? *axis + rank : *axis;
}

Links LinkConcat(const Graph& graph, const Node& node) {
  const Shape& result = graph.type(node.outputs[0]).shape;
  const int64_t axis = AxisOf(graph, node);
  if (axis < 0 || ChannelCount(result) == 0) return std::nullopt;
  const bool joins_channels = axis == static_cast<int64_t>(result.size()) - 1;
  std::vector<ChannelLink> links;
  int64_t first = 0;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (graph.ConstantOf(node.inputs[i]) != nullptr) return std::nullopt;
    const int64_t channels = ChannelCount(graph.type(node.inputs[i]).shape);
    for (int64_t c = 0; c < channels; ++c) links.push_back({i, c, 0, first + c});
    if (joins_channels) first += channels;
  }
  return links;
}

Links LinkSplit(const Graph& graph, const Node& node) {
  const Shape& operand = graph.type(node.inputs[0]).shape;
  const int64_t axis = AxisOf(graph, node);
  if (axis < 0 || axis == static_cast<int64_t>(operand.size()) - 1) return std::nullopt;
  std::vector<ChannelLink> links;
  for (size_t k = 0; k < node.outputs.size(); ++k) LinkAll(0, ChannelCount(operand), k, links);
  return links;
}

}  // namespace

std::optional<std::vector<ChannelLink>> ChannelLinksOf(const Graph& graph, const Node& node) {
  if (node.inputs.empty() || graph.ConstantOf(node.inputs[0]) != nullptr) {
    const bool is_broadcast = TraitsOf(node.op).layout == LayoutRule::kBroadcast;
    return is_broadcast ? LinkBroadcast(graph, node) : std::nullopt;
  }
  switch (node.op) {
    case Op::kAvgPool:
    case Op::kMaxPool:
      return LinkOne(graph, node);
    case Op::kDepthwiseConv2D:
      return LinkDepthwise(graph, node);
    default:
      break;
  }
  switch (TraitsOf(node.op).layout) {
    case LayoutRule::kElementwise:
      return LinkOne(graph, node);
    case LayoutRule::kBroadcast:
      return LinkBroadcast(graph, node);
    case LayoutRule::kReduction:
      return LinkReduction(graph, node);
    case LayoutRule::kReshape:
      return LinkReshape(graph, node);
    case LayoutRule::kPad:
      return LinkPad(graph, node);
    case LayoutRule::kSlice:
      return LinkSlice(graph, node);
    default:
      break;
  }
  if (node.op == Op::kConcat) return LinkConcat(graph, node);
  if (node.op == Op::kSplit) return LinkSplit(graph, node);
  return std::nullopt;
}

std::optional<ChannelProduct> ChannelProductOf(const Graph& graph, const Node& node) {
  if (node.op != Op::kConv2D && node.op != Op::kMatMul) return std::nullopt;
  if (graph.ConstantOf(node.inputs[0]) != nullptr) return std::nullopt;
  const Tensor* weight = graph.ConstantOf(node.inputs[1]);
  if (weight == nullptr) return std::nullopt;
  if (node.inputs.size() > 2 && graph.ConstantOf(node.inputs[2]) == nullptr) return std::nullopt;
  const Shape& shape = weight->shape();
  const int64_t channels = ChannelCount(graph.type(node.inputs[0]).shape);
  ChannelProduct product;
  if (node.op == Op::kMatMul) {
    if (!MultipliesByMatrix(graph, node) || BoolAttrOr(node, "transpose_a", false)) {
      return std::nullopt;
    }
    const bool is_turned = BoolAttrOr(node, "transpose_b", false);
    product.in = shape[is_turned ? 1 : 0];
    product.out = shape[is_turned ? 0 : 1];
    product.in_stride = is_turned ? 1 : product.out;
    product.out_stride = is_turned ? product.in : 1;
  } else {
    product.taps = shape[0] * shape[1];
    product.in = shape[2];
    product.out = shape[3];
    product.tap_stride = product.in * product.out;
    product.in_stride = product.out;
    product.out_stride = 1;
  }
  if (product.in != channels) return std::nullopt;  // a convolution in groups
  return product;
}

Tensor CutTensor(const Tensor& tensor, const ConstantCut& cut) {
  Shape shape = tensor.shape();
  std::vector<uint8_t> bytes(tensor.bytes().begin(), tensor.bytes().end());
  for (size_t d = 0; d < shape.size() && d < cut.kept.size(); ++d) {
    const std::vector<int64_t>& kept = cut.kept[d];
    if (kept.empty()) continue;
    int64_t outer = 1;
    int64_t row_bytes = SizeOf(tensor.dtype());
    for (size_t e = 0; e < d; ++e) outer *= shape[e];
    for (size_t e = d + 1; e < shape.size(); ++e) row_bytes *= shape[e];
    std::vector<uint8_t> left(static_cast<size_t>(outer * row_bytes) * kept.size());
    uint8_t* to = left.data();
    for (int64_t o = 0; o < outer; ++o) {
      for (const int64_t index : kept) {
        std::memcpy(to, bytes.data() + (o * shape[d] + index) * row_bytes,
                    static_cast<size_t>(row_bytes));
        to += row_bytes;
      }
    }
    shape[d] = static_cast<int64_t>(kept.size());
    bytes = std::move(left);
  }
  return Tensor({tensor.dtype(), std::move(shape)}, std::move(bytes));
}

bool HasTooManyChannels(const Graph& graph) {
  int64_t channels = 0;
  for (int i = 0; i < graph.value_count(); ++i) {
    const Shape& shape = graph.type(ValueId(i)).shape;
    channels += shape.empty() ? 0 : shape.back();
    if (channels > kMaxGraphChannels) return true;
  }
  return false;
}

ChannelWork WorkOfProducts(const Graph& graph) {
  ChannelWork work;
  for (const Node& node : graph.nodes()) {
    const bool has_weight = node.op == Op::kConv2D || node.op == Op::kDepthwiseConv2D ||
                            MultipliesByMatrix(graph, node);
    const Tensor* weight = has_weight ? graph.ConstantOf(node.inputs[1]) : nullptr;
    if (weight == nullptr || weight->element_count() == 0) continue;
    const Shape& result = graph.type(node.outputs[0]).shape;
    work.weights += weight->element_count();
    work.macs += ElementCount(result) / result.back() * weight->element_count();
  }
  return work;
}

}  // namespace npuc
