#include <bit>
#include <cmath>
#include <cstring>

#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/fp16.h"
#include "compiler_core/base/fp16_span.h"
#include "compiler_core/base/suggest.h"
#include "compiler_core/base/utf8.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

// Every half, the middle to the next, and the floats beside both; every NaN payload that is kept.
TEST(Fp16, ManyAtOnceGiveTheBitsOfEach) {
  std::vector<float> values;
  for (uint32_t h = 0; h < 0x10000; ++h) {
    const uint32_t bits = std::bit_cast<uint32_t>(HalfToFloat(static_cast<uint16_t>(h)));
    for (const uint32_t offset : {0u, 1u, 0x0fffu, 0x1000u, 0x1001u, 0x1fffu, 0x2000u}) {
      values.push_back(std::bit_cast<float>(bits + offset));
    }
    values.push_back(std::bit_cast<float>(h << 16 | h));  // over the whole range of floats
  }
  const std::vector<uint16_t> halves = FloatsToHalves(values);
  std::vector<float> rounded = values;
  RoundToHalves(absl::MakeSpan(rounded));
  ASSERT_EQ(halves.size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(halves[i], FloatToHalf(values[i])) << values[i];
    ASSERT_EQ(std::bit_cast<uint32_t>(rounded[i]), std::bit_cast<uint32_t>(RoundToHalf(values[i])))
        << values[i];
  }
}

TEST(Fp16, EveryHalfRoundTripsThroughFloat) {
  for (uint32_t h = 0; h < 0x10000; ++h) {
    const uint16_t half = static_cast<uint16_t>(h);
    const float f = HalfToFloat(half);
    if (std::isnan(f)) {
      EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(f))));
      continue;
    }
    ASSERT_EQ(FloatToHalf(f), half) << h;
  }
}

TEST(Fp16, MidpointsGoToTheEvenNeighbour) {
  for (uint32_t h = 0; h < 0x7bff; ++h) {
    const float low = HalfToFloat(static_cast<uint16_t>(h));
    const float high = HalfToFloat(static_cast<uint16_t>(h + 1));
    const float middle = (low + high) / 2;  // exact in float
    ASSERT_EQ(FloatToHalf(middle), (h & 1) != 0 ? h + 1 : h) << h;
    ASSERT_EQ(FloatToHalf(std::nextafter(middle, 1e9f)), h + 1) << h;
    ASSERT_EQ(FloatToHalf(std::nextafter(middle, -1e9f)), h) << h;
  }
  EXPECT_EQ(FloatToHalf(65519.996f), 0x7bff);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(FloatToHalf(-65520.0f), 0xfc00);
}

TEST(Fp16, RoundingAFloatIsGoingToHalfAndBack) {
  uint32_t bits = 0;
  for (int i = 0; i < 2'000'000; ++i, bits += 2147u) {  // a prime: all exponents, both signs
    const float value = std::bit_cast<float>(bits);
    ASSERT_EQ(std::bit_cast<uint32_t>(RoundToHalf(value)),
              std::bit_cast<uint32_t>(HalfToFloat(FloatToHalf(value))))
        << bits;
  }
}

TEST(Digest, KnownVectors) {  // RFC 1321 A.5, FIPS 180-4 examples
  EXPECT_EQ(Md5Hex("abc"), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Sha256Stream pieces;
  for (const absl::string_view piece : {"a", "", "bc"}) pieces.Update(piece);
  EXPECT_EQ(pieces.FinishHex(), Sha256Hex("abc"));
  StreamDigest stream;
  stream.Update("a");
  stream.Update("bc");
  const StreamDigest::Result result = stream.Finish();
  EXPECT_EQ(result.md5_hex, Md5Hex("abc"));
  EXPECT_EQ(result.sha256_hex, Sha256Hex("abc"));
  EXPECT_EQ(result.size_bytes, 3u);
}

TEST(Diagnostic, RendersPlaceWhatFixAndId) {
  const Diagnostic d{.kind = DiagnosticKind::kInternalError,
                     .message = "stride 5 exceeds 3",
                     .file = "m.pb",
                     .line = 3,
                     .column = 7,
                     .node = "conv\n1",
                     .op = "Conv2D",
                     .limit_source = "GRUS",
                     .fix = "use stride <= 3"};
  EXPECT_EQ(d.ToString(),
            "m.pb:3:7: node 'conv\\x0a1' (Conv2D): stride 5 exceeds 3 (GRUS); use stride <= 3 "
            "[NPUC1900]");
}

TEST(Diagnostic, KindNumbersAreUniqueAndAscending) {
  int last = 0;
  for (const DiagnosticKindInfo& info : AllDiagnosticKinds()) {
    EXPECT_GT(static_cast<int>(info.kind), last) << info.name;
    last = static_cast<int>(info.kind);
  }
}

TEST(Suggester, StopsLookingWhereItsBudgetEnds) {
  // A look at all of them compares 100 x 100 x 600 pairs of characters: one fits ten million.
  const std::string word(100, 'k');
  const std::vector<std::string> texts(600, std::string(99, 'k') + "x");
  const std::vector<absl::string_view> names(texts.begin(), texts.end());
  Suggester suggester;
  EXPECT_EQ(suggester.DidYouMean(word, names, "none"), "did you mean '" + texts[0] + "'?");
  EXPECT_EQ(suggester.DidYouMean(word, names, "none"), "none");
  // What is left is enough for a short one.
  EXPECT_EQ(suggester.DidYouMean("othe", {"other"}, "none"), "did you mean 'other'?");
}

TEST(NoSuchCommandTest, NamesTheNearestOrAll) {
  const std::vector<std::string> commands = {"compile", "watch"};
  EXPECT_EQ(NoSuchCommand("npuc-remote", "wach", commands),
            "npuc-remote: no command 'wach'; did you mean 'watch'?\n");
  EXPECT_EQ(NoSuchCommand("npuc", "\x1b[2J", commands),
            "npuc: no command '\\x1b[2J'; known: compile, watch\n");
}

TEST(NearestMatch, SuggestsOnlyWhatIsNear) {
  const std::vector<absl::string_view> keys = {"CORENAME", "COMPRESS", "OUTPUT_OPS"};
  EXPECT_EQ(NearestMatch("CORENAM", keys), "CORENAME");
  EXPECT_EQ(NearestMatch("compress", keys), "COMPRESS");
  EXPECT_EQ(NearestMatch("OUTPUTS_OPS", keys), "OUTPUT_OPS");
  EXPECT_EQ(NearestMatch("XYZZY", keys), "");
  // Names of one letter that differ have nothing in common.
  EXPECT_EQ(NearestMatch("z", {"x", "y"}), "");
  EXPECT_EQ(NearestMatch("X", {"x", "y"}), "x");
  EXPECT_EQ(NearestMatch("x2", {"y", "x1"}), "x1");
}

TEST(Utf8, TheFirstInvalidByteIsFoundAtEachPlace) {
  for (size_t size = 0; size < 40; ++size) {
    const std::string text(size, 'a');
    EXPECT_EQ(FirstInvalidUtf8(text), absl::string_view::npos);
    for (size_t at = 0; at < size; ++at) {
      std::string broken = text;
      broken[at] = '\xff';
      broken.back() = at % 2 == 0 ? broken.back() : '\x80';  // only the first one counts
      EXPECT_EQ(FirstInvalidUtf8(broken), at) << size;
      std::string valid = text;
      valid.insert(at, "\xc3\xa9\xf0\x9f\x98\x80");
      EXPECT_EQ(FirstInvalidUtf8(valid), absl::string_view::npos);
      EXPECT_EQ(FirstInvalidUtf8(valid.substr(0, at + 5)), at + 2);  // cut within the second
    }
  }
}

TEST(Printable, EscapesControlAndBrokenUtf8AndCuts) {
  EXPECT_EQ(Printable("a\x01\xff\xc3\xa9"), "a\\x01\\xff\xc3\xa9");
  EXPECT_EQ(Printable(std::string(500, 'a'), 10), "aaaaaaaaaa...");
  // U+202E turns what follows around; U+009B begins a terminal's command; U+200B is not seen.
  EXPECT_EQ(Printable("a\xe2\x80\xae"
                      "b\xc2\x9b"
                      "c\xe2\x80\x8b"
                      "d\xf3\xa0\x80\x81"),
            "a\\u202eb\\u009bc\\u200bd\\ue0001");
  EXPECT_EQ(Printable("\xe4\xb8\xad\xe6\x96\x87 \xf0\x9f\x98\x80"),
            "\xe4\xb8\xad\xe6\x96\x87 \xf0\x9f\x98\x80");
}

}  // namespace
}  // namespace npuc
