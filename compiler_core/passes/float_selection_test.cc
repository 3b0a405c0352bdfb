#include "compiler_core/passes/float_selection.h"

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/ir/graph/text.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/passes/passes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

Graph Parsed(const std::string& body) {
  const absl::StatusOr<Graph> graph = ParseGraph("graph \"g\" {\n" + body + "}\n");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *graph;
}

// Values that meet each other often: small whole numbers, halves of them, booleans.
Tensor Drawn(const TensorType& type, std::mt19937& rng) {
  std::uniform_int_distribution<int> draw(0, type.dtype == DType::kBool ? 1 : 3);
  std::vector<float> values;
  for (int64_t i = 0; i < type.element_count(); ++i) {
    values.push_back(static_cast<float>(draw(rng)) * (IsFloat(type.dtype) ? 0.75f : 1.0f) -
                     (IsFloat(type.dtype) ? 1.0f : 0.0f));
  }
  return CastTensor(Tensor::FromFloats(type.shape, values), type.dtype);
}

// The graph and its form in floats give equal numbers.
void ExpectSame(const std::string& body) {
  const Graph graph = Parsed(body);
  for (const bool narrow : {false, true}) {
    const auto selection = SelectInFloats(graph, {.narrows_differences = narrow});
    ASSERT_TRUE(selection.ok()) << selection.status();
    ASSERT_THAT(selection->refusals, testing::IsEmpty());
    EXPECT_GT(selection->values, 0);
    SCOPED_TRACE(PrintGraph(selection->graph));
    ASSERT_TRUE(VerifyGraph(selection->graph).ok()) << VerifyGraph(selection->graph);
    for (const Node& node : selection->graph.nodes()) {
      for (const ValueId output : node.outputs) {
        EXPECT_TRUE(node.op == Op::kConst || IsFloat(selection->graph.type(output).dtype));
      }
    }
    std::mt19937 rng(7);
    for (int round = 0; round < 50; ++round) {
      std::vector<Tensor> given;
      std::vector<Tensor> floats;
      for (const ValueId input : graph.inputs()) {
        given.push_back(Drawn(graph.type(input), rng));
        floats.push_back(CastTensor(given.back(), DType::kFloat32));
      }
      const auto want = RunReference(graph, given);
      ASSERT_TRUE(want.ok()) << want.status();
      const auto got = RunReference(selection->graph, floats);
      ASSERT_TRUE(got.ok()) << got.status();
      for (size_t i = 0; i < want->size(); ++i) {
        EXPECT_EQ(CastTensor((*want)[i], DType::kFloat32).ToFloats(), (*got)[i].ToFloats());
      }
    }
  }
}

TEST(FloatSelectionTest, ComparesFloats) {
  for (const char* op : {"Equal", "Greater", "GreaterEqual"}) {
    ExpectSame(R"(  %a = Placeholder() : f32[2,3] @"a"
  %b = Placeholder() : f32[3] @"b"
  %c = )" + std::string(op) +
               R"((%a, %b) : bool[2,3] @"c"
  return %c @"c"
)");
  }
}

TEST(FloatSelectionTest, ComparesWholeNumbersAndBooleans) {
  for (const char* op : {"Equal", "Greater", "GreaterEqual"}) {
    for (const char* type : {"i32", "i64", "u8", "bool"}) {
      ExpectSame(R"(  %a = Placeholder() : )" + std::string(type) + R"([4] @"a"
  %b = Placeholder() : )" +
                 type + R"([4] @"b"
  %c = )" + op + R"((%a, %b) : bool[4] @"c"
  return %c @"c"
)");
    }
  }
}

TEST(FloatSelectionTest, Selects) {
  ExpectSame(R"(  %a = Placeholder() : f32[2,3] @"a"
  %b = Placeholder() : f32[2,3] @"b"
  %zero = Const() {value = f32[] "00000000"} : f32[]
  %low = Const() {value = f32[] "0000c8c2"} : f32[]
  %c = Greater(%a, %b) : bool[2,3] @"c"
  %one = Select(%c, %a, %b) : f32[2,3] @"one"
  %two = Select(%c, %a, %zero) : f32[2,3] @"two"
  %three = Select(%c, %low, %one) : f32[2,3] @"three"
  return %one @"one", %two @"two", %three @"three"
)");
}

TEST(FloatSelectionTest, SelectsBooleansAsLogic) {
  ExpectSame(R"(  %a = Placeholder() : bool[6] @"a"
  %b = Placeholder() : bool[6] @"b"
  %no = Const() {value = bool[] "00"} : bool[]
  %yes = Const() {value = bool[] "01"} : bool[]
  %and = Select(%a, %b, %no) : bool[6] @"and"
  %or = Select(%a, %yes, %b) : bool[6] @"or"
  %not = Equal(%a, %no) : bool[6] @"not"
  %xor = Equal(%not, %b) : bool[6] @"xor"
  return %and @"and", %or @"or", %not @"not", %xor @"xor"
)");
}

TEST(FloatSelectionTest, GathersAtAnyAxis) {
  for (const int axis : {0, 1, 2}) {
    ExpectSame(R"(  %x = Placeholder() : f32[4,4,4] @"x"
  %i = Placeholder() : i64[2,3] @"i"
  %g = Gather(%x, %i) {axis = )" +
               std::to_string(axis) + R"(} : f32[)" +
               (axis == 0   ? "2,3,4,4"
                : axis == 1 ? "4,2,3,4"
                            : "4,4,2,3") +
               R"(] @"g"
  return %g @"g"
)");
  }
}

TEST(FloatSelectionTest, FindsTheFirstLargest) {
  for (const char* type : {"f32", "i32"}) {
    for (const int axis : {0, 1, -1}) {
      ExpectSame(R"(  %x = Placeholder() : )" + std::string(type) + R"([3,4,2] @"x"
  %m = ArgMax(%x) {axis = )" +
                 std::to_string(axis) + R"(} : i64[)" +
                 (axis == 0   ? "4,2"
                  : axis == 1 ? "3,2"
                              : "3,4") +
                 R"(] @"m"
  return %m @"m"
)");
    }
  }
}

TEST(FloatSelectionTest, CastsBothWays) {
  ExpectSame(R"(  %x = Placeholder() : f32[5] @"x"
  %i = Cast(%x) {dtype = "i32"} : i32[5] @"i"
  %b = Cast(%x) {dtype = "bool"} : bool[5] @"b"
  %c = Cast(%i) {dtype = "bool"} : bool[5] @"c"
  %j = Cast(%b) {dtype = "i32"} : i32[5] @"j"
  %sum = Add(%i, %j) : i32[5] @"sum"
  %f = Cast(%sum) {dtype = "f32"} : f32[5] @"f"
  return %i @"i", %b @"b", %c @"c", %f @"f"
)");
}

// A cast to a narrow type where the operators in front of it keep the values within the type.
// No floor of what is whole already: on integers it is off by one where a step is not a part of 1.
TEST(FloatSelectionTest, CastsOfRoundingsAreThese) {
  const std::string body = R"(  %x = Placeholder() : f32[4] @"x"
  %r = Round(%x) : f32[4] @"r"
  %l = Relu(%r) : f32[4] @"l"
  %c = Cast(%l) {dtype = "i64"} : i64[4] @"c"
  return %c @"c"
)";
  ExpectSame(body);
  const auto selection = SelectInFloats(Parsed(body), {});
  ASSERT_TRUE(selection.ok()) << selection.status();
  for (const Node& node : selection->graph.nodes()) EXPECT_NE(node.op, Op::kFloor);
}

// Negative ones count from the end.
TEST(FloatSelectionTest, StatesTheBoundsOfIndices) {
  const auto selection = SelectInFloats(Parsed(R"(  %t = Placeholder() : f32[300,2] @"t"
  %i = Placeholder() : i64[3] @"i"
  %zero = Const() {value = i64[] "0000000000000000"} : i64[]
  %n = Const() {value = i64[] "2c01000000000000"} : i64[]
  %low = Greater(%zero, %i) : bool[3] @"low"
  %j = Add(%i, %n) : i64[3] @"j"
  %k = Select(%low, %j, %i) : i64[3] @"k"
  %y = Gather(%t, %k) {axis = 0} : f32[3,2] @"y"
  return %y @"y"
)"),
                                        {});
  ASSERT_TRUE(selection.ok()) << selection.status();
  const Node& index = selection->graph.def(selection->graph.inputs()[1]);
  EXPECT_EQ(IntAttrOr(index, kLeastFact, 0), -300);
  EXPECT_EQ(IntAttrOr(index, kMostFact, 0), 300);
  EXPECT_FALSE(selection->graph.def(selection->graph.inputs()[0]).attrs.contains(kMostFact));
}

// An index may be chosen because another is outside of the table.
TEST(FloatSelectionTest, StatesNoBoundsOfWhatAChoiceLeavesOut) {
  const auto selection = SelectInFloats(Parsed(R"(  %t = Placeholder() : f32[10,2] @"t"
  %i = Placeholder() : i64[3] @"i"
  %end = Const() {value = i64[] "f401000000000000"} : i64[]
  %three = Const() {value = i64[] "0300000000000000"} : i64[]
  %is_end = Equal(%i, %end) : bool[3] @"is_end"
  %k = Select(%is_end, %three, %i) : i64[3] @"k"
  %y = Gather(%t, %k) {axis = 0} : f32[3,2] @"y"
  return %y @"y"
)"),
                                        {});
  ASSERT_TRUE(selection.ok()) << selection.status();
  EXPECT_FALSE(selection->graph.def(selection->graph.inputs()[1]).attrs.contains(kMostFact));
}

TEST(FloatSelectionTest, CastsWithinTheTypesRange) {
  ExpectSame(R"(  %x = Placeholder() : f32[5] @"x"
  %s = Sigmoid(%x) : f32[5] @"s"
  %k = Const() {value = f32[] "00007f43"} : f32[]
  %m = Mul(%s, %k) : f32[5] @"m"
  %i = Cast(%m) {dtype = "u8"} : u8[5] @"i"
  %t = Tanh(%x) : f32[5] @"t"
  %n = Mul(%t, %k) : f32[5] @"n"
  %w = Cast(%n) {dtype = "i16"} : i16[5] @"w"
  %p = Relu6(%x) : f32[5] @"p"
  %c = Cast(%p) {dtype = "i32"} : i32[5] @"c"
  %d = Cast(%c) {dtype = "u8"} : u8[5] @"d"
  return %i @"i", %w @"w", %d @"d"
)");
}

// Each of six concatenations reads the one before 64 times: 64^6 ways lead to the input.
TEST(FloatSelectionTest, LooksAtABoundedNumberOfOperatorsForARange) {
  std::string body = "  %x = Placeholder() : f32[1] @\"x\"\n  %s0 = Sigmoid(%x) : f32[1] @\"s\"\n";
  for (int i = 1; i <= 6; ++i) {
    std::string operands;
    for (int k = 0; k < 64; ++k) absl::StrAppend(&operands, k > 0 ? ", " : "", "%s", i - 1);
    absl::StrAppend(&body, "  %c", i, " = Concat(", operands, ") {axis = 0} : f32[64] @\"c\"\n",
                    "  %s", i, " = Slice(%c", i,
                    ") {begin = [0], size = [1], strides = [1]} : f32[1] @\"s\"\n");
  }
  absl::StrAppend(&body, "  %i = Cast(%s6) {dtype = \"u8\"} : u8[1] @\"i\"\n  return %i @\"i\"\n");
  const auto selection = SelectInFloats(Parsed(body), {});
  ASSERT_TRUE(selection.ok()) << selection.status();
  EXPECT_EQ(selection->refusals.size(), 1);
}

TEST(FloatSelectionTest, RefusesWhatFloatsDoNotHold) {
  const auto refused = [](const std::string& body, const std::string& text) {
    const auto selection = SelectInFloats(Parsed(body), {});
    ASSERT_TRUE(selection.ok()) << selection.status();
    ASSERT_EQ(selection->refusals.size(), 1);
    EXPECT_THAT(selection->refusals[0].message, testing::HasSubstr(text));
  };
  refused(R"(  %a = Placeholder() : i32[2] @"a"
  %d = Div(%a, %a) : i32[2] @"d"
  return %d @"d"
)",
          "Div of integers");
  refused(R"(  %a = Placeholder() : u8[2] @"a"
  %d = Sub(%a, %a) : u8[2] @"d"
  return %d @"d"
)",
          "wrap around");
  refused(R"(  %a = Placeholder() : f32[2] @"a"
  %d = Cast(%a) {dtype = "u8"} : u8[2] @"d"
  return %d @"d"
)",
          "to u8");
  refused(R"(  %a = Placeholder() : f32[2] @"a"
  %s = Sigmoid(%a) : f32[2] @"s"
  %k = Const() {value = f32[] "00008043"} : f32[]
  %m = Mul(%s, %k) : f32[2] @"m"
  %d = Cast(%m) {dtype = "u8"} : u8[2] @"d"
  return %d @"d"
)",
          "to u8");
  refused(R"(  %x = Placeholder() : f32[4000,1] @"x"
  %i = Placeholder() : i64[2] @"i"
  %g = Gather(%x, %i) : f32[2,1] @"g"
  return %g @"g"
)",
          "4000 positions");
  refused(R"(  %a = Placeholder() : i64[1] @"a"
  %big = Const() {value = i64[] "ffffffffffffff7f"} : i64[]
  %d = Equal(%a, %big) : bool[1] @"d"
  return %d @"d"
)",
          "no exact float");
  refused(R"(  %a = Placeholder() : i64[1] @"a"
  %d = Pad(%a) {paddings = [0,1], value = 16777217.0} : i64[2] @"d"
  return %d @"d"
)",
          "the padding value 16777217 is no exact float");
}

TEST(FloatSelectionTest, TakesBoundsOfInfinityAway) {
  const Graph graph = Parsed(R"(  %x = Placeholder() : f32[4] @"x"
  %k = Const() {value = f32[] "ffff7fff"} : f32[]
  %m = Maximum(%x, %k) {fact_bounds_infinity = true} : f32[4] @"m"
  %o = Maximum(%m, %k) : f32[4] @"o"
  return %o @"o"
)");
  const auto selection = SelectInFloats(graph, {});
  ASSERT_TRUE(selection.ok()) << selection.status();
  int maxima = 0;
  for (const Node& node : selection->graph.nodes()) maxima += node.op == Op::kMaximum ? 1 : 0;
  EXPECT_EQ(maxima, 1);
  EXPECT_EQ(selection->values, 0);
}

TEST(FloatSelectionTest, LeavesStoredIntegersAlone) {
  const Graph graph = Parsed(R"(  %x = Placeholder() : i8[4] @"x"
  %f = Dequantize(%x) {scale = [0.5], zero_point = [0]} : f32[4] @"f"
  %q = Quantize(%f) {dtype = "i8", scale = [0.25], zero_point = [1]} : i8[4] @"q"
  %r = Reshape(%q) {shape = [2,2]} : i8[2,2] @"r"
  %g = Dequantize(%r) {scale = [0.25], zero_point = [1]} : f32[2,2] @"g"
  return %g @"g"
)");
  const auto selection = SelectInFloats(graph, {});
  ASSERT_TRUE(selection.ok()) << selection.status();
  EXPECT_EQ(selection->values, 0);
  EXPECT_EQ(PrintGraph(selection->graph), PrintGraph(graph));
}

// 0 times a logarithm of 0 or a root of -1 is not 0, and neither may it be added.
TEST(FloatSelectionTest, SelectsWhereTheOtherChoiceIsNotFinite) {
  ExpectSame(R"(  %x = Placeholder() : f32[12] @"x"
  %zero = Const() {value = f32[] "00000000"} : f32[]
  %half = Const() {value = f32[] "0000003f"} : f32[]
  %low = Const() {value = f32[] "0000c8c2"} : f32[]
  %c = Greater(%x, %zero) : bool[12] @"c"
  %log = Log(%x) : f32[12] @"log"
  %scaled = Mul(%x, %log) : f32[12] @"scaled"
  %sqrt = Sqrt(%x) : f32[12] @"sqrt"
  %inverse = Div(%sqrt, %x) : f32[12] @"inverse"
  %power = Pow(%x, %half) : f32[12] @"power"
  %one = Select(%c, %log, %low) : f32[12] @"one"
  %two = Select(%c, %scaled, %x) : f32[12] @"two"
  %three = Select(%c, %inverse, %zero) : f32[12] @"three"
  %four = Select(%c, %power, %one) : f32[12] @"four"
  return %one @"one", %two @"two", %three @"three", %four @"four"
)");
}

// x where it is positive, else exp(x) - 1: of 20 no exponential is computed, which fp16 lacks.
TEST(FloatSelectionTest, LargeExponentialsAreNotComputedWhereTheyAreNotChosen) {
  const auto selection = SelectInFloats(Parsed(R"(  %x = Placeholder() : f32[2] @"x"
  %zero = Const() {value = f32[] "00000000"} : f32[]
  %one = Const() {value = f32[] "0000803f"} : f32[]
  %c = Greater(%x, %zero) : bool[2] @"c"
  %exp = Exp(%x) : f32[2] @"exp"
  %below = Sub(%exp, %one) : f32[2] @"below"
  %y = Select(%c, %x, %below) : f32[2] @"y"
  return %y @"y"
)"),
                                        {});
  ASSERT_TRUE(selection.ok()) << selection.status();
  const Graph needed = *DeadCode(selection->graph);
  int exponentials = 0;
  for (const Node& node : needed.nodes()) {
    if (node.op != Op::kExp) continue;
    ++exponentials;
    EXPECT_EQ(needed.def(node.inputs[0]).op, Op::kMul) << PrintGraph(needed);
  }
  EXPECT_EQ(exponentials, 1);
}

// Logarithms of sums of squares and a positive number are finite: none gets another operand.
TEST(FloatSelectionTest, OperandsThatAreNeverHarmfulStay) {
  const auto selection = SelectInFloats(Parsed(R"(  %x = Placeholder() : f32[2,3] @"x"
  %zero = Const() {value = f32[] "00000000"} : f32[]
  %one = Const() {value = f32[] "0000803f"} : f32[]
  %c = Greater(%x, %zero) : bool[2,3] @"c"
  %square = Mul(%x, %x) : f32[2,3] @"square"
  %sum = ReduceSum(%square) {axes = [1], keep_dims = true} : f32[2,1] @"sum"
  %some = Add(%sum, %one) : f32[2,1] @"some"
  %log = Log(%some) : f32[2,1] @"log"
  %ratio = Div(%x, %some) : f32[2,3] @"ratio"
  %size = Add(%log, %ratio) : f32[2,3] @"size"
  %y = Select(%c, %size, %x) : f32[2,3] @"y"
  return %y @"y"
)"),
                                        {});
  ASSERT_TRUE(selection.ok()) << selection.status();
  int seen = 0;
  const Graph needed = *DeadCode(selection->graph);
  for (const Node& node : needed.nodes()) {
    if (node.op != Op::kLog && node.op != Op::kDiv) continue;
    EXPECT_EQ(needed.def(node.inputs.back()).source.name, "some") << PrintGraph(needed);
    ++seen;
  }
  EXPECT_EQ(seen, 2);
}

}  // namespace
}  // namespace npuc
