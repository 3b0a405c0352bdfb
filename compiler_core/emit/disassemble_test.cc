#include "compiler_core/emit/disassemble.h"

#include "absl/strings/escaping.h"
#include "compiler_core/emit/fixtures_test_util.h"
#include "compiler_core/emit/header_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using testing::HasSubstr;

std::vector<uint8_t> FromHex(absl::string_view hex) {
  const std::string bytes = absl::HexStringToBytes(hex);
  return {bytes.begin(), bytes.end()};
}

// relu of 64 elements, from data+0 to output+16, with the end link.
constexpr absl::string_view kRelu =
    "01010000"
    "00000070"
    "00000010"
    "00000000"
    "00000000"
    "10000040"
    "10000000"
    "40011000"
    "40004000"
    "40004000"
    "00000000"
    "00000000";

TEST(Disassemble, ListsACommand) {
  const Disassembly d = DisassembleCommands(FromHex(kRelu));
  EXPECT_EQ(d.text,
            "000000  00000101  activation f=relu a=data+0x0 d=output+0x10 ext=1x1x64 "
            "a_stride=64,64 d_stride=64,64\n"
            "# the stream ends at byte 48 of 48\n");
  EXPECT_TRUE(d.complete);
  EXPECT_EQ(d.command_count, 1);
}

TEST(Disassemble, UnknownFieldsAreShownRawAndListingGoesOn) {
  std::vector<uint8_t> bytes = FromHex(kRelu);
  bytes[2] = 2;  // followed directly: then the link word is gone
  bytes.erase(bytes.begin() + 4, bytes.begin() + 8);
  bytes[20] = 0x0f;  // no such kind
  const std::vector<uint8_t> last = FromHex(kRelu);
  bytes.insert(bytes.end(), last.begin(), last.end());
  const Disassembly d = DisassembleCommands(bytes);
  EXPECT_FALSE(d.complete);
  EXPECT_EQ(d.command_count, 2);
  EXPECT_EQ(d.end_bytes, 92);
  EXPECT_THAT(d.text, HasSubstr("unknown 10000000 00000000 00000000 40000010 0000000f"));
  EXPECT_THAT(d.text, HasSubstr("unknown control word 0x0000000f"));
  EXPECT_THAT(d.text, HasSubstr("000044  00000101  activation"));
}

TEST(Disassemble, UnknownOpcodesEndTheListingAndTheRestIsRaw) {
  std::vector<uint8_t> bytes = FromHex("77665544332211");
  const Disassembly d = DisassembleCommands(bytes);
  EXPECT_FALSE(d.complete);
  EXPECT_EQ(d.text,
            "# command at byte 0: unknown opcode 0x77; known are 0x01 and 0x40 to 0x43\n"
            "000000  raw 44556677 33 22 11\n");
}

TEST(Disassemble, EveryVendorHeaderIsKnownToItsEnd) {
  const std::vector<std::filesystem::path> headers = VendorHeaders();
  if (headers.empty()) GTEST_SKIP() << "no published headers at " << SharedFolder();
  for (const std::filesystem::path& path : headers) {
    Diagnostics diagnostics;
    const absl::StatusOr<CompiledModel> model =
        ReadCHeader(ReadTestFile(path), path.filename().string(), diagnostics);
    ASSERT_TRUE(model.ok()) << model.status();
    const Disassembly d = DisassembleModel(*model);
    EXPECT_TRUE(d.complete) << path;
    EXPECT_EQ(d.end_bytes, static_cast<int64_t>(model->cmd_content.size())) << path;
    EXPECT_THAT(d.text, HasSubstr("# the stream ends at byte")) << path;
  }
}

}  // namespace
}  // namespace npuc
