#include "server/observe/sampler.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::observe {
namespace {

using ::testing::ElementsAre;

class RecordingMetrics : public NoMetrics {
 public:
  void Set(Metric, Labels labels, double value) override {
    lines.push_back(absl::StrCat(*labels.begin(), " ", value));
  }

  std::vector<std::string> lines;
};

TEST(SamplerTest, AsksEverySourceInTheOrderInWhichTheyCame) {
  Sampler sampler;
  int calls = 0;
  sampler.Add([&](Metrics& metrics) { metrics.Set(Metric::kCondition, {"first"}, ++calls); });
  RecordingMetrics early;
  sampler.Sample(early);
  EXPECT_THAT(early.lines, ElementsAre("first 1"));

  // A part that is there later is asked from then on; one that adds a source while it is asked
  // does not wait for itself.
  sampler.Add([&](Metrics& metrics) {
    metrics.Set(Metric::kCondition, {"second"}, 7);
    sampler.Add([](Metrics&) {});
  });
  RecordingMetrics late;
  sampler.Sample(late);
  EXPECT_THAT(late.lines, ElementsAre("first 2", "second 7"));
}

}  // namespace
}  // namespace npuc::observe
