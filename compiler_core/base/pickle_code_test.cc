#include "compiler_core/base/pickle_code.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::pickle {
namespace {

using ::testing::HasSubstr;

// The one instruction of `bytes`.
Instruction Only(const std::string& bytes) {
  static std::string kept;
  kept = bytes;
  CodeReader code(kept);
  Instruction instruction;
  EXPECT_TRUE(code.Next(instruction).ok());
  EXPECT_TRUE(code.at_end());
  return instruction;
}

std::string ProblemOf(const std::string& bytes) {
  CodeReader code(bytes);
  Instruction instruction;
  return std::string(code.Next(instruction).message());
}

// As pickletools.dis shows them.
TEST(PickleCodeTest, Operands) {
  EXPECT_EQ(Only("K\xff").integer, 255);
  EXPECT_EQ(Only("M\x01\x02").integer, 0x201);
  EXPECT_EQ(Only("J\xfe\xff\xff\xff").integer, -2);
  EXPECT_EQ(Only(std::string("\x8a\x00", 2)).integer, 0);
  EXPECT_EQ(Only("\x8a\x01\xff").integer, -1);
  EXPECT_EQ(Only(std::string("\x8a\x02\xff\x00", 4)).integer, 255);
  EXPECT_EQ(Only("\x8a\x08\x01\x02\x03\x04\x05\x06\x07\x80").integer,
            static_cast<int64_t>(0x8007060504030201));
  EXPECT_EQ(Only(std::string("G\xbf\xf8\0\0\0\0\0\0", 9)).real, -1.5);
  EXPECT_EQ(Only("\x8c\x02hi").text, "hi");
  EXPECT_EQ(Only(std::string("X\x02\0\0\0hi", 7)).text, "hi");
  EXPECT_EQ(Only(std::string("\x8e\x02\0\0\0\0\0\0\0hi", 11)).text, "hi");
  EXPECT_EQ(Only("r\xff\xff\xff\xff").integer, 0xffffffff);
  const Instruction global = Only("ccopyreg\n_reconstructor\n");
  EXPECT_EQ(global.text, "copyreg");
  EXPECT_EQ(global.name, "_reconstructor");
  EXPECT_EQ(Only("\x80\x04").integer, 4);
  EXPECT_EQ(Only("?").opcode, '?');
}

TEST(PickleCodeTest, Places) {
  CodeReader code("\x80\x02K\x07.");
  Instruction instruction;
  for (const size_t at : {0, 2, 4}) {
    ASSERT_TRUE(code.Next(instruction).ok());
    EXPECT_EQ(instruction.at, at);
  }
  EXPECT_FALSE(code.Next(instruction).ok());
  EXPECT_EQ(instruction.at, 5u);
}

TEST(PickleCodeTest, Malformed) {
  EXPECT_THAT(ProblemOf(""), HasSubstr("ends inside an instruction: 1 bytes are needed and 0"));
  EXPECT_THAT(ProblemOf("J\x01"), HasSubstr("4 bytes are needed and 1 are left"));
  EXPECT_THAT(ProblemOf("X\xff\xff\xff\xffhi"), HasSubstr("4294967295 bytes are needed and 2"));
  EXPECT_THAT(ProblemOf("\x8e\xff\xff\xff\xff\xff\xff\xff\xffhi"),
              HasSubstr("18446744073709551615 bytes are needed and 2"));
  EXPECT_THAT(ProblemOf("\x8a\x09" + std::string(9, '\x01')), HasSubstr("an int has 9 bytes"));
  EXPECT_THAT(ProblemOf("cnumpy"), HasSubstr("does not end within 512 bytes"));
  EXPECT_THAT(ProblemOf("c" + std::string(513, 'x') + "\ny\n"), HasSubstr("within 512 bytes"));
}

}  // namespace
}  // namespace npuc::pickle
