#ifndef NPUC_COMPILER_CORE_OPS_CHANNELS_H_
#define NPUC_COMPILER_CORE_OPS_CHANNELS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "compiler_core/ir/graph/graph.h"

namespace npuc {

// Channels: the indices of a value's last dimension. What is said here is about graphs that
// VerifyGraph accepts.

// Each element of channel `to` of result `output` depends on channel `from` of operand `operand`,
// and on no other channel of that operand.
struct ChannelLink {
  size_t operand = 0;
  int64_t from = 0;
  size_t output = 0;
  int64_t to = 0;
};
// The links of a node that computes each channel by itself: element-wise operators, pools,
// depthwise convolutions, and what moves values without mixing channels. Every channel of its
// operands and results is in a link, those of constant operands aside. nullopt: another node.
std::optional<std::vector<ChannelLink>> ChannelLinksOf(const Graph& graph, const Node& node);

// A convolution without groups or a matrix product by a constant matrix: every result channel is a
// weighted sum of all channels of operand 0.
struct ChannelProduct {
  int64_t taps = 1;  // of the window
  int64_t in = 0;
  int64_t out = 0;
  int64_t tap_stride = 0, in_stride = 0, out_stride = 0;  // of the constant operand 1
  int64_t Index(int64_t tap, int64_t i, int64_t o) const {
    return tap * tap_stride + i * in_stride + o * out_stride;
  }
};
std::optional<ChannelProduct> ChannelProductOf(const Graph& graph, const Node& node);

// Channels of all values of a graph together, up to which dead ones are looked for: facts take some
// 16 bytes a channel.
inline constexpr int64_t kMaxGraphChannels = int64_t{1} << 22;
bool HasTooManyChannels(const Graph& graph);

// Facts about a graph's channels in one core's arithmetic. A vector that is empty says nothing.
struct ChannelFacts {
  // By value id and channel: the number that every element of the channel always is (of stored
  // integers: less the zero point), or nullopt where it may vary.
  std::vector<std::vector<std::optional<double>>> constants;
  // By value id: a weight as it is stored, where that is not the graph's own.
  std::vector<Tensor> stored;
  // The size of the largest weight that is stored as 0.
  double largest_zero = 0;
  // By node id: whether a product may add a constant channel's share to its bias exactly.
  std::vector<bool> folds;
  // By node id: whether all channels of the node's operands and results must stay.
  std::vector<bool> is_fixed;
};

// The channels that remain. Lists are ascending; an empty one means all.
struct ConstantCut {
  ValueId constant;
  std::vector<std::vector<int64_t>> kept;  // by dimension: indices
};
struct KeptChannels {
  std::vector<std::vector<int64_t>> channels;  // by value id
  std::vector<ConstantCut> cuts;               // of the constants that go with them
  int64_t removed = 0;                         // of all values
  int64_t total = 0;
};

Tensor CutTensor(const Tensor& tensor, const ConstantCut& cut);

// Multiply-adds of the graph's convolutions and products by constant matrices, and their weights.
struct ChannelWork {
  int64_t macs = 0;
  int64_t weights = 0;
};
ChannelWork WorkOfProducts(const Graph& graph);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_OPS_CHANNELS_H_
