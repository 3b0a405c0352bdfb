#include "compiler_core/ir/integer/weight_code.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::integer {
namespace {

using Weights = std::vector<uint8_t>;

Weights RandomWeights(std::mt19937& random, size_t count, double spread) {
  std::normal_distribution<double> normal(0, spread);
  Weights weights(count);
  for (uint8_t& weight : weights) {
    weight = static_cast<uint8_t>(
        static_cast<int8_t>(std::clamp(std::round(normal(random)), -128.0, 127.0)));
  }
  return weights;
}

// The fewest bytes that any code of single values takes.
double EntropyBytes(const Weights& weights) {
  double bits = 0;
  for (const int64_t count : CountsOf(weights)) {
    if (count == 0) continue;
    bits -= static_cast<double>(count) *
            std::log2(static_cast<double>(count) / static_cast<double>(weights.size()));
  }
  return bits / 8;
}

TEST(WeightCode, GivesBackWhatItTookNearTheEntropy) {
  std::mt19937 random(20261125);
  for (const double spread : {0.0, 0.2, 1.0, 5.0, 20.0, 60.0}) {
    for (const size_t count : {1u, 2u, 100u, 5000u, 100000u}) {
      SCOPED_TRACE(testing::Message() << spread << " " << count);
      const Weights weights = RandomWeights(random, count, spread);
      const CodeTable table = TableFor(CountsOf(weights));
      const auto coded = EncodeWeights(weights, table);
      ASSERT_TRUE(coded.ok()) << coded.status();
      const auto back = DecodeWeights(*coded, static_cast<int64_t>(count), table);
      ASSERT_TRUE(back.ok()) << back.status();
      EXPECT_EQ(*back, weights);
      // A table's shares are steps of 1.6, and a value has at least 1 / 4096.
      EXPECT_LE(static_cast<double>(coded->size()),
                1.01 * EntropyBytes(weights) + 0.0005 * static_cast<double>(count) + 6);
      EXPECT_NEAR(static_cast<double>(CodedBytes(CountsOf(weights), table)),
                  static_cast<double>(coded->size()), 4 + 0.001 * static_cast<double>(count));
    }
  }
}

// One byte more, less or other, and other counts, are no code.
TEST(WeightCode, OneCodeStandsForWeights) {
  std::mt19937 random(22);
  const Weights weights = RandomWeights(random, 300, 20);
  const CodeTable table = TableFor(CountsOf(weights));
  const Weights coded = *EncodeWeights(weights, table);
  Weights wrong = coded;
  wrong.pop_back();
  EXPECT_FALSE(DecodeWeights(wrong, 300, table).ok());
  wrong = coded;
  wrong.push_back(0);
  EXPECT_FALSE(DecodeWeights(wrong, 300, table).ok());
  EXPECT_FALSE(DecodeWeights(coded, 299, table).ok());
  EXPECT_FALSE(DecodeWeights(coded, 301, table).ok());
  int other = 0;
  for (size_t i = 0; i < coded.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      wrong = coded;
      wrong[i] = static_cast<uint8_t>(wrong[i] ^ (1 << bit));
      const auto decoded = DecodeWeights(wrong, 300, table);
      if (!decoded.ok()) continue;
      ++other;
      EXPECT_NE(*decoded, weights);
      EXPECT_EQ(*EncodeWeights(*decoded, table), wrong);
    }
  }
  EXPECT_LT(other, static_cast<int>(coded.size() * 8 / 100));  // the last bytes alone
}

TEST(WeightCode, HostileBytesAreRefusedOrEncodeToThemselves) {
  std::mt19937 random(7);
  int taken = 0;
  for (int round = 0; round < 20000; ++round) {
    Weights coded(random() % 12);
    for (uint8_t& byte : coded) byte = static_cast<uint8_t>(random());
    CodeTable table = {};
    for (uint8_t& byte : table) {
      byte = random() % 8 == 0 ? static_cast<uint8_t>(random()) : uint8_t{0};
    }
    if (coded.size() == 4 && round % 2 == 0) coded = {0, 0x80, 0, 0};
    const int64_t count = static_cast<int64_t>(random() % 9);
    const auto decoded = DecodeWeights(coded, count, table);
    if (!decoded.ok()) continue;
    ++taken;
    EXPECT_EQ(*EncodeWeights(*decoded, table), coded);
  }
  EXPECT_GT(taken, 10);
  EXPECT_THAT(std::string(DecodeWeights({}, 1, CodeTable()).status().message()),
              testing::HasSubstr("no shares"));
  CodeTable one = {};
  one[64] = 1;  // value 0
  EXPECT_FALSE(DecodeWeights({}, 1, one).ok());
  EXPECT_FALSE(EncodeWeights({1}, one).ok());
}

}  // namespace
}  // namespace npuc::integer
