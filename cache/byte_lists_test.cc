#include "cache/byte_lists.h"

#include <cstdint>
#include <random>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace npuc::cache {
namespace {

// As a C header has it, `values` behind each other in lines of `per_line`.
std::string Lines(int values, int per_line, int seed = 1) {
  std::mt19937 random(static_cast<uint32_t>(seed));
  std::string text;
  for (int i = 0; i < values; ++i) {
    if (i % per_line == 0) text += "\t";
    absl::StrAppend(&text, "0x", absl::Hex(random() & 0xff, absl::kZeroPad2), ", ");
    if ((i + 1) % per_line == 0) text += "\n";
  }
  return text;
}

void ExpectComesBack(const std::string& text) {
  const auto shortened = ShortenByteLists(text);
  ASSERT_TRUE(shortened.has_value()) << text;
  EXPECT_LT(shortened->size(), text.size() / 2);
  EXPECT_EQ(RestoreByteLists(*shortened, text.size()), text);
  EXPECT_FALSE(RestoreByteLists(*shortened, text.size() + 1).has_value());
  EXPECT_FALSE(RestoreByteLists(*shortened, text.size() - 1).has_value());
}

TEST(ByteLists, AHeaderTakesASixthAndComesBack) {
  const std::string text =
      absl::StrCat("#ifndef X_H\n#define X_H\nconst uint8_t cmd[3003] = {\n", Lines(3003, 10),
                   "\n};\n\nuint8_t weights[40] = {\n", Lines(40, 10, 2), "};\n#endif\n");
  ExpectComesBack(text);
  EXPECT_LT(ShortenByteLists(text)->size(), size_t{3200});
}

// A list ends where the text is not quite what it would be made to.
TEST(ByteLists, WhatIsNearlyAListStaysAsItIs) {
  const std::string lines = Lines(200, 10);
  for (const char* odd :
       {"0xAB, ", "0x1, ", "0x123, ", "0xab,", "0xab ,", "0Xab, ", "0xag, ", "0x\xff\xff, ", ", ",
        " ", "\n", "\t", "\n\t", "\r\n", "\n\t\n\t", "\n\t0x", "\n\t0xab,", "/*\t0x*/"}) {
    ExpectComesBack(absl::StrCat(lines, odd, lines));
    ExpectComesBack(odd + lines);
    ExpectComesBack(lines + odd);
    for (const size_t at : {1, 2, 5, 7, 59, 60, 61, 62, 63, 64, 65, 120, 125}) {
      ExpectComesBack(absl::StrCat(lines.substr(0, at), odd, lines.substr(at)));
    }
  }
  for (const int per_line : {8, 9, 11, 12, 16, 1000}) {
    const std::string text = Lines(400, per_line);
    const auto shortened = ShortenByteLists(text);
    if (!shortened.has_value()) continue;
    EXPECT_EQ(RestoreByteLists(*shortened, text.size()), text);
  }
}

TEST(ByteLists, EveryCutOfALargerText) {
  const std::string text = Lines(1000, 10);
  for (size_t begin = 0; begin < 130; ++begin) {
    ExpectComesBack(text.substr(begin, 3000 + begin));
  }
}

TEST(ByteLists, OtherTextIsNotTaken) {
  EXPECT_FALSE(ShortenByteLists("").has_value());
  EXPECT_FALSE(ShortenByteLists(std::string(5000, 'x')).has_value());
  EXPECT_FALSE(ShortenByteLists(std::string(5000, '\t')).has_value());
  EXPECT_FALSE(ShortenByteLists(Lines(15, 10)).has_value());
  EXPECT_FALSE(ShortenByteLists(absl::StrCat(std::string(9000, 'x'), Lines(100, 10))).has_value());
}

// No byte is read or written out of bounds (sanitizers see to that), and what comes has the length
// that was asked for.
TEST(ByteLists, DamageIsRefusedOrOfTheRightLength) {
  const std::string text = absl::StrCat("head {\n", Lines(500, 10), "}; {\n", Lines(77, 10), "};");
  const std::string shortened = *ShortenByteLists(text);
  std::mt19937 random(5);
  int refused = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string damaged =
        shortened.substr(0, i % 3 == 0 ? random() % shortened.size() : shortened.size());
    // Lengths are what matters most: half of the flips hit the first one or the last.
    for (int flips = 0; flips < 3 && damaged.size() > 8; ++flips) {
      const size_t at = flips == 0 ? random() % 16 % damaged.size() : random() % damaged.size();
      damaged[at] = static_cast<char>(random());
    }
    const auto restored = RestoreByteLists(damaged, text.size());
    if (restored.has_value()) {
      EXPECT_EQ(restored->size(), text.size());
    } else {
      ++refused;
    }
  }
  EXPECT_GT(refused, 2000);
  EXPECT_FALSE(RestoreByteLists("", 1).has_value());
  EXPECT_FALSE(RestoreByteLists(shortened, size_t{1} << 50).has_value());
  EXPECT_FALSE(RestoreByteLists(std::string(8, '\xff'), 100).has_value());
}

}  // namespace
}  // namespace npuc::cache
