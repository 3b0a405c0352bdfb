#include "compiler_core/quant/kept/float_form.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/ir/graph/text.h"
#include "compiler_core/ops/layers.h"
#include "compiler_core/ops/op.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Graph Parsed(absl::string_view text) {
  absl::StatusOr<Graph> graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *std::move(graph) : Graph();
}

FloatForm Formed(const Graph& graph) {
  absl::StatusOr<FloatForm> form = MakeFloatForm(graph);
  EXPECT_TRUE(form.ok()) << form.status();
  if (!form.ok()) return {};
  EXPECT_TRUE(VerifyGraph(form->graph).ok()) << VerifyGraph(form->graph);
  return *std::move(form);
}

int Count(const Graph& graph, Op op) {
  return static_cast<int>(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                                        [&](const Node& node) { return node.op == op; }));
}

std::vector<float> Answers(const Graph& graph, const Tensor& input) {
  const auto results = RunReference(graph, std::vector<Tensor>{input});
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? results->front().ToFloats() : std::vector<float>();
}

// A layer norm as TFLite quantizes it: the squares have steps of 8, their mean steps of 0.5, and
// the reciprocal root falls from 1.5 to 0.7 within the two steps that small operands leave.
constexpr absl::string_view kCoarseNorm = R"(graph "m" {
  %x = Placeholder() : f32[8,6] @"x"
  %qx = Quantize(%x) {axis = -1, dtype = "i8", scale = [0.5], zero_point = [3]} : i8[8,6] @"x"
  %fx = Dequantize(%qx) {axis = -1, scale = [0.5], zero_point = [3]} : f32[8,6] @"x"
  %s = Square(%fx) : f32[8,6] @"s"
  %qs = Quantize(%s) {axis = -1, dtype = "u8", scale = [8.0], zero_point = [0]} : u8[8,6] @"s"
  %fs = Dequantize(%qs) {axis = -1, scale = [8.0], zero_point = [0]} : f32[8,6] @"s"
  %v = ReduceMean(%fs) {axes = [1], keep_dims = true} : f32[8,1] @"v"
  %qv = Quantize(%v) {axis = -1, dtype = "u8", scale = [0.5], zero_point = [0]} : u8[8,1] @"v"
  %fv = Dequantize(%qv) {axis = -1, scale = [0.5], zero_point = [0]} : f32[8,1] @"v"
  %r = Rsqrt(%fv) : f32[8,1] @"r"
  %qr = Quantize(%r) {axis = -1, dtype = "u8", scale = [0.0078125], zero_point = [0]} : u8[8,1] @"r"
  %fr = Dequantize(%qr) {axis = -1, scale = [0.0078125], zero_point = [0]} : f32[8,1] @"r"
  return %fr @"y"
}
)";

TEST(FloatForm, KeepsTheRoundingBeforeASteepFunction) {
  const Graph graph = Parsed(kCoarseNorm);
  const FloatForm form = Formed(graph);
  EXPECT_EQ(Count(form.graph, Op::kRound), 2);  // of the squares and of their mean, not of x
  std::vector<float> x;
  for (int i = 0; i < 48; ++i) {
    const int steps = (i * 7) % 23 - 11;
    x.push_back(0.5f * static_cast<float>(steps == 4 || steps == -4 ? 5 : steps));  // no ties
  }
  const Tensor input = Tensor::FromFloats({8, 6}, x);
  EXPECT_THAT(Answers(form.graph, input),
              ::testing::Pointwise(::testing::FloatNear(0.0079f), Answers(graph, input)));
}

// A sigmoid goes through no more than a few steps within one of its operand.
TEST(FloatForm, KeepsTheRoundingToFewLevels) {
  const auto text = [](int64_t highest) {
    return absl::StrCat(R"(graph "m" {
  %x = Placeholder() : f32[4] @"x"
  %q = Quantize(%x) {dtype = "u8", qmax = )",
                        highest, R"(, scale = [0.5], zero_point = [0]} : u8[4] @"q"
  %f = Dequantize(%q) {scale = [0.5], zero_point = [0]} : f32[4] @"q"
  return %f @"y"
})");
  };
  const Tensor input = Tensor::FromFloats({4}, {-1, 0.3F, 0.7F, 9});
  const Graph two_bits = Parsed(text(3));
  EXPECT_EQ(Answers(Formed(two_bits).graph, input), Answers(two_bits, input));
  EXPECT_THAT(Answers(two_bits, input), ElementsAre(0, 0.5F, 0.5F, 1.5F));
  EXPECT_EQ(Count(Formed(Parsed(text(31))).graph, Op::kRound), 1);
  EXPECT_EQ(Count(Formed(Parsed(text(63))).graph, Op::kRound), 0);
}

TEST(FloatForm, DropsTheRoundingBeforeOtherFunctions) {
  const FloatForm form = Formed(Parsed(R"(graph "m" {
  %x = Placeholder() : f32[4] @"x"
  %n = Neg(%x) : f32[4] @"n"
  %qn = Quantize(%n) {axis = -1, dtype = "i8", scale = [0.0625], zero_point = [0]} : i8[4] @"n"
  %fn = Dequantize(%qn) {axis = -1, scale = [0.0625], zero_point = [0]} : f32[4] @"n"
  %y = Sigmoid(%fn) : f32[4] @"y"
  %qy = Quantize(%y) {axis = -1, dtype = "u8", scale = [0.00390625], zero_point = [0]} : u8[4] @"y"
  %fy = Dequantize(%qy) {axis = -1, scale = [0.00390625], zero_point = [0]} : f32[4] @"y"
  return %fy @"y"
})"));
  EXPECT_EQ(Count(form.graph, Op::kRound), 0);
}

// Inside of an operator the sums of gates have integers that floats ignore.
TEST(FloatForm, ForgetsTheIntegersInsideOfAnOperator) {
  const Graph graph = Parsed(R"(graph "m" {
  %x = Placeholder() : f32[2] @"x"
  %a = Add(%x, %x) : f32[2] @"lstm"
  %q = Quantize(%a) {axis = -1, dtype = "i16", inside = true, scale = [0.0001], zero_point = [0]} : i16[2] @"lstm"
  %f = Dequantize(%q) {axis = -1, scale = [0.0001], zero_point = [0]} : f32[2] @"lstm"
  return %f @"y"
})");
  const FloatForm form = Formed(graph);
  EXPECT_EQ(Count(form.graph, Op::kMaximum) + Count(form.graph, Op::kMinimum), 0);
  EXPECT_THAT(Answers(form.graph, Tensor::FromFloats({2}, {20, -20})), ElementsAre(40, -40));
}

// The ReLU6 of the convolution is nowhere but in the range of its result, 0 to 6.
constexpr absl::string_view kHiddenRelu6 = R"(graph "m" {
  %x = Placeholder() : f32[1,2,2,1] @"x"
  %qx = Quantize(%x) {axis = -1, dtype = "i8", scale = [0.125], zero_point = [0]} : i8[1,2,2,1] @"x"
  %fx = Dequantize(%qx) {axis = -1, scale = [0.125], zero_point = [0]} : f32[1,2,2,1] @"x"
  %w = Const() {value = i8[1,1,1,2] "40c0"} : i8[1,1,1,2] @"w"
  %fw = Dequantize(%w) {axis = 3, scale = [0.0625, 0.03125], zero_point = [0, 0]} : f32[1,1,1,2] @"w"
  %c = Conv2D(%fx, %fw) {strides = [1, 1], pads = [0, 0, 0, 0]} : f32[1,2,2,2] @"c"
  %qc = Quantize(%c) {axis = -1, dtype = "u8", scale = [0.0234375], zero_point = [0]} : u8[1,2,2,2] @"c"
  %fc = Dequantize(%qc) {axis = -1, scale = [0.0234375], zero_point = [0]} : f32[1,2,2,2] @"c"
  %p = MaxPool(%fc) {kernel = [2, 2], strides = [2, 2], pads = [0, 0, 0, 0]} : f32[1,1,1,2] @"p"
  %qp = Quantize(%p) {axis = -1, dtype = "u8", scale = [0.0234375], zero_point = [0]} : u8[1,1,1,2] @"p"
  %fp = Dequantize(%qp) {axis = -1, scale = [0.0234375], zero_point = [0]} : f32[1,1,1,2] @"p"
  return %fp @"y", %fc @"c"
}
)";

TEST(FloatForm, KeepsTheSaturationOfEachQuantize) {
  const Graph graph = Parsed(kHiddenRelu6);
  const FloatForm form = Formed(graph);
  EXPECT_EQ(Count(form.graph, Op::kQuantize) + Count(form.graph, Op::kDequantize), 0);
  // Beyond the input's range, beyond the result's at both ends, and inside.
  const Tensor input = Tensor::FromFloats({1, 2, 2, 1}, {-40, -1, 0.5, 40});
  const auto wanted = *RunReference(graph, std::vector<Tensor>{input});
  const auto found = *RunReference(form.graph, std::vector<Tensor>{input});
  ASSERT_EQ(wanted.size(), found.size());
  for (size_t k = 0; k < wanted.size(); ++k) {
    for (int64_t i = 0; i < wanted[k].element_count(); ++i) {
      EXPECT_NEAR(found[k].at(i), wanted[k].at(i), 0.0234375 / 2) << k << " " << i;
    }
  }
}

TEST(FloatForm, LeavesOutWhatCannotBind) {
  const FloatForm form = Formed(Parsed(kHiddenRelu6));
  // Two at the input, two behind the convolution, none behind the pool of what lies inside.
  EXPECT_EQ(Count(form.graph, Op::kMaximum), 2);
  EXPECT_EQ(Count(form.graph, Op::kMinimum), 2);
}

TEST(FloatForm, ClampsAreOfTheLayerBeforeThem) {
  const FloatForm form = Formed(Parsed(kHiddenRelu6));
  std::vector<std::string> types;
  for (const Layer& layer : GroupLayers(form.graph)) {
    types.push_back(layer.type);
    if (layer.type != "Convolution") continue;
    EXPECT_EQ(ClampsOf(form.graph, layer).low, 0);
    EXPECT_EQ(ClampsOf(form.graph, layer).high, 255 * 0.0234375);
    EXPECT_EQ(form.ranges.at(layer.outputs[0]), (ValueRange{0, 255 * 0.0234375}));
  }
  EXPECT_THAT(types, ElementsAre("Input", "Eltwise", "Convolution", "Pooling"));
}

// What is read in float beside its integers is not saturated.
TEST(FloatForm, AFloatBranchGoesRoundTheClamp) {
  const Graph graph = Parsed(R"(graph "m" {
  %x = Placeholder() : f32[2] @"x"
  %q = Quantize(%x) {dtype = "i8", scale = [0.5], zero_point = [-128]} : i8[2] @"q"
  %f = Dequantize(%q) {scale = [0.5], zero_point = [-128]} : f32[2] @"f"
  %y = Sub(%x, %f) : f32[2] @"y"
  return %y @"y"
})");
  const Tensor input = Tensor::FromFloats({2}, {-3, 200});
  EXPECT_EQ(Answers(Formed(graph).graph, input), Answers(graph, input));
}

TEST(FloatForm, ARangeThatHoldsAllOfAFunctionNeedsNoClamp) {
  const FloatForm form = Formed(Parsed(R"(graph "m" {
  %x = Placeholder() : f32[2] @"x"
  %s = Tanh(%x) : f32[2] @"s"
  %q = Quantize(%s) {dtype = "i8", scale = [0.0078125], zero_point = [0]} : i8[2] @"q"
  %f = Dequantize(%q) {scale = [0.0078125], zero_point = [0]} : f32[2] @"f"
  return %f @"y"
})"));
  // -128 is -1; 127 is less than 1.
  EXPECT_EQ(Count(form.graph, Op::kMaximum), 0);
  EXPECT_EQ(Count(form.graph, Op::kMinimum), 1);
}

TEST(FloatForm, ScalesOfAnAxisGiveLimitsOfAnAxis) {
  const Graph graph = Parsed(R"(graph "m" {
  %x = Placeholder() : f32[2,3] @"x"
  %q = Quantize(%x) {axis = 0, dtype = "u8", scale = [0.5, 0.25], zero_point = [0, 128]} : u8[2,3] @"q"
  %f = Dequantize(%q) {axis = 0, scale = [0.5, 0.25], zero_point = [0, 128]} : f32[2,3] @"f"
  return %f @"y"
})");
  const Tensor input = Tensor::FromFloats({2, 3}, {-1, 1, 200, -40, 0.25, 40});
  EXPECT_EQ(Answers(Formed(graph).graph, input), Answers(graph, input));
}

// Inputs and outputs of integers have floats in their places, and what only moves goes on.
TEST(FloatForm, IntegersAtTheEndsBecomeFloats) {
  const FloatForm form = Formed(Parsed(R"(graph "m" {
  %x = Placeholder() : i8[2] @"x"
  %r = Reshape(%x) {shape = [1, 2]} : i8[1,2] @"r"
  %f = Dequantize(%r) {scale = [0.5], zero_point = [0]} : f32[1,2] @"f"
  %d = Dequantize(%x) {scale = [0.5], zero_point = [0]} : f32[2] @"d"
  %s = Relu(%f) : f32[1,2] @"s"
  %q = Quantize(%s) {dtype = "i8", scale = [0.25], zero_point = [0]} : i8[1,2] @"q"
  return %q @"y", %d @"d"
})"));
  EXPECT_EQ(form.graph.type(form.graph.inputs()[0]).dtype, DType::kFloat32);
  // The input cannot leave its range; the Relu's result can leave that of the output.
  EXPECT_EQ(Count(form.graph, Op::kMaximum), 0);
  EXPECT_EQ(Count(form.graph, Op::kMinimum), 1);
  EXPECT_THAT(Answers(form.graph, Tensor::FromFloats({2}, {-3, 60})), ElementsAre(0, 31.75));
}

TEST(FloatForm, IntegersReadByOtherParametersAreScaled) {
  const Graph graph = Parsed(R"(graph "m" {
  %x = Placeholder() : f32[2] @"x"
  %c = Const() {value = i8[1] "04"} : i8[1] @"c"
  %q = Quantize(%x) {dtype = "i8", scale = [0.5], zero_point = [3]} : i8[2] @"q"
  %r = Quantize(%x) {dtype = "i8", scale = [0.125], zero_point = [0]} : i8[2] @"r"
  %j = Concat(%q, %r, %c) {axis = 0} : i8[5] @"j"
  %f = Dequantize(%j) {scale = [0.25], zero_point = [-1]} : f32[5] @"f"
  return %f @"y"
})");
  // Multiples of the scales, which lose nothing; the last one is clamped.
  const Tensor input = Tensor::FromFloats({2}, {0, 200});
  EXPECT_EQ(Answers(Formed(graph).graph, input), Answers(graph, input));
}

TEST(FloatForm, WiderIntegersTakeAKnownFactor) {
  const auto text = [](absl::string_view zero) {
    return absl::StrCat(R"(graph "m" {
  %x = Placeholder() : f32[2] @"x"
  %k = Const() {value = i32[1] "03000000"} : i32[1] @"k"
  %q = Quantize(%x) {dtype = "i8", scale = [0.5], zero_point = [)",
                        zero, R"(]} : i8[2] @"q"
  %w = Cast(%q) {dtype = "i32"} : i32[2] @"w"
  %m = Mul(%w, %k) : i32[2] @"m"
  %f = Dequantize(%m) {scale = [0.25], zero_point = [0]} : f32[2] @"f"
  return %f @"y"
})");
  };
  const Tensor input = Tensor::FromFloats({2}, {-3, 200});
  const Graph graph = Parsed(text("0"));
  EXPECT_EQ(Answers(Formed(graph).graph, input), Answers(graph, input));
  EXPECT_FALSE(MakeFloatForm(Parsed(text("1"))).ok());
}

TEST(FloatForm, RefusesArithmeticOfIntegers) {
  const absl::StatusOr<FloatForm> form = MakeFloatForm(Parsed(R"(graph "m" {
  %x = Placeholder() : f32[2] @"x"
  %q = Quantize(%x) {dtype = "i8", scale = [0.5], zero_point = [0]} : i8[2] @"q"
  %r = Add(%q, %q) : i8[2] @"r"
  return %r @"y"
})"));
  ASSERT_FALSE(form.ok());
  EXPECT_THAT(std::string(form.status().message()),
              HasSubstr("node 'r' (Add) computes with integers"));
}

}  // namespace
}  // namespace npuc
