#include "compiler_core/report/histogram.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using ::testing::ElementsAre;

TEST(Histogram, CountsEachValueInTheBinWhoseEdgesHoldIt) {
  // Edges -1, -0.5, 0, 0.5, 1: a value on an edge belongs to the bin above, the last to the last.
  const Histogram h = MakeHistogram({-1.0f, -0.75f, -0.5f, 0.0f, 0.0f, 0.25f, 1.0f}, 4);
  EXPECT_THAT(h.counts, ElementsAre(2, 1, 3, 1));
  EXPECT_EQ(h.total, 7);
  EXPECT_EQ(h.zeros, 2);
  EXPECT_EQ(h.min, -1.0);
  EXPECT_EQ(h.max, 1.0);
  EXPECT_NEAR(h.mean, -1.0 / 7, 1e-12);
  EXPECT_EQ(h.Edge(0), -1.0);
  EXPECT_EQ(h.Edge(1), -0.5);
  EXPECT_EQ(h.Edge(4), 1.0);
}

TEST(Histogram, EqualValuesLieInTheMiddleOfAUnit) {
  const Histogram h = MakeHistogram({2.0f, 2.0f}, 4);
  EXPECT_EQ(h.low, 1.5);
  EXPECT_EQ(h.high, 2.5);
  EXPECT_THAT(h.counts, ElementsAre(0, 0, 2, 0));
}

TEST(Histogram, EqualLargeValuesLieInTheMiddle) {
  for (const float value : {1e30f, -3e38f}) {
    const Histogram histogram = MakeHistogram(std::vector<float>(5, value), 4);
    EXPECT_EQ(histogram.counts[1] + histogram.counts[2], 5) << value;
    EXPECT_LT(histogram.low, histogram.high);
  }
}

TEST(Histogram, ValuesThatAreNotFiniteAreCountedApart) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const Histogram h = MakeHistogram({nan, 1.0f, -infinity, 3.0f, infinity}, 2);
  EXPECT_EQ(h.not_finite, 3);
  EXPECT_EQ(h.total, 2);
  EXPECT_THAT(h.counts, ElementsAre(1, 1));
  EXPECT_EQ(h.min, 1.0);
  EXPECT_EQ(h.max, 3.0);
}

// Extremes, zeros and sum do not depend on where in the weight a value lies.
TEST(Histogram, EveryPlaceIsSeen) {
  for (size_t size = 2; size < 40; ++size) {
    for (size_t place = 0; place + 1 < size; ++place) {
      std::vector<float> values(size, 1.0f);
      values[place] = -2.0f;
      values[place + 1] = 0.0f;
      const Histogram h = MakeHistogram(values, 3);
      EXPECT_EQ(h.min, -2.0) << place << " of " << size;
      EXPECT_EQ(h.max, size == 2 ? 0.0 : 1.0) << place << " of " << size;
      EXPECT_EQ(h.zeros, 1) << place << " of " << size;
      EXPECT_NEAR(h.mean, (static_cast<double>(size) - 4) / size, 1e-12) << size;
      values[place] = std::numeric_limits<float>::quiet_NaN();
      EXPECT_EQ(MakeHistogram(values, 3).not_finite, 1) << place << " of " << size;
    }
  }
}

TEST(Histogram, NoValuesGiveEmptyBins) {
  const Histogram h = MakeHistogram({}, 3);
  EXPECT_EQ(h.total, 0);
  EXPECT_THAT(h.counts, ElementsAre(0, 0, 0));
}

// The whole range of float, where widths and products overflow float itself.
TEST(Histogram, EveryValueIsCountedOnce) {
  const float most = std::numeric_limits<float>::max();
  const float least = std::numeric_limits<float>::denorm_min();
  const std::vector<float> values = {-most, most, 0.0f, -0.0f, least, -least, most / 3, 1.0f};
  for (const int bins : {1, 2, 3, 7, 128}) {
    const Histogram h = MakeHistogram(values, bins);
    EXPECT_EQ(std::accumulate(h.counts.begin(), h.counts.end(), int64_t{0}), 8) << bins;
    EXPECT_EQ(h.zeros, 2);
  }
  // Neighbouring floats: the bins are narrower than the distance between two values.
  const Histogram narrow = MakeHistogram({1.0f, std::nextafter(1.0f, 2.0f)}, 128);
  EXPECT_EQ(narrow.counts.front(), 1);
  EXPECT_EQ(narrow.counts.back(), 1);
}

}  // namespace
}  // namespace npuc
