#include "compiler_core/quant/test_nets_test_util.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/ops/graph_builder.h"
#include "compiler_core/ops/layers.h"
#include "compiler_core/quant/data/npy.h"

namespace npuc {
namespace {

class StringSource : public ByteSource {
 public:
  explicit StringSource(std::string bytes) : bytes_(std::move(bytes)) {}
  int64_t size() const override { return static_cast<int64_t>(bytes_.size()); }
  absl::Status Read(int64_t offset, absl::Span<char> to) const override {
    return ViewSource(bytes_).Read(offset, to);
  }

 private:
  std::string bytes_;
};

// Normally distributed numbers that are the same with every standard library.
class Normal {
 public:
  explicit Normal(uint32_t seed) : rng_(seed) {}
  float operator()() {
    double sum = 0;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(rng_()) / 4294967296.0;
    return static_cast<float>(sum - 6);
  }

 private:
  std::mt19937 rng_;
};

class Builder {
 public:
  Builder(const KeywordNet& net, uint32_t seed) : net_(net), normal_(seed), builder_(&graph_) {}

  Graph Build() {
    ValueId x = graph_.AddInput("input", {DType::kFloat32, {1, net_.height, net_.width, 1}});
    x = Layer(Op::kConv2D, x, {4, 3, 1, net_.channels}, {2, 2}, "conv");
    for (int i = 0; i < net_.blocks; ++i) {
      x = Layer(Op::kDepthwiseConv2D, x, {3, 3, net_.channels, 1}, {1, 1}, absl::StrCat("dw", i));
      x = Layer(Op::kConv2D, x, {1, 1, net_.channels, net_.channels}, {1, 1},
                absl::StrCat("pw", i));
    }
    const Shape shape = graph_.type(x).shape;
    x = Node(Op::kAvgPool, {x},
             {{"kernel", std::vector<int64_t>{shape[1], shape[2]}},
              {"strides", std::vector<int64_t>{1, 1}},
              {"pads", std::vector<int64_t>{0, 0, 0, 0}}},
             "pool");
    x = Node(Op::kReshape, {x}, {{"shape", std::vector<int64_t>{1, net_.channels}}}, "flat");
    x = Node(Op::kMatMul,
             {x, Weight({net_.channels, net_.classes}, net_.channels / 8.0, "dense/w")}, {},
             "dense");
    x = Node(Op::kAdd, {x, Bias(net_.classes, "dense/b")}, {}, "dense/add");
    if (net_.softmax) x = Node(Op::kSoftmax, {x}, {}, "softmax");
    graph_.AddOutput({"result", x});
    return std::move(graph_);
  }

 private:
  ValueId Node(Op op, std::vector<ValueId> inputs, AttrMap attrs, const std::string& name) {
    return builder_.AddOne(op, std::move(inputs), std::move(attrs), {name, ""}).value();
  }
  // The factor of a result channel: what its weights have more, those that read it have less.
  double FactorOf(int64_t channel, int64_t channels) const {
    const double part = static_cast<double>(channel * 7 % channels) / static_cast<double>(channels);
    return std::pow(net_.channel_spread, part - 0.5);
  }
  // weight [.., inputs, outputs], or [kh,kw,channels,1].
  ValueId Weight(const Shape& shape, double fan_in, const std::string& name) {
    std::vector<float> values(ElementCount(shape));
    const bool depthwise = shape.back() == 1;
    const int64_t outputs = depthwise ? shape[2] : shape.back();
    const int64_t inputs = shape[shape.size() - 2];
    for (size_t i = 0; i < values.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      const int64_t input = depthwise ? at % outputs : at / outputs % inputs;
      const bool last = outputs == net_.classes;
      double factor = last ? 1 : FactorOf(at % outputs, outputs);
      if (inputs > 1) factor /= FactorOf(input, inputs);
      values[i] = static_cast<float>(normal_() * std::sqrt(2 / fan_in) * factor);
    }
    return graph_.AddConst(Tensor::FromFloats(shape, values), {name, ""});
  }
  ValueId Bias(int64_t count, const std::string& name) {
    std::vector<float> values(count);
    for (int64_t c = 0; c < count; ++c) {
      const double factor = count == net_.classes ? 1 : FactorOf(c, count);
      values[c] = static_cast<float>(normal_() * net_.bias_spread * factor);
    }
    return graph_.AddConst(Tensor::FromFloats({count}, values), {name, ""});
  }
  ValueId Layer(Op op, ValueId x, const Shape& weight, std::vector<int64_t> strides,
                const std::string& name) {
    const bool depthwise = op == Op::kDepthwiseConv2D;
    const auto fan_in = static_cast<double>(weight[0] * weight[1] * (depthwise ? 1 : weight[2]));
    const int64_t pad = weight[0] > 1 ? 1 : 0;
    x = Node(op, {x, Weight(weight, fan_in, name + "/w")},
             {{"strides", std::move(strides)},
              {"pads", std::vector<int64_t>{pad, pad, pad, pad}},
              {"dilations", std::vector<int64_t>{1, 1}}},
             name);
    x = Node(Op::kAdd, {x, Bias(depthwise ? weight[2] : weight[3], name + "/b")}, {},
             name + "/add");
    return Node(Op::kRelu, {x}, {}, name + "/relu");
  }

  KeywordNet net_;
  Normal normal_;
  Graph graph_;
  GraphBuilder builder_;
};

}  // namespace

Graph MakeKeywordNet(const KeywordNet& net, uint32_t seed) { return Builder(net, seed).Build(); }

std::string MakeSamples(const Graph& graph, int64_t count, uint32_t seed) {
  const TensorType& type = graph.type(graph.inputs()[0]);
  NpyArray array;
  array.shape = {count};
  array.shape.insert(array.shape.end(), type.shape.begin(), type.shape.end());
  Normal normal(seed);
  std::vector<float> values(static_cast<size_t>(array.element_count()));
  for (float& value : values) value = normal();
  array.bytes.resize(values.size() * sizeof(float));
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return WriteNpy(array).value();
}

SampleFile FileOf(std::string npy) {
  return {"", "samples.npy", std::make_shared<StringSource>(std::move(npy))};
}

QuantizeInput InputOf(const Graph& graph, const std::string& samples) {
  QuantizeInput input;
  input.graph = &graph;
  input.layers = GroupLayers(graph);
  input.model_name = "net";
  input.calibration = {FileOf(samples)};
  return input;
}

}  // namespace npuc
