#include "server/api/job_watch.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler_core/base/status.h"
#include "server/api/convert.h"
#include "server/executor/access.h"
#include "server/jobs/service_error.h"

namespace npuc::api {
namespace {

// Looks may ask a database that all daemons share. Reports say what changes; that one is missed, or
// that other jobs move a place, shows after so long.
constexpr absl::Duration kLookPeriod = absl::Seconds(30);
// A place says that a job waits, not that it has waited all the time.
constexpr absl::Duration kReadWaitingPeriod = absl::Minutes(5);
constexpr absl::Duration kPeriodPerJob = absl::Milliseconds(100);
// Looks that are farther off than this come at its multiples: those of many watches then share a
// statement.
constexpr absl::Duration kSharedPeriod = absl::Seconds(5);
// A watch holds no more than this of a job's events; the rest waits in the store.
constexpr size_t kBatchEvents = 64;
constexpr size_t kBatchBytes = 64 << 10;

}  // namespace

double StreamAgeShare(uint64_t n) {
  // Multiples of the golden ratio fall evenly, however many there are.
  const double turns = static_cast<double>(n) * 0.6180339887498949;
  return 0.8 + 0.2 * (turns - std::floor(turns));
}

JobWatch::JobWatch(const ApiDependencies* deps, auth::Caller caller, std::string job_id,
                   int64_t from_seq, absl::Duration heartbeat,
                   std::function<absl::Time()> steady_now)
    : deps_(deps),
      caller_(std::move(caller)),
      job_id_(std::move(job_id)),
      from_seq_(from_seq),
      heartbeat_(heartbeat),
      steady_now_(std::move(steady_now)),
      next_seq_(std::max<int64_t>(from_seq, 1)) {}

absl::Status JobWatch::CheckRequest(const jobs::Job& job) const {
  if (next_seq_ <= job.last_seq + 1) return absl::OkStatus();
  return jobs::ServiceError(
      absl::StatusCode::kOutOfRange,
      absl::StrCat("from_seq ", from_seq_,
                   " is more than one past the newest "
                   "event of job ",
                   job.id, ", which is ", job.last_seq),
      {.reason = "SEQ_PAST_END", .metadata = {{"last_seq", absl::StrCat(job.last_seq)}}});
}

// Connections that never end keep a farm from moving to other servers, and keep rights that were
// taken away.
absl::Status JobWatch::Reattach(const std::deque<v1::JobEvent>& unsent) const {
  const int64_t next =
      unsent.empty() || unsent.front().seq() == 0 ? next_seq_ : unsent.front().seq();
  return jobs::ServiceError(
      absl::StatusCode::kUnavailable,
      absl::StrCat("the stream has reached its greatest age; watch again from event ", next),
      {.reason = "REATTACH",
       .metadata = {{"next_seq", absl::StrCat(next)}},
       .retry_delay = absl::ZeroDuration()});
}

absl::StatusOr<bool> JobWatch::Next(absl::Time last_sent, std::deque<v1::JobEvent>* out) {
  place_due_ = absl::InfinitePast();
  return Read(last_sent, out);
}

absl::StatusOr<bool> JobWatch::Read(absl::Time last_sent, std::deque<v1::JobEvent>* out) {
  RETURN_IF_ERROR(deps_->lifecycle->CheckReads());
  RETURN_IF_ERROR(CheckJobId(job_id_));
  if (from_seq_ < 0) {
    jobs::FieldChecker check;
    check.Add("from_seq", absl::StrCat(from_seq_, " is negative"));
    return check.ToStatus();
  }
  // The job first: what it says to be its newest event is in the store by then.
  ASSIGN_OR_RETURN(const std::shared_ptr<const jobs::Job> job,
                   executor::FindJob(*deps_->jobs, caller_, job_id_));
  if (!checked_) RETURN_IF_ERROR(CheckRequest(*job));
  checked_ = true;
  std::vector<jobs::JobEvent> events;
  if (next_seq_ <= job->last_seq) {
    ASSIGN_OR_RETURN(events,
                     deps_->jobs->ReadEvents(job_id_, next_seq_, kBatchEvents, kBatchBytes));
  }
  for (const jobs::JobEvent& event : events) {
    if (event.seq != next_seq_) {
      return absl::InternalError(
          absl::StrCat("job ", job_id_, ": event ", next_seq_, " is missing in the store"));
    }
    ToProto(event, &out->emplace_back());
    ++next_seq_;
  }
  const absl::Time now = steady_now_();
  read_at_ = now;
  const bool waited = std::exchange(waits_in_queue_, job->state == jobs::JobState::kQueued);
  // Events may say that it waits anew: then its place is one of another time.
  if (!waited || !events.empty()) {
    place_due_ = absl::InfinitePast();
    told_place_.reset();
  }
  if (!waits_in_queue_) place_due_ = absl::InfiniteFuture();
  attempts_ = job->attempts;
  has_all_ = next_seq_ > job->last_seq;
  if (jobs::IsTerminal(job->state)) return next_seq_ <= job->last_seq;
  if (events.empty()) AddWhatIsDue(now, last_sent, out);
  return true;
}

absl::StatusOr<bool> JobWatch::NextByClock(absl::Time last_sent, std::deque<v1::JobEvent>* out) {
  const absl::Time now = steady_now_();
  // A place says that the job waits. One that waits and has none runs or has ended, even if no
  // change was reported.
  const bool is_known = !waits_in_queue_ || told_place_.has_value();
  const bool is_old = now - read_at_ >= (waits_in_queue_ ? kReadWaitingPeriod : kLookPeriod);
  if (!has_all_ || !is_known || is_old) return Read(last_sent, out);
  RETURN_IF_ERROR(deps_->lifecycle->CheckReads());
  AddWhatIsDue(now, last_sent, out);
  return true;
}

// A look at the place, or a heartbeat.
void JobWatch::AddWhatIsDue(absl::Time now, absl::Time last_sent, std::deque<v1::JobEvent>* out) {
  std::optional<jobs::JobWait> moved;
  if (now >= place_due_) moved = LookAtPlace(now);
  if (!moved.has_value() && now - last_sent < heartbeat_) return;
  v1::JobEvent& event = out->emplace_back();
  if (moved.has_value()) {
    ToProto(*moved, event.mutable_queue_position());
  } else {
    event.mutable_heartbeat()->set_last_seq(next_seq_ - 1);
  }
  ToProto(absl::Now(), event.mutable_event_time());
  event.set_attempt(attempts_);
}

// A place that has been the same for long will not move at once.
absl::Time JobWatch::NextLook(absl::Time now, int64_t position) const {
  const absl::Duration pause =
      std::max(static_cast<double>(position) * kPeriodPerJob, (now - moved_at_) / 2);
  if (pause < kSharedPeriod) return now + pause;
  const absl::Duration due = now + std::min(pause, kLookPeriod) - absl::UnixEpoch();
  return absl::UnixEpoch() + absl::Ceil(due, kSharedPeriod);
}

// The place of the job, if it is another than that of the last event.
std::optional<jobs::JobWait> JobWatch::LookAtPlace(absl::Time now) {
  const std::optional<jobs::JobWait> wait = deps_->jobs->Wait(job_id_);
  const auto place =
      wait.has_value() ? std::make_optional(std::pair(wait->position, wait->reason)) : std::nullopt;
  const bool has_moved = wait.has_value() && place != told_place_;
  told_place_ = place;
  if (has_moved) moved_at_ = now;
  place_due_ = wait.has_value() ? NextLook(now, wait->position) : now;
  return has_moved ? wait : std::nullopt;
}

}  // namespace npuc::api
