#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/ir/integer/access.h"
#include "compiler_core/ir/integer/command.h"
#include "compiler_core/ir/integer/text.h"
#include "compiler_core/ir/integer/verify.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::integer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<Buffer> Buffers() {
  return {{Slot::kData, 64, 0, "x"}, {Slot::kWeight, 256, 0, "w"}, {Slot::kOutput, 64, 0, "y"}};
}

Operand In(int buffer, int64_t offset = 0) { return {BufferId(buffer), offset}; }

Convolve SmallConvolve() {
  Convolve c;
  c.a = In(0);
  c.weights = In(1);
  c.bias = In(1, 64);
  c.factors = In(1, 128);
  c.in_h = c.in_w = c.out_h = c.out_w = 4;
  c.in_c = 2;
  c.out_c = 3;
  c.result.d = In(2);
  return c;
}

TEST(CommandProblems, NoneOfASoundCommand) {
  EXPECT_THAT(CommandProblems(Buffers(), SmallConvolve()), IsEmpty());
}

TEST(CommandProblems, EachKind) {
  Convolve c = SmallConvolve();
  c.in_h = 17;
  EXPECT_THAT(CommandProblems(Buffers(), c), ElementsAre("operand a takes 136 bytes from 0 of 64"));
  c = SmallConvolve();
  c.groups = 2;
  c.result.max = 128;
  EXPECT_THAT(CommandProblems(Buffers(), c), ElementsAre("result range -128..128 is not one of i8",
                                                         "groups must divide in_c and out_c"));
  c = SmallConvolve();
  c.bias = {};
  c.weight_type = DType::kUint8;
  EXPECT_THAT(CommandProblems(Buffers(), c),
              ElementsAre("operand bias is missing", "weights are i8 or i16"));
  c = SmallConvolve();
  c.bias = In(1, 66);
  c.result.d = In(1);
  EXPECT_THAT(CommandProblems(Buffers(), c),
              ElementsAre("operand bias at 66 is not on a multiple of 4",
                          "operand d writes to slot weight"));
  c = SmallConvolve();
  c.result.d = In(0, 16);
  EXPECT_THAT(CommandProblems(Buffers(), c),
              ElementsAre("the result lies over bytes of operand a that are still to be read"));
  c.window.stride_h = 0;
  c.a_type = DType::kFloat32;
  EXPECT_THAT(CommandProblems(Buffers(), c),
              ElementsAre("a_type is f32; i8, u8, i16 or u16", "stride_h 0 is outside 1..65535"));
}

// [2,3] times the transpose of [4,3].
Product SmallProduct() {
  Product c;
  c.a = In(0);
  c.b = In(0, 6);
  c.factors = In(1);
  c.extents = {1, 1, 1, 2, 4, 3};
  c.a_strides = {0, 0, 0, 3, 0, 1};
  c.b_strides = {0, 0, 0, 0, 3, 1};
  c.result.d = In(2);
  return c;
}

TEST(CommandProblems, OfProducts) {
  EXPECT_THAT(CommandProblems(Buffers(), SmallProduct()), IsEmpty());
  EXPECT_EQ(WorkOf(SmallProduct()), 2 * 4 * 3);
  EXPECT_TRUE(MultipliesAndAdds(SmallProduct()));
  Product c = SmallProduct();
  c.b.offset_bytes = 53;
  EXPECT_THAT(CommandProblems(Buffers(), c), ElementsAre("operand b takes 12 bytes from 53 of 64"));
  c = SmallProduct();
  c.result.d = In(2, 57);
  EXPECT_THAT(CommandProblems(Buffers(), c), ElementsAre("operand d takes 8 bytes from 57 of 64"));
  c = SmallProduct();
  c.factors = {};
  c.b_strides[5] = -1;
  EXPECT_THAT(CommandProblems(Buffers(), c), ElementsAre("b_strides -1 is outside 0..268435456"));
  c.b_strides[5] = 1;
  EXPECT_THAT(CommandProblems(Buffers(), c), ElementsAre("operand factors is missing"));
}

// Four rows of 4 x 2 bytes give four of 4 x 2: row r may lie over rows below r, and, where the
// command descends, over rows above r.
TEST(CommandProblems, ResultsOverRows) {
  Convolve c = SmallConvolve();
  c.out_c = 2;
  const auto problems = [&c](int64_t a, int64_t d, bool descending) {
    c.a = In(0, a);
    c.result.d = In(0, d);
    return CommandProblems(Buffers(), c, descending);
  };
  EXPECT_THAT(problems(8, 0, false), IsEmpty());
  EXPECT_THAT(problems(7, 0, false), SizeIs(1));
  EXPECT_THAT(problems(8, 0, true), SizeIs(1));
  EXPECT_THAT(problems(0, 8, true), IsEmpty());
  EXPECT_THAT(problems(0, 8, false), SizeIs(1));
  c.window.kernel_h = 3;
  c.window.pad_top = 1;
  EXPECT_THAT(problems(8, 0, false), SizeIs(1));
  EXPECT_THAT(problems(16, 0, false), IsEmpty());
}

// A copy may lie over itself, and its elements over others only against its direction.
TEST(CommandProblems, ResultsOverElements) {
  Move move;
  move.extents = {1, 1, 1, 1, 4, 3};
  move.a_strides = move.d_strides = {0, 0, 0, 0, 4, 1};
  move.a = move.result.d = In(0, 8);
  EXPECT_THAT(CommandProblems(Buffers(), move, false), IsEmpty());
  EXPECT_THAT(CommandProblems(Buffers(), move, true), IsEmpty());
  move.result.d = In(0, 7);
  EXPECT_THAT(CommandProblems(Buffers(), move, false), IsEmpty());
  EXPECT_THAT(CommandProblems(Buffers(), move, true), SizeIs(1));
  move.result.d = In(0, 8);
  move.a_strides = {0, 0, 0, 0, 1, 4};  // a transposition
  EXPECT_THAT(CommandProblems(Buffers(), move, false), SizeIs(1));
}

TEST(CommandProblems, HugeNumbersDoNotOverflow) {
  Move move;
  move.a = In(0);
  move.result.d = In(2);
  move.extents = {1 << 27, 1 << 27, 1 << 27, 1 << 27, 1 << 27, 1 << 27};
  move.a_strides = {-(1 << 27), -(1 << 27), -(1 << 27), -(1 << 27), -(1 << 27), -(1 << 27)};
  EXPECT_THAT(CommandProblems(Buffers(), move), ElementsAre(HasSubstr("operand a takes")));
  EXPECT_EQ(WorkOf(move), int64_t{1} << 60);
}

TEST(AccessesOf, StridesReachBelowAndAbove) {
  Move move;
  move.a = In(0, 20);
  move.a_type = move.result.type = DType::kInt16;
  move.result.d = In(2);
  move.extents = {1, 1, 1, 1, 3, 4};
  move.a_strides = {0, 0, 0, 0, 6, -2};
  move.d_strides = {0, 0, 0, 0, 4, 1};
  const std::vector<Access> accesses = AccessesOf(move);
  ASSERT_EQ(accesses.size(), 2);
  EXPECT_EQ(accesses[0].operand.offset_bytes, 20 - 12);
  EXPECT_EQ(accesses[0].size_bytes, (12 + 6 + 1) * 2);
  EXPECT_EQ(accesses[1].size_bytes, 12 * 2);
  EXPECT_TRUE(accesses[1].writes);
}

TEST(PrintCommand, LeavesOutWhatIsUsual) {
  const auto text = [](const Operand& operand) {
    return absl::StrCat("%", operand.buffer.value());
  };
  EXPECT_EQ(PrintCommand(SmallConvolve(), text),
            "convolve a=%0 weights=%1 bias=%1 factors=%1 in_h=4 in_w=4 in_c=2 out_h=4 out_w=4 "
            "out_c=3 d=%2");
}

}  // namespace
}  // namespace npuc::integer
