#include "compiler_core/ir/cmd/access.h"
#include "compiler_core/ir/cmd/raw_forms.h"
#include "compiler_core/ir/cmd/text.h"
#include "compiler_core/ir/cmd/verify.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using Kind = VectorCommand::Kind;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

Operand In(int buffer, int64_t offset = 0) { return {BufferId(buffer), offset}; }

// y = x + w over 2 x 3 x 4 elements, then to float.
Program SmallProgram() {
  Program p;
  p.buffers = {{Slot::kInput, 48, 0, "x"},
               {Slot::kWeight, 8, 0, "w"},
               {Slot::kData, 48, 0, "sum"},
               {Slot::kOutput, 96, 0, "y"}};
  p.weights = {0, 1, 2, 3, 4, 5, 6, 7};
  p.data_bytes = 48;
  p.inputs = {{"x", {2, 3, 4}, DType::kFloat16, 0, -1}};
  p.outputs = {{"y", {2, 3, 4}, DType::kFloat32, 0, -1}};
  VectorCommand add;
  add.kind = Kind::kTensorVector;
  add.a = In(0);
  add.b = In(1);
  add.d = In(2);
  add.extents = {2, 3, 4};
  add.a_middle_stride = add.d_middle_stride = 4;
  add.a_outer_stride = add.d_outer_stride = 12;
  VectorCommand format = add;
  format.kind = Kind::kFormat;
  format.b = {};
  format.a = In(2);
  format.d = In(3);
  p.commands = {{add, true, false, "sum", {}}, {format, true, false, "y", {}}};
  return p;
}

VectorCommand& Vector(Program& p, size_t i) { return std::get<VectorCommand>(p.commands[i].body); }

TEST(Verify, AcceptsASoundProgram) {
  const absl::Status status = VerifyProgram(SmallProgram());
  EXPECT_TRUE(status.ok()) << status;
}

TEST(Verify, NamesEveryFault) {
  Program p = SmallProgram();
  Vector(p, 0).extents[2] = 300;  // 8 bits; also past all buffers
  Vector(p, 1).d = In(1);         // written weights
  Vector(p, 1).c = In(2);         // format has no c
  const absl::Status status = VerifyProgram(p);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("inner extent 300 is outside 1..255"));
  EXPECT_THAT(status.message(), HasSubstr("operand d is written in slot weight"));
  EXPECT_THAT(status.message(), HasSubstr("operand c has no meaning here"));
}

TEST(Verify, RefusesTheFirstByteBehindABuffer) {
  Program p = SmallProgram();
  Vector(p, 0).a_outer_stride = 13;  // one element too far
  EXPECT_THAT(CommandProblems(p.buffers, p.commands[0]),
              Contains(HasSubstr("operand a takes 50 bytes at input+0 of a buffer of 48 bytes")));
  Vector(p, 0).a_outer_stride = 12;
  EXPECT_THAT(CommandProblems(p.buffers, p.commands[0]), IsEmpty());
}

TEST(Verify, BuffersLieWithinTheirSlot) {
  Program p = SmallProgram();
  p.buffers[2].offset_bytes = 2;
  EXPECT_THAT(VerifyProgram(p).message(), HasSubstr("48 bytes at data+2, but the slot has 48"));
}

TEST(Verify, CompressedWeightsHaveAMaskOf16Bits) {
  Program p = SmallProgram();
  p.buffers.push_back({Slot::kWeight, int64_t{1} << 20, 0, "big"});
  FullyConnectedCommand fc;
  fc.a = In(4);
  fc.codes = In(4);
  fc.mask = In(4);
  fc.d = In(4);
  fc.n = 256;
  fc.k = 256;
  EXPECT_THAT(CommandProblems(p.buffers, {fc, true, false, "", {}}),
              Contains(HasSubstr("is 65536; compressed weights allow 65535")));
}

int64_t SizeOfRole(const Command& command, OperandRole role) {
  for (const Access& access : AccessesOf(command)) {
    if (access.role == role) return access.size_bytes;
  }
  return -2;
}

TEST(Access, SizesFollowTheKind) {
  VectorCommand v;
  v.a = In(0);
  v.d = In(2);
  v.kind = Kind::kPool;
  v.extents = {6, 7, 5};
  v.window_h = 3;
  v.window_w = 2;
  v.a_middle_stride = 5;
  v.a_outer_stride = 35;
  v.d_middle_stride = 5;
  v.d_outer_stride = 15;
  EXPECT_EQ(SizeOfRole({v, true, false, "", {}}, OperandRole::kA), 6 * 7 * 5 * 2);
  EXPECT_EQ(SizeOfRole({v, true, false, "", {}}, OperandRole::kD), 2 * 3 * 5 * 2);
  v.kind = Kind::kReduce;
  v.d_middle_stride = 1;
  v.d_outer_stride = 7;
  EXPECT_EQ(SizeOfRole({v, true, false, "", {}}, OperandRole::kD), 6 * 7 * 2);
  v.reduce_middle = true;
  v.d_outer_stride = 5;
  EXPECT_EQ(SizeOfRole({v, true, false, "", {}}, OperandRole::kD), 6 * 5 * 2);
  v.kind = Kind::kTensorTensor;
  v.b = In(1);
  EXPECT_EQ(SizeOfRole({v, true, false, "", {}}, OperandRole::kB), 6 * 7 * 5 * 2);
  v.kind = Kind::kTensorVector;
  EXPECT_EQ(SizeOfRole({v, true, false, "", {}}, OperandRole::kB), 10);
}

TEST(Text, PrintsAProgram) {
  EXPECT_EQ(PrintProgram(SmallProgram()),
            "program {\n"
            "  data 48\n"
            "  weights \"0001020304050607\"\n"
            "  input \"x\" f16 [2,3,4] @0\n"
            "  output \"y\" f32 [2,3,4] @0 state -1\n"
            "  %0 input 48 @0 \"x\"\n"
            "  %1 weight 8 @0 \"w\"\n"
            "  %2 data 48 @0 \"sum\"\n"
            "  %3 output 96 @0 \"y\"\n"
            "  tensor_vector op=add a=%0+0x0 b=%1+0x0 d=%2+0x0 ext=2x3x4 a_stride=12,4 "
            "d_stride=12,4 node=\"sum\"\n"
            "  format a=%2+0x0 d=%3+0x0 ext=2x3x4 a_stride=12,4 d_stride=12,4 node=\"y\"\n"
            "}\n");
}

// A tile's counts and sizes follow from the image, the kernel and the stride; counts are bytes.
TEST(Depthwise, TilingFollowsFromTheOtherWords) {
  const DepthwiseForm form = {.in_h = 1,
                              .in_w = 7000,
                              .out_h = 1,
                              .out_w = 6996,
                              .channels = 1,
                              .multiplier = 4,
                              .kernel_h = 1,
                              .kernel_w = 5,
                              .stride_h = 1,
                              .stride_w = 1};
  const RawCommand command = MakeDepthwise(form);
  EXPECT_TRUE(ParseDepthwise(command).ok()) << ParseDepthwise(command).status();
  for (const size_t word : {size_t{4}, size_t{5}, size_t{6}}) {
    RawCommand other = command;
    other.words[word] ^= 0x00010000;
    EXPECT_THAT(ParseDepthwise(other).status().message(), HasSubstr("payload word"));
  }
  RawCommand wide = command;
  wide.words[7] = 0x00010000 | 16000;
  wide.words[9] = 0x00010000 | 15996;
  EXPECT_THAT(ParseDepthwise(wide).status().message(), HasSubstr("more than 255 tiles"));
  EXPECT_EQ(DepthwiseTiles(32, 5, 1), 1);
  EXPECT_EQ(DepthwiseTiles(33, 5, 1), 2);
  EXPECT_EQ(DepthwiseTiles(32 + 254 * 28, 5, 1), kMaxDepthwiseTiles);
}

}  // namespace
}  // namespace npuc
