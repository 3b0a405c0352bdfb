#include "server/observe/prometheus_metrics.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::observe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(PrometheusMetricsTest, WritesWhatWasCounted) {
  PrometheusMetrics metrics;
  metrics.Add(Metric::kJobsAccepted, {"audio"}, 2);
  metrics.Add(Metric::kJobsAccepted, {"audio"}, 1);
  metrics.Observe(Metric::kStoreSeconds, {"apply"}, 0.004);
  metrics.SetSampler([](Metrics& out) {
    out.Set(Metric::kJobs, {"audio", "queued"}, 7);
    out.Set(Metric::kCacheHits, {}, 5);
  });
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("npuc_jobs_accepted_total{tenant=\"audio\"} 3"));
  EXPECT_THAT(text, HasSubstr("npuc_jobs{state=\"queued\",tenant=\"audio\"} 7"));
  EXPECT_THAT(text, HasSubstr("npuc_cache_hits_total 5"));
  EXPECT_THAT(text, HasSubstr("npuc_store_seconds_bucket{operation=\"apply\",le=\"0.0025\"} 0"));
  EXPECT_THAT(text, HasSubstr("npuc_store_seconds_bucket{operation=\"apply\",le=\"0.005\"} 1"));
}

TEST(PrometheusMetricsTest, ACounterThatIsKeptElsewhereNeverFalls) {
  PrometheusMetrics metrics;
  metrics.Set(Metric::kCacheHits, {}, 5);
  metrics.Set(Metric::kCacheHits, {}, 3);
  metrics.Set(Metric::kCacheHits, {}, 6);
  EXPECT_THAT(metrics.Text(), HasSubstr("npuc_cache_hits_total 6"));
}

TEST(PrometheusMetricsTest, LabelValuesAreBounded) {
  PrometheusMetrics metrics;
  for (size_t i = 0; i < 2 * PrometheusMetrics::kMaxSeries; ++i) {
    metrics.Add(Metric::kJobsAccepted, {absl::StrCat("tenant", i)}, 1);
  }
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr(absl::StrCat("{tenant=\"other\"} ", PrometheusMetrics::kMaxSeries)));
  EXPECT_THAT(text, Not(HasSubstr(absl::StrCat("tenant", PrometheusMetrics::kMaxSeries, "\""))));
}

TEST(PrometheusMetricsTest, TheOperatorsPageHasTheListAsItIs) {
  const char* const root = std::getenv("NPUC_SOURCE_DIR");
  ASSERT_NE(root, nullptr);
  std::stringstream page;
  page << std::ifstream(absl::StrCat(root, "/deploy/METRICS.md")).rdbuf();
  for (const auto& metric : PrometheusMetrics::List()) {
    const std::string row =
        absl::StrCat("| `", metric.name, "` | ", metric.kind, " | ",
                     absl::StrReplaceAll(metric.labels, {{",", ", "}}), " | ", metric.help, " |");
    EXPECT_THAT(page.str(), HasSubstr(row));
  }
}

}  // namespace
}  // namespace npuc::observe
