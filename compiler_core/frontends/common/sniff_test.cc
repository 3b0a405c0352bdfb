#include "compiler_core/frontends/common/sniff.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(GuessFileKindTest, NamesWhatOtherToolsWrite) {
  const struct {
    std::string bytes;
    const char* what;
  } cases[] = {
      {"\x1f\x8b\x08", "gzip"},
      {std::string("GGUF\x03\0\0\0", 8), "GGUF"},
      {std::string("RKNN\0\0\0\0", 8), ".rknn"},
      {std::string("LDMK\x05\0\0\0", 8), "nncase"},
      {"7767517\n3 3\nInput data 0 1 data\n", "ncnn"},
      {"\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.", "pickle"},
      {"\x89HDF\r\n\x1a\n", "Keras .h5"},
      {"<?xml version=\"1.0\"?>\n<net name=\"a\" version=\"11\"><layers/></net>", "OpenVINO"},
      {"<?xml version=\"1.0\"?>\n<html></html>", "HTML or XML"},
      {absl::StrCat(std::string("\x02\0\0\0\0\0\0\0", 8), "{}"), "safetensors"},
      {"version https://git-lfs.github.com/spec/v1\n", "Git LFS"},
  };
  for (const auto& c : cases) {
    const FileGuess guess = GuessFileKind(c.bytes);
    EXPECT_THAT(guess.what, HasSubstr(c.what));
    EXPECT_THAT(guess.fix, Not(IsEmpty())) << c.what;
  }
}

// A file of any kind may begin with a length that is larger than the file.
TEST(GuessFileKindTest, ALengthBeyondTheFileIsNoSafetensors) {
  EXPECT_EQ(GuessFileKind(absl::StrCat(std::string("\xff\xff\0\0\0\0\0\0", 8), "{}")).what, "");
  EXPECT_EQ(GuessFileKind(absl::StrCat(std::string("\x02\0\0\0\0\0\0\0", 8), "{")).what, "");
}

}  // namespace
}  // namespace npuc
