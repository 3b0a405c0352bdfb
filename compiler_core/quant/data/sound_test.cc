#include <string>

#include "compiler_core/quant/data/sound_file.h"
#include "compiler_core/quant/data/sound_form.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Little(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
  return out;
}

std::string Wav(int tag, int channels, int bits, const std::string& data) {
  const std::string format = Little(static_cast<uint64_t>(tag), 2) +
                             Little(static_cast<uint64_t>(channels), 2) + Little(8000, 4) +
                             Little(0, 4) + Little(0, 2) + Little(static_cast<uint64_t>(bits), 2);
  return "RIFF" + Little(0, 4) + "WAVEfmt " + Little(format.size(), 4) + format + "data" +
         Little(data.size(), 4) + data;
}

TEST(SoundFileTest, IntegersAreSharesOfHalfTheirRange) {
  EXPECT_THAT(ReadWav(Wav(1, 1, 8, std::string("\x00\x80\xff", 3)))->samples,
              ElementsAre(-1, 0, 127.0f / 128));
  EXPECT_THAT(ReadWav(Wav(1, 2, 16, std::string("\x00\x80\xff\x7f", 4)))->samples,
              ElementsAre(-1, 32767.0f / 32768));
  EXPECT_THAT(ReadWav(Wav(1, 1, 24, std::string("\x00\x00\x80\x00\x00\x40", 6)))->samples,
              ElementsAre(-1, 0.5f));
  EXPECT_THAT(ReadWav(Wav(1, 1, 32, std::string("\x00\x00\x00\xc0", 4)))->samples,
              ElementsAre(-0.5f));
}

TEST(SoundFileTest, EveryPrefixIsRefusedOrRead) {
  const std::string whole = Wav(1, 2, 16, std::string(64, '\x11'));
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_TRUE(absl::IsInvalidArgument(ReadWav(whole.substr(0, size)).status())) << size;
  }
  EXPECT_EQ(ReadWav(whole)->count(), 16);
  // A size that was never filled in means all that follows.
  std::string open = whole;
  open.replace(40, 4, Little(UINT32_MAX, 4));
  EXPECT_EQ(ReadWav(open)->count(), 16);
}

TEST(SoundFileTest, RefusesFormatsByName) {
  EXPECT_THAT(ReadWav(Wav(2, 1, 4, "abcd")).status().message(), HasSubstr("format 2 with 4 bits"));
  EXPECT_THAT(ReadWav(Wav(1, 0, 16, "abcd")).status().message(), HasSubstr("of 0 channels"));
  EXPECT_THAT(ReadWav(Wav(3, 1, 32, std::string("\x00\x00\xc0\x7f", 4))).status().message(),
              HasSubstr("not finite"));
}

TEST(SoundFormTest, SaysWhereAFormIsWrong) {
  EXPECT_EQ(SoundFormFromYaml("rate: 44100\nstd: 4\n")->scale, 0.25);
  EXPECT_THAT(SoundFormFromYaml("rate: x\n").status().message(),
              HasSubstr("line 1: rate takes an integer from 1 to"));
  EXPECT_THAT(SoundFormFromYaml("features: cqt\n").status().message(),
              HasSubstr("takes samples or spectrum or power or mel or mfcc"));
  EXPECT_THAT(SoundFormFromYaml("low: 400\nhigh: 300\n").status().message(),
              HasSubstr("high must be above low"));
}

}  // namespace
}  // namespace npuc
