// From a graph and a plan to simulated integers, against the float reference.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/emit/integer_codec.h"
#include "compiler_core/emit/model_file.h"
#include "compiler_core/ir/graph/text.h"
#include "compiler_core/ir/integer/access.h"
#include "compiler_core/ir/integer/text.h"
#include "compiler_core/lowering/integer/lower_integer.h"
#include "compiler_core/memplan/plan.h"
#include "compiler_core/ops/graph_builder.h"
#include "compiler_core/ops/layers.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/ops/quantize.h"
#include "compiler_core/pipeline/integer_runs_test_util.h"
#include "compiler_core/quant/kept/kept_scales.h"
#include "compiler_core/sim/simulator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using ::testing::HasSubstr;

Tensor RandomTensor(const Shape& shape, double spread, std::mt19937& random) {
  std::normal_distribution<float> normal(0, static_cast<float>(spread));
  std::vector<float> values(static_cast<size_t>(ElementCount(shape)));
  for (float& value : values) value = normal(random);
  return Tensor::FromFloats(shape, values);
}

// Adds nodes by operator, with random weights.
class Net {
 public:
  explicit Net(int seed) : random_(static_cast<uint32_t>(seed)), builder_(&graph_) {}

  ValueId Input(const Shape& shape) {
    return graph_.AddInput("x", TensorType{DType::kFloat32, shape});
  }
  ValueId Weight(const Shape& shape, double spread) {
    return builder_.Const(RandomTensor(shape, spread, random_), {Name(), "Const"});
  }
  ValueId Add(Op op, std::vector<ValueId> inputs, AttrMap attrs = {}) {
    absl::StatusOr<ValueId> value =
        builder_.AddOne(op, std::move(inputs), std::move(attrs), {Name(), std::string(NameOf(op))});
    EXPECT_TRUE(value.ok()) << value.status();
    return *value;
  }
  ValueId Conv(Op op, ValueId x, const Shape& weight, int64_t stride) {
    const double taps = static_cast<double>(weight[0] * weight[1] * weight[2]);
    const AttrMap attrs = {{"strides", std::vector<int64_t>{stride, stride}},
                           {"pads", std::vector<int64_t>{1, 0, 0, 1}}};
    const ValueId sums = Add(op, {x, Weight(weight, 1.0 / std::sqrt(taps))}, attrs);
    const ValueId biased = Add(Op::kAdd, {sums, Weight({graph_.type(sums).shape.back()}, 0.3)});
    return Add(Op::kRelu, {biased});
  }
  Graph Take(ValueId output) {
    graph_.AddOutput({"y", output});
    return std::move(graph_);
  }

 private:
  std::string Name() { return absl::StrCat("n", count_++); }

  std::mt19937 random_;
  Graph graph_;
  GraphBuilder builder_;
  int count_ = 0;
};

// A keyword net in small: convolution, depthwise, pointwise, residual, pool, matrix, softmax.
Graph SmallNet(int seed) {
  Net net(seed);
  const ValueId x = net.Input({1, 9, 8, 3});
  const ValueId a = net.Conv(Op::kConv2D, x, {3, 3, 3, 8}, 2);
  const ValueId b = net.Conv(Op::kDepthwiseConv2D, a, {2, 2, 8, 1}, 1);
  const ValueId c = net.Conv(Op::kConv2D, b, {2, 2, 8, 8}, 1);
  const ValueId d = net.Add(Op::kRelu6, {net.Add(Op::kAdd, {a, c})});
  const ValueId e = net.Add(Op::kSigmoid, {d});
  const ValueId f = net.Add(Op::kConcat, {net.Add(Op::kMul, {d, e}), e}, {{"axis", int64_t{3}}});
  const ValueId pooled = net.Add(Op::kAvgPool, {f},
                                 {{"kernel", std::vector<int64_t>{2, 2}},
                                  {"strides", std::vector<int64_t>{2, 2}},
                                  {"pads", std::vector<int64_t>{0, 0, 0, 0}}});
  const Shape shape = {1, 2 * 2 * 16};
  const ValueId flat = net.Add(Op::kReshape, {pooled}, {{"shape", std::vector<int64_t>{1, 64}}});
  const ValueId fc = net.Add(Op::kMatMul, {flat, net.Weight({shape[1], 5}, 0.4)});
  return net.Take(net.Add(Op::kSoftmax, {fc}));
}

CompiledModel Compiled(const Graph& graph, const QuantPlan& plan) {
  absl::StatusOr<CompiledModel> model = CompileIntegers(graph, plan);
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

std::vector<double> Simulated(const CompiledModel& model, const Tensor& input) {
  const auto results = SimulateIntegers(model, std::vector<Tensor>{input});
  EXPECT_TRUE(results.ok()) << results.status();
  return (*results)[0];
}

double Cosine(const std::vector<double>& x, const std::vector<float>& y) {
  double xy = 0;
  double xx = 0;
  double yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += x[i] * y[i];
    xx += x[i] * x[i];
    yy += double{y[i]} * y[i];
  }
  return xy / std::sqrt(xx * yy);
}

TEST(IntegerSlice, AgreesWithFloat) {
  for (int seed = 0; seed < 4; ++seed) {
    const Graph graph = SmallNet(seed);
    std::mt19937 random(static_cast<uint32_t>(seed + 100));
    std::vector<Tensor> inputs;
    for (int i = 0; i < 4; ++i) inputs.push_back(RandomTensor({1, 9, 8, 3}, 1, random));
    std::vector<std::vector<Tensor>> samples;
    for (const Tensor& input : inputs) samples.push_back({input});
    for (const bool symmetric : {false, true}) {
      for (const auto& [bits, least] : {std::pair(8, 0.995), std::pair(16, 0.99999)}) {
        const CompiledModel model = Compiled(graph, PlanByExtrema(graph, samples, bits, symmetric));
        for (const Tensor& input : inputs) {
          const std::vector<float> expected =
              RunReference(graph, std::vector<Tensor>{input})->front().ToFloats();
          EXPECT_GE(Cosine(Simulated(model, input), expected), least)
              << "seed " << seed << ", " << bits << " bits, symmetric " << symmetric;
        }
      }
    }
  }
}

constexpr absl::string_view kQuantized = R"(graph "m" {
  %x = Placeholder() : f32[1,4,4,1] @"x"
  %qx = Quantize(%x) {axis = -1, dtype = "i8", scale = [0.05], zero_point = [-3]} : i8[1,4,4,1] @"qx"
  %dx = Dequantize(%qx) {axis = -1, scale = [0.05], zero_point = [-3]} : f32[1,4,4,1] @"dx"
  %wi = Const() {value = i8[3,3,1,2] "0102fdfc7f80101122aa55bb00ff010203fe"} : i8[3,3,1,2] @"w"
  %w = Dequantize(%wi) {axis = 3, scale = [0.01, 0.02], zero_point = [0, 0]} : f32[3,3,1,2] @"dw"
  %bi = Const() {value = i32[2] "1000000020ffffff"} : i32[2] @"b"
  %b = Dequantize(%bi) {axis = 0, scale = [0.0005, 0.001], zero_point = [0, 0]} : f32[2] @"db"
  %c = Conv2D(%dx, %w, %b) {strides = [1, 1], pads = [1, 1, 1, 1]} : f32[1,4,4,2] @"conv"
  %r = Relu(%c) : f32[1,4,4,2] @"relu"
  %qr = Quantize(%r) {axis = -1, dtype = "i8", scale = [0.04], zero_point = [-128]} : i8[1,4,4,2] @"qr"
  %dr = Dequantize(%qr) {axis = -1, scale = [0.04], zero_point = [-128]} : f32[1,4,4,2] @"dr"
  %q2 = Quantize(%dr) {axis = -1, dtype = "u8", scale = [0.05], zero_point = [7]} : u8[1,4,4,2] @"q2"
  %d2 = Dequantize(%q2) {axis = -1, scale = [0.05], zero_point = [7]} : f32[1,4,4,2] @"d2"
  return %d2 @"y"
})";

TEST(IntegerSlice, AQuantizedModelKeepsItsScales) {
  const absl::StatusOr<Graph> graph = ParseGraph(kQuantized);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const absl::StatusOr<KeptScales> kept = KeepScales(*graph);
  ASSERT_TRUE(kept.ok()) << kept.status();
  std::vector<std::string> types;
  for (const Layer& layer : kept->plan.layers) types.push_back(layer.type);
  EXPECT_THAT(types, testing::ElementsAre("Input", "Convolution", "Identity"));
  const CompiledModel model = Compiled(kept->graph, kept->plan);
  EXPECT_EQ(model.outputs[0].dtype, DType::kUint8);
  EXPECT_EQ(model.outputs[0].scale, 0.05);
  EXPECT_EQ(model.outputs[0].zero_point, 7);
  std::mt19937 random(7);
  for (int i = 0; i < 20; ++i) {
    const Tensor input = RandomTensor({1, 4, 4, 1}, 2, random);
    const std::vector<float> expected =
        RunReference(*graph, std::vector<Tensor>{input})->front().ToFloats();
    const std::vector<double> found = Simulated(model, input);
    for (size_t k = 0; k < found.size(); ++k) {
      // The model's own float form rounds the same sums with other arithmetic: one step apart.
      EXPECT_NEAR(found[k], expected[k], 0.0501) << k;
    }
  }
}

// Weights of u8 about zero points that leave -128..127: the least and the greatest u8 there is.
constexpr absl::string_view kNineBitWeights = R"(graph "m" {
  %x = Placeholder() : f32[1,2,2,2] @"x"
  %qx = Quantize(%x) {axis = -1, dtype = "u8", scale = [0.02], zero_point = [120]} : u8[1,2,2,2] @"qx"
  %dx = Dequantize(%qx) {axis = -1, scale = [0.02], zero_point = [120]} : f32[1,2,2,2] @"dx"
  %wi = Const() {value = u8[1,1,2,3] "00ff20e07f99"} : u8[1,1,2,3] @"w"
  %w = Dequantize(%wi) {axis = -1, scale = [0.01], zero_point = [241]} : f32[1,1,2,3] @"dw"
  %bi = Const() {value = i32[3] "10270000f0d8ffff00000000"} : i32[3] @"b"
  %b = Dequantize(%bi) {axis = -1, scale = [0.0002], zero_point = [0]} : f32[3] @"db"
  %c = Conv2D(%dx, %w, %b) {strides = [1, 1], pads = [0, 0, 0, 0]} : f32[1,2,2,3] @"conv"
  %qc = Quantize(%c) {axis = -1, dtype = "u8", scale = [0.1], zero_point = [130]} : u8[1,2,2,3] @"qc"
  %dc = Dequantize(%qc) {axis = -1, scale = [0.1], zero_point = [130]} : f32[1,2,2,3] @"dc"
  return %dc @"y"
})";

TEST(IntegerSlice, AWeightOfNineBitsKeepsItsValues) {
  const absl::StatusOr<Graph> graph = ParseGraph(kNineBitWeights);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const absl::StatusOr<KeptScales> kept = KeepScales(*graph);
  ASSERT_TRUE(kept.ok()) << kept.status();
  ASSERT_EQ(kept->notes.size(), 1);
  EXPECT_THAT(kept->notes[0], HasSubstr("layer 'conv' less its zero point needs more than 8 bits"));
  const ValueId weight = kept->plan.layers[1].weight;
  EXPECT_EQ(kept->plan.values.at(weight).dtype, DType::kInt16);
  EXPECT_THAT(kept->plan.values.at(weight).scale, testing::ElementsAre(0.01));
  const Tensor& stored = kept->plan.constants.at(weight);
  std::vector<int64_t> values;
  for (int64_t i = 0; i < stored.element_count(); ++i) values.push_back(stored.int_at(i));
  EXPECT_THAT(values, testing::ElementsAre(-241, 14, -209, -17, -114, -88));
  const CompiledModel model = Compiled(kept->graph, kept->plan);
  std::mt19937 random(7);
  for (int i = 0; i < 20; ++i) {
    const Tensor input = RandomTensor({1, 2, 2, 2}, 1, random);
    const std::vector<float> expected =
        RunReference(*graph, std::vector<Tensor>{input})->front().ToFloats();
    const std::vector<double> found = Simulated(model, input);
    for (size_t k = 0; k < found.size(); ++k) EXPECT_NEAR(found[k], expected[k], 0.1001) << k;
  }
}

struct SumCase {
  Op op;
  DType dtype;
  double a, b, result;  // scales
};

// Numbers of `dtype` and a constant next to each of them, op, and a result of its own scale.
Graph SumGraph(const SumCase& c, const std::vector<int64_t>& constants) {
  const auto params = [&](double scale) {
    return QuantParams{.dtype = c.dtype,
                       .qmin = integer::LowestValue(c.dtype),
                       .qmax = integer::HighestValue(c.dtype),
                       .scale = {scale},
                       .zero_point = {0}};
  };
  const Shape shape = {static_cast<int64_t>(constants.size())};
  Graph graph;
  GraphBuilder builder(&graph);
  const auto stored = [&](ValueId value, const QuantParams& p) {
    const ValueId q = *builder.AddOne(Op::kQuantize, {value}, QuantizeAttrs(p), {"q", "Q"});
    return *builder.AddOne(Op::kDequantize, {q}, DequantizeAttrs(p), {"d", "D"});
  };
  const ValueId x = stored(graph.AddInput("x", TensorType{DType::kFloat32, shape}), params(c.a));
  std::vector<uint8_t> bytes;
  for (const int64_t constant : constants) {
    for (int i = 0; i < SizeOf(c.dtype); ++i) {
      bytes.push_back(static_cast<uint8_t>(constant >> (8 * i)));
    }
  }
  const ValueId integers = builder.Const(Tensor({c.dtype, shape}, bytes), {"c", "Const"});
  const ValueId y =
      *builder.AddOne(Op::kDequantize, {integers}, DequantizeAttrs(params(c.b)), {"dc", "D"});
  const std::vector<ValueId> operands =
      c.op == Op::kDiv ? std::vector{y, x} : std::vector{x, y};  // constants divide as factors
  const ValueId sum = *builder.AddOne(c.op, operands, {}, {"sum", "Sum"});
  graph.AddOutput({"y", stored(sum, params(c.result))});
  return graph;
}

TEST(IntegerSlice, SumsProductsAndQuotientsAreWithinAStepOfTheRealValue) {
  const std::vector<SumCase> cases = {
      {Op::kAdd, DType::kInt16, 0.0001376337, 0.00010732702, 2.5538253e-05},
      {Op::kSub, DType::kInt16, 0.0021837214, 0.0027047438, 3.90904e-08},
      {Op::kSub, DType::kInt8, 0.5, 0.25, 1e-8},
      {Op::kMaximum, DType::kInt16, 0.002, 0.001, 1e-9},
      {Op::kMul, DType::kInt16, 0.5, 0.25, 1e-3},
      {Op::kMul, DType::kInt8, 0.5, 0.25, 1e-9},
      {Op::kDiv, DType::kInt8, 0.05, 0.02, 0.01},
      {Op::kDiv, DType::kInt8, 1e-3, 8, 1e4},
      {Op::kDiv, DType::kInt8, 10, 0.1, 1e-6},
      {Op::kDiv, DType::kInt16, 0.0001376337, 0.00010732702, 0.00013},
      {Op::kDiv, DType::kInt16, 3, 0.01, 1e-9}};
  for (const SumCase& c : cases) {
    const int64_t high = integer::HighestValue(c.dtype);
    std::vector<int64_t> stored;  // of x
    std::vector<int64_t> constants;
    for (int64_t i = 0; i < 200; ++i) {
      const int64_t a = -high - 1 + (2 * high + 1) * i / 199;
      stored.push_back(a);
      // Half of them nearly cancel x.
      constants.push_back(std::clamp<int64_t>(
          i % 2 == 0 ? RoundHalfEven(static_cast<double>(a) * c.a / c.b) : -a / 3, -high, high));
    }
    std::vector<float> floats;
    for (const int64_t a : stored)
      floats.push_back(static_cast<float>(static_cast<double>(a) * c.a));
    const absl::StatusOr<KeptScales> kept = KeepScales(SumGraph(c, constants));
    ASSERT_TRUE(kept.ok()) << kept.status();
    const std::vector<double> found =
        Simulated(Compiled(kept->graph, kept->plan),
                  Tensor::FromFloats({static_cast<int64_t>(floats.size())}, floats));
    for (size_t i = 0; i < found.size(); ++i) {
      const double a = static_cast<double>(stored[i]) * c.a;
      const double b = static_cast<double>(constants[i]) * c.b;
      const double value = c.op == Op::kAdd       ? a + b
                           : c.op == Op::kSub     ? a - b
                           : c.op == Op::kMaximum ? std::max(a, b)
                           : c.op == Op::kMul     ? a * b
                           : b == 0               ? 0  // divided by 0, too
                                                  : b / a;
      const double nearest = std::clamp(std::round(value / c.result),
                                        -static_cast<double>(high + 1), static_cast<double>(high));
      EXPECT_NEAR(std::round(found[i] / c.result), nearest, 1.0)
          << NameOf(c.op) << " " << NameOf(c.dtype) << " of " << a << " and " << b;
    }
  }
}

// Products of two activations [2,1,2,1,3,2] and [1,2,1,2,2,3]: each repeats along two dimensions,
// and with rows and columns they are one more than a command has.
TEST(IntegerSlice, RefusesProductsThatRepeatAlongManyDimensions) {
  for (const bool alternate : {false, true}) {
    const Shape wide = alternate ? Shape{2, 1, 2, 1} : Shape{2, 2, 1, 1};
    Net net(5);
    const ValueId x = net.Input({12});
    const auto shaped = [&](Shape batch, int64_t rows, int64_t columns) {
      batch.insert(batch.end(), {rows, columns});
      const ValueId few =
          net.Add(Op::kReshape, {x}, {{"shape", Shape{1, 1, 1, 1, rows, columns * 2}}});
      return net.Add(Op::kAdd, {net.Add(Op::kSlice, {few},
                                        {{"begin", Shape(6, 0)},
                                         {"strides", Shape(6, 1)},
                                         {"size", Shape{1, 1, 1, 1, rows, columns}}}),
                                net.Weight(batch, 1)});
    };
    const ValueId a = shaped(wide, 3, 2);
    const ValueId b = shaped(alternate ? Shape{1, 2, 1, 2} : Shape{1, 1, 2, 2}, 2, 3);
    const Graph graph = net.Take(net.Add(Op::kMatMul, {a, b}));
    std::mt19937 random(7);
    const Tensor input = RandomTensor({12}, 1, random);
    const QuantPlan plan = PlanByExtrema(graph, {{input}}, 16, true);
    const absl::StatusOr<CompiledModel> model = CompileIntegers(graph, plan);
    if (alternate) {
      EXPECT_THAT(std::string(model.status().message()),
                  HasSubstr("(MatMul): matrices that repeat along more than three dimensions"));
      continue;
    }
    ASSERT_TRUE(model.ok()) << model.status();
    const std::vector<float> expected =
        RunReference(graph, std::vector<Tensor>{input})->front().ToFloats();
    EXPECT_GE(Cosine(Simulated(*model, input), expected), 0.99999);
  }
}

TEST(IntegerSlice, RefusesWithTheNode) {
  Net net(1);
  const ValueId x = net.Input({2, 3});
  const ValueId one = net.Weight({3}, 0.1);
  const Graph graph =
      net.Take(net.Add(Op::kBatchNorm, {x, one, one, one, one}, {{"epsilon", 1.0}}));
  std::mt19937 random(7);
  const QuantPlan plan = PlanByExtrema(graph, {{RandomTensor({2, 3}, 1, random)}}, 8, false);
  Diagnostics diagnostics;
  EXPECT_FALSE(LowerInteger(graph, plan, "m.pb", diagnostics).ok());
  ASSERT_EQ(diagnostics.list().size(), 1);
  EXPECT_THAT(diagnostics.list()[0].ToString(),
              HasSubstr("(BatchNorm): the integer cores have no command for BatchNorm"));
  QuantPlan without = plan;
  without.values.clear();
  Diagnostics missing;
  EXPECT_FALSE(LowerInteger(graph, without, "m.pb", missing).ok());
  EXPECT_EQ(missing.error_count(), 2);  // the input and the output
}

// Front ends and passes compute such layers, where they are not too large for that.
TEST(IntegerSlice, RefusesALayerOfConstantsAlone) {
  Graph graph;
  GraphBuilder builder(&graph, /*fold=*/false);
  std::mt19937 random(7);
  const ValueId x = graph.AddInput("x", {DType::kFloat32, {2, 3}});
  const ValueId c = graph.AddConst(RandomTensor({2, 3}, 1, random), {"c", "Const"});
  const ValueId moved = builder.AddOne(Op::kRelu, {c}, {}, {"moved", "Relu"}).value();
  graph.AddOutput({"y", builder.AddOne(Op::kAdd, {x, moved}, {}, {"sum", "Add"}).value()});
  const QuantPlan plan = PlanByExtrema(graph, {{RandomTensor({2, 3}, 1, random)}}, 8, false);
  Diagnostics diagnostics;
  EXPECT_FALSE(LowerInteger(graph, plan, "m.pb", diagnostics).ok());
  ASSERT_EQ(diagnostics.list().size(), 1);
  EXPECT_THAT(diagnostics.list()[0].ToString(),
              HasSubstr("node 'moved' (Relu): the layer reads constants alone"));
}

TEST(IntegerSlice, RefusesWhatIsTooLargeForACommand) {
  Net net(1);
  const ValueId x = net.Input({1, 1, 70000, 1});
  const Graph graph = net.Take(net.Add(Op::kMaxPool, {x},
                                       {{"kernel", std::vector<int64_t>{1, 70000}},
                                        {"strides", std::vector<int64_t>{1, 1}},
                                        {"pads", std::vector<int64_t>{0, 0, 0, 0}}}));
  std::mt19937 random(7);
  const QuantPlan plan =
      PlanByExtrema(graph, {{RandomTensor({1, 1, 70000, 1}, 1, random)}}, 8, false);
  Diagnostics diagnostics;
  EXPECT_FALSE(LowerInteger(graph, plan, "m.pb", diagnostics).ok());
  ASSERT_EQ(diagnostics.list().size(), 1);
  EXPECT_THAT(diagnostics.list()[0].ToString(),
              HasSubstr("(MaxPool): the operator is too large for command pool: kernel_w 70000"));
}

// A constant of another scale than the result's: each element is moved by what it stands for.
TEST(IntegerSlice, ConcatenatesAConstantOfItsOwnScale) {
  Net net(3);
  const ValueId x = net.Input({1, 4});
  const ValueId c = net.Weight({1, 4}, 1);
  const Graph graph = net.Take(net.Add(Op::kConcat, {x, c}, {{"axis", int64_t{1}}}));
  std::mt19937 random(7);
  const Tensor input = RandomTensor({1, 4}, 1, random);
  QuantPlan plan = PlanByExtrema(graph, {{input}}, 8, false);
  const Tensor* constant = graph.ConstantOf(c);
  plan.values[c] = {DType::kInt8, -128, 127, -1, {0.25}, {3}};
  std::vector<uint8_t> stored;
  std::vector<float> real;
  for (int64_t i = 0; i < 4; ++i) {
    const int64_t q = RoundHalfEven(constant->at(i) / 0.25) + 3;
    stored.push_back(static_cast<uint8_t>(q));
    real.push_back(static_cast<float>(q - 3) * 0.25f);
  }
  plan.constants.emplace(c, Tensor({DType::kInt8, {1, 4}}, std::move(stored)));
  const CompiledModel model = Compiled(graph, plan);
  const std::vector<double> found = Simulated(model, input);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(found[i + 4], real[i], 0.13 + model.outputs[0].scale) << i;
  }
}

}  // namespace
}  // namespace npuc
