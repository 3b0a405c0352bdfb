#include "compiler_core/quant/kept/kept_scales.h"

#include <cmath>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "compiler_core/ir/graph/text.h"
#include "compiler_core/ops/op.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

// The ReLU reads the float value, which reaches further than the integers that the Quantize gives.
constexpr absl::string_view kReadAsFloatToo = R"(graph "m" {
  %x = Placeholder() : f32[2] @"x"
  %qx = Quantize(%x) {axis = -1, dtype = "i8", scale = [0.5], zero_point = [0]} : i8[2] @"x"
  %fx = Dequantize(%qx) {axis = -1, scale = [0.5], zero_point = [0]} : f32[2] @"x"
  %a = Neg(%fx) : f32[2] @"a"
  %qa = Quantize(%a) {axis = -1, dtype = "i8", scale = [0.125], zero_point = [0]} : i8[2] @"a"
  %fa = Dequantize(%qa) {axis = -1, scale = [0.125], zero_point = [0]} : f32[2] @"a"
  %b = Relu(%a) : f32[2] @"b"
  %qb = Quantize(%b) {axis = -1, dtype = "i8", scale = [0.5], zero_point = [0]} : i8[2] @"b"
  %fb = Dequantize(%qb) {axis = -1, scale = [0.5], zero_point = [0]} : f32[2] @"b"
  return %fa @"y", %fb @"z"
}
)";

TEST(KeepScales, AFloatReaderDoesNotReadSaturatedIntegers) {
  const absl::StatusOr<Graph> graph = ParseGraph(kReadAsFloatToo);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const absl::StatusOr<KeptScales> kept = KeepScales(*graph);
  ASSERT_TRUE(kept.ok()) << kept.status();
  const ValueId stored = kept->graph.outputs()[0].value;
  EXPECT_EQ(kept->plan.values.at(stored).scale[0], 0.125);
  int found = 0;
  for (const Node& node : kept->graph.nodes()) {
    if (node.op != Op::kRelu) continue;
    ++found;
    EXPECT_NE(node.inputs[0], stored);
    const auto params = kept->plan.values.find(node.inputs[0]);
    EXPECT_TRUE(params == kept->plan.values.end() || params->second.scale[0] != 0.125);
  }
  EXPECT_EQ(found, 1);
}

// An input that is quantized by two scales, the second behind a Transpose.
constexpr absl::string_view kTwoScales = R"(graph "m" {
  %x = Placeholder() : f32[1,2] @"x"
  %qa = Quantize(%x) {axis = -1, dtype = "i8", scale = [FINE], zero_point = [0]} : i8[1,2] @"a"
  %fa = Dequantize(%qa) {axis = -1, scale = [FINE], zero_point = [0]} : f32[1,2] @"a"
  %t = Transpose(%x) {perm = [1, 0]} : f32[2,1] @"t"
  %qb = Quantize(%t) {axis = -1, dtype = "i8", scale = [WIDE], zero_point = [3]} : i8[2,1] @"b"
  %fb = Dequantize(%qb) {axis = -1, scale = [WIDE], zero_point = [3]} : f32[2,1] @"b"
  return %fa @"y", %fb @"z"
}
)";

absl::StatusOr<KeptScales> KeepTwoScales(absl::string_view fine, absl::string_view wide) {
  absl::StatusOr<Graph> graph =
      ParseGraph(absl::StrReplaceAll(kTwoScales, {{"FINE", fine}, {"WIDE", wide}}));
  return graph.ok() ? KeepScales(*graph) : graph.status();
}

TEST(KeepScales, AnInputOfTwoScalesHoldsTheWiderRangeInTheFinerSteps) {
  const absl::StatusOr<KeptScales> kept = KeepTwoScales("0.01", "0.1");
  ASSERT_TRUE(kept.ok()) << kept.status();
  const QuantParams input = kept->plan.values.at(kept->graph.inputs()[0]);
  EXPECT_EQ(input.dtype, DType::kInt16);
  EXPECT_GE(input.scale[0] * 32767, 0.1 * 131);
  EXPECT_EQ(std::remainder(0.01 / input.scale[0], 2), 1);  // an odd part
  EXPECT_EQ(kept->plan.values.at(kept->graph.outputs()[0].value).scale[0], 0.01);
  EXPECT_EQ(kept->plan.values.at(kept->graph.outputs()[1].value).scale[0], 0.1);
  EXPECT_TRUE(kept->coarse_inputs.empty());
}

TEST(KeepScales, ScalesTooFarApartForAnInputAreNamed) {
  const absl::StatusOr<KeptScales> kept = KeepTwoScales("0.0001", "1.0");
  ASSERT_TRUE(kept.ok()) << kept.status();
  ASSERT_EQ(kept->coarse_inputs.size(), 1u);
  EXPECT_EQ(kept->coarse_inputs[0].name, "x");
  EXPECT_EQ(kept->coarse_inputs[0].finest, 0.0001);
  EXPECT_GT(kept->coarse_inputs[0].step, 0.0002);
}

// An int8 input that is stored again as i32 with a scale; the type that it gets.
DType TypeOfWide(double scale) {
  const absl::StatusOr<Graph> graph = ParseGraph(absl::StrCat(
      R"(graph "m" {
  %x = Placeholder() : f32[2] @"x"
  %qx = Quantize(%x) {axis = -1, dtype = "i8", scale = [0.5], zero_point = [-128]} : i8[2] @"x"
  %fx = Dequantize(%qx) {axis = -1, scale = [0.5], zero_point = [-128]} : f32[2] @"x"
  %qy = Quantize(%fx) {axis = -1, dtype = "i32", scale = [)",
      scale, R"(], zero_point = [0]} : i32[2] @"y"
  %fy = Dequantize(%qy) {axis = -1, scale = [)",
      scale, R"(], zero_point = [0]} : f32[2] @"y"
  return %fy @"y"
})"));
  EXPECT_TRUE(graph.ok()) << graph.status();
  const absl::StatusOr<KeptScales> kept = KeepScales(*graph);
  EXPECT_TRUE(kept.ok()) << kept.status();
  return kept->plan.values.at(kept->graph.outputs()[0].value).dtype;
}

// 255 steps of 0.5 are 32640 of 0.5 / 128, and 65280 of half that.
TEST(KeepScales, WideIntegersThatFitAreStoredInSixteenBits) {
  EXPECT_EQ(TypeOfWide(0.5 / 128), DType::kInt16);
  EXPECT_EQ(TypeOfWide(0.5 / 256), DType::kInt32);
}

// The scale that a float function of an int8 value gets as the model's output; 0: none.
double ScaleOfFunction(absl::string_view function, double scale = 0.5) {
  const absl::StatusOr<Graph> graph = ParseGraph(absl::StrCat(
      R"(graph "m" {
  %x = Placeholder() : f32[1,4] @"x"
  %qx = Quantize(%x) {axis = -1, dtype = "i8", scale = [)",
      scale, R"(], zero_point = [0]} : i8[1,4] @"x"
  %fx = Dequantize(%qx) {axis = -1, scale = [)",
      scale, R"(], zero_point = [0]} : f32[1,4] @"x"
  %y = )",
      function, R"((%fx) : f32[1,4] @"y"
  return %y @"y"
})"));
  EXPECT_TRUE(graph.ok()) << graph.status();
  const absl::StatusOr<KeptScales> kept = KeepScales(*graph);
  EXPECT_TRUE(kept.ok()) << kept.status();
  const auto found = kept->plan.values.find(kept->graph.outputs()[0].value);
  return found == kept->plan.values.end() ? 0 : found->second.scale[0];
}

// 127.5 and log 4 are 129 together.
TEST(KeepScales, AFloatFunctionWithABoundHasSixteenBits) {
  EXPECT_EQ(ScaleOfFunction("Softmax"), 0x1p-15);
  EXPECT_EQ(ScaleOfFunction("Tanh"), 0x1p-15);
  EXPECT_EQ(ScaleOfFunction("LogSoftmax"), 0x1p-7);
  EXPECT_EQ(ScaleOfFunction("Exp"), 0);  // of 63.5
}

// The exponential of 127 / 32 is 53.
TEST(KeepScales, AFloatExponentialHasSixteenBitsWhereTheyAreFineEnough) {
  EXPECT_EQ(ScaleOfFunction("Exp", 0.03125), 0x1p-9);
  EXPECT_EQ(ScaleOfFunction("Exp", 0.125), 0);  // up to 7.8e6
}

// Parameters that KeepScales finds for the value between the two operators of `inside`, which reads
// %fx and gives %y.
std::optional<QuantParams> ParamsBetween(absl::string_view inside, Op first_op) {
  const absl::StatusOr<Graph> graph = ParseGraph(absl::StrCat(
      R"(graph "m" {
  %x = Placeholder() : f32[2,2] @"x"
  %qx = Quantize(%x) {axis = -1, dtype = "i8", scale = [0.5], zero_point = [0]} : i8[2,2] @"x"
  %fx = Dequantize(%qx) {axis = -1, scale = [0.5], zero_point = [0]} : f32[2,2] @"x"
)",
      inside,
      R"(  %qy = Quantize(%y) {axis = -1, dtype = "i8", scale = [0.5], zero_point = [0]} : i8[2,2] @"y"
  %fy = Dequantize(%qy) {axis = -1, scale = [0.5], zero_point = [0]} : f32[2,2] @"y"
  return %fy @"y"
})"));
  EXPECT_TRUE(graph.ok()) << graph.status();
  const absl::StatusOr<KeptScales> kept = KeepScales(*graph);
  EXPECT_TRUE(kept.ok()) << kept.status();
  for (const Node& node : kept->graph.nodes()) {
    if (node.op != first_op) continue;
    const auto found = kept->plan.values.find(node.outputs[0]);
    if (found != kept->plan.values.end()) return found->second;
  }
  return std::nullopt;
}

TEST(KeepScales, AValueInsideOfAnOperatorHasSixteenBits) {
  const std::optional<QuantParams> params = ParamsBetween(
      R"(  %w = Const() {value = f32[2,2] "0000803f000000400000404000008040"} : f32[2,2] @"op"
  %a = MatMul(%fx, %w) : f32[2,2] @"op" ("RESIZE")
  %r = Reshape(%a) {shape = [2, 2]} : f32[2,2] @"op/reshape"
  %y = MatMul(%r, %w) : f32[2,2] @"op" ("RESIZE")
)",
      Op::kMatMul);
  ASSERT_TRUE(params.has_value());
  EXPECT_EQ(params->dtype, DType::kInt16);
}

TEST(KeepScales, AValueBetweenTwoOperatorsOfTheModelHasNoScale) {
  EXPECT_FALSE(ParamsBetween(R"(  %a = Mul(%fx, %fx) : f32[2,2] @"op" ("MUL")
  %y = MatMul(%fx, %a) : f32[2,2] @"other" ("MATMUL")
)",
                             Op::kMul)
                   .has_value());
}

TEST(KeepScales, AValueThatIsCopiedHasTheScaleOfItsCopies) {
  const std::optional<QuantParams> params =
      ParamsBetween(R"(  %a = Mul(%fx, %fx) : f32[2,2] @"mul" ("Mul")
  %c = Concat(%a, %a) {axis = 0} : f32[4,2] @"expand" ("Expand")
  %y = Slice(%c) {begin = [1, 0], size = [2, 2], strides = [1, 1]} : f32[2,2] @"slice" ("Slice")
)",
                    Op::kMul);
  ASSERT_TRUE(params.has_value());
  EXPECT_EQ(params->scale[0], 0.5);
  EXPECT_EQ(params->dtype, DType::kInt8);
}

// Parameters of a Neg of the model, %a, of which `stored` is quantized, behind `moves`, and of
// which a PRelu reads what `inside` makes, %b.
std::optional<QuantParams> ParamsOfSharedNeg(absl::string_view moves, absl::string_view stored,
                                             absl::string_view inside) {
  return ParamsBetween(
      absl::StrCat("  %a = Neg(%fx) : f32[2,2] @\"neg\" (\"Neg\")\n", moves, "  %qa = Quantize(",
                   stored,
                   R"() {axis = -1, dtype = "u8", scale = [0.125], zero_point = [0]} : u8[2,2] @"qa"
  %fa = Dequantize(%qa) {axis = -1, scale = [0.125], zero_point = [0]} : f32[2,2] @"fa"
)",
                   inside, "  %y = Add(%b, %fa) : f32[2,2] @\"op\" (\"PRelu\")\n"),
      Op::kNeg);
}

constexpr absl::string_view kMoves = R"(  %r = Reshape(%a) {shape = [4]} : f32[4] @"neg/reshape"
  %m = Reshape(%r) {shape = [2, 2]} : f32[2,2] @"neg/reshape"
)";
constexpr absl::string_view kReadAsItIs = R"(  %b = Mul(%a, %fx) : f32[2,2] @"op" ("PRelu")
)";

// As PRelu's negative part is, beside a Neg of the model, once equal nodes are one.
TEST(KeepScales, AValueThatIsQuantizedForOthersAloneHasSixteenBits) {
  const std::optional<QuantParams> params = ParamsOfSharedNeg("", "%a", kReadAsItIs);
  ASSERT_TRUE(params.has_value());
  EXPECT_EQ(params->dtype, DType::kInt16);
}

// As the rows of an enlarged picture are, beside one of other columns that is stored behind a move.
TEST(KeepScales, AValueThatIsQuantizedBehindAMoveForOthersAloneHasSixteenBits) {
  const std::optional<QuantParams> params = ParamsOfSharedNeg(kMoves, "%m", kReadAsItIs);
  ASSERT_TRUE(params.has_value());
  EXPECT_EQ(params->dtype, DType::kInt16);
}

// The move that both read is one node.
TEST(KeepScales, AValueThatOthersReadBehindAMoveHasSixteenBits) {
  const std::optional<QuantParams> params =
      ParamsOfSharedNeg(kMoves, "%m", R"(  %n = Neg(%r) : f32[4] @"op" ("PRelu")
  %b = Reshape(%n) {shape = [2, 2]} : f32[2,2] @"op/reshape"
)");
  ASSERT_TRUE(params.has_value());
  EXPECT_EQ(params->dtype, DType::kInt16);
}

// The scales of a net that KeepScales takes.
KeptScales KeptOf(absl::string_view text) {
  const absl::StatusOr<Graph> graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  absl::StatusOr<KeptScales> kept = KeepScales(*graph);
  EXPECT_TRUE(kept.ok()) << kept.status();
  return *std::move(kept);
}

// A formula of x that stands behind a move of stored integers is one function, as without the move.
TEST(KeepScales, AFunctionBeginsBehindAMove) {
  const KeptScales kept = KeptOf(R"(graph "m" {
  %x = Placeholder() : f32[2,3] @"x"
  %qx = Quantize(%x) {axis = -1, dtype = "i8", scale = [0.5], zero_point = [0]} : i8[2,3] @"x"
  %fx = Dequantize(%qx) {axis = -1, scale = [0.5], zero_point = [0]} : f32[2,3] @"x"
  %t = Transpose(%fx) {perm = [1, 0]} : f32[3,2] @"t"
  %s = Sigmoid(%t) : f32[3,2] @"s"
  %y = Mul(%t, %s) : f32[3,2] @"y"
  %qy = Quantize(%y) {axis = -1, dtype = "i8", scale = [0.5], zero_point = [0]} : i8[3,2] @"y"
  %fy = Dequantize(%qy) {axis = -1, scale = [0.5], zero_point = [0]} : f32[3,2] @"y"
  return %fy @"y"
}
)");
  const Layer& last = kept.plan.layers.back();
  EXPECT_EQ(last.type, "Activation");
  EXPECT_EQ(last.nodes.size(), 2u);
}

// Scales of rows are no scales of columns, of which there are as many: a reshape that cuts the
// rows' dimension leaves real values.
TEST(KeepScales, AReshapeThatCutsTheScalesDimensionKeepsRealValues) {
  const KeptScales kept = KeptOf(R"(graph "m" {
  %x = Placeholder() : f32[2,1,2] @"x"
  %qx = Quantize(%x) {axis = -1, dtype = "i8", scale = [0.5], zero_point = [0]} : i8[2,1,2] @"x"
  %fx = Dequantize(%qx) {axis = -1, scale = [0.5], zero_point = [0]} : f32[2,1,2] @"x"
  %w = Const() {value = i8[4,4] "01010101010101010101010101010101"} : i8[4,4] @"w"
  %fw = Dequantize(%w) {axis = 0, scale = [0.5, 1.0, 2.0, 4.0], zero_point = [0, 0, 0, 0]} : f32[4,4] @"w"
  %r = Reshape(%fw) {shape = [2, 2, 4]} : f32[2,2,4] @"r"
  %y = MatMul(%fx, %r) : f32[2,1,4] @"y"
  %qy = Quantize(%y) {axis = -1, dtype = "i8", scale = [0.5], zero_point = [0]} : i8[2,1,4] @"y"
  %fy = Dequantize(%qy) {axis = -1, scale = [0.5], zero_point = [0]} : f32[2,1,4] @"y"
  return %fy @"y"
}
)");
  const auto results = RunReference(kept.graph, {Tensor::FromFloats({2, 1, 2}, {1, 0, 0, 1})});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ((*results)[0].ToFloats(), (std::vector<float>{0.5, 0.5, 0.5, 0.5, 4, 4, 4, 4}));
}

// An enlarged picture that is stored and read on has the integers of its parts, so that nothing is
// saturated twice and nothing need be made twice.
TEST(KeepScales, PartsThatMoveTogetherAreNotMadeAgain) {
  const KeptScales kept = KeptOf(R"(graph "m" {
  %x = Placeholder() : f32[2,3] @"x"
  %qx = Quantize(%x) {axis = -1, dtype = "i8", scale = [0.5], zero_point = [0]} : i8[2,3] @"x"
  %fx = Dequantize(%qx) {axis = -1, scale = [0.5], zero_point = [0]} : f32[2,3] @"x"
  %c = Concat(%fx, %fx) {axis = 0} : f32[4,3] @"c"
  %qc = Quantize(%c) {axis = -1, dtype = "i8", scale = [0.5], zero_point = [0]} : i8[4,3] @"c"
  %fc = Dequantize(%qc) {axis = -1, scale = [0.5], zero_point = [0]} : f32[4,3] @"c"
  %d = Concat(%c, %c) {axis = 1} : f32[4,6] @"d"
  %qd = Quantize(%d) {axis = -1, dtype = "i8", scale = [0.5], zero_point = [0]} : i8[4,6] @"d"
  %fd = Dequantize(%qd) {axis = -1, scale = [0.5], zero_point = [0]} : f32[4,6] @"d"
  return %fc @"c", %fd @"d"
}
)");
  EXPECT_EQ(kept.graph.node_count(), 3);
}

// A sum that only two clamps read has no scale of its own: it is made twice, once for each.
TEST(KeepScales, EachOfTwoClampsHasTheOperatorForItself) {
  const KeptScales kept = KeptOf(R"(graph "m" {
  %x = Placeholder() : f32[2,3] @"x"
  %qx = Quantize(%x) {axis = -1, dtype = "i8", scale = [0.5], zero_point = [0]} : i8[2,3] @"x"
  %fx = Dequantize(%qx) {axis = -1, scale = [0.5], zero_point = [0]} : f32[2,3] @"x"
  %a = Add(%fx, %fx) : f32[2,3] @"a"
  %b = Relu(%a) : f32[2,3] @"b"
  %qb = Quantize(%b) {axis = -1, dtype = "i8", scale = [0.5], zero_point = [0]} : i8[2,3] @"b"
  %fb = Dequantize(%qb) {axis = -1, scale = [0.5], zero_point = [0]} : f32[2,3] @"b"
  %c = Relu6(%a) : f32[2,3] @"c"
  %qc = Quantize(%c) {axis = -1, dtype = "i8", scale = [0.25], zero_point = [0]} : i8[2,3] @"c"
  %fc = Dequantize(%qc) {axis = -1, scale = [0.25], zero_point = [0]} : f32[2,3] @"c"
  return %fb @"b", %fc @"c"
}
)");
  int sums = 0;
  for (const Layer& layer : kept.plan.layers) {
    if (kept.graph.node(layer.root).op != Op::kAdd) continue;
    ++sums;
    EXPECT_EQ(layer.nodes.size(), 2u) << "the sum and its clamp";
  }
  EXPECT_EQ(sums, 2);
}

}  // namespace
}  // namespace npuc
