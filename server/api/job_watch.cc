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

// A watch holds no more than this of a job's events; the rest waits in the store.
constexpr absl::Duration kPeriodPerJob = absl::Milliseconds(100);
constexpr size_t kBatchEvents = 64;
constexpr size_t kBatchBytes = 64 << 10;

}  // namespace

double StreamAgeShare(uint64_t n) {
  // Multiples of the golden ratio fall evenly, however many there are.
  const double turns = static_cast<double>(n) * 0.6180339887498949;
  return 0.8 + 0.2 * (turns - std::floor(turns));
}

JobWatch::JobWatch(const ApiDependencies* deps, auth::Caller caller, std::string job_id,
                   int64_t from_seq, absl::Duration heartbeat)
    : deps_(deps),
      caller_(std::move(caller)),
      job_id_(std::move(job_id)),
      from_seq_(from_seq),
      heartbeat_(heartbeat),
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
  waits_in_queue_ = job->state == jobs::JobState::kQueued;
  attempts_ = job->attempts;
  asked_place_ = false;
  has_all_ = next_seq_ > job->last_seq;
  if (jobs::IsTerminal(job->state)) return next_seq_ <= job->last_seq;
  if (!events.empty()) return true;
  AddLiveEvent(last_sent, out);
  return true;
}

absl::StatusOr<bool> JobWatch::NextByClock(absl::Time last_sent, std::deque<v1::JobEvent>* out) {
  // A job without a place runs or has ended, even if no change was reported.
  if (!waits_in_queue_ || !has_all_ || !told_place_.has_value()) return Next(last_sent, out);
  RETURN_IF_ERROR(deps_->lifecycle->CheckReads());
  AddLiveEvent(last_sent, out);
  return true;
}

absl::Duration JobWatch::place_period() const {
  const int64_t position = told_place_.has_value() ? told_place_->first : 0;
  return std::min(static_cast<double>(position) * kPeriodPerJob, heartbeat_);
}

void JobWatch::AddLiveEvent(absl::Time last_sent, std::deque<v1::JobEvent>* out) {
  const absl::Time now = absl::Now();
  asked_place_ = true;
  const std::optional<jobs::JobWait> wait = deps_->jobs->Wait(job_id_);
  const auto place =
      wait.has_value() ? std::make_optional(std::pair(wait->position, wait->reason)) : std::nullopt;
  if (wait.has_value() && place != told_place_) {
    v1::JobEvent& event = out->emplace_back();
    ToProto(*wait, event.mutable_queue_position());
    ToProto(now, event.mutable_event_time());
    event.set_attempt(attempts_);
  } else if (now - last_sent >= heartbeat_) {
    v1::JobEvent& event = out->emplace_back();
    event.mutable_heartbeat()->set_last_seq(next_seq_ - 1);
    ToProto(now, event.mutable_event_time());
    event.set_attempt(attempts_);
  }
  told_place_ = place;
}

}  // namespace npuc::api
