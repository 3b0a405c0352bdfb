#ifndef NPUC_SERVER_API_JOB_WATCH_H_
#define NPUC_SERVER_API_JOB_WATCH_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "npuc/v1/compile.pb.h"
#include "server/api/dependencies.h"
#include "server/auth/caller.h"
#include "server/base/steady_clock.h"
#include "server/jobs/job_service.h"

namespace npuc::api {

// The share of the greatest age that the n-th stream gets, 0.8 to 1: streams that began together do
// not all come back together.
double StreamAgeShare(uint64_t n);

// What a watcher of one job is told next: kept events in order from a number on, and between them
// queue positions and heartbeats. A stream of gRPC and one of HTTP each have one. Reads the store,
// so its calls may block; at most 64 events are in memory. Its times are those of `steady_now`, so
// that a clock that is set neither holds heartbeats back nor looks. Not thread-safe.
class JobWatch {
 public:
  // `deps` must outlive this. `from_seq`: 0 and 1 mean from the first event on.
  JobWatch(const ApiDependencies* deps, auth::Caller caller, std::string job_id, int64_t from_seq,
           absl::Duration heartbeat, std::function<absl::Time()> steady_now = base::SteadyNow);

  // Appends what is to be sent now, maybe nothing; false: nothing will ever follow it. A heartbeat
  // is due where nothing was sent since `last_sent` for its period. Errors: those of
  // WatchCompileJob.
  absl::StatusOr<bool> Next(absl::Time last_sent, std::deque<v1::JobEvent>* out);

  // Next() where no change of the job was reported since the last call. Most of these calls read
  // nothing: the job and its place are looked at now and then.
  absl::StatusOr<bool> NextByClock(absl::Time last_sent, std::deque<v1::JobEvent>* out);

  // What ends a watch that has reached its greatest age: UNAVAILABLE (REATTACH) with the number of
  // the first event that was not sent; `unsent` is what of Next's events is left.
  absl::Status Reattach(const std::deque<v1::JobEvent>& unsent) const;

  // When the place of the job is worth a look: a tenth of a second after the last one for each job
  // before it, later where it stays the same for long, after 35 s at the latest. InfinitePast:
  // before anything else. InfiniteFuture: it does not wait.
  absl::Time place_due() const { return place_due_; }
  // Whether the last Next came to the end of the events that there were as it began.
  bool has_all() const { return has_all_; }

 private:
  absl::Status CheckRequest(const jobs::Job& job) const;
  absl::StatusOr<bool> Read(absl::Time last_sent, std::deque<v1::JobEvent>* out);
  void AddWhatIsDue(absl::Time now, absl::Time last_sent, std::deque<v1::JobEvent>* out);
  std::optional<jobs::JobWait> LookAtPlace(absl::Time now);
  absl::Time NextLook(absl::Time now, int64_t position) const;

  const ApiDependencies* const deps_;
  const auth::Caller caller_;
  const std::string job_id_;
  const int64_t from_seq_;
  const absl::Duration heartbeat_;
  const std::function<absl::Time()> steady_now_;
  int64_t next_seq_;
  bool checked_ = false;
  int32_t attempts_ = 0;
  bool waits_in_queue_ = false;
  bool has_all_ = false;
  absl::Time read_at_ = absl::InfinitePast();   // the job
  absl::Time moved_at_ = absl::InfinitePast();  // the place, as told
  absl::Time place_due_ = absl::InfiniteFuture();
  std::optional<std::pair<int64_t, jobs::JobWait::Reason>> told_place_;
};

}  // namespace npuc::api

#endif  // NPUC_SERVER_API_JOB_WATCH_H_
