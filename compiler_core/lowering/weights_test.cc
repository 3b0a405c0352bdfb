#include "compiler_core/lowering/weights.h"

#include <cmath>
#include <random>

#include "compiler_core/base/fp16.h"
#include "compiler_core/base/fp16_span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

constexpr int64_t kBlock = 32;

TEST(CodeBook, FollowsThePublishedFormula) {
  // min -1, max 1.55: S = 0.01, zp = 100, min16 = fp16(-1), step16 = fp16(0.01).
  const CodeBook book = MakeCodeBook(-1.0, 1.55);
  EXPECT_EQ(book.min, 0xbc00);
  EXPECT_EQ(book.step, 0x211f);
  EXPECT_EQ(book.zero_code, 100);
  EXPECT_EQ(EncodeWeight(book, -1.0f), 0);
  EXPECT_EQ(EncodeWeight(book, -7.0f), 0);
  EXPECT_EQ(EncodeWeight(book, 9.0f), 255);
  EXPECT_EQ(EncodeWeight(book, std::nanf("")), 0);
  EXPECT_EQ(DecodeWeight(book, 100), 0.0f);
}

TEST(CodeBook, ZeroAlwaysHasACode) {
  for (const auto& [min, max] : {std::pair{0.5, 2.0}, {-2.0, -0.5}, {0.0, 1.0}, {-1.0, 0.0}}) {
    const CodeBook book = MakeCodeBook(min, max);
    ASSERT_TRUE(book.usable());
    EXPECT_EQ(DecodeWeight(book, EncodeWeight(book, 0.0f)), 0.0f);
    const float step = HalfToFloat(book.step);
    for (const double end : {min, max}) {
      const float value = static_cast<float>(end);
      EXPECT_NEAR(DecodeWeight(book, EncodeWeight(book, value)), value, 2 * step) << end;
    }
  }
}

TEST(CodeBook, WithoutSpreadOrFp16RangeIsUnusable) {
  EXPECT_FALSE(MakeCodeBook(0.0, 0.0).usable());
  EXPECT_FALSE(MakeCodeBook(0.0, 1e-9).usable());
  EXPECT_FALSE(MakeCodeBook(-1e9, 1e9).usable());
}

// The codes of many are those of each; sizes that are no multiple of a register or a chunk.
// LEO's books: 2^bits values in order, 0 among them, each weight at the nearest.
TEST(ValueBook, HoldsZeroAndTheRange) {
  for (const BookSpacing spacing : {BookSpacing::kLinear, BookSpacing::kGaussian}) {
    for (int bits = kLeastBookBits; bits <= kMostBookBits; ++bits) {
      for (const auto& [min, max] : {std::pair(-1.0, 1.55),
                                     {-0.3, 0.3},
                                     {0.0, 2.0},
                                     {-2.0, -1.0},
                                     {0.5, 1.0},
                                     {-1e-3, 1e-5}}) {
        const CodeBook book = MakeValueBook(spacing, bits, min, max);
        ASSERT_TRUE(book.usable());
        EXPECT_EQ(book.bits(), bits);
        ASSERT_EQ(book.values.size(), size_t{1} << bits);
        EXPECT_EQ(DecodeWeight(book, book.zero_code), 0.0f);
        EXPECT_EQ(EncodeWeight(book, 0.0f), book.zero_code);
        for (size_t i = 1; i < book.values.size(); ++i) {
          EXPECT_LE(HalfToFloat(book.values[i - 1]), HalfToFloat(book.values[i]));
        }
        const double step = (std::max(max, 0.0) - std::min(min, 0.0)) / ((1 << bits) - 1);
        // LINEAR: half a step moves 0 onto a value, and fp16 rounds the step that is counted in.
        const double counted = step / 2 + (1 << bits) * std::max(0x1p-25, step * 0x1p-11);
        const double ends = 0x1p-11 * std::max(std::fabs(min), std::fabs(max)) +
                            (spacing == BookSpacing::kLinear ? counted : 0);
        EXPECT_NEAR(HalfToFloat(book.values.front()), std::min(min, 0.0), ends);
        EXPECT_NEAR(HalfToFloat(book.values.back()), std::max(max, 0.0), ends);
      }
    }
  }
  EXPECT_FALSE(MakeValueBook(BookSpacing::kGaussian, 4, 0, 0).usable());
  EXPECT_FALSE(MakeValueBook(BookSpacing::kLinear, 4, -1e9, 1e9).usable());
}

TEST(ValueBook, LinearOfEightBitsIsGrussCode) {
  const CodeBook grus = MakeCodeBook(-1.0, 1.55);
  const CodeBook book = MakeValueBook(BookSpacing::kLinear, 8, -1.0, 1.55);
  EXPECT_EQ(book.zero_code, grus.zero_code);
  for (int code = 0; code < 256; ++code) {
    EXPECT_EQ(DecodeWeight(book, static_cast<uint8_t>(code)),
              DecodeWeight(grus, static_cast<uint8_t>(code)));
  }
}

// The quantiles of ISA.md, by scipy.stats.norm.ppf.
TEST(ValueBook, GaussianFollowsTheQuantiles) {
  const CodeBook book = MakeValueBook(BookSpacing::kGaussian, 4, -1.0, 1.0);
  const double kQuantiles[] = {1.0000000, 0.6675290, 0.4990669, 0.3739076,
                               0.2687454, 0.1743691, 0.0858694, 0};
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_NEAR(HalfToFloat(book.values[15 - i]), kQuantiles[i], 0x1p-11) << i;
    EXPECT_NEAR(HalfToFloat(book.values[i]), -kQuantiles[i], 0x1p-11) << i;
  }
}

double RmsError(const CodeBook& book, absl::Span<const float> values) {
  double squares = 0;
  const std::vector<uint8_t> codes = EncodeWeights(book, values);
  for (size_t i = 0; i < values.size(); ++i) {
    const double error = DecodeWeight(book, codes[i]) - values[i];
    squares += error * error;
    for (const uint16_t other : book.values) {  // none is nearer
      EXPECT_GE(std::fabs(HalfToFloat(other) - values[i]), std::fabs(error) * (1 - 1e-6));
    }
  }
  return std::sqrt(squares / static_cast<double>(values.size()));
}

TEST(ValueBook, GaussianIsNearerWhereWeightsAreNormal) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0.0f, 0.2f);
  std::vector<float> values(4000);
  for (float& value : values) value = normal(random);
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  double before = 1;
  for (int bits = kLeastBookBits; bits <= kMostBookBits; ++bits) {
    const double linear =
        RmsError(MakeValueBook(BookSpacing::kLinear, bits, *least, *most), values);
    const double gaussian =
        RmsError(MakeValueBook(BookSpacing::kGaussian, bits, *least, *most), values);
    EXPECT_LT(gaussian, linear) << bits;
    EXPECT_LT(linear, 0.65 * before) << bits;  // a bit more halves the step
    before = linear;
  }
}

TEST(WithBook, PacksTheCodesOfTheMask) {
  CodeBook book = MakeValueBook(BookSpacing::kLinear, 5, -1.0, 1.0);
  const std::vector<uint8_t> values = {1, 2, 31, book.zero_code, 4};
  const EncodedMatrix encoded = CompressMatrix({values, 1, 5}, book.zero_code, 32);
  const std::vector<uint8_t> bytes = WithBook(book, encoded);
  ASSERT_EQ(bytes.size(), 2u * 32 + 4);  // 20 bits of codes, to a pair of bytes
  EXPECT_EQ(bytes[2 * 31] | bytes[2 * 31 + 1] << 8, book.values[31]);
  EXPECT_EQ(bytes[64], 0b00001'000);
  EXPECT_EQ(bytes[65], 0b10'11111'0);
  EXPECT_EQ(bytes[66], 0b0100'0000);
  EXPECT_EQ(bytes[67], 0);
}

TEST(EncodeWeights, GivesTheCodeOfEach) {
  std::mt19937 rng(11);
  std::uniform_real_distribution<float> uniform(-1.5f, 2.0f);
  std::vector<float> values = {0.0f, -0.0f, std::nanf(""), 1e30f, -1e30f, 1e-7f, 6e-5f};
  while (values.size() < 2021) values.push_back(uniform(rng));
  for (const auto& [min, max] : {std::pair{-1.0, 1.55}, {-3e-3, 1e-3}, {-2e4, 3e4}}) {
    const CodeBook book = MakeCodeBook(min, max);
    const std::vector<uint8_t> codes = EncodeWeights(book, values);
    ASSERT_EQ(codes.size(), values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(codes[i], EncodeWeight(book, values[i])) << values[i];
    }
  }
}

// [3 taps, 33, 33] with bias: the first tap's blocks (0,0) and (0,1) have a row of bias behind
// them.
TEST(CompressMatrix, BiasIsARowBehindEachBlockOfColumns) {
  const CodeBook book = MakeCodeBook(-1.0, 1.0);
  std::vector<float> values(3 * 33 * 33, 0.0f);
  std::vector<float> bias(33, 0.0f);
  values[0] = 0.25f;   // tap 0, block (0,0)
  bias[1] = 0.5f;      // behind that block
  values[32] = 0.75f;  // block (0,1)
  bias[32] = 1.0f;
  values[32 * 33 + 32] = -0.25f;      // block (1,1)
  values[2 * 33 * 33 + 33] = -0.75f;  // tap 2, block (0,0), row 1
  const EncodedMatrix encoded = CompressMatrix(
      {EncodeWeights(book, values), 33, 33, 3, EncodeWeights(book, bias)}, book.zero_code, kBlock);
  constexpr int64_t kTap = 4 * 128;
  ASSERT_EQ(encoded.mask.size(), static_cast<size_t>(3 * kTap + 2 * 4));
  std::vector<uint8_t> mask(encoded.mask.size(), 0);
  mask[0] = 0x80;
  mask[128] = 0x40;
  mask[132] = 0x80;
  mask[132 + 128] = 0x80;
  mask[2 * 132 + 128] = 0x80;
  mask[2 * 4 + 2 * kTap + 4] = 0x80;
  EXPECT_EQ(encoded.mask, mask);
  std::vector<float> decoded;
  for (const uint8_t code : encoded.codes) decoded.push_back(DecodeWeight(book, code));
  EXPECT_THAT(decoded, ::testing::Pointwise(::testing::FloatNear(0.01f),
                                            {0.25f, 0.5f, 0.75f, 1.0f, -0.25f, -0.75f}));
  // Plain: the same order, every value.
  const EncodedMatrix plain =
      PlainMatrix({FloatsToHalves(values), 33, 33, 3, FloatsToHalves(bias)}, kBlock);
  ASSERT_EQ(plain.codes.size(), 2 * (values.size() + bias.size()));
  const auto at = [&](size_t i) {
    return HalfToFloat(static_cast<uint16_t>(plain.codes[2 * i] | plain.codes[2 * i + 1] << 8));
  };
  EXPECT_EQ(at(0), 0.25f);
  EXPECT_EQ(at(32 * 32 + 1), 0.5f);
  EXPECT_EQ(at(33 * 32), 0.75f);
  EXPECT_EQ(at(33 * 32 + 32), 1.0f);
}

TEST(CompressMatrix, MaskBitsLieInBlocksMostSignificantFirst) {
  // 33 x 33: two blocks each way. Bits of block (kb, nb) start at byte (kb * 2 + nb) * 128.
  const std::pair<int, int> places[] = {{0, 0}, {0, 7}, {0, 8}, {1, 0}, {0, 32}, {32, 0}, {32, 32}};
  const int bytes[] = {0, 0, 1, 4, 128, 256, 384};
  const int bits[] = {0x80, 0x01, 0x80, 0x80, 0x80, 0x80, 0x80};
  const CodeBook book = MakeCodeBook(-1.0, 1.0);
  for (size_t i = 0; i < std::size(places); ++i) {
    std::vector<float> values(33 * 33, 0.0f);
    values[places[i].first * 33 + places[i].second] = 1.0f;
    const EncodedMatrix encoded =
        CompressMatrix({EncodeWeights(book, values), 33, 33}, book.zero_code, kBlock);
    ASSERT_EQ(encoded.mask.size(), 4 * 128u);
    std::vector<uint8_t> expected(4 * 128, 0);
    expected[bytes[i]] = static_cast<uint8_t>(bits[i]);
    EXPECT_EQ(encoded.mask, expected) << i;
    EXPECT_THAT(encoded.codes, testing::ElementsAre(255, 0));  // one code, padded to even
  }
}

// one_in: how many weights there are for each 0.
void ExpectCodesInMaskOrder(uint32_t one_in) {
  std::mt19937 rng(7);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  std::vector<float> values(40 * 50);
  for (float& value : values) value = rng() % one_in == 0 ? 0.0f : uniform(rng);
  const CodeBook book = MakeCodeBook(-1.0, 1.0);
  const EncodedMatrix encoded =
      CompressMatrix({EncodeWeights(book, values), 40, 50}, book.zero_code, kBlock);
  // Read back as the specification says: walk the mask, take a code for each set bit.
  std::vector<float> decoded(values.size(), 0.0f);
  size_t next = 0;
  for (int kb = 0; kb < 2; ++kb) {
    for (int nb = 0; nb < 2; ++nb) {
      for (int row = 0; row < 32; ++row) {
        for (int column = 0; column < 32; ++column) {
          const int byte = (kb * 2 + nb) * 128 + row * 4 + column / 8;
          if ((encoded.mask[byte] >> (7 - column % 8) & 1) == 0) continue;
          decoded.at((kb * 32 + row) * 50 + nb * 32 + column) =
              DecodeWeight(book, encoded.codes.at(next++));
        }
      }
    }
  }
  EXPECT_EQ(encoded.codes.size(), next + next % 2);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(decoded[i], values[i], 0.006f);
}

TEST(CompressMatrix, CodesFollowMaskOrder) {
  ExpectCodesInMaskOrder(3);
  ExpectCodesInMaskOrder(50);  // most bytes of the mask are full
}

TEST(PlainMatrix, IsRowMajorWithinABlockColumn) {
  std::vector<float> values(2 * 33);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const EncodedMatrix encoded = PlainMatrix({FloatsToHalves(values), 2, 33}, kBlock);
  ASSERT_EQ(encoded.codes.size(), 2 * 66u);
  EXPECT_TRUE(encoded.mask.empty());
  const auto half = [&](int i) {
    return HalfToFloat(static_cast<uint16_t>(encoded.codes[2 * i] | encoded.codes[2 * i + 1] << 8));
  };
  EXPECT_EQ(half(0), 0.0f);
  EXPECT_EQ(half(31), 31.0f);
  EXPECT_EQ(half(32), 33.0f);  // second row, first block
  EXPECT_EQ(half(64), 32.0f);  // first row, second block
  EXPECT_EQ(half(65), 65.0f);
}

}  // namespace
}  // namespace npuc
