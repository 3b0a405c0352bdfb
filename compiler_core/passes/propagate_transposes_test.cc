#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/ir/graph/text.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/passes/passes.h"
#include "compiler_core/passes/random_graphs_test_util.h"
#include "compiler_core/passes/remaining_transposes.h"
#include "compiler_core/passes/rewriter.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

Graph Parse(absl::string_view body) {
  absl::StatusOr<Graph> graph = ParseGraph(absl::StrCat("graph \"m\" {\n", body, "}\n"));
  EXPECT_TRUE(graph.ok()) << graph.status() << "\n" << body;
  return graph.ok() ? *std::move(graph) : Graph();
}

// The pass, then the clean-up that drops the Reshapes it leaves, turn one text into the other;
// the pass leaves its own result alone.
void Expect(absl::string_view before, absl::string_view after) {
  const absl::StatusOr<Graph> moved = PropagateTransposes(Parse(before));
  ASSERT_TRUE(moved.ok()) << moved.status();
  EXPECT_TRUE(VerifyGraph(*moved).ok()) << VerifyGraph(*moved) << PrintGraph(*moved);
  EXPECT_TRUE(SameGraph(*moved, *PropagateTransposes(*moved))) << PrintGraph(*moved);
  const Graph clean = *DeadCode(*RemoveIdentity(*moved));
  EXPECT_EQ(PrintGraph(clean), PrintGraph(Parse(after)));
}

// A transpose and its inverse meet through whatever stands between them.
TEST(PropagateTransposes, CancelsBehindElementwiseNodes) {
  Expect(R"(
    %x = Placeholder() : f32[1,4,5,3] @"x"
    %a = Transpose(%x) {perm = [0, 3, 1, 2]} : f32[1,3,4,5] @"to_nchw"
    %b = Relu(%a) : f32[1,3,4,5] @"relu"
    %c = Tanh(%b) : f32[1,3,4,5] @"tanh"
    %d = Transpose(%c) {perm = [0, 2, 3, 1]} : f32[1,4,5,3] @"to_nhwc"
    %e = MaxPool(%d) {kernel = [2, 2], pads = [0, 0, 0, 0], strides = [2, 2]} : f32[1,2,2,3] @"pool"
    return %e @"out")",
         R"(
    %0 = Placeholder() : f32[1,4,5,3] @"x"
    %1 = Relu(%0) : f32[1,4,5,3] @"relu"
    %2 = Tanh(%1) : f32[1,4,5,3] @"tanh"
    %3 = MaxPool(%2) {kernel = [2, 2], pads = [0, 0, 0, 0], strides = [2, 2]} : f32[1,2,2,3] @"pool"
    return %3 @"out")");
}

// A quantized net of channels-first convolutions: nothing is left between its layers, and scales
// along a dimension go with it.
TEST(PropagateTransposes, CancelsAcrossQuantizers) {
  Expect(R"(
    %x = Placeholder() : f32[1,4,5,2] @"x"
    %a = Transpose(%x) {perm = [0, 3, 1, 2]} : f32[1,2,4,5] @"to_nchw"
    %b = Relu(%a) : f32[1,2,4,5] @"relu"
    %q = Quantize(%b) {dtype = "u8", scale = [0.5], zero_point = [3]} : u8[1,2,4,5] @"q"
    %d = Dequantize(%q) {scale = [0.5], zero_point = [3]} : f32[1,2,4,5] @"d"
    %r = Quantize(%d) {axis = 1, dtype = "i8", scale = [0.5, 0.25], zero_point = [3, 4]} : i8[1,2,4,5] @"r"
    %e = Dequantize(%r) {axis = 1, scale = [0.5, 0.25], zero_point = [3, 4]} : f32[1,2,4,5] @"e"
    %t = Transpose(%e) {perm = [0, 2, 3, 1]} : f32[1,4,5,2] @"to_nhwc"
    %p = MaxPool(%t) {kernel = [2, 2], pads = [0, 0, 0, 0], strides = [2, 2]} : f32[1,2,2,2] @"pool"
    return %p @"out")",
         R"(
    %0 = Placeholder() : f32[1,4,5,2] @"x"
    %1 = Relu(%0) : f32[1,4,5,2] @"relu"
    %2 = Quantize(%1) {dtype = "u8", scale = [0.5], zero_point = [3]} : u8[1,4,5,2] @"q"
    %3 = Dequantize(%2) {scale = [0.5], zero_point = [3]} : f32[1,4,5,2] @"d"
    %4 = Quantize(%3) {axis = 3, dtype = "i8", scale = [0.5, 0.25], zero_point = [3, 4]} : i8[1,4,5,2] @"r"
    %5 = Dequantize(%4) {axis = 3, scale = [0.5, 0.25], zero_point = [3, 4]} : f32[1,4,5,2] @"e"
    %6 = MaxPool(%5) {kernel = [2, 2], pads = [0, 0, 0, 0], strides = [2, 2]} : f32[1,2,2,2] @"pool"
    return %6 @"out")");
}

// Whatever moves a transpose, the integers go straight from a Quantize to its Dequantizes.
TEST(PropagateTransposes, NoTransposeStandsBetweenQuantizeAndDequantize) {
  const Graph graph = Parse(R"(
    %x = Placeholder() : f32[1,4,5,2] @"x"
    %a = Transpose(%x) {perm = [0, 3, 1, 2]} : f32[1,2,4,5] @"to_nchw"
    %q = Quantize(%a) {dtype = "u8", scale = [0.5], zero_point = [3]} : u8[1,2,4,5] @"q"
    %d = Dequantize(%q) {scale = [0.5], zero_point = [3]} : f32[1,2,4,5] @"d"
    %e = Dequantize(%q) {scale = [0.5], zero_point = [3]} : f32[1,2,4,5] @"e"
    %s = Slice(%e) {begin = [0, 0, 0, 0], size = [1, 2, 4, 2], strides = [1, 1, 1, 2]} : f32[1,2,4,2] @"part"
    %t = Transpose(%d) {perm = [0, 2, 3, 1]} : f32[1,4,5,2] @"to_nhwc"
    %p = MaxPool(%t) {kernel = [2, 2], pads = [0, 0, 0, 0], strides = [2, 2]} : f32[1,2,2,2] @"pool"
    return %p @"out", %s @"natural", %d @"whole")");
  const absl::StatusOr<Graph> moved = PropagateTransposes(graph);
  ASSERT_TRUE(moved.ok()) << moved.status();
  for (const Node& node : moved->nodes()) {
    if (node.op != Op::kDequantize) continue;
    EXPECT_EQ(moved->def(node.inputs[0]).op, Op::kQuantize);
  }
}

TEST(PropagateTransposes, ConstantsArePermuted) {
  Expect(R"(
    %x = Placeholder() : f32[1,2,2,3] @"x"
    %k = Const() {value = f32[3,1,1] "0000803f0000004000004040"} : f32[3,1,1] @"scale"
    %w = Const() {value = f32[1,3,2,2] "0000803f000000400000404000008040000080bf000000c0000040c0000080c00000c03f0000204000006040000090c0"} : f32[1,3,2,2] @"bias"
    %a = Transpose(%x) {perm = [0, 3, 1, 2]} : f32[1,3,2,2] @"to_nchw"
    %b = Mul(%a, %k) : f32[1,3,2,2] @"mul"
    %c = Add(%b, %w) : f32[1,3,2,2] @"add"
    %d = Transpose(%c) {perm = [0, 2, 3, 1]} : f32[1,2,2,3] @"to_nhwc"
    return %d @"out")",
         R"(
    %0 = Placeholder() : f32[1,2,2,3] @"x"
    %1 = Const() {value = f32[1,1,3] "0000803f0000004000004040"} : f32[1,1,3] @"scale"
    %2 = Mul(%0, %1) : f32[1,2,2,3] @"mul"
    %3 = Const() {value = f32[1,2,2,3] "0000803f000080bf0000c03f00000040000000c00000204000004040000040c00000604000008040000080c0000090c0"} : f32[1,2,2,3] @"bias"
    %4 = Add(%2, %3) : f32[1,2,2,3] @"add"
    return %4 @"out")");
}

// Both operands of an Add are transposed, one of them has a second user.
TEST(PropagateTransposes, BranchesMoveTogether) {
  Expect(R"(
    %x = Placeholder() : f32[4,6] @"x"
    %y = Placeholder() : f32[4,6] @"y"
    %a = Transpose(%x) {perm = [1, 0]} : f32[6,4] @"xt"
    %b = Transpose(%y) {perm = [1, 0]} : f32[6,4] @"yt"
    %c = Relu(%a) : f32[6,4] @"relu"
    %d = Add(%c, %b) : f32[6,4] @"sum"
    %e = Mul(%d, %c) : f32[6,4] @"product"
    %f = Transpose(%e) {perm = [1, 0]} : f32[4,6] @"back"
    return %f @"out")",
         R"(
    %0 = Placeholder() : f32[4,6] @"x"
    %1 = Placeholder() : f32[4,6] @"y"
    %2 = Relu(%0) : f32[4,6] @"relu"
    %3 = Add(%2, %1) : f32[4,6] @"sum"
    %4 = Mul(%3, %2) : f32[4,6] @"product"
    return %4 @"out")");
}

// Squeeze and excite: a value without the image's extent.
TEST(PropagateTransposes, ABroadcastOperandFollows) {
  Expect(R"(
    %x = Placeholder() : f32[2,4,5,3] @"x"
    %a = Transpose(%x) {perm = [0, 3, 1, 2]} : f32[2,3,4,5] @"to_nchw"
    %s = ReduceMean(%a) {axes = [2, 3], keep_dims = true} : f32[2,3,1,1] @"mean"
    %g = Sigmoid(%s) : f32[2,3,1,1] @"gate"
    %m = Mul(%a, %g) : f32[2,3,4,5] @"scaled"
    %b = Transpose(%m) {perm = [0, 2, 3, 1]} : f32[2,4,5,3] @"to_nhwc"
    return %b @"out")",
         R"(
    %0 = Placeholder() : f32[2,4,5,3] @"x"
    %1 = ReduceMean(%0) {axes = [1, 2], keep_dims = false} : f32[2,3] @"mean"
    %2 = Reshape(%1) {shape = [2, 3, 1, 1]} : f32[2,3,1,1] @"mean/reshape"
    %3 = Sigmoid(%2) : f32[2,3,1,1] @"gate"
    %4 = Reshape(%3) {shape = [2, 1, 1, 3]} : f32[2,1,1,3] @"scaled/reshape"
    %5 = Mul(%0, %4) : f32[2,4,5,3] @"scaled"
    return %5 @"out")");
}

TEST(PropagateTransposes, ConcatAndSplitCountAlongTheMovedAxis) {
  Expect(R"(
    %x = Placeholder() : f32[1,4,5,3] @"x"
    %y = Placeholder() : f32[1,4,5,2] @"y"
    %a = Transpose(%x) {perm = [0, 3, 1, 2]} : f32[1,3,4,5] @"xt"
    %b = Transpose(%y) {perm = [0, 3, 1, 2]} : f32[1,2,4,5] @"yt"
    %c = Concat(%a, %b) {axis = 1} : f32[1,5,4,5] @"concat"
    %d, %e = Split(%c) {axis = 1, sizes = [2, 3]} : f32[1,2,4,5], f32[1,3,4,5] @"split"
    %f = Transpose(%d) {perm = [0, 2, 3, 1]} : f32[1,4,5,2] @"dt"
    %g = Transpose(%e) {perm = [0, 2, 3, 1]} : f32[1,4,5,3] @"et"
    return %f @"d", %g @"e")",
         R"(
    %0 = Placeholder() : f32[1,4,5,3] @"x"
    %1 = Placeholder() : f32[1,4,5,2] @"y"
    %2 = Concat(%0, %1) {axis = 3} : f32[1,4,5,5] @"concat"
    %3, %4 = Split(%2) {axis = 3, sizes = [2, 3]} : f32[1,4,5,2], f32[1,4,5,3] @"split"
    return %3 @"d", %4 @"e")");
}

TEST(PropagateTransposes, PadAndSliceMoveWithTheirDimensions) {
  Expect(R"(
    %x = Placeholder() : f32[1,4,5,3] @"x"
    %a = Transpose(%x) {perm = [0, 3, 1, 2]} : f32[1,3,4,5] @"xt"
    %b = Pad(%a) {paddings = [0, 0, 0, 0, 1, 2, 3, 4], value = 0.5} : f32[1,3,7,12] @"pad"
    %c = Slice(%b) {begin = [0, 1, 6, 0], size = [1, 2, 4, 12], strides = [1, 1, -2, 1]} : f32[1,2,4,12] @"slice"
    %d = Transpose(%c) {perm = [0, 2, 3, 1]} : f32[1,4,12,2] @"back"
    return %d @"out")",
         R"(
    %0 = Placeholder() : f32[1,4,5,3] @"x"
    %1 = Pad(%0) {paddings = [0, 0, 1, 2, 3, 4, 0, 0], value = 0.5} : f32[1,7,12,3] @"pad"
    %2 = Slice(%1) {begin = [0, 6, 0, 1], size = [1, 4, 12, 2], strides = [1, -2, 1, 1]} : f32[1,4,12,2] @"slice"
    return %2 @"out")");
}

// The result of the sum has nothing left to permute; that of the maximum has.
TEST(PropagateTransposes, ReductionsTakeTheirAxesAlong) {
  Expect(R"(
    %x = Placeholder() : f32[2,4,5,3] @"x"
    %a = Transpose(%x) {perm = [0, 3, 1, 2]} : f32[2,3,4,5] @"xt"
    %b = ReduceSum(%a) {axes = [2, 3], keep_dims = false} : f32[2,3] @"sum"
    %c = ReduceMax(%a) {axes = [3], keep_dims = false} : f32[2,3,4] @"max"
    %d = Transpose(%c) {perm = [0, 2, 1]} : f32[2,4,3] @"maxt"
    return %b @"sum", %d @"max")",
         R"(
    %0 = Placeholder() : f32[2,4,5,3] @"x"
    %1 = ReduceSum(%0) {axes = [1, 2], keep_dims = false} : f32[2,3] @"sum"
    %2 = ReduceMax(%0) {axes = [2], keep_dims = false} : f32[2,4,3] @"max"
    return %1 @"sum", %2 @"max")");
}

// The channels of a BatchNorm stay last; a Softmax takes its axis along.
TEST(PropagateTransposes, SoftmaxAndBatchNorm) {
  Expect(R"(
    %x = Placeholder() : f32[2,3,4] @"x"
    %p = Placeholder() : f32[4] @"p"
    %a = Transpose(%x) {perm = [1, 0, 2]} : f32[3,2,4] @"xt"
    %b = BatchNorm(%a, %p, %p, %p, %p) {epsilon = 0.5} : f32[3,2,4] @"bn"
    %c = Softmax(%b) {axis = 0} : f32[3,2,4] @"softmax"
    %d = Transpose(%c) {perm = [1, 0, 2]} : f32[2,3,4] @"back"
    return %d @"out")",
         R"(
    %0 = Placeholder() : f32[2,3,4] @"x"
    %1 = Placeholder() : f32[4] @"p"
    %2 = BatchNorm(%0, %1, %1, %1, %1) {epsilon = 0.5} : f32[2,3,4] @"bn"
    %3 = Softmax(%2) {axis = 1} : f32[2,3,4] @"softmax"
    return %3 @"out")");
}

TEST(PropagateTransposes, FlattenBeforeAProductPermutesTheWeight) {
  Expect(R"(
    %x = Placeholder() : f32[1,2,2,2] @"x"
    %w = Const() {value = i8[8,1] "0001020304050607"} : i8[8,1] @"w8"
    %v = Const() {value = f32[8,2] "000000000000803f000000400000404000008040000a0a04000c0c0400e0e0400000004100001041000020410000304100004041000050410000604100007041"} : f32[8,2] @"w" ("Const")
    %a = Transpose(%x) {perm = [0, 3, 1, 2]} : f32[1,2,2,2] @"xt"
    %b = Reshape(%a) {shape = [1, 8]} : f32[1,8] @"flat"
    %c = Relu(%b) : f32[1,8] @"relu"
    %d = MatMul(%c, %v) {transpose_a = false, transpose_b = false} : f32[1,2] @"fc"
    return %d @"out")",
         R"(
    %0 = Placeholder() : f32[1,2,2,2] @"x"
    %1 = Reshape(%0) {shape = [4, 2]} : f32[4,2] @"flat"
    %2 = Relu(%1) : f32[4,2] @"relu"
    %3 = Reshape(%2) {shape = [1, 8]} : f32[1,8] @"fc/reshape"
    %4 = Const() {value = f32[8,2] "000000000000803f00000041000010410000004000004040000020410000304100008040000a0a040000404100005041000c0c0400e0e0400000604100007041"} : f32[8,2] @"w" ("Const")
    %5 = MatMul(%3, %4) {transpose_a = false, transpose_b = false} : f32[1,2] @"fc"
    return %5 @"out")");
}

// Time and batch change places around a dense layer.
TEST(PropagateTransposes, RowsOfAProductMayStandInAnyOrder) {
  Expect(R"(
    %x = Placeholder() : f32[3,5,4] @"x"
    %w = Placeholder() : f32[2] @"b"
    %v = Const() {value = f32[2,4] splat "0000803f"} : f32[2,4] @"w"
    %a = Transpose(%x) {perm = [1, 0, 2]} : f32[5,3,4] @"xt"
    %b = MatMul(%a, %v) {transpose_a = false, transpose_b = true} : f32[5,3,2] @"fc"
    %c = Add(%b, %w) : f32[5,3,2] @"bias"
    %d = Transpose(%c) {perm = [1, 0, 2]} : f32[3,5,2] @"back"
    return %d @"out")",
         R"(
    %0 = Placeholder() : f32[3,5,4] @"x"
    %1 = Placeholder() : f32[2] @"b"
    %2 = Const() {value = f32[2,4] splat "0000803f"} : f32[2,4] @"w"
    %3 = MatMul(%0, %2) {transpose_a = false, transpose_b = true} : f32[3,5,2] @"fc"
    %4 = Add(%3, %1) : f32[3,5,2] @"bias"
    return %4 @"out")");
}

// A decoder: dense, unflatten, permute.
TEST(PropagateTransposes, ColumnsOfAProductTakeTheOrderOfTheirUser) {
  Expect(R"(
    %x = Placeholder() : f32[1,1] @"x"
    %v = Const() {value = f32[1,6] "0000803f0000004000004040000080400000a0400000c040"} : f32[1,6] @"w"
    %b = MatMul(%x, %v) {transpose_a = false, transpose_b = false} : f32[1,6] @"fc"
    %c = Reshape(%b) {shape = [1, 2, 3]} : f32[1,2,3] @"unflat"
    %d = Transpose(%c) {perm = [0, 2, 1]} : f32[1,3,2] @"t"
    return %d @"out")",
         R"(
    %0 = Placeholder() : f32[1,1] @"x"
    %1 = Const() {value = f32[1,6] "0000803f00008040000000400000a040000040400000c040"} : f32[1,6] @"w"
    %2 = MatMul(%0, %1) {transpose_a = false, transpose_b = false} : f32[1,6] @"fc"
    %3 = Reshape(%2) {shape = [1, 3, 2]} : f32[1,3,2] @"unflat"
    return %3 @"out")");
}

// MatMul reads its operand transposed by moving it first; so the flag goes like any transpose.
TEST(PropagateTransposes, AProductOfATransposedOperandCounts) {
  Expect(R"(
    %x = Placeholder() : f32[3,4] @"x"
    %v = Const() {value = f32[3,2] splat "0000803f"} : f32[3,2] @"w"
    %u = Const() {value = f32[4,2] splat "0000803f"} : f32[4,2] @"u"
    %a = Transpose(%x) {perm = [1, 0]} : f32[4,3] @"xt"
    %b = Relu(%a) : f32[4,3] @"relu"
    %d = MatMul(%b, %u) {transpose_a = true, transpose_b = false} : f32[3,2] @"fc"
    return %d @"out")",
         R"(
    %0 = Placeholder() : f32[3,4] @"x"
    %1 = Const() {value = f32[4,2] splat "0000803f"} : f32[4,2] @"u"
    %2 = Relu(%0) : f32[3,4] @"relu"
    %3 = MatMul(%2, %1) {transpose_a = false, transpose_b = false} : f32[3,2] @"fc"
    return %3 @"out")");
}

// A transpose that cannot vanish stands where the value is smallest.
TEST(PropagateTransposes, SinksToWhereThereIsLess) {
  Expect(R"(
    %x = Placeholder() : f32[6,4] @"x"
    %a = Transpose(%x) {perm = [1, 0]} : f32[4,6] @"xt"
    %b = Relu(%a) : f32[4,6] @"relu"
    %c = Slice(%b) {begin = [0, 2], size = [4, 3], strides = [1, 1]} : f32[4,3] @"slice"
    return %c @"out")",
         R"(
    %0 = Placeholder() : f32[6,4] @"x"
    %1 = Relu(%0) : f32[6,4] @"relu"
    %2 = Slice(%1) {begin = [2, 0], size = [3, 4], strides = [1, 1]} : f32[3,4] @"slice"
    %3 = Transpose(%2) {perm = [1, 0]} : f32[4,3] @"slice/transpose"
    return %3 @"out")");
}

TEST(PropagateTransposes, HoistsToWhereThereIsLess) {
  Expect(R"(
    %x = Placeholder() : f32[2,3] @"x"
    %a = Exp(%x) : f32[2,3] @"exp"
    %b = Pad(%a) {paddings = [4, 4, 0, 0], value = 0.0} : f32[10,3] @"pad"
    %c = Transpose(%b) {perm = [1, 0]} : f32[3,10] @"t"
    return %c @"out")",
         R"(
    %0 = Placeholder() : f32[2,3] @"x"
    %1 = Exp(%0) : f32[2,3] @"exp"
    %2 = Transpose(%1) {perm = [1, 0]} : f32[3,2] @"exp/transpose"
    %3 = Pad(%2) {paddings = [0, 0, 4, 4], value = 0.0} : f32[3,10] @"pad"
    return %3 @"out")");
}

// A second user wants the other order; moving would transpose as much.
TEST(PropagateTransposes, KeepsWhatWouldNotGetLess) {
  constexpr absl::string_view kText = R"(
    %x = Placeholder() : f32[4,6] @"x"
    %a = Transpose(%x) {perm = [1, 0]} : f32[6,4] @"xt"
    %b = Relu(%a) : f32[6,4] @"relu"
    return %b @"out", %a @"xt")";
  Expect(kText, kText);
}

// The Reshape cuts across the permuted dimensions.
TEST(PropagateTransposes, KeepsWhatAReshapeMixes) {
  constexpr absl::string_view kText = R"(
    %x = Placeholder() : f32[4,6] @"x"
    %a = Transpose(%x) {perm = [1, 0]} : f32[6,4] @"xt"
    %b = Reshape(%a) {shape = [4, 6]} : f32[4,6] @"mix"
    %c = Transpose(%b) {perm = [1, 0]} : f32[6,4] @"back"
    return %c @"out")";
  Expect(kText, kText);
}

// Two products with one weight: it cannot follow one of them alone.
TEST(PropagateTransposes, KeepsASharedWeight) {
  constexpr absl::string_view kText = R"(
    %x = Placeholder() : f32[1,2,3] @"x"
    %y = Placeholder() : f32[1,6] @"y"
    %v = Const() {value = f32[6,2] splat "0000803f"} : f32[6,2] @"w"
    %a = Transpose(%x) {perm = [0, 2, 1]} : f32[1,3,2] @"xt"
    %b = Reshape(%a) {shape = [1, 6]} : f32[1,6] @"flat"
    %c = MatMul(%b, %v) {transpose_a = false, transpose_b = false} : f32[1,2] @"fc1"
    %d = MatMul(%y, %v) {transpose_a = false, transpose_b = false} : f32[1,2] @"fc2"
    return %c @"c", %d @"d")";
  Expect(kText, kText);
}

TEST(RemainingTransposes, SayWhyTheyStay) {
  const Graph graph = Parse(R"(
    %x = Placeholder() : f32[1,4,5,3] @"x"
    %v = Const() {value = f32[2,3] splat "0000803f"} : f32[2,3] @"w"
    %a = MaxPool(%x) {kernel = [2, 2], pads = [0, 0, 0, 0], strides = [2, 2]} : f32[1,2,2,3] @"pool"
    %b = Transpose(%a) {perm = [0, 3, 1, 2]} : f32[1,3,2,2] @"t"
    %c = Relu(%b) : f32[1,3,2,2] @"relu"
    %d = Reshape(%x) {shape = [2, 30]} : f32[2,30] @"flat"
    %e = MatMul(%d, %v) {transpose_a = true, transpose_b = false} : f32[30,3] @"fc"
    return %b @"nchw", %c @"relu", %e @"fc")");
  const std::vector<RemainingTranspose> left = RemainingTransposes(graph);
  ASSERT_EQ(left.size(), 2);
  EXPECT_EQ(left[0].node, "t");
  EXPECT_EQ(left[0].shape, (Shape{1, 2, 2, 3}));
  EXPECT_EQ(left[0].perm, (std::vector<int64_t>{0, 3, 1, 2}));
  EXPECT_EQ(left[0].reason,
            "MaxPool 'pool' gives its result in this order alone; output 'nchw' is wanted in that "
            "one; behind Relu 'relu' it would move no less");
  EXPECT_EQ(left[1].node, "fc");
  EXPECT_EQ(left[1].perm, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(left[1].reason,
            "in front of Reshape 'flat' it would move no less; the product reads rows");
}

int64_t TransposedElements(const Graph& graph) {
  int64_t elements = 0;
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::kTranspose) elements += graph.type(node.inputs[0]).element_count();
    if (node.op == Op::kMatMul && BoolAttrOr(node, "transpose_a", false)) {
      elements += graph.type(node.inputs[0]).element_count();
    }
  }
  return elements;
}

void ExpectEqualResults(const Graph& graph, const Graph& other, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Tensor> inputs;
  for (const ValueId input : graph.inputs()) {
    std::vector<float> values(graph.type(input).element_count());
    for (float& value : values)
      value = 0.125f * static_cast<float>(static_cast<int>(random() % 33) - 16);
    inputs.push_back(Tensor::FromFloats(graph.type(input).shape, values));
  }
  const std::vector<Tensor> before = *RunReference(graph, inputs);
  const std::vector<Tensor> after = *RunReference(other, inputs);
  for (size_t i = 0; i < before.size(); ++i) {
    ASSERT_EQ(before[i].type(), after[i].type());
    for (int64_t k = 0; k < before[i].element_count(); ++k) {
      const double want = before[i].at(k);
      // Sums are added in another order.
      ASSERT_NEAR(after[i].at(k), want, 1e-4 * std::max(1.0, std::fabs(want)));
    }
  }
}

TEST(PropagateTransposes, RandomGraphsComputeTheSameWithFewerTransposes) {
  int64_t before = 0;
  int64_t after = 0;
  for (uint32_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(seed);
    // Two clean graphs: what merges by itself is no merit of this pass.
    const Graph graph = *DeadCode(*RemoveIdentity(*Canonicalize(RandomTransposeGraph(seed))));
    ASSERT_TRUE(VerifyGraph(graph).ok()) << VerifyGraph(graph);
    const absl::StatusOr<Graph> moved = PropagateTransposes(graph);
    ASSERT_TRUE(moved.ok()) << moved.status();
    ASSERT_TRUE(VerifyGraph(*moved).ok()) << VerifyGraph(*moved);
    EXPECT_TRUE(SameGraph(*moved, *PropagateTransposes(*moved)));
    ASSERT_LE(TransposedElements(*moved), TransposedElements(graph));
    before += TransposedElements(graph);
    after += TransposedElements(*moved);
    ExpectEqualResults(graph, *moved, seed);
    const Graph all = *RunPasses(graph);
    EXPECT_TRUE(SameGraph(all, *RunPasses(all)));
    ExpectEqualResults(graph, all, seed);
  }
  EXPECT_LT(static_cast<double>(after), 0.8 * static_cast<double>(before));
  RecordProperty("transposed_elements_before", std::to_string(before));
  RecordProperty("transposed_elements_after", std::to_string(after));
}

}  // namespace
}  // namespace npuc
