#include "compiler_core/emit/grus_codec.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/emit/fixtures_test_util.h"
#include "compiler_core/emit/header_reader.h"
#include "compiler_core/ir/cmd/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using Kind = VectorCommand::Kind;
using testing::HasSubstr;

Operand At(Slot slot, int64_t offset) { return {BufferId(static_cast<int32_t>(slot)), offset}; }

std::string Hex(absl::Span<const uint8_t> bytes) {
  return absl::BytesToHexString({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::vector<uint8_t> FromHex(absl::string_view hex) {
  const std::string bytes = absl::HexStringToBytes(hex);
  return {bytes.begin(), bytes.end()};
}

VectorCommand Row(Kind kind, Operand a, Operand d, uint16_t count) {
  VectorCommand v;
  v.kind = kind;
  v.a = a;
  v.d = d;
  v.extents = {1, 1, count};
  v.a_middle_stride = v.a_outer_stride = v.d_middle_stride = v.d_outer_stride = count;
  return v;
}

// The published MNIST example: [1,784] x [784,10] + bias, then to float32.
Program MnistProgram() {
  Program p;
  p.buffers = {{Slot::kInput, 1568, 0, "input_x"}, {Slot::kWeight, 8928, 0, "w"},
               {Slot::kWeight, 20, 8928, "b"},     {Slot::kData, 20, 0, "MatMul"},
               {Slot::kData, 20, 20, "add"},       {Slot::kOutput, 40, 0, "result"}};
  FullyConnectedCommand fc;
  fc.a = {BufferId(0), 0};
  fc.codes = {BufferId(1), 25 * 32 * 4};
  fc.mask = {BufferId(1), 0};
  fc.d = {BufferId(3), 0};
  fc.n = 10;
  fc.k = 784;
  fc.min = 0xb981;
  fc.step = 0x1dba;
  VectorCommand add = Row(Kind::kTensorTensor, {BufferId(3), 0}, {BufferId(4), 0}, 10);
  add.b = {BufferId(2), 0};
  const VectorCommand format = Row(Kind::kFormat, {BufferId(4), 0}, {BufferId(5), 0}, 10);
  p.commands = {{fc, true, false, "MatMul", {}},
                {add, true, false, "add", {}},
                {format, true, false, "result", {}}};
  return p;
}

// The expected bytes, a word a line, written out from the published description of the example.
constexpr absl::string_view kMnistBytes =
    "40010200"  // 0x40, waits, followed directly
    "00000030"
    "800c0060"
    "00000010"  // input+0, codes at weight+3200, data+0
    "00000000"
    "00000060"  // zero, mask at weight+0
    "0a00"
    "1003"
    "0a"
    "10"
    "01"
    "19"  // N 10, K 784; last block 10 wide, 16 high; 1 x 25 blocks
    "00000001"
    "00000000"  // 0x01000000, zero
    "81b9"
    "ba1d"
    "00640080"  // min, step, 0x8000 | 25 * 1024 mask bits
    "01030200"  // 0x01, waits on two sources
    "00000010"
    "e0220060"
    "00000000"
    "14000010"  // data+0, weight+8928, none, data+20
    "05000000"
    "0a011000"  // tensor-tensor add; extents 1, 1, 10
    "0a000a00"
    "0a000a00"  // strides of 10 elements
    "0000"
    "000000000000"  // immediate, tail
    "01010000"
    "00000070"  // 0x01, waits, a link: the end
    "14000010"
    "00000000"
    "00000000"
    "00000040"  // data+20, none, none, output+0
    "07000100"
    "0a011000"  // format fp16 -> fp32
    "0a000a00"
    "0a000a00"
    "0000"
    "000000000000";

TEST(GrusCodec, EncodesThePublishedExample) {
  const absl::StatusOr<std::vector<uint8_t>> bytes = EncodeCommands(MnistProgram());
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(bytes->size(), 140u);
  EXPECT_EQ(Hex(*bytes), kMnistBytes);
}

// One command of every form, every field away from its default.
Program EveryForm() {
  Program p;
  p.buffers = SlotBuffers();
  const Operand a = At(Slot::kData, 0x20);
  const Operand d = At(Slot::kData, 0x4000);
  const auto add = [&p](Command command) { p.commands.push_back(std::move(command)); };
  VectorCommand v = Row(Kind::kActivation, a, d, 64);
  for (const Activation f :
       {Activation::kRelu, Activation::kSigmoid, Activation::kTanh, Activation::kSelu}) {
    v.activation = f;
    add({v, true, false, "", {}});
  }
  v = Row(Kind::kPool, a, d, 7);
  v.extents = {30, 4095, 7};
  v.window_h = 15;
  v.window_w = 3;
  v.a_outer_stride = 0xfffe;
  v.average = true;
  add({v, false, false, "", {}});
  v = Row(Kind::kReduce, a, d, 255);
  v.immediate = 0x3c00;
  add({v, true, false, "", {}});
  v.reduce_middle = true;
  add({v, true, true, "", {}});
  for (const Arithmetic op :
       {Arithmetic::kAdd, Arithmetic::kSub, Arithmetic::kMul, Arithmetic::kDiv}) {
    v = Row(Kind::kTensorVector, a, d, 9);
    v.arithmetic = op;
    v.b = At(Slot::kWeight, 0x123456);
    add({v, true, false, "", {}});
    v.kind = Kind::kTensorTensor;
    v.a = {};
    v.a_is_immediate = true;
    v.immediate = 0x3c00;
    add({v, false, false, "", 0x20000abcu});
  }
  for (int op = 0; op <= static_cast<int>(Arithmetic::kLog); ++op) {
    v = Row(Kind::kTensorScalar, At(Slot::kInput, 0), d, 9);
    v.arithmetic = static_cast<Arithmetic>(op);
    v.immediate = 0xbc01;
    add({v, true, false, "", {}});
  }
  v = Row(Kind::kBatchNorm, a, d, 2);
  v.b = At(Slot::kWeight, 2);
  v.c = At(Slot::kWeight, 6);
  add({v, true, false, "", {}});
  FullyConnectedCommand fc;
  fc.a = a;
  fc.codes = At(Slot::kWeight, 10);
  fc.d = At(Slot::kTmp, 2);
  fc.n = 8160;
  fc.k = 33;
  add({fc, true, false, "", {}});
  fc.form.exponent_bits = 6;
  add({fc, true, false, "", {}});
  fc.form = {.book_bits = 5};
  fc.mask = At(Slot::kWeight, 2);
  fc.n = 64;
  add({fc, true, false, "", {}});
  add({RawCommand{0x43, a, {}, {}, d, {0, 0, 1, 0x02012013, 0x00400013}}, true, false, "", {}});
  add({Row(Kind::kCopy, a, At(Slot::kOutput, 0), 3), true, false, "", {}});
  return p;
}

TEST(GrusCodec, DecodesWhatItEncodes) {
  const Program p = EveryForm();
  const absl::StatusOr<std::vector<uint8_t>> bytes = EncodeCommands(p);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const absl::StatusOr<Program> back = DecodeCommands(*bytes);
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_EQ(back->commands.size(), p.commands.size());
  for (size_t i = 0; i < p.commands.size(); ++i)
    EXPECT_TRUE(back->commands[i] == p.commands[i]) << i;
}

TEST(GrusCodec, VendorStreamsSurviveDecodingAndEncoding) {
  const std::vector<std::filesystem::path> headers = VendorHeaders();
  if (headers.empty()) GTEST_SKIP() << "no published headers at " << SharedFolder();
  for (const std::filesystem::path& path : headers) {
    Diagnostics diagnostics;
    const absl::StatusOr<CompiledModel> model =
        ReadCHeader(ReadTestFile(path), path.filename().string(), diagnostics);
    ASSERT_TRUE(model.ok()) << model.status();
    const absl::StatusOr<Program> program = DecodeCommands(model->cmd_content);
    ASSERT_TRUE(program.ok()) << path << ": " << program.status();
    const absl::StatusOr<std::vector<uint8_t>> bytes = EncodeCommands(*program);
    ASSERT_TRUE(bytes.ok()) << path << ": " << bytes.status();
    EXPECT_EQ(Hex(*bytes), Hex(model->cmd_content)) << path;
    const absl::StatusOr<Program> parsed = ParseProgram(PrintProgram(*program));
    ASSERT_TRUE(parsed.ok()) << path << ": " << parsed.status();
    EXPECT_EQ(PrintProgram(*parsed), PrintProgram(*program)) << path;
    EXPECT_EQ(Hex(*EncodeCommands(*parsed)), Hex(model->cmd_content)) << path;
  }
}

TEST(GrusCodec, RefusesToEncodeWhatDoesNotFit) {
  Program p = MnistProgram();
  p.buffers[4].offset_bytes = -1;
  EXPECT_THAT(EncodeCommands(p).status().message(), HasSubstr("buffer 4 has no usable offset"));
  p = MnistProgram();
  p.commands.pop_back();
  p.commands.pop_back();
  EXPECT_THAT(EncodeCommands(p).status().message(),
              HasSubstr("the last command must be a vector command"));
  p = MnistProgram();
  std::get<VectorCommand>(p.commands[1].body).extents[2] = 256;
  EXPECT_THAT(EncodeCommands(p).status().message(), HasSubstr("do not fit 12, 12 and 8 bits"));
  p = MnistProgram();
  p.buffers[0].slot = Slot::kOps;
  EXPECT_THAT(EncodeCommands(p).status().message(), HasSubstr("ops+0 has no encoding"));
  EXPECT_EQ(EncodeCommands(Program()).status().code(), absl::StatusCode::kInternal);
}

// Decodes the example with some bytes changed.
absl::Status DecodePatched(size_t offset, uint8_t value) {
  std::vector<uint8_t> bytes = FromHex(kMnistBytes);
  bytes[offset] = value;
  return DecodeCommands(bytes).status();
}

TEST(GrusCodec, NamesTheOffsetOfWhatItDoesNotKnow) {
  EXPECT_THAT(DecodePatched(0, 0x44).message(),
              HasSubstr("command at byte 0: unknown opcode 0x44; known are 0x01 and 0x40 to 0x43"));
  EXPECT_THAT(DecodePatched(50, 0x12).message(),
              HasSubstr("command at byte 48: header word 0x00120301 has unknown bits 0x00100000"));
  EXPECT_THAT(DecodePatched(49, 0x01).message(),
              HasSubstr("command at byte 48: header word 0x00020101; a command of its kind has"));
  EXPECT_THAT(DecodePatched(68, 0x09).message(), HasSubstr("unknown control word 0x00000009"));
  EXPECT_THAT(DecodePatched(91, 0x01).message(), HasSubstr("payload word +36 is 0x01000000"));
  EXPECT_THAT(DecodePatched(29, 0x11).message(), HasSubstr("payload word +24"));
  EXPECT_THAT(DecodePatched(55, 0x90).message(), HasSubstr("operand a is address 0x90000000"));
  EXPECT_THAT(DecodePatched(99, 0x20).message(),
              HasSubstr("command at byte 140: the stream ends within it, 0 bytes are left"));
}

TEST(GrusCodec, TheStreamEndsWhereTheArrayEnds) {
  std::vector<uint8_t> bytes = FromHex(kMnistBytes);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeCommands(absl::MakeSpan(bytes.data(), size)).ok()) << size;
  }
  bytes.push_back(0);
  EXPECT_THAT(DecodeCommands(bytes).status().message(),
              HasSubstr("the stream ends at byte 140, but has 141 bytes"));
}

}  // namespace
}  // namespace npuc
