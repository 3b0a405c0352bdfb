#include "compiler_core/passes/passes.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/ir/graph/text.h"
#include "compiler_core/passes/rewriter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using Pass = absl::StatusOr<Graph> (*)(const Graph&);

absl::StatusOr<Graph> Fold(const Graph& graph) { return ConstantFold(graph); }
absl::StatusOr<Graph> All(const Graph& graph) { return RunPasses(graph); }

Graph Parse(absl::string_view body) {
  absl::StatusOr<Graph> graph = ParseGraph(absl::StrCat("graph \"m\" {\n", body, "}\n"));
  EXPECT_TRUE(graph.ok()) << graph.status() << "\n" << body;
  return graph.ok() ? *std::move(graph) : Graph();
}

// The pass turns one text into the other, and leaves its own result alone.
void Expect(Pass pass, absl::string_view before, absl::string_view after) {
  const absl::StatusOr<Graph> result = pass(Parse(before));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(PrintGraph(*result), PrintGraph(Parse(after)));
  EXPECT_TRUE(VerifyGraph(*result).ok()) << VerifyGraph(*result);
  const absl::StatusOr<Graph> again = pass(*result);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(SameGraph(*result, *again)) << PrintGraph(*again);
}

TEST(Passes, RefuseAGraphThatDoesNotVerify) {
  Graph bad;
  bad.AddOutput({"n", bad.AddValue(Op::kRelu, {}, {}, {DType::kFloat32, {}}, {"n", ""}), true});
  for (const Pass pass :
       {&Fold, &DeadCode, &RemoveIdentity, &Cse, &Canonicalize, &PropagateTransposes,
        &RewriteSoftmax, &RewriteBatchNorm, &FuseBatchNorm, &All}) {
    EXPECT_EQ(pass(bad).status().code(), absl::StatusCode::kInternal);
  }
}

TEST(DeadCode, DropsWhatNoOutputNeedsButNoInput) {
  Expect(&DeadCode, R"(
    %a = Placeholder() : f32[2] @"a"
    %b = Placeholder() : f32[2] @"b"
    %c = Const() {value = f32[2] "0000803f00000040"} : f32[2] @"c"
    %d = Add(%a, %c) : f32[2] @"d"
    %e = Relu(%b) : f32[2] @"e"
    return %e @"e" fp16)",
         R"(
    %a = Placeholder() : f32[2] @"a"
    %b = Placeholder() : f32[2] @"b"
    %e = Relu(%b) : f32[2] @"e"
    return %e @"e" fp16)");
}

TEST(DeadCode, KeepsANodeOfWhichOneResultIsUsed) {
  constexpr absl::string_view kText = R"(
    %a = Placeholder() : f32[4] @"a"
    %b, %c = Split(%a) {axis = 0, sizes = [1, 3]} : f32[1], f32[3] @"s"
    return %c @"c")";
  Expect(&DeadCode, kText, kText);
}

TEST(ConstantFold, ComputesAndNames) {
  Expect(&Fold, R"(
    %a = Const() {value = f32[2] "0000803f00000040"} : f32[2] @"a"
    %b = Const() {value = f32[] "00000040"} : f32[] @"b"
    %c = Mul(%a, %b) : f32[2] @"product" ("Mul")
    %d = Placeholder() : f32[2] @"x"
    %e = Add(%d, %c) : f32[2] @"sum"
    return %e @"sum")",
         R"(
    %a = Const() {value = f32[2] "0000803f00000040"} : f32[2] @"a"
    %b = Const() {value = f32[] "00000040"} : f32[] @"b"
    %c = Const() {value = f32[2] "0000004000008040"} : f32[2] @"product" ("Mul")
    %d = Placeholder() : f32[2] @"x"
    %e = Add(%d, %c) : f32[2] @"sum"
    return %e @"sum")");
}

TEST(ConstantFold, AWeightThatOnlyMovesKeepsItsName) {
  Expect(&Fold, R"(
    %a = Const() {value = i8[2,2] "01020304"} : i8[2,2] @"w" ("Const")
    %b = Identity(%a) : i8[2,2] @"w/read" ("Identity")
    %c = Transpose(%b) {perm = [1, 0]} : i8[2,2] @"t"
    %d = Reshape(%c) {shape = [4]} : i8[4] @"r"
    return %d @"out")",
         R"(
    %a = Const() {value = i8[2,2] "01020304"} : i8[2,2] @"w" ("Const")
    %b = Const() {value = i8[2,2] "01020304"} : i8[2,2] @"w" ("Const")
    %c = Const() {value = i8[2,2] "01030204"} : i8[2,2] @"w" ("Const")
    %d = Const() {value = i8[4] "01030204"} : i8[4] @"w" ("Const")
    return %d @"out")");
}

// A product over no elements is 0, a concatenation with none is what else it joins, and no operator
// is left whose result has none.
TEST(ConstantFold, WhatHasNoElementsIsConstant) {
  Expect(&All, R"(
    %x = Placeholder() : f32[2,3] @"x"
    %w = Const() {value = f32[0,3] ""} : f32[0,3] @"w"
    %none = Slice(%x) {begin = [0, 0], size = [2, 0]} : f32[2,0] @"none"
    %turned = Transpose(%none) {perm = [1, 0]} : f32[0,2] @"turned"
    %back = Transpose(%turned) {perm = [1, 0]} : f32[2,0] @"back"
    %zero = MatMul(%back, %w) : f32[2,3] @"zero"
    %sum = Add(%x, %zero) : f32[2,3] @"sum"
    %shown = Relu(%sum) : f32[2,3] @"shown"
    %joined = Concat(%back, %shown) {axis = 1} : f32[2,3] @"joined"
    return %joined @"y")",
         R"(
    %x = Placeholder() : f32[2,3] @"x"
    %shown = Relu(%x) : f32[2,3] @"shown"
    return %shown @"y")");
}

TEST(ConstantFold, AnInputWithoutElementsStays) {
  Expect(&All, R"(
    %x = Placeholder() : f32[2] @"x"
    %none = Placeholder() : f32[0] @"none"
    %relu = Relu(%none) : f32[0] @"relu"
    %y = Concat(%x, %relu) {axis = 0} : f32[2] @"y"
    %z = Relu(%y) : f32[2] @"z"
    return %z @"z")",
         R"(
    %x = Placeholder() : f32[2] @"x"
    %none = Placeholder() : f32[0] @"none"
    %z = Relu(%x) : f32[2] @"z"
    return %z @"z")");
}

TEST(ConstantFold, KeepsToItsBudget) {
  const Graph graph = Parse(R"(
    %a = Const() {value = i8[100] splat "01"} : i8[100]
    %b = Neg(%a) : i8[100]
    %c = Neg(%b) : i8[100]
    return %c @"c")");
  const Graph small = *ConstantFold(graph, {.elements_per_value = 99});
  EXPECT_EQ(small.node(NodeId(1)).op, Op::kNeg);
  const Graph once = *ConstantFold(graph, {.elements = 150});
  EXPECT_EQ(once.node(NodeId(1)).op, Op::kConst);
  EXPECT_EQ(once.node(NodeId(2)).op, Op::kNeg);
  const Graph work = *ConstantFold(graph, {.work = 100});
  EXPECT_EQ(work.node(NodeId(1)).op, Op::kNeg);
}

TEST(RemoveIdentity, DropsNodesThatDoNothing) {
  Expect(&RemoveIdentity, R"(
    %x = Placeholder() : f32[2,3] @"x"
    %a = Relu(%x) : f32[2,3] @"relu"
    %b = Identity(%a) : f32[2,3] @"id"
    %c = Reshape(%b) {shape = [2, 3]} : f32[2,3] @"r"
    %d = Transpose(%c) {perm = [0, 1]} : f32[2,3] @"t"
    %e = Slice(%d) {begin = [0, 0], size = [2, 3], strides = [1, 1]} : f32[2,3] @"s"
    %f = Pad(%e) {paddings = [0, 0, 0, 0], value = 1.0} : f32[2,3] @"p"
    %g = Concat(%f) {axis = 1} : f32[2,3] @"c"
    %h = Split(%g) {axis = 1, sizes = [3]} : f32[2,3] @"sp"
    %i = ReduceSum(%h) {axes = [], keep_dims = false} : f32[2,3] @"sum"
    return %i @"out", %x @"x")",
         R"(
    %x = Placeholder() : f32[2,3] @"x"
    %a = Relu(%x) : f32[2,3] @"relu"
    return %a @"out", %x @"x")");
}

TEST(RemoveIdentity, InfiniteBoundsAreNone) {
  Expect(&RemoveIdentity, R"(
    %x = Placeholder() : f32[2] @"x"
    %l = Const() {value = f32[] "000080ff"} : f32[] @"l"
    %h = Const() {value = f32[] "0000807f"} : f32[] @"h"
    %a = Maximum(%x, %l) : f32[2] @"a"
    %b = Minimum(%h, %a) : f32[2] @"b"
    %c = Minimum(%b, %l) : f32[2] @"c"
    return %c @"out")",
         R"(
    %x = Placeholder() : f32[2] @"x"
    %l = Const() {value = f32[] "000080ff"} : f32[] @"l"
    %h = Const() {value = f32[] "0000807f"} : f32[] @"h"
    %c = Minimum(%x, %l) : f32[2] @"c"
    return %c @"out")");
}

TEST(RemoveIdentity, KeepsWhatReversesOrResizes) {
  constexpr absl::string_view kText = R"(
    %x = Placeholder() : f32[2,2] @"x"
    %a = Slice(%x) {begin = [1, 0], size = [2, 2], strides = [-1, 1]} : f32[2,2] @"s"
    %b = Transpose(%a) {perm = [1, 0]} : f32[2,2] @"t"
    %c = ReduceMax(%b) {axes = [0], keep_dims = true} : f32[1,2] @"m"
    return %c @"out")";
  Expect(&RemoveIdentity, kText, kText);
}

TEST(RemoveIdentity, AReshapeSkipsTheOneBefore) {
  Expect(&RemoveIdentity, R"(
    %x = Placeholder() : f32[2,3] @"x"
    %a = Reshape(%x) {shape = [6]} : f32[6] @"a"
    %b = Reshape(%a) {shape = [3, 2]} : f32[3,2] @"b"
    %c = Reshape(%b) {shape = [2, 3]} : f32[2,3] @"c"
    return %b @"b", %c @"c")",
         R"(
    %x = Placeholder() : f32[2,3] @"x"
    %a = Reshape(%x) {shape = [6]} : f32[6] @"a"
    %b = Reshape(%x) {shape = [3, 2]} : f32[3,2] @"b"
    return %b @"b", %x @"c")");
}

TEST(RemoveIdentity, ANamelessNodeTakesTheName) {
  Expect(&RemoveIdentity, R"(
    %x = Placeholder() : f32[2] @"x"
    %a = Relu(%x) : f32[2]
    %b = Identity(%a) : f32[2] @"result" ("Identity")
    return %b @"out")",
         R"(
    %x = Placeholder() : f32[2] @"x"
    %a = Relu(%x) : f32[2] @"result" ("Identity")
    return %a @"out")");
}

TEST(Cse, MergesEqualNodesAndConstants) {
  Expect(&Cse, R"(
    %x = Placeholder() : f32[2] @"x"
    %c1 = Const() {value = f32[2] "0000803f00000040"} : f32[2] @"c1"
    %c2 = Const() {value = f32[2] "0000803f00000040"} : f32[2] @"c2"
    %c3 = Const() {value = f32[2] "0000803f00000041"} : f32[2] @"c3"
    %c4 = Const() {value = i32[2] "0000803f00000040"} : i32[2] @"c4"
    %a1 = Add(%x, %c1) : f32[2] @"a1"
    %a2 = Add(%x, %c2) : f32[2] @"a2"
    %a3 = Add(%x, %c3) : f32[2] @"a3"
    %m = Mul(%a1, %a2) : f32[2] @"m"
    return %m @"m", %a3 @"a3", %a2 @"a2", %c4 @"c4")",
         R"(
    %x = Placeholder() : f32[2] @"x"
    %c1 = Const() {value = f32[2] "0000803f00000040"} : f32[2] @"c1"
    %c3 = Const() {value = f32[2] "0000803f00000041"} : f32[2] @"c3"
    %c4 = Const() {value = i32[2] "0000803f00000040"} : i32[2] @"c4"
    %a1 = Add(%x, %c1) : f32[2] @"a1"
    %a3 = Add(%x, %c3) : f32[2] @"a3"
    %m = Mul(%a1, %a1) : f32[2] @"m"
    return %m @"m", %a3 @"a3", %a1 @"a2", %c4 @"c4")");
}

TEST(Cse, AttributesAndInputsTellNodesApart) {
  constexpr absl::string_view kText = R"(
    %x = Placeholder() : f32[2,2] @"x"
    %y = Placeholder() : f32[2,2] @"y"
    %a = Softmax(%x) {axis = 0} : f32[2,2] @"a"
    %b = Softmax(%x) {axis = 1} : f32[2,2] @"b"
    %c = Sub(%x, %y) : f32[2,2] @"c"
    %d = Sub(%y, %x) : f32[2,2] @"d"
    %e = Pad(%x) {paddings = [1, 0, 0, 0], value = 0.0} : f32[3,2] @"e"
    %f = Pad(%x) {paddings = [1, 0, 0, 0], value = -0.0} : f32[3,2] @"f"
    return %a @"a", %b @"b", %c @"c", %d @"d", %e @"e", %f @"f")";
  Expect(&Cse, kText, kText);
}

TEST(Canonicalize, OperandsAndNeutralElements) {
  Expect(&Canonicalize, R"(
    %x = Placeholder() : f32[2] @"x"
    %zero = Const() {value = f32[] "00000000"} : f32[] @"zero"
    %one = Const() {value = f32[2] splat "0000803f"} : f32[2] @"one"
    %two = Const() {value = f32[1] "00000040"} : f32[1] @"two"
    %a = Add(%two, %x) : f32[2] @"a"
    %b = Add(%zero, %a) : f32[2] @"b"
    %c = Mul(%b, %one) : f32[2] @"c"
    %d = Div(%c, %one) : f32[2] @"d"
    %e = Pow(%d, %two) : f32[2] @"e"
    %f = Sub(%one, %e) : f32[2] @"f"
    %g = Sub(%f, %zero) : f32[2] @"g"
    return %g @"g")",
         R"(
    %x = Placeholder() : f32[2] @"x"
    %zero = Const() {value = f32[] "00000000"} : f32[] @"zero"
    %one = Const() {value = f32[2] splat "0000803f"} : f32[2] @"one"
    %two = Const() {value = f32[1] "00000040"} : f32[1] @"two"
    %a = Add(%x, %two) : f32[2] @"a"
    %e = Square(%a) : f32[2] @"e"
    %f = Sub(%one, %e) : f32[2] @"f"
    return %f @"g")");
}

TEST(Canonicalize, ANeutralConstantThatBroadcastsStays) {
  constexpr absl::string_view kText = R"(
    %x = Placeholder() : f32[2] @"x"
    %zero = Const() {value = f32[3,1] splat "00000000"} : f32[3,1] @"zero"
    %a = Add(%x, %zero) : f32[3,2] @"a"
    return %a @"a")";
  Expect(&Canonicalize, kText, kText);
}

TEST(Canonicalize, ComposedFunctions) {
  Expect(&Canonicalize, R"(
    %x = Placeholder() : f32[2] @"x"
    %a = Relu(%x) : f32[2] @"a"
    %b = Relu(%a) : f32[2] @"b"
    %c = Relu6(%b) : f32[2] @"c"
    %d = Relu(%c) : f32[2] @"d"
    %e = Neg(%d) : f32[2] @"e"
    %f = Neg(%e) : f32[2] @"f"
    %g = Abs(%e) : f32[2] @"g"
    %h = Sigmoid(%x) : f32[2] @"h"
    %i = Relu(%h) : f32[2] @"i"
    return %f @"f", %g @"g", %i @"i")",
         R"(
    %x = Placeholder() : f32[2] @"x"
    %a = Relu(%x) : f32[2] @"a"
    %c = Relu6(%x) : f32[2] @"c"
    %e = Neg(%c) : f32[2] @"e"
    %h = Sigmoid(%x) : f32[2] @"h"
    return %c @"f", %c @"g", %h @"i")");
}

TEST(Canonicalize, LayoutMovesMerge) {
  Expect(&Canonicalize, R"(
    %x = Placeholder() : f32[2,3,1] @"x"
    %w = Placeholder() : f32[4,3] @"w"
    %a = Transpose(%x) {perm = [2, 0, 1]} : f32[1,2,3] @"a"
    %b = Transpose(%a) {perm = [0, 2, 1]} : f32[1,3,2] @"b"
    %c = Transpose(%w) {perm = [1, 0]} : f32[3,4] @"c"
    %d = MatMul(%a, %c) : f32[1,2,4] @"d"
    %e = ReduceMean(%d) {axes = [0], keep_dims = false} : f32[2,4] @"e"
    %f = Concat(%e, %e) {axis = -1} : f32[2,8] @"f"
    %g = Slice(%f) {begin = [1, 0], size = [1, 8], strides = [-3, 1]} : f32[1,8] @"g"
    %h = Pad(%g) {paddings = [1, 0, 0, 0]} : f32[2,8] @"h"
    %i = Pad(%h) {paddings = [1, 0, 0, 1], value = 0.0} : f32[3,9] @"i"
    return %b @"b", %i @"i")",
         R"(
    %x = Placeholder() : f32[2,3,1] @"x"
    %w = Placeholder() : f32[4,3] @"w"
    %a = Reshape(%x) {shape = [1, 2, 3]} : f32[1,2,3] @"a"
    %b = Transpose(%a) {perm = [0, 2, 1]} : f32[1,3,2] @"b"
    %c = Transpose(%w) {perm = [1, 0]} : f32[3,4] @"c"
    %d = MatMul(%a, %w) {transpose_a = false, transpose_b = true} : f32[1,2,4] @"d"
    %e = Reshape(%d) {shape = [2, 4]} : f32[2,4] @"e"
    %f = Concat(%e, %e) {axis = 1} : f32[2,8] @"f"
    %g = Slice(%f) {begin = [1, 0], size = [1, 8], strides = [1, 1]} : f32[1,8] @"g"
    %h = Pad(%g) {paddings = [1, 0, 0, 0], value = 0.0} : f32[2,8] @"h"
    %i = Pad(%g) {paddings = [2, 0, 0, 1], value = 0.0} : f32[3,9] @"i"
    return %b @"b", %i @"i")");
}

TEST(Canonicalize, MaximaLeaveABorderOfTheLowestNumberOut) {
  Expect(&Canonicalize, R"(
    %x = Placeholder() : f32[1,4,6,2] @"x"
    %p = Pad(%x) {paddings = [0, 0, 1, 1, 0, 1, 0, 0], value = -1000000000.0} : f32[1,6,7,2] @"p"
    %m = MaxPool(%p) {kernel = [3, 3], pads = [0, 0, 1, 0], strides = [2, 2]} : f32[1,2,3,2] @"m"
    %q = Pad(%x) {paddings = [0, 0, 0, 1, 0, 1, 0, 0], value = -100.0} : f32[1,5,7,2] @"q"
    %n = MaxPool(%q) {kernel = [2, 2], pads = [0, 0, 0, 0], strides = [1, 1]} : f32[1,4,6,2] @"n"
    %r = Pad(%x) {paddings = [0, 0, 0, 0, 2, 0, 0, 0], value = -3.4028234663852886e+38} : f32[1,4,8,2] @"r"
    %o = MaxPool(%r) {kernel = [2, 2], pads = [0, 0, 0, 0], strides = [2, 2]} : f32[1,2,4,2] @"o"
    return %m @"m", %n @"n", %o @"o")",
         R"(
    %x = Placeholder() : f32[1,4,6,2] @"x"
    %p = Pad(%x) {paddings = [0, 0, 1, 1, 0, 1, 0, 0], value = -1000000000.0} : f32[1,6,7,2] @"p"
    %m = MaxPool(%x) {kernel = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2]} : f32[1,2,3,2] @"m"
    %q = Pad(%x) {paddings = [0, 0, 0, 1, 0, 1, 0, 0], value = -100.0} : f32[1,5,7,2] @"q"
    %n = MaxPool(%q) {kernel = [2, 2], pads = [0, 0, 0, 0], strides = [1, 1]} : f32[1,4,6,2] @"n"
    %r = Pad(%x) {paddings = [0, 0, 0, 0, 2, 0, 0, 0], value = -3.4028234663852886e+38} : f32[1,4,8,2] @"r"
    %o = MaxPool(%r) {kernel = [2, 2], pads = [0, 0, 0, 0], strides = [2, 2]} : f32[1,2,4,2] @"o"
    return %m @"m", %n @"n", %o @"o")");
}

TEST(RewriteSoftmax, ExpandsByNameAndAxis) {
  Expect(&RewriteSoftmax, R"(
    %x = Placeholder() : f32[2,5] @"x"
    %a = Softmax(%x) : f32[2,5] @"prob" ("Softmax")
    %b = LogSoftmax(%x) {axis = 0} : f32[2,5] @"logp" ("LogSoftmax")
    return %a @"prob", %b @"logp")",
         R"(
    %x = Placeholder() : f32[2,5] @"x"
    %m = ReduceMax(%x) {axes = [1], keep_dims = true} : f32[2,1] @"prob/max"
    %d = Sub(%x, %m) : f32[2,5] @"prob/sub"
    %e = Exp(%d) : f32[2,5] @"prob/exp"
    %s = ReduceSum(%e) {axes = [1], keep_dims = true} : f32[2,1] @"prob/sum"
    %a = Div(%e, %s) : f32[2,5] @"prob" ("Softmax")
    %m2 = ReduceMax(%x) {axes = [0], keep_dims = true} : f32[1,5] @"logp/max"
    %d2 = Sub(%x, %m2) : f32[2,5] @"logp/sub"
    %e2 = Exp(%d2) : f32[2,5] @"logp/exp"
    %s2 = ReduceSum(%e2) {axes = [0], keep_dims = true} : f32[1,5] @"logp/sum"
    %l2 = Log(%s2) : f32[1,5] @"logp/log"
    %b = Sub(%d2, %l2) : f32[2,5] @"logp" ("LogSoftmax")
    return %a @"prob", %b @"logp")");
}

TEST(LogOfSquares, IsThatOfTheLargestAndOfTheRest) {
  // The square of a root of a sum of squares, moved; 1e-10.
  Expect(&LogOfSquares, R"(
    %x = Placeholder() : f32[3,2] @"x"
    %c = Const() {value = f32[] "ffe6db2e"} : f32[] @"c"
    %s = Square(%x) : f32[3,2] @"s"
    %r = ReduceSum(%s) {axes = [1], keep_dims = false} : f32[3] @"r"
    %t = Sqrt(%r) : f32[3] @"t"
    %m = Reshape(%t) {shape = [1,3]} : f32[1,3] @"m"
    %p = Square(%m) : f32[1,3] @"p"
    %a = Add(%p, %c) : f32[1,3] @"a"
    %l = Log(%a) : f32[1,3] @"l"
    return %l @"l")",
         R"(
    %x = Placeholder() : f32[3,2] @"x"
    %c = Const() {value = f32[] "ffe6db2e"} : f32[] @"c"
    %s = Square(%x) : f32[3,2] @"s"
    %r = ReduceSum(%s) {axes = [1], keep_dims = false} : f32[3] @"r"
    %t = Sqrt(%r) : f32[3] @"t"
    %m = Reshape(%t) {shape = [1,3]} : f32[1,3] @"m"
    %p = Square(%m) : f32[1,3] @"p"
    %a = Add(%p, %c) : f32[1,3] @"a"
    %f = Const() {value = f32[] "acc52737"} : f32[] @"l"
    %s1 = Abs(%x) : f32[3,2] @"l/squares_1"
    %s2 = ReduceMax(%s1) {axes = [1], keep_dims = true} : f32[3,1] @"l/squares_2"
    %s3 = Maximum(%s2, %f) : f32[3,1] @"l/squares_3"
    %s4 = Div(%x, %s3) : f32[3,2] @"l/squares_4"
    %s5 = Square(%s4) : f32[3,2] @"l/squares_5"
    %s6 = ReduceSum(%s5) {axes = [1], keep_dims = false} : f32[3] @"l/squares_6"
    %s7 = Reshape(%s3) {shape = [3]} : f32[3] @"l/squares_7"
    %s8 = Div(%f, %s7) : f32[3] @"l/squares_8"
    %s9 = Square(%s8) : f32[3] @"l/squares_9"
    %s10 = Add(%s6, %s9) : f32[3] @"l/squares_10"
    %s11 = Log(%s10) : f32[3] @"l/squares_11"
    %two = Const() {value = f32[] "00000040"} : f32[] @"l"
    %s12 = Log(%s7) : f32[3] @"l/squares_12"
    %s13 = Mul(%s12, %two) : f32[3] @"l/squares_13"
    %s14 = Add(%s13, %s11) : f32[3] @"l/squares_14"
    %l = Reshape(%s14) {shape = [1,3]} : f32[1,3] @"l"
    return %l @"l")");
}

TEST(LogOfSquares, LeavesWhatFp16Holds) {
  // 1e-3; no square; a number for each element.
  for (const absl::string_view sum :
       {R"(%c = Const() {value = f32[] "6f12833a"} : f32[] @"c"
    %s = Square(%x) : f32[2] @"s")",
        R"(%c = Const() {value = f32[] "ffe6db2e"} : f32[] @"c"
    %s = Relu(%x) : f32[2] @"s")",
        R"(%c = Const() {value = f32[2] "ffe6db2effe6db2e"} : f32[2] @"c"
    %s = Square(%x) : f32[2] @"s")"}) {
    const std::string text = absl::StrCat("%x = Placeholder() : f32[2] @\"x\"\n", sum, R"(
    %a = Add(%s, %c) : f32[2] @"a"
    %l = Log(%a) : f32[2] @"l"
    return %l @"l")");
    Expect(&LogOfSquares, text, text);
  }
  // Other types than f32, and nothing at all.
  for (const auto& [type, number] :
       {std::pair("f16[2]", "f16[] \"a800\""), std::pair("f32[0]", "f32[] \"ffe6db2e\"")}) {
    const std::string scalar(absl::string_view(number).substr(0, 5));
    const std::string text = absl::StrCat(
        "%x = Placeholder() : ", type, " @\"x\"\n%c = Const() {value = ", number, "} : ", scalar,
        " @\"c\"\n%s = Square(%x) : ", type, " @\"s\"\n%a = Add(%s, %c) : ", type,
        " @\"a\"\n%l = Log(%a) : ", type, " @\"l\"\nreturn %l @\"l\"");
    Expect(&LogOfSquares, text, text);
  }
}

TEST(RunPasses, SettlesOnOneForm) {
  Expect(&All, R"(
    %x = Placeholder() : f32[1,2] @"x"
    %w = Const() {value = f32[2,2] "0000803f0000004000004040000080c0"} : f32[2,2] @"w" ("Const")
    %wr = Identity(%w) : f32[2,2] @"w/read" ("Identity")
    %b = Const() {value = f32[2] "0000803f00000040"} : f32[2] @"b" ("Const")
    %y = MatMul(%x, %wr) : f32[1,2] @"fc" ("MatMul")
    %z = Add(%b, %y) : f32[1,2] @"bias" ("BiasAdd")
    %r1 = Relu(%z) : f32[1,2] @"r1" ("Relu")
    %r2 = Relu(%z) : f32[1,2] @"r2" ("Relu")
    %m = Maximum(%r1, %r2) : f32[1,2] @"m" ("Maximum")
    %s = Reshape(%m) {shape = [2]} : f32[2] @"s1" ("Squeeze")
    %t = Reshape(%s) {shape = [1, 2]} : f32[1,2] @"s2" ("Reshape")
    %p = Softmax(%t) {axis = -1} : f32[1,2] @"prob" ("Softmax")
    %dead = Exp(%p) : f32[1,2] @"dead" ("Exp")
    return %p @"prob")",
         R"(
    %x = Placeholder() : f32[1,2] @"x"
    %w = Const() {value = f32[2,2] "0000803f0000004000004040000080c0"} : f32[2,2] @"w" ("Const")
    %b = Const() {value = f32[2] "0000803f00000040"} : f32[2] @"b" ("Const")
    %y = MatMul(%x, %w) {transpose_a = false, transpose_b = false} : f32[1,2] @"fc" ("MatMul")
    %z = Add(%y, %b) : f32[1,2] @"bias" ("BiasAdd")
    %r1 = Relu(%z) : f32[1,2] @"r1" ("Relu")
    %m = Maximum(%r1, %r1) : f32[1,2] @"m" ("Maximum")
    %max = ReduceMax(%m) {axes = [1], keep_dims = true} : f32[1,1] @"prob/max"
    %d = Sub(%m, %max) : f32[1,2] @"prob/sub"
    %e = Exp(%d) : f32[1,2] @"prob/exp"
    %sum = ReduceSum(%e) {axes = [1], keep_dims = true} : f32[1,1] @"prob/sum"
    %p = Div(%e, %sum) : f32[1,2] @"prob" ("Softmax")
    return %p @"prob")");
}

// A random graph of operators on [2,2] and [1,2] values; many nodes repeat or do nothing.
Graph RandomGraph(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](int bound) {
    return std::uniform_int_distribution<int>(0, bound - 1)(random);
  };
  const TensorType type{DType::kFloat32, {2, 2}};
  Graph graph;
  std::vector<ValueId> values = {graph.AddInput("x", type), graph.AddInput("y", type)};
  for (const float value : {0.0f, 1.0f, 2.0f}) {
    values.push_back(graph.AddConst(Tensor::FromFloats({2, 2}, std::vector<float>(4, value)), {}));
  }
  const AttrMap swap = {{"perm", std::vector<int64_t>{1, 0}}};
  const AttrMap flip = {{"begin", Shape{1, 0}}, {"size", Shape{2, 2}}, {"strides", Shape{-1, 1}}};
  for (int i = 0; i < 30; ++i) {
    const ValueId a = values[below(static_cast<int>(values.size()))];
    const ValueId b = values[below(static_cast<int>(values.size()))];
    const Op unary[] = {Op::kRelu,    Op::kRelu6, Op::kNeg,     Op::kAbs,
                        Op::kSigmoid, Op::kTanh,  Op::kIdentity};
    const Op binary[] = {Op::kAdd, Op::kSub, Op::kMul, Op::kMaximum, Op::kMatMul, Op::kMinimum};
    const std::string name = absl::StrCat("n", i);
    switch (below(6)) {
      case 0:
        values.push_back(graph.AddValue(Op::kTranspose, {a}, swap, type, {name, ""}));
        break;
      case 1:
        values.push_back(graph.AddValue(Op::kSlice, {a}, flip, type, {name, ""}));
        break;
      case 2:
        values.push_back(graph.AddValue(Op::kSoftmax, {a}, {}, type, {name, ""}));
        break;
      case 3:
        values.push_back(graph.AddValue(unary[below(7)], {a}, {}, type, {name, ""}));
        break;
      default:
        values.push_back(graph.AddValue(binary[below(6)], {a, b}, {}, type, {name, ""}));
    }
  }
  for (int i = 0; i < 3; ++i)
    graph.AddOutput({absl::StrCat("o", i), values[values.size() - 1 - i]});
  return graph;
}

TEST(RunPasses, KeepsWhatRandomGraphsCompute) {
  const Tensor x = Tensor::FromFloats({2, 2}, {0.5f, -1.25f, 2.0f, -0.125f});
  const Tensor y = Tensor::FromFloats({2, 2}, {-3.0f, 0.75f, 1.5f, 0.25f});
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = RandomGraph(seed);
    ASSERT_TRUE(VerifyGraph(graph).ok()) << VerifyGraph(graph);
    for (const bool rewrite : {false, true}) {
      const absl::StatusOr<Graph> result = RunPasses(graph, {.rewrite_softmax = rewrite});
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_TRUE(SameGraph(*result, *RunPasses(*result, {.rewrite_softmax = rewrite})));
      const std::vector<Tensor> before = *RunReference(graph, {x, y});
      const std::vector<Tensor> after = *RunReference(*result, {x, y});
      for (size_t i = 0; i < before.size(); ++i) {
        for (int64_t k = 0; k < 4; ++k) {
          const double want = before[i].at(k);
          if (rewrite) {  // the expansion rounds between its steps
            EXPECT_NEAR(after[i].at(k), want, 1e-4 * std::max(1.0, std::fabs(want)));
          } else {
            EXPECT_EQ(after[i].at(k), want);
          }
        }
      }
    }
  }
}

TEST(RunPasses, TenThousandNodesAndLargeConstants) {
  const TensorType type{DType::kFloat32, {8}};
  Graph graph;
  ValueId value = graph.AddInput("x", type);
  for (int i = 0; i < 10000; ++i) {
    value = graph.AddValue(i % 2 == 0 ? Op::kTanh : Op::kExp, {value}, {}, type,
                           {absl::StrCat("layer/with/a/longer/name", i), "Op"});
  }
  graph.AddOutput({"y", value});
  const Tensor weight = Tensor::Zeros({DType::kFloat32, {1 << 22}});
  const ValueId big = graph.AddConst(weight, {"big", "Const"});
  graph.AddOutput({"big", big});
  const Graph result = *RunPasses(graph);
  EXPECT_EQ(result.node_count(), graph.node_count());
  EXPECT_EQ(result.ConstantOf(result.outputs()[1].value)->bytes().data(), weight.bytes().data());
}

}  // namespace
}  // namespace npuc
