#ifndef NPUC_SERVER_HTTP_EVENT_STREAMS_H_
#define NPUC_SERVER_HTTP_EVENT_STREAMS_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "compiler_core/base/mutex.h"
#include "server/api/dependencies.h"
#include "server/api/job_watch.h"
#include "server/auth/caller.h"
#include "server/http/http_message.h"
#include "server/jobs/change_hub.h"

namespace npuc::http {

// Each open event stream keeps a connection (HttpLimits::connections); what is left is for other
// requests.
inline constexpr size_t kMaxEventStreams = 256;
inline constexpr size_t kMaxEventStreamsOfOne = 64;
inline constexpr size_t kMaxJobsOfAStream = 64;

// A job to watch, from the event of this number on.
struct WatchFrom {
  std::string job_id;
  int64_t from_seq = 0;
};

class EventStreams;

// A watch of one job or of several as text/event-stream.
// A watch of one job: each kept event has its number as the id. A client that comes back with
// Last-Event-ID misses and repeats nothing. The last event is "end" (the job has ended) or "error"
// (a google.rpc.Status).
// A watch of several: the data of an event are {"jobId", "event"}, those of "end" {"jobId"}, those
// of "error" {"jobId", "status"}, or {"status"} where the whole stream fails. The stream ends after
// the last job's end. A client that comes back gives the first event that it wants of each job.
class EventStream : public HttpStream {
 public:
  // Takes itself off the count.
  ~EventStream() override;
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;

  // The next piece of text. Never an error: errors are events.
  absl::StatusOr<Piece> Next() override;
  std::optional<uint64_t> size() const override { return std::nullopt; }
  void SetWake(std::function<void()> wake) override;

 private:
  friend class EventStreams;
  struct Watched {
    std::string job_id;
    api::JobWatch watch;
    std::deque<v1::JobEvent> unsent = {};
    absl::Status status = absl::OkStatus();  // why it cannot be watched
    bool has_ended = false;                  // nothing follows what is unsent
    bool has_told_end = false;
    std::atomic<bool> has_changed = true;  // since the last look, as was reported
    jobs::ChangeHub::Subscription subscription = {};
  };

  EventStream(EventStreams* streams, const api::ApiDependencies* deps, const auth::Caller& caller,
              const std::vector<WatchFrom>& jobs, bool names_jobs);
  // Reads what came since the last time.
  void Look();
  // The events that are unsent, a bounded number of bytes; the ends of jobs behind theirs.
  Piece Take();
  // An event of this name about a job; about all where it is null.
  std::string Event(absl::string_view name, const Watched* watched, absl::string_view field,
                    absl::string_view json) const;
  Piece Fail(const absl::Status& status);

  EventStreams* const streams_;
  const api::ApiDependencies* const deps_;
  const std::string identity_;
  const std::string session_;                             // ends with it; empty: there is none
  const std::unique_ptr<api::OpenStreams::Place> place_;  // null: nobody keeps it
  const bool names_jobs_;
  // By pointer: a subscription may not move.
  std::vector<std::unique_ptr<Watched>> watched_;
  absl::Time last_sent_;
  absl::Time reattach_at_ = absl::InfiniteFuture();

  void Wake();

  Mutex mutex_;
  std::function<void()> wake_ NPUC_GUARDED_BY(mutex_);
  bool closing_ NPUC_GUARDED_BY(mutex_) = false;
};

// The event streams that are open. Outlives each. Thread-safe.
class EventStreams {
 public:
  EventStreams(const api::ApiDependencies* deps, absl::Duration heartbeat, absl::Duration max_age)
      : deps_(deps), heartbeat_(heartbeat), max_age_(max_age) {}

  // Opens one of one job and reads its first events, so that errors come as errors.
  // RESOURCE_EXHAUSTED (SERVER_BUSY): too many are open.
  absl::StatusOr<std::unique_ptr<EventStream>> Open(const auth::Caller& caller,
                                                    const WatchFrom& job);
  // Opens one for 1 to kMaxJobsOfAStream jobs. The stream itself reports what is wrong with a job.
  absl::StatusOr<std::unique_ptr<EventStream>> OpenOfMany(const auth::Caller& caller,
                                                          const std::vector<WatchFrom>& jobs);
  // Ends all with UNAVAILABLE (DRAINING), those opened later too.
  void EndAll();

 private:
  friend class EventStream;
  absl::StatusOr<std::unique_ptr<EventStream>> Begin(const auth::Caller& caller,
                                                     const std::vector<WatchFrom>& jobs,
                                                     bool names_jobs);
  absl::Status Add(EventStream* stream);
  void Remove(EventStream* stream);

  const api::ApiDependencies* const deps_;
  const absl::Duration heartbeat_;
  const absl::Duration max_age_;
  Mutex mutex_;
  std::set<EventStream*> streams_ NPUC_GUARDED_BY(mutex_);
  std::map<std::string, size_t> of_identity_ NPUC_GUARDED_BY(mutex_);
  bool ended_ NPUC_GUARDED_BY(mutex_) = false;
  uint64_t opened_ NPUC_GUARDED_BY(mutex_) = 0;
};

}  // namespace npuc::http

#endif  // NPUC_SERVER_HTTP_EVENT_STREAMS_H_
