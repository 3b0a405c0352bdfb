#include "server/otlp/otlp_exporter.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/base/steady_clock.h"

namespace npuc::otlp {
namespace {

using observe::Metric;

// As OpenTelemetry's TraceIdRatioBased: by the id itself, so that all who ask decide alike.
bool IsSampled(const std::string& trace_id, double ratio) {
  uint64_t low = 0;
  if (!absl::SimpleHexAtoi(trace_id.substr(16), &low)) return false;
  return ratio >= 1.0 || static_cast<double>(low >> 1) < ratio * std::ldexp(1.0, 63);
}

bool IsRetryable(int status) {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

// So that many daemons do not come back at once.
double Jitter() {
  thread_local std::mt19937_64 random{std::random_device{}()};
  return std::uniform_real_distribution<double>(1.0, 1.5)(random);
}

}  // namespace

OtlpExporter::OtlpExporter(ExporterOptions options, http_client::Client* client,
                           observe::Metrics* metrics, const log::Logger* log)
    : options_(std::move(options)), client_(client), metrics_(metrics), log_(log), thread_([this] {
        Loop();
      }) {}

OtlpExporter::~OtlpExporter() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    wake_.NotifyAll();
  }
  thread_.join();
}

base::TraceContext OtlpExporter::Begin(const base::TraceContext& client) {
  if (!client.empty()) return client;
  base::TraceContext own{.trace_id = observe::NewTraceId(), .span_id = {}, .sampled = true};
  return IsSampled(own.trace_id, options_.sampling_ratio) ? own : base::TraceContext{};
}

void OtlpExporter::Record(observe::Span span) {
  {
    const MutexLock lock(mutex_);
    if (queue_.size() < kMaxQueuedSpans && !stopping_) {
      queue_.push_back(std::move(span));
      if (queue_.size() == 1 || queue_.size() == kMaxSpansOfARequest) wake_.NotifyAll();
      return;
    }
  }
  Drop("queue_full", 1);
}

void OtlpExporter::Drop(const char* reason, size_t spans) {
  metrics_->Add(Metric::kTraceSpansDropped, {reason}, static_cast<double>(spans));
}

bool OtlpExporter::Flush(absl::Duration patience) {
  const SteadyTime end = SteadyTimeAfter(absl::ToChronoNanoseconds(patience));
  const MutexLock lock(mutex_);
  flushing_ = true;
  wake_.NotifyAll();
  while ((sending_ || !queue_.empty()) && !stopping_) {
    if (!idle_.WaitUntil(mutex_, end)) break;
  }
  flushing_ = false;
  return !sending_ && queue_.empty();
}

void OtlpExporter::Sample(observe::Metrics& metrics) const {
  const MutexLock lock(mutex_);
  metrics.Set(Metric::kTraceSpansQueued, {}, static_cast<double>(queue_.size()));
}

std::vector<observe::Span> OtlpExporter::Await() {
  const MutexLock lock(mutex_);
  sending_ = false;
  if (queue_.empty()) idle_.NotifyAll();
  while (!stopping_ && queue_.empty()) wake_.Wait(mutex_);
  const SteadyTime due = SteadyTimeAfter(absl::ToChronoNanoseconds(options_.linger));
  while (!stopping_ && !flushing_ && queue_.size() < kMaxSpansOfARequest &&
         wake_.WaitUntil(mutex_, due)) {
  }
  if (stopping_) return {};
  const auto count = static_cast<ptrdiff_t>(std::min(queue_.size(), kMaxSpansOfARequest));
  std::vector<observe::Span> spans(std::make_move_iterator(queue_.begin()),
                                   std::make_move_iterator(queue_.begin() + count));
  queue_.erase(queue_.begin(), queue_.begin() + count);
  sending_ = true;
  return spans;
}

void OtlpExporter::Loop() {
  while (true) {
    const std::vector<observe::Span> spans = Await();
    if (spans.empty()) return;
    Send(spans);
  }
}

bool OtlpExporter::Sleep(absl::Duration duration) {
  const SteadyTime end = SteadyTimeAfter(absl::ToChronoNanoseconds(duration));
  const MutexLock lock(mutex_);
  while (!stopping_ && wake_.WaitUntil(mutex_, end)) {
  }
  return !stopping_;
}

void OtlpExporter::Complain(absl::string_view why) {
  in_trouble_ = true;
  if (!trouble_.IsDue(base::SteadyNow())) return;
  log_->Warning("spans cannot be sent", {{"to", options_.url},
                                         {"error", why},
                                         {"lost", "traces; jobs go on"},
                                         {"flag", "--otlp-endpoint"}});
}

void OtlpExporter::Send(const std::vector<observe::Span>& spans) {
  const std::string body = EncodeSpans(options_.resource, spans);
  absl::Duration backoff = options_.first_pause;
  for (int attempt = 1;; ++attempt) {
    absl::Duration pause = backoff;
    switch (Post(body, spans.size(), pause)) {
      case Sent::kDone:
        if (in_trouble_) log_->Info("spans are sent again", {{"to", options_.url}});
        in_trouble_ = false;
        trouble_.Reset();
        return;
      case Sent::kRefused:
        Drop("refused", spans.size());
        return;
      case Sent::kAgain:
        break;
    }
    const bool is_last = attempt >= options_.max_attempts;
    if (is_last || !Sleep(std::min(pause, options_.max_pause) * Jitter())) {
      Drop("unreachable", spans.size());
      return;
    }
    metrics_->Add(Metric::kTraceRetries, {}, 1);
    backoff = std::min(2 * backoff, options_.max_pause);
  }
}

OtlpExporter::Sent OtlpExporter::Post(const std::string& body, size_t spans,
                                      absl::Duration& pause) {
  http_client::Request request{
      .method = "POST",
      .url = options_.url,
      .headers = options_.headers,
      .limits = {.whole = options_.timeout, .answer_bytes = kMaxAnswerBytes}};
  request.headers.emplace_back("Content-Type", "application/json");
  http_client::SetBody(body, request);
  const absl::StatusOr<http_client::Answer> answer = client_->Send(request);
  if (!answer.ok()) {
    Complain(answer.status().message());
    return absl::IsInvalidArgument(answer.status()) ? Sent::kRefused : Sent::kAgain;
  }
  if (answer->status >= 200 && answer->status < 300) {
    const auto rejected = std::min(static_cast<size_t>(RejectedSpans(answer->body)), spans);
    if (rejected > 0) Drop("refused", rejected);
    metrics_->Add(Metric::kTraceSpansExported, {}, static_cast<double>(spans - rejected));
    return Sent::kDone;
  }
  Complain(absl::StrCat("HTTP ", answer->status));
  if (!IsRetryable(answer->status)) return Sent::kRefused;
  const auto retry_after = answer->headers.find("retry-after");
  uint32_t seconds = 0;
  if (retry_after != answer->headers.end() && absl::SimpleAtoi(retry_after->second, &seconds)) {
    pause = std::max(pause, absl::Seconds(seconds));
  }
  return Sent::kAgain;
}

}  // namespace npuc::otlp
