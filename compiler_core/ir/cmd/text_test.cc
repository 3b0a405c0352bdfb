#include "compiler_core/ir/cmd/text.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/ir/cmd/raw_forms.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using ::testing::HasSubstr;

Operand At(int buffer, int64_t offset = 0) { return {BufferId(buffer), offset}; }

// A program with every kind of line and field.
Program Everything() {
  Program p;
  p.data_bytes = 4096;
  for (int i = 0; i < 100; ++i) p.weights.push_back(static_cast<uint8_t>(7 * i));
  p.inputs = {{"x \"quoted\"\n", {1, 2, 3}, DType::kFloat16, 0, -1},
              {"state", {4}, DType::kFloat16, 12, -1}};
  p.outputs = {{"y", {}, DType::kFloat32, 0, -1}, {"next", {4}, DType::kFloat16, 4, 1}};
  p.buffers = {{Slot::kInput, 20, 0, "x"},
               {Slot::kWeight, 100, 0, ""},
               {Slot::kData, 4096, -1, "layer/1"},
               {Slot::kOutput, 12, 0, "y"}};
  VectorCommand v;
  v.kind = VectorCommand::Kind::kPool;
  v.average = true;
  v.reduce_middle = true;
  v.a_is_immediate = true;
  v.activation = Activation::kSelu;
  v.arithmetic = Arithmetic::kPow;
  v.window_h = 15;
  v.window_w = 2;
  v.a = At(0, 2);
  v.b = At(1);
  v.c = At(2, 0x1234);
  v.d = At(3);
  v.extents = {4095, 17, 64};
  v.a_outer_stride = 65535;
  v.a_middle_stride = 1;
  v.d_outer_stride = 2;
  v.d_middle_stride = 3;
  v.immediate = 0xbc00;
  p.commands.push_back({v, false, true, "node \\ \x01", 0x70000000u});
  for (int kind = 0; kind <= static_cast<int>(VectorCommand::Kind::kBatchNorm); ++kind) {
    VectorCommand plain;
    plain.kind = static_cast<VectorCommand::Kind>(kind);
    plain.a = At(2);
    plain.d = At(2, 8);
    p.commands.push_back({plain, true, false, "", {}});
  }
  FullyConnectedCommand fc;
  fc.a = At(2);
  fc.codes = At(1, 32);
  fc.mask = At(1);
  fc.d = At(2, 64);
  fc.n = 10;
  fc.k = 20;
  fc.min = 0xb9ba;
  fc.step = 0x1234;
  p.commands.push_back({fc, true, false, "fc", {}});
  fc.min = fc.step = 0;
  fc.form.book_bits = 6;
  p.commands.push_back({fc, true, false, "book", {}});
  RawCommand convolution = MakeConvolution({.in_h = 5,
                                            .in_w = 6,
                                            .in_c = 2,
                                            .out_h = 3,
                                            .out_w = 4,
                                            .out_c = 7,
                                            .kernel_h = 3,
                                            .kernel_w = 3,
                                            .stride_h = 1,
                                            .stride_w = 1,
                                            .bias = true,
                                            .weights = {.exponent_bits = 4}});
  convolution.a = At(2);
  convolution.weights = At(1);
  convolution.d = At(2, 256);
  p.commands.push_back({convolution, true, false, "conv", {}});
  RawCommand depthwise = MakeDepthwise({.in_h = 5,
                                        .in_w = 6,
                                        .out_h = 3,
                                        .out_w = 4,
                                        .channels = 3,
                                        .multiplier = 1,
                                        .kernel_h = 3,
                                        .kernel_w = 3,
                                        .stride_h = 1,
                                        .stride_w = 1});
  depthwise.a = At(2);
  depthwise.weights = At(1);
  depthwise.d = At(2, 256);
  p.commands.push_back({depthwise, true, false, "dw", {}});
  RawCommand transpose = MakeTranspose({.rows = 40, .columns = 33});
  transpose.a = At(2);
  transpose.d = At(2, 256);
  p.commands.push_back({transpose, true, false, "t", {}});
  transpose.words[2] = 2;  // nobody knows what that would mean
  p.commands.push_back({transpose, true, false, "t", {}});
  p.commands.push_back({RawCommand{0x77, {}, {}, {}, {}, {1, 0xffffffffu}}, true, false, "", {}});
  p.commands.push_back({RawCommand{0x78, At(2), {}, {}, {}, {}}, false, false, "", {}});
  return p;
}

TEST(ProgramText, ParsesWhatItPrints) {
  const Program program = Everything();
  const std::string text = PrintProgram(program);
  const absl::StatusOr<Program> parsed = ParseProgram(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status() << "\n" << text;
  EXPECT_EQ(PrintProgram(*parsed), text);
  ASSERT_EQ(parsed->commands.size(), program.commands.size());
  for (size_t i = 0; i < program.commands.size(); ++i) {
    EXPECT_EQ(parsed->commands[i], program.commands[i]) << i;
  }
  EXPECT_EQ(parsed->weights, program.weights);
  EXPECT_EQ(parsed->data_bytes, program.data_bytes);
  EXPECT_EQ(parsed->inputs[0].name, program.inputs[0].name);
  EXPECT_EQ(parsed->outputs[1].state_input, 1);
  EXPECT_EQ(parsed->buffers[2].offset_bytes, -1);
}

TEST(ProgramText, SpaceAndCommentsAreFree) {
  const auto program = ParseProgram(
      "# first\nprogram{data 8 %0 data 8@0\"\" # one buffer\n copy a = %0 + 0x0\n d=%0+0x4 "
      "ext=1x1x2 }");
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(PrintProgram(*program),
            "program {\n  data 8\n  %0 data 8 @0 \"\"\n  copy a=%0+0x0 d=%0+0x4 ext=1x1x2 "
            "a_stride=0,0 d_stride=0,0\n}\n");
}

TEST(ProgramText, ElidedWeightsDoNotParse) {
  EXPECT_THAT(ParseProgram(PrintProgram(Everything(), {.weights = false})).status().message(),
              HasSubstr("line 3, column 11: weights without their bytes"));
}

struct Malformed {
  absl::string_view body;
  absl::string_view message;
};

TEST(ProgramText, MalformedTextNamesLineAndColumn) {
  const std::vector<Malformed> cases = {
      {"", "line 2, column 1: expected a command or '}', found the end"},
      {"data -1", "line 2, column 6: expected a number from 0 to 1099511627776"},
      {"data 99999999999999999999", "line 2, column 6: expected a number from 0 to 1099511627776"},
      {"weights \"0g\"", "line 2, column 9: weights are not pairs of hex digits"},
      {"weights \"000\"", "line 2, column 9: weights are not pairs of hex digits"},
      {"input \"x\" f99 [1] @0", "line 2, column 7: an element type that there is not"},
      {"input \"x\" f16 [1,1,1,1,1,1,1,1,1] @0",
       "line 2, column 14: rank 9 exceeds the limit of 8"},
      {"input \"x\" f16 [1] 0", "line 2, column 19: expected '@', found '0'"},
      {"output \"y\" f16 [1] @0 state 0", "line 2, column 29: expected a number from -1 to -1"},
      {"%1 data 8 @0 \"\"", "line 2, column 1: buffers count up; this one is %0"},
      {"%0 disk 8 @0 \"\"", "line 2, column 4: expected a slot such as data, found 'd'"},
      {"%0 data 8 @-2 \"\"", "line 2, column 12: expected a number from -1 to 1099511627776"},
      {"%0 data 8 @0 \"\" shuffle a=%0+0x0", "line 2, column 17: no command 'shuffle'"},
      {"copy a=%0+0x0", "line 2, column 8: there is no buffer %0"},
      {"%0 data 8 @0 \"\" copy a=%0+8", "line 2, column 27: expected a number 0x..., found '8'"},
      {"%0 data 8 @0 \"\" copy a=%0+0x0 a=%0+0x0", "line 2, column 31: 'a' is given twice"},
      {"%0 data 8 @0 \"\" copy no_wait no_wait", "line 2, column 30: 'no_wait' is given twice"},
      {"copy bias", "line 2, column 6: copy has no flag 'bias'"},
      {"copy n=3", "line 2, column 6: copy has no field 'n'"},
      {"fully_connected window=2x2", "line 2, column 17: fully_connected has no field 'window'"},
      {"copy ext=1x2", "line 2, column 10: expected 3 numbers with x between them"},
      {"copy ext=1x2x65536", "line 2, column 10: expected a number from 0 to 65535"},
      {"pool window=256x1", "line 2, column 13: expected a number from 0 to 255"},
      {"activation f=sine", "line 2, column 14: expected a function such as relu, found 's'"},
      {"tensor_scalar op=mod", "line 2, column 18: expected an operation such as add, found 'm'"},
      {"copy imm=0x10000", "line 2, column 10: expected a number from 0 to 65535, in hex"},
      {"copy a_stride=1", "line 3, column 1: expected ',', found '}'"},
      {"raw opcode=0x43 words=00000000,",
       "line 3, column 1: expected a number from 0 to "
       "4294967295, in hex"},
      {"transpose opcode=0x43 words=00000001",
       "line 2, column 1: the words are not those of a transpose command of opcode 67"},
      {"transpose opcode=0x43 rows=2 columns=2 "
       "words=00000000,00000000,00000001,01010203,00020003",
       "line 2, column 1: the words say 'rows=2 columns=3', the text 'rows=2 columns=2'"},
  };
  for (const Malformed& malformed : cases) {
    const std::string end = malformed.body.empty() ? "" : "\n}\n";
    const absl::Status status =
        ParseProgram(absl::StrCat("program {\n", malformed.body, end)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << malformed.body;
    EXPECT_EQ(status.message(), malformed.message) << malformed.body;
  }
  EXPECT_EQ(ParseProgram("graph {}").status().message(),
            "line 1, column 1: expected 'program', found 'g'");
  EXPECT_EQ(ParseProgram("program {} x").status().message(),
            "line 1, column 12: expected the end of the text, found 'x'");
}

TEST(ProgramText, EveryTruncationIsRefusedCleanly) {
  const std::string text = PrintProgram(Everything());
  for (size_t size = 0; size + 2 < text.size(); ++size) {
    EXPECT_FALSE(ParseProgram(absl::string_view(text).substr(0, size)).ok()) << size;
  }
}

TEST(ProgramText, LimitsBoundTextAndWeights) {
  ProgramParseOptions options;
  options.max_text_bytes = 5;
  EXPECT_EQ(ParseProgram("program {}", options).status().message(), "text of 10 bytes; at most 5");
  options = {};
  options.max_weight_bytes = 3;
  EXPECT_EQ(
      ParseProgram("program { weights \"0000\" weights \"0000\" }", options).status().message(),
      "line 1, column 34: more than 3 weight bytes");
}

}  // namespace
}  // namespace npuc
