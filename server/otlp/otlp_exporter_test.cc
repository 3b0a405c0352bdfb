#include "server/otlp/otlp_exporter.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/http_client/fake_server.h"

namespace npuc::otlp {
namespace {

using observe::Metric;
using ::testing::HasSubstr;

constexpr char kOk[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
constexpr absl::Duration kPatience = absl::Seconds(60);

class Counts : public observe::NoMetrics {
 public:
  void Add(Metric metric, Labels labels, double amount) override {
    const MutexLock lock(mutex_);
    std::string key = absl::StrCat(static_cast<int>(metric));
    for (const absl::string_view label : labels) absl::StrAppend(&key, "/", label);
    counts_[key] += amount;
  }
  double Of(Metric metric, absl::string_view label = "") {
    const MutexLock lock(mutex_);
    return counts_[absl::StrCat(static_cast<int>(metric), label.empty() ? "" : "/", label)];
  }

 private:
  Mutex mutex_;
  std::map<std::string, double> counts_ NPUC_GUARDED_BY(mutex_);
};

class OtlpExporterTest : public ::testing::Test {
 protected:
  OtlpExporterTest() : log_(nullptr, [] { return absl::Now(); }) {}

  ExporterOptions Options(const http_client::FakeServer& collector) {
    return {.url = collector.url("/v1/traces"),
            .now = [] { return absl::Now(); },
            .linger = absl::Milliseconds(1),
            .timeout = absl::Seconds(30),
            .first_pause = absl::Milliseconds(1),
            .max_pause = absl::Milliseconds(2)};
  }
  static observe::Span Named(std::string name) {
    return {.trace_id = observe::NewTraceId(),
            .span_id = observe::NewSpanId(),
            .name = std::move(name),
            .start = absl::Now(),
            .end = absl::Now()};
  }

  http_client::CurlClient client_{""};
  Counts metrics_;
  log::Logger log_;
};

TEST_F(OtlpExporterTest, SendsEachSpanOnce) {
  http_client::FakeServer collector({kOk});
  OtlpExporter exporter(Options(collector), &client_, &metrics_, &log_);
  for (int i = 0; i < 1000; ++i) exporter.Record(Named(absl::StrCat("span<", i, ">")));
  ASSERT_TRUE(exporter.Flush(kPatience));
  std::string all;
  for (const std::string& request : collector.requests()) absl::StrAppend(&all, request);
  for (int i = 0; i < 1000; ++i) {
    const std::string name = absl::StrCat("span<", i, ">");
    const size_t at = all.find(name);
    ASSERT_NE(at, std::string::npos) << name;
    EXPECT_EQ(all.find(name, at + 1), std::string::npos) << name;
  }
  EXPECT_EQ(metrics_.Of(Metric::kTraceSpansExported), 1000);
}

TEST_F(OtlpExporterTest, TriesAgainWhereItIsAskedTo) {
  http_client::FakeServer collector(
      {"HTTP/1.1 429 x\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n",
       "HTTP/1.1 503 x\r\nContent-Length: 0\r\n\r\n", "", kOk});
  OtlpExporter exporter(Options(collector), &client_, &metrics_, &log_);
  exporter.Record(Named("one"));
  ASSERT_TRUE(exporter.Flush(kPatience));
  EXPECT_EQ(collector.requests().size(), 4u);
  EXPECT_EQ(metrics_.Of(Metric::kTraceRetries), 3);
  EXPECT_EQ(metrics_.Of(Metric::kTraceSpansExported), 1);
}

TEST_F(OtlpExporterTest, GivesUpAndCountsWhatIsLost) {
  http_client::FakeServer collector({"HTTP/1.1 503 x\r\nContent-Length: 0\r\n\r\n"});
  ExporterOptions options = Options(collector);
  options.max_attempts = 3;
  OtlpExporter exporter(options, &client_, &metrics_, &log_);
  exporter.Record(Named("one"));
  exporter.Record(Named("two"));
  ASSERT_TRUE(exporter.Flush(kPatience));
  EXPECT_EQ(metrics_.Of(Metric::kTraceSpansDropped, "unreachable"), 2);
}

TEST_F(OtlpExporterTest, DoesNotRepeatWhatIsRefused) {
  for (const char* answer :
       {"HTTP/1.1 400 x\r\nContent-Length: 0\r\n\r\n", "garbage\r\n\r\n",
        "HTTP/1.1 301 x\r\nLocation: http://b/\r\nContent-Length: 0\r\n\r\n"}) {
    Counts metrics;
    http_client::FakeServer collector({answer});
    OtlpExporter exporter(Options(collector), &client_, &metrics, &log_);
    exporter.Record(Named("one"));
    ASSERT_TRUE(exporter.Flush(kPatience));
    EXPECT_EQ(collector.requests().size(), 1u) << answer;
    EXPECT_EQ(metrics.Of(Metric::kTraceSpansDropped, "refused"), 1) << answer;
  }
}

TEST_F(OtlpExporterTest, CountsWhatACollectorRejectsOfABatch) {
  constexpr absl::string_view kBody = R"({"partialSuccess":{"rejectedSpans":"1"}})";
  http_client::FakeServer collector(
      {absl::StrCat("HTTP/1.1 200 OK\r\nContent-Length: ", kBody.size(), "\r\n\r\n", kBody)});
  OtlpExporter exporter(Options(collector), &client_, &metrics_, &log_);
  exporter.Record(Named("one"));
  exporter.Record(Named("two"));
  ASSERT_TRUE(exporter.Flush(kPatience));
  const double sent = static_cast<double>(collector.requests().size());
  EXPECT_EQ(metrics_.Of(Metric::kTraceSpansDropped, "refused"), sent);
  EXPECT_EQ(metrics_.Of(Metric::kTraceSpansExported), 2 - sent);
}

TEST_F(OtlpExporterTest, NeverWaitsForACollectorThatHangs) {
  http_client::FakeServer collector({http_client::FakeServer::kHangs});
  ExporterOptions options = Options(collector);
  options.timeout = absl::Seconds(2);
  options.max_attempts = 1;
  OtlpExporter exporter(options, &client_, &metrics_, &log_);
  const absl::Time begin = absl::Now();
  for (size_t i = 0; i < 3 * kMaxQueuedSpans; ++i) exporter.Record(Named("one"));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(30));
  // Some may have gone into the request that hangs.
  EXPECT_GE(metrics_.Of(Metric::kTraceSpansDropped, "queue_full"),
            static_cast<double>(kMaxQueuedSpans));
}

TEST_F(OtlpExporterTest, FollowsTheClientOrSamples) {
  http_client::FakeServer collector({kOk});
  ExporterOptions options = Options(collector);
  options.sampling_ratio = 0.25;
  OtlpExporter exporter(options, &client_, &metrics_, &log_);
  const base::TraceContext sampled{.trace_id = "0af7651916cd43dd8448eb211c80319c",
                                   .span_id = "b7ad6b7169203331",
                                   .sampled = true};
  EXPECT_EQ(exporter.Begin(sampled), sampled);
  base::TraceContext unsampled = sampled;
  unsampled.sampled = false;
  EXPECT_EQ(exporter.Begin(unsampled), unsampled);
  int begun = 0;
  for (int i = 0; i < 4000; ++i) {
    const base::TraceContext own = exporter.Begin({});
    EXPECT_EQ(own.sampled, !own.empty());
    EXPECT_TRUE(own.span_id.empty());
    begun += own.sampled ? 1 : 0;
  }
  // Six standard deviations of 4,000 draws at a quarter.
  EXPECT_NEAR(begun, 1000, 165);
  options.sampling_ratio = 0;
  OtlpExporter none(options, &client_, &metrics_, &log_);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(none.Begin({}).empty());
}

}  // namespace
}  // namespace npuc::otlp
