#include "compiler_core/quant/metrics/metrics.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using testing::HasSubstr;

absl::StatusOr<double> Of(const std::string& metric, std::vector<int64_t> shape,
                          const std::vector<float>& values, const std::vector<float>& wanted,
                          const Labels& labels) {
  Scores scores;
  int64_t elements = 1;
  for (const int64_t dim : shape) elements *= dim;
  scores.items = static_cast<int64_t>(values.size()) / elements;
  scores.shape = std::move(shape);
  scores.values = values;
  scores.wanted = wanted;
  return Measure(MetricFromName(metric).value(), scores, labels);
}

// Values of the three by hand: dot 20, energies 30 and 14, difference 1 + 0 + 1 + 2^2...
TEST(MetricsTest, LikenessToTheFloatModel) {
  const std::vector<float> got = {1, 2, 3, 4};
  const std::vector<float> wanted = {2, 2, 2, 2};
  EXPECT_NEAR(*Of("cosine", {4}, got, wanted, {}), 20 / std::sqrt(30.0 * 16), 1e-12);
  EXPECT_DOUBLE_EQ(*Of("mse", {4}, got, wanted, {}), 6.0 / 4);
  EXPECT_NEAR(*Of("sqnr", {4}, got, wanted, {}), 10 * std::log10(16.0 / 6), 1e-12);
  EXPECT_TRUE(std::isinf(*Of("sqnr", {4}, wanted, wanted, {})));
  EXPECT_EQ(*Of("cosine", {2}, {0, 0}, {0, 0}, {}), 1);
  EXPECT_EQ(*Of("cosine", {2}, {0, 0}, {1, 0}, {}), 0);
}

TEST(LabelCsvTest, RowsOfIntegers) {
  EXPECT_EQ(LabelsFromCsv("3\n1\n\n2\n")->values, (std::vector<int64_t>{3, 1, 2}));
  EXPECT_EQ(LabelsFromCsv("3\n1\n")->shape, (std::vector<int64_t>{2}));
  const absl::StatusOr<Labels> words = LabelsFromCsv("words\r\n1, 2,3\r\n4\r\n");
  ASSERT_TRUE(words.ok()) << words.status();
  EXPECT_EQ(words->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(words->values, (std::vector<int64_t>{1, 2, 3, 4, -1, -1}));
}

TEST(LabelCsvTest, NamedRowsStandAsTheFilesOfAFolder) {
  const absl::StatusOr<Labels> labels = LabelsFromCsv("file,label\nb.png,1\nc.png,2\na.png,7\n");
  ASSERT_TRUE(labels.ok()) << labels.status();
  EXPECT_EQ(labels->values, (std::vector<int64_t>{7, 1, 2}));
}

TEST(LabelCsvTest, SaysWhatIsWrong) {
  const auto problem = [](absl::string_view text) {
    return std::string(LabelsFromCsv(text).status().message());
  };
  EXPECT_THAT(problem("1\n2.5\n"), HasSubstr("line 2: '2.5' is no integer"));
  EXPECT_THAT(problem("a.png,1\nb.png,x\n"), HasSubstr("line 2: 'x' is no integer"));
  EXPECT_THAT(problem("a.png,1\n3\n"), HasSubstr("line 2: some rows begin with a name"));
  EXPECT_THAT(problem("a.png,1\na.png,2\n"), HasSubstr("'a.png' has two rows"));
  EXPECT_THAT(problem("file,label\n"), HasSubstr("no row of integers"));
  EXPECT_THAT(problem(""), HasSubstr("no row of integers"));
}

// An sqnr of infinity, a label that no score beats: neither is said of what is no number.
TEST(MetricsTest, GivesNoFigureOfWhatIsNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const char* metric : {"cosine", "mse", "sqnr"}) {
    for (const float bad : {nan, infinity, -infinity}) {
      const auto got = Of(metric, {2}, {1, 2, 3, bad}, {1, 2, 3, 4}, {});
      ASSERT_FALSE(got.ok()) << metric << " " << bad;
      EXPECT_THAT(std::string(got.status().message()),
                  HasSubstr("1 of 4 values of the output are not finite, the first in item 1"));
      const auto wanted = Of(metric, {2}, {1, 2, 3, 4}, {bad, 2, 3, 4}, {});
      ASSERT_FALSE(wanted.ok()) << metric << " " << bad;
      EXPECT_THAT(std::string(wanted.status().message()),
                  HasSubstr("1 of 4 values of the float model's output are not finite"));
    }
  }
  for (const char* metric : {"topk", "auc", "wer"}) {
    const bool is_auc = metric == std::string("auc");
    const std::vector<int64_t> shape =
        is_auc ? std::vector<int64_t>{1} : std::vector<int64_t>{1, 2};
    const Labels labels = is_auc ? Labels{{2}, {0, 1}} : Labels{{1, 1}, {0}};
    EXPECT_FALSE(Of(metric, shape, {nan, 1}, {}, labels).ok()) << metric;
    EXPECT_TRUE(Of(metric, shape, {-infinity, 1}, {}, labels).ok()) << metric;
  }
}

// The example of scikit-learn's top_k_accuracy_score: 0.75 for k = 2.
TEST(MetricsTest, TopK) {
  const std::vector<float> scores = {0.5F, 0.2F, 0.2F, 0.3F, 0.4F, 0.2F,
                                     0.2F, 0.4F, 0.3F, 0.7F, 0.2F, 0.1F};
  const Labels labels = {{4}, {0, 1, 2, 2}};
  EXPECT_DOUBLE_EQ(*Of("topk:2", {3}, scores, {}, labels), 0.75);
  EXPECT_DOUBLE_EQ(*Of("topk", {3}, scores, {}, labels), 0.5);
  EXPECT_DOUBLE_EQ(*Of("topk:3", {1, 3}, scores, {}, labels), 1);
  // Of equal scores the first wins.
  EXPECT_DOUBLE_EQ(*Of("topk:1", {2}, {1, 1, 1, 1}, {}, {{2}, {0, 1}}), 0.5);
}

// The example of scikit-learn's roc_auc_score: 0.75; a tie counts half.
TEST(MetricsTest, Auc) {
  EXPECT_DOUBLE_EQ(*Of("auc", {1}, {0.1F, 0.4F, 0.35F, 0.8F}, {}, {{4}, {0, 0, 1, 1}}), 0.75);
  EXPECT_DOUBLE_EQ(*Of("auc", {1}, {1, 1, 1}, {}, {{3}, {0, 1, 1}}), 0.5);
}

// kitten -> sitting: 3, the textbook's distance.
TEST(MetricsTest, EditDistance) {
  EXPECT_EQ(EditDistance({11, 9, 20, 20, 5, 14}, {19, 9, 20, 20, 9, 14, 7}), 3);
  EXPECT_EQ(EditDistance({}, {1, 2}), 2);
  EXPECT_EQ(EditDistance({1, 2, 3}, {1, 2, 3}), 0);
}

// Steps 0 0 blank 0 1 are the words 0 0 1; said were 0 1: one insertion to two words.
TEST(MetricsTest, WordErrorRate) {
  const std::vector<float> scores = {1, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0};
  EXPECT_DOUBLE_EQ(*Of("wer", {5, 3}, scores, {}, {{1, 3}, {0, 1, -1}}), 0.5);
  // With another blank the words are 2 and 1.
  EXPECT_DOUBLE_EQ(*Of("wer:0", {5, 3}, scores, {}, {{1, 2}, {2, 1}}), 0);
}

TEST(MetricsTest, SaysWhatDoesNotSuit) {
  const auto problem = [](const absl::StatusOr<double>& value) {
    return std::string(value.status().message());
  };
  EXPECT_THAT(problem(Of("topk", {2}, {1, 2}, {}, {{2}, {0, 1}})), HasSubstr("2 labels for 1"));
  EXPECT_THAT(problem(Of("topk", {2}, {1, 2}, {}, {{1}, {2}})), HasSubstr("none of the 2 classes"));
  EXPECT_THAT(problem(Of("auc", {1}, {1, 2}, {}, {{2}, {1, 1}})), HasSubstr("of both kinds"));
  EXPECT_THAT(problem(Of("auc", {2}, {1, 2}, {}, {{1}, {1}})), HasSubstr("one score"));
  EXPECT_THAT(problem(Of("wer", {2}, {1, 2}, {}, {{1}, {1}})), HasSubstr("[items, words]"));
  EXPECT_THAT(problem(Of("mse", {2}, {1, 2}, {1}, {})), HasSubstr("2 values beside 1"));
  for (const char* name : {"", "top", "topk:0", "topk:x", "mse:1", "wer:-1"}) {
    EXPECT_FALSE(MetricFromName(name).ok()) << name;
  }
}

}  // namespace
}  // namespace npuc
