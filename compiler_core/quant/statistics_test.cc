#include "compiler_core/quant/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "compiler_core/quant/ranges.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

std::vector<float> Normals(int count, uint32_t seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(rng);
  return values;
}

TEST(StreamHistogramTest, DependsOnTheValuesAlone) {
  std::vector<float> values = Normals(20000, 1);
  values.push_back(300);  // late and far: the bins get wider
  const auto fill = [](const std::vector<float>& all, size_t chunk) {
    StreamHistogram histogram(256);
    for (size_t i = 0; i < all.size(); i += chunk) {
      const absl::Span<const float> part =
          absl::MakeConstSpan(all).subspan(i, std::min(chunk, all.size() - i));
      const auto [low, high] = std::minmax_element(part.begin(), part.end());
      histogram.Add(part, *low, *high);
    }
    return histogram;
  };
  const StreamHistogram whole = fill(values, values.size());
  EXPECT_EQ(whole.total(), values.size());
  for (size_t i = 0; i < whole.counts().size(); ++i) {  // each bin against a count of its own
    const double low = whole.low(static_cast<int64_t>(i));
    const auto want = std::count_if(values.begin(), values.end(),
                                    [&](float x) { return x >= low && x < low + whole.width(); });
    ASSERT_EQ(whole.counts()[i], static_cast<uint64_t>(want)) << i;
  }
  std::vector<float> reversed(values.rbegin(), values.rend());
  for (const StreamHistogram& other : {fill(values, 7), fill(reversed, 100)}) {
    EXPECT_EQ(other.exponent(), whole.exponent());
    EXPECT_EQ(other.first(), whole.first());
    EXPECT_EQ(other.counts(), whole.counts());
  }
}

TEST(StatisticsTest, RunningValuesOverBatches) {
  StatisticsCollector collector(256, 0.9, std::nullopt);
  ASSERT_TRUE(collector.Add(std::vector<float>{-1, 0, 1}));
  ASSERT_TRUE(collector.Add(std::vector<float>{2, 3}));
  collector.EndBatch();
  ASSERT_TRUE(collector.Add(std::vector<float>{10, 20}));
  collector.EndBatch();
  const TensorStatistics& s = collector.statistics();
  EXPECT_EQ(s.extrema_min, -1);
  EXPECT_EQ(s.extrema_max, 20);
  EXPECT_DOUBLE_EQ(s.running_min, -1 * 0.9 + 10 * (1 - 0.9));
  EXPECT_DOUBLE_EQ(s.running_max, 3 * 0.9 + 20 * (1 - 0.9));
  EXPECT_DOUBLE_EQ(s.running_mean, 1 * 0.9 + 15 * (1 - 0.9));
  EXPECT_NEAR(s.running_std, std::sqrt(2.0) * 0.9 + 5 * 0.1, 1e-12);
}

TEST(StatisticsTest, TrimsBeforeItCounts) {
  StatisticsCollector clip(256, 0.9, TrimInfinity{-10, 10, false});
  ASSERT_TRUE(clip.Add(std::vector<float>{-1e30f, 2, 3, 1e30f}));
  clip.EndBatch();
  EXPECT_EQ(clip.statistics().extrema_min, -10);
  EXPECT_EQ(clip.statistics().extrema_max, 10);
  StatisticsCollector second(256, 0.9, TrimInfinity{-10, 10, true});
  ASSERT_TRUE(second.Add(std::vector<float>{-1e30f, 2, 3, 1e30f}));
  second.EndBatch();
  EXPECT_EQ(second.statistics().extrema_min, 2);
  EXPECT_EQ(second.statistics().extrema_max, 3);
}

// At each place of the loop's lanes and of its rest.
TEST(StatisticsTest, TakesNothingThatIsNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float bad : {infinity, -infinity, nan}) {
    for (size_t place = 0; place < 19; ++place) {
      StatisticsCollector collector(256, 0.9, std::nullopt);
      std::vector<float> values(19, 1);
      ASSERT_TRUE(collector.Add(values));
      values[place] = bad;
      EXPECT_FALSE(collector.Add(values));
      values[place] = -bad;
      EXPECT_FALSE(collector.Add(values));
      collector.EndBatch();
      EXPECT_EQ(collector.statistics().extrema_max, 1);
      EXPECT_EQ(collector.statistics().histogram.total(), 19);
    }
  }
  // Trimming takes an infinity and leaves what is no number.
  StatisticsCollector trimmed(256, 0.9, TrimInfinity{-10, 10, false});
  EXPECT_TRUE(trimmed.Add(std::vector<float>{infinity, 1, -infinity}));
  EXPECT_FALSE(trimmed.Add(std::vector<float>{nan, 1}));
}

TEST(StatisticsTest, CountsTheGreatestFloatsThereAre) {
  constexpr float kMost = std::numeric_limits<float>::max();
  StatisticsCollector collector(256, 0.9, std::nullopt);
  ASSERT_TRUE(collector.Add(std::vector<float>{-kMost, kMost, 0, 1e-45F}));
  ASSERT_TRUE(collector.Add(std::vector<float>{1e-45F, -1e-45F}));
  collector.EndBatch();
  EXPECT_EQ(collector.statistics().histogram.total(), 6);
}

TensorStatistics StatisticsOf(const std::vector<float>& values) {
  StatisticsCollector collector(2048, 0.9, std::nullopt);
  EXPECT_TRUE(collector.Add(values));
  collector.EndBatch();
  return collector.statistics();
}

// The mean square error of rounding to 2^bits levels over [-width, width].
double ErrorOf(const std::vector<float>& values, double width, int bits) {
  const double scale = 2 * width / std::pow(2.0, bits);
  double error = 0;
  for (const float x : values) {
    const double q = std::clamp(std::floor(x / scale) + 0.5, -std::pow(2.0, bits - 1) + 0.5,
                                std::pow(2.0, bits - 1) - 0.5);
    error += (q * scale - x) * (q * scale - x);
  }
  return error / static_cast<double>(values.size());
}

TEST(RangesTest, AciqIsNearTheBestWidth) {
  // Widths of the paper's table, for 2..8 bits.
  const std::vector<float> normal = Normals(200000, 3);
  std::mt19937 rng(4);
  std::exponential_distribution<float> exponential;
  std::vector<float> laplace(200000);
  for (float& x : laplace) x = exponential(rng) * (rng() % 2 == 0 ? 1.0f : -1.0f);
  for (const int bits : {3, 4, 6}) {
    for (const bool gauss : {true, false}) {
      const std::vector<float>& values = gauss ? normal : laplace;
      const TensorStatistics s = StatisticsOf(values);
      const ValueRange range =
          *RangeOf({gauss ? QuantStrategy::Kind::kAciqGauss : QuantStrategy::Kind::kAciqLaplace, 0},
                   s, bits, std::nullopt);
      const double width = (range.max - range.min) / 2;
      const double got = ErrorOf(values, width, bits);
      for (double factor = 0.4; factor < 2.5; factor *= 1.05) {
        EXPECT_LT(got, ErrorOf(values, width * factor, bits) * 1.06) << bits << ' ' << factor;
      }
    }
  }
  // 4 bits: 2.55 sigma and 5.03 b in the paper.
  const TensorStatistics s = StatisticsOf(normal);
  const ValueRange range = *RangeOf({QuantStrategy::Kind::kAciqGauss, 0}, s, 4, std::nullopt);
  EXPECT_NEAR((range.max - range.min) / 2, 2.55, 0.06);
  const ValueRange wide =
      *RangeOf({QuantStrategy::Kind::kAciqLaplace, 0}, StatisticsOf(laplace), 4, std::nullopt);
  EXPECT_NEAR((wide.max - wide.min) / 2, 5.03, 0.1);
}

TEST(RangesTest, EachStrategyOfItsStatistics) {
  std::vector<float> values = Normals(100000, 5);
  values.push_back(1000);  // an outlier
  const TensorStatistics s = StatisticsOf(values);
  const auto range = [&](const char* name) {
    return *RangeOf(*QuantStrategyFromName(name), s, 8, std::nullopt);
  };
  EXPECT_EQ(range("extrema").max, 1000);
  EXPECT_EQ(range("mean").max, 1000);  // of one batch: the same
  EXPECT_NEAR(range("2std").max, s.running_mean + 2 * s.running_std, 1e-9);
  std::sort(values.begin(), values.end());
  const double p99 = values[static_cast<size_t>(0.995 * static_cast<double>(values.size()))];
  EXPECT_NEAR(range("0.99percentile").max, p99, 2 * s.histogram.width());
  // No bin beside the outlier's: to leave it out would be infinitely far from what was seen.
  EXPECT_EQ(range("KLD").max, 1000);
  EXPECT_FALSE(RangeOf({QuantStrategy::Kind::kInIr, 0}, s, 8, std::nullopt).has_value());
  EXPECT_EQ(RangeOf({QuantStrategy::Kind::kInIr, 0}, s, 8, ValueRange{2, 6})->min, 0);
}

// Where there is no gap, the long tail is left out; tests/e2e compares recorded nets with an
// oracle.
TEST(RangesTest, KldLeavesTheTailOut) {
  std::mt19937 rng(6);
  std::exponential_distribution<float> exponential;
  std::vector<float> values(100000);
  for (float& x : values) x = exponential(rng) * exponential(rng);
  const TensorStatistics s = StatisticsOf(values);
  const ValueRange range = *RangeOf({QuantStrategy::Kind::kKld, 0}, s, 8, std::nullopt);
  EXPECT_LT(range.max, 0.9 * s.extrema_max);
  EXPECT_GT(range.max, s.running_std);
  const ValueRange narrow = *RangeOf({QuantStrategy::Kind::kKld, 0}, s, 4, std::nullopt);
  EXPECT_LT(narrow.max, range.max);
}

TEST(StatisticsFileTest, ReadsWhatItWrites) {
  StatisticsByName all;
  all["a/b"] = StatisticsOf(Normals(1000, 6));
  all["c"] = StatisticsOf({0, 0, 0});
  const std::string text = WriteStatistics(all);
  const absl::StatusOr<StatisticsByName> back = ReadStatistics(text);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(WriteStatistics(*back), text);
  for (size_t i = 0; i < text.size(); i += 37) {
    EXPECT_FALSE(ReadStatistics(text.substr(0, i)).ok());
  }
  for (const char* bad : {"[]", "{\"a\": 1}", "{\"a\": {}}", "{\"a\": {}, \"a\": {}}"}) {
    EXPECT_FALSE(ReadStatistics(bad).ok()) << bad;
  }
}

// A histogram of Compass's form gives the same counts, bin by bin, behind a way there and back.
TEST(StatisticsFileTest, HistogramsOfEqualBinsGoBothWays) {
  const std::vector<float> counts = {4, 0, 7, 1, 0.5, 3, 9, 2, 0, 1};
  for (const auto& [low, high] :
       {std::pair{-1.0, 3.0}, {0.0, 0.37}, {1e4, 1.3e4}, {-7e-3, -1e-3}}) {
    StreamHistogram histogram;
    ASSERT_TRUE(histogram.RestoreBins(low, high, counts));
    const std::vector<float> back = histogram.Bins(low, high, 10);
    double total = 0;
    for (const float count : back) total += count;
    for (size_t i = 0; i < counts.size(); ++i) {
      // A bin here may reach over a border by all of its width, a tenth to a twentieth of a count.
      EXPECT_NEAR(back[i] / total * 27.5, counts[i], 5) << i;
    }
    const std::vector<float> halves = histogram.Bins(low, (low + high) / 2, 2);
    EXPECT_NEAR((halves[0] + halves[1]) / total, 1, 1e-6);
  }
  StreamHistogram none;
  EXPECT_FALSE(none.RestoreBins(0, 1, {0, 0}));
  EXPECT_FALSE(none.RestoreBins(0, 1, {1, -1}));
  EXPECT_FALSE(none.RestoreBins(0, HUGE_VAL, {1, 1}));
}

TEST(StatisticsFileTest, NumpysFormGoesBothWays) {
  const TensorStatistics a = StatisticsOf(Normals(4000, 6));
  const TensorStatistics b = StatisticsOf({0, 0.5, 2});
  const std::string file = WriteNumpyStatistics({{"x", {&a, &b}}, {"y:0", {&b}}}, 2048);
  const absl::StatusOr<StatisticsByName> back = ReadStatistics(file);
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_EQ(back->size(), 3u);
  const TensorStatistics& x = back->at("x");
  EXPECT_EQ(x.extrema_min, a.extrema_min);
  EXPECT_EQ(x.running_max, a.running_max);
  EXPECT_EQ(x.running_std, a.running_std);
  EXPECT_EQ(back->at("x:1").extrema_max, 2);
  EXPECT_EQ(back->at("y:0").extrema_max, 2);
  const auto range = [](const TensorStatistics& s) {
    return *RangeOf({QuantStrategy::Kind::kKld, 0}, s, 8, std::nullopt);
  };
  EXPECT_NEAR(range(x).max, range(a).max, 0.02 * range(a).max);
}

TEST(StatisticsFileTest, AFileMayKnowLess) {
  const absl::StatusOr<StatisticsByName> some =
      ReadStatistics(R"({"a": {"running_min": -1, "running_max": 2, "batches": 1}})");
  ASSERT_TRUE(some.ok()) << some.status();
  const TensorStatistics& a = some->at("a");
  EXPECT_EQ(a.extrema_max, 2);
  EXPECT_FALSE(a.has_deviation);
  EXPECT_EQ(MissingFor(*QuantStrategyFromName("mean"), a), "");
  EXPECT_EQ(MissingFor(*QuantStrategyFromName("3std"), a), "running_mean and running_std");
  EXPECT_EQ(MissingFor(*QuantStrategyFromName("KLD"), a), "histogram");
  EXPECT_EQ(ReadStatistics(WriteStatistics(*some))->at("a").running_min, -1);
}

TEST(QuantStrategyTest, NamesGoBothWays) {
  for (const char* name : {"mean", "extrema", "3std", "KLD", "in_ir", "0.9999percentile",
                           "aciq_laplace", "aciq_gauss", "auto", "2.5std"}) {
    ASSERT_TRUE(QuantStrategyFromName(name).has_value()) << name;
    EXPECT_EQ(NameOf(*QuantStrategyFromName(name)), name);
  }
  for (const char* name : {"", "std", "0std", "-1std", "1e9std", "10kld", "2percentile", "means"}) {
    EXPECT_FALSE(QuantStrategyFromName(name).has_value()) << name;
  }
}

}  // namespace
}  // namespace npuc
