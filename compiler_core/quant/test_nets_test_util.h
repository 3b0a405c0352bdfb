#ifndef NPUC_COMPILER_CORE_QUANT_TEST_NETS_TEST_UTIL_H_
#define NPUC_COMPILER_CORE_QUANT_TEST_NETS_TEST_UTIL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/quant/quantize.h"

namespace npuc {

// A keyword net of separable convolutions on [1,height,width,1] with seeded weights:
// a convolution, `blocks` times depthwise and 1x1 convolution (all with bias and ReLU), mean
// pooling, a dense layer of `classes` results and a softmax, if asked for. blocks 4, 49x10 and 64
// channels is the shape of MLPerf Tiny's keyword net.
struct KeywordNet {
  int64_t height = 12;
  int64_t width = 8;
  int64_t channels = 16;
  int blocks = 2;
  int64_t classes = 6;
  bool softmax = true;
  // Channels between layers differ in size by up to this factor, without changing what the net
  // computes: above 1, one scale does not suit all of a weight.
  double channel_spread = 1;
  double bias_spread = 0.1;  // the standard deviation of biases
};
Graph MakeKeywordNet(const KeywordNet& net, uint32_t seed);

// Seeded samples of a graph's only input as an .npy file, [count, ...].
std::string MakeSamples(const Graph& graph, int64_t count, uint32_t seed);
SampleFile FileOf(std::string npy);

// Input for Quantize with `count` samples and default options.
QuantizeInput InputOf(const Graph& graph, const std::string& samples);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_TEST_NETS_TEST_UTIL_H_
