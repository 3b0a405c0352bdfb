#ifndef NPUC_SERVER_OTLP_OTLP_EXPORTER_H_
#define NPUC_SERVER_OTLP_OTLP_EXPORTER_H_

#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "compiler_core/base/mutex.h"
#include "server/http_client/http_client.h"
#include "server/log/log.h"
#include "server/observe/metrics.h"
#include "server/observe/reminder.h"
#include "server/observe/tracer.h"
#include "server/otlp/otlp_json.h"

namespace npuc::otlp {

// Spans that wait to be sent; one more is dropped.
inline constexpr size_t kMaxQueuedSpans = 4096;
// Spans of one request.
inline constexpr size_t kMaxSpansOfARequest = 512;
// The bytes of a collector's answer.
inline constexpr size_t kMaxAnswerBytes = size_t{64} << 10;

struct ExporterOptions {
  std::string url;  // TracesUrl made it
  http_client::Headers headers = {};
  Resource resource = {};
  double sampling_ratio = 1.0;                 // of the jobs whose client brings no trace; 0 to 1
  std::function<absl::Time()> now = {};        // the clock of jobs
  absl::Duration linger = absl::Seconds(1);    // how long the first span waits for company
  absl::Duration timeout = absl::Seconds(10);  // of a request
  // Between the attempts to send a request: the first pause, doubled each time; some jitter.
  absl::Duration first_pause = absl::Seconds(1);
  absl::Duration max_pause = absl::Seconds(60);  // bounds what Retry-After asks for, too
  int max_attempts = 6;                          // then its spans are dropped
};

// Sends spans in batches from a thread of its own. What a collector does, or does not do, costs
// spans and nothing else. Thread-safe.
class OtlpExporter : public observe::Tracer {
 public:
  // All must outlive this.
  OtlpExporter(ExporterOptions options, http_client::Client* client, observe::Metrics* metrics,
               const log::Logger* log);
  // Drops what is not sent; waits for a request under way.
  ~OtlpExporter() override;
  OtlpExporter(const OtlpExporter&) = delete;
  OtlpExporter& operator=(const OtlpExporter&) = delete;

  base::TraceContext Begin(const base::TraceContext& client) override;
  void Record(observe::Span span) override;
  absl::Time Now() const override { return options_.now(); }

  // Sends at once what waits; true once all is sent or dropped, false after `patience`.
  bool Flush(absl::Duration patience);
  void Sample(observe::Metrics& metrics) const;

 private:
  enum class Sent { kDone, kAgain, kRefused };

  void Loop();
  std::vector<observe::Span> Await();
  void Send(const std::vector<observe::Span>& spans);
  Sent Post(const std::string& body, size_t spans, absl::Duration& pause);
  // False: it stops.
  bool Sleep(absl::Duration duration);
  void Drop(const char* reason, size_t spans);
  void Complain(absl::string_view why);

  const ExporterOptions options_;
  http_client::Client* const client_;
  observe::Metrics* const metrics_;
  const log::Logger* const log_;
  observe::Reminder trouble_;  // of the thread
  bool in_trouble_ = false;    // of the thread
  mutable Mutex mutex_;
  CondVar wake_;
  CondVar idle_;
  std::deque<observe::Span> queue_ NPUC_GUARDED_BY(mutex_);
  bool sending_ NPUC_GUARDED_BY(mutex_) = false;
  bool flushing_ NPUC_GUARDED_BY(mutex_) = false;
  bool stopping_ NPUC_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace npuc::otlp

#endif  // NPUC_SERVER_OTLP_OTLP_EXPORTER_H_
