#include "server/rpc/watch_stream.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler_core/base/status.h"
#include "server/executor/access.h"
#include "server/jobs/service_error.h"
#include "server/rpc/call.h"
#include "server/rpc/convert.h"

namespace npuc {
namespace {

// A stream holds no more than this of a job's events; the rest waits in the store.
constexpr size_t kBatchEvents = 64;
constexpr size_t kBatchBytes = 64 << 10;

}  // namespace

// One call of WatchCompileJob. At any time it does at most one thing: a task on the pool looks for
// something to send (kLooking), a write is under way (kWriting), or it waits to be poked (kIdle).
// Pokes come from changes of the job and from the clock; one that comes while it is busy is
// remembered. Finish is called in one of these steps, so nothing else is under way then.
class WatchStream : public grpc::ServerWriteReactor<v1::WatchCompileJobResponse> {
 public:
  WatchStream(const WatchContext& context, Caller caller, const v1::WatchCompileJobRequest& request)
      : context_(context),
        caller_(std::move(caller)),
        jobs_(context.dependencies->jobs),
        job_id_(request.job_id()),
        from_seq_(request.from_seq()),
        next_seq_(std::max<int64_t>(request.from_seq(), 1)),
        last_write_(absl::Now()),
        reattach_at_(last_write_ + context.max_age * context.streams->NextAgeShare()) {}

  void Start() {
    context_.streams->Add(this);
    subscription_ = jobs_->hub().Subscribe(job_id_, [this] { Poke(); });
    Poke();
  }

  // Looks for something to send, now or when the present step is done.
  void Poke() {
    std::lock_guard<std::mutex> lock(mutex_);
    PokeLocked();
  }

  void Tick(absl::Time now) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (now >= reattach_at_) too_old_ = true;
    if (too_old_ || waits_in_queue_ || now - last_write_ >= context_.heartbeat) PokeLocked();
  }

  void End() {
    std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
    PokeLocked();
  }

  void OnWriteDone(bool ok) override {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!ok) cancelled_ = true;
    if (!cancelled_ && !batch_.empty()) {
      WriteNext(lock);
      return;
    }
    BeginLook();
  }

  void OnCancel() override {
    std::lock_guard<std::mutex> lock(mutex_);
    cancelled_ = true;
    PokeLocked();
  }

  void OnDone() override {
    // First those who may poke, then the stream.
    subscription_.Reset();
    context_.streams->Remove(this);
    delete this;
  }

 private:
  enum class Step { kIdle, kLooking, kWriting, kFinished };

  void PokeLocked() {
    if (step_ == Step::kIdle) {
      BeginLook();
    } else {
      poked_ = true;
    }
  }

  void BeginLook() {
    step_ = Step::kLooking;
    poked_ = false;
    context_.pool->Post([this] { Look(); });
  }

  // On the pool. Reads without the lock, since nothing else runs in this step.
  void Look() {
    absl::StatusOr<bool> has_more = FillBatch();
    std::unique_lock<std::mutex> lock(mutex_);
    if (cancelled_) {
      End(lock, absl::CancelledError("the client went away"));
    } else if (!has_more.ok()) {
      End(lock, has_more.status());
    } else if (batch_.empty() && !*has_more) {
      End(lock, absl::OkStatus());
    } else if (ending_) {
      // What is left is in the store; the client comes back for it.
      End(lock, Lifecycle::Draining());
    } else if (too_old_) {
      End(lock, Reattach());
    } else if (!batch_.empty()) {
      WriteNext(lock);
    } else if (poked_) {
      BeginLook();
    } else {
      step_ = Step::kIdle;
    }
  }

  // Fills batch_ with what is to be sent now. False: nothing will ever follow.
  absl::StatusOr<bool> FillBatch();
  absl::Status CheckRequest(const Job& job) const;
  absl::Status Reattach() const;
  void AddLiveEvent(const Job& job);

  void WriteNext(std::unique_lock<std::mutex>& lock) {
    response_.Clear();
    *response_.mutable_event() = std::move(batch_.front());
    batch_.pop_front();
    last_write_ = absl::Now();
    step_ = Step::kWriting;
    lock.unlock();
    StartWrite(&response_);
  }

  void End(std::unique_lock<std::mutex>& lock, const absl::Status& status) {
    step_ = Step::kFinished;
    poked_ = false;
    lock.unlock();
    Finish(EndCall(*context_.dependencies->log, "WatchCompileJob", status));
  }

  const WatchContext context_;
  const Caller caller_;
  JobService* const jobs_;
  const std::string job_id_;
  const int64_t from_seq_;
  ChangeHub::Subscription subscription_;

  // Used by the step under way alone.
  int64_t next_seq_;
  bool checked_ = false;
  std::optional<std::pair<int64_t, JobWait::Reason>> told_place_;
  std::deque<v1::JobEvent> batch_;
  v1::WatchCompileJobResponse response_;

  std::mutex mutex_;
  // All below are guarded by mutex_.
  Step step_ = Step::kIdle;
  bool poked_ = false;
  bool cancelled_ = false;
  bool ending_ = false;
  bool too_old_ = false;
  bool waits_in_queue_ = false;
  absl::Time last_write_;
  const absl::Time reattach_at_;
};

absl::Status WatchStream::CheckRequest(const Job& job) const {
  if (next_seq_ <= job.last_seq + 1) return absl::OkStatus();
  return ServiceError(
      absl::StatusCode::kOutOfRange,
      absl::StrCat("from_seq ", from_seq_,
                   " is more than one past the newest "
                   "event of job ",
                   job.id, ", which is ", job.last_seq),
      {.reason = "SEQ_PAST_END", .metadata = {{"last_seq", absl::StrCat(job.last_seq)}}});
}

// Connections that never end keep a farm from moving to other servers, and keep rights that were
// taken away.
absl::Status WatchStream::Reattach() const {
  const int64_t next =
      batch_.empty() || batch_.front().seq() == 0 ? next_seq_ : batch_.front().seq();
  return ServiceError(
      absl::StatusCode::kUnavailable,
      absl::StrCat("the stream has reached its greatest age; watch again from event ", next),
      {.reason = "REATTACH",
       .metadata = {{"next_seq", absl::StrCat(next)}},
       .retry_delay = absl::ZeroDuration()});
}

absl::StatusOr<bool> WatchStream::FillBatch() {
  RETURN_IF_ERROR(context_.dependencies->lifecycle->CheckReads());
  RETURN_IF_ERROR(CheckJobId(job_id_));
  if (from_seq_ < 0) {
    FieldChecker check;
    check.Add("from_seq", absl::StrCat(from_seq_, " is negative"));
    return check.ToStatus();
  }
  // The job first: what it says to be its newest event is in the store by then.
  ASSIGN_OR_RETURN(const std::shared_ptr<const Job> job, FindJob(*jobs_, caller_, job_id_));
  if (!checked_) RETURN_IF_ERROR(CheckRequest(*job));
  checked_ = true;
  ASSIGN_OR_RETURN(const std::vector<JobEvent> events,
                   jobs_->ReadEvents(job_id_, next_seq_, kBatchEvents, kBatchBytes));
  for (const JobEvent& event : events) {
    if (event.seq != next_seq_) {
      return absl::InternalError(
          absl::StrCat("job ", job_id_, ": event ", next_seq_, " is missing in the store"));
    }
    ToProto(event, &batch_.emplace_back());
    ++next_seq_;
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    waits_in_queue_ = job->state == JobState::kQueued;
  }
  if (!events.empty()) return true;
  if (IsTerminal(job->state)) return false;
  AddLiveEvent(*job);
  return true;
}

void WatchStream::AddLiveEvent(const Job& job) {
  const absl::Time now = absl::Now();
  const std::optional<JobWait> wait = jobs_->Wait(job.id);
  const auto place =
      wait.has_value() ? std::make_optional(std::pair(wait->position, wait->reason)) : std::nullopt;
  absl::Time last_write;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    last_write = last_write_;
  }
  if (wait.has_value() && place != told_place_) {
    v1::JobEvent& event = batch_.emplace_back();
    ToProto(*wait, event.mutable_queue_position());
    ToProto(now, event.mutable_event_time());
    event.set_attempt(job.attempts);
  } else if (now - last_write >= context_.heartbeat) {
    v1::JobEvent& event = batch_.emplace_back();
    event.mutable_heartbeat()->set_last_seq(next_seq_ - 1);
    ToProto(now, event.mutable_event_time());
    event.set_attempt(job.attempts);
  }
  told_place_ = place;
}

void WatchStreams::Add(WatchStream* stream) {
  bool ended = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    streams_.insert(stream);
    ended = ended_;
  }
  if (ended) stream->End();
}

void WatchStreams::Remove(WatchStream* stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  streams_.erase(stream);
}

void WatchStreams::Tick(absl::Time now) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (WatchStream* stream : streams_) stream->Tick(now);
}

double WatchStreams::NextAgeShare() {
  std::lock_guard<std::mutex> lock(mutex_);
  // Multiples of the golden ratio fall evenly, however many there are.
  const double turns = static_cast<double>(age_shares_++) * 0.6180339887498949;
  return 0.8 + 0.2 * (turns - std::floor(turns));
}

void WatchStreams::EndAll() {
  std::lock_guard<std::mutex> lock(mutex_);
  ended_ = true;
  for (WatchStream* stream : streams_) stream->End();
}

grpc::ServerWriteReactor<v1::WatchCompileJobResponse>* StartWatch(
    const WatchContext& context, const grpc::CallbackServerContext& call,
    const v1::WatchCompileJobRequest& request) {
  return StartStream<grpc::ServerWriteReactor<v1::WatchCompileJobResponse>>(
      call, *context.dependencies, Right::kRead, [&](Caller caller) {
        auto* stream = new WatchStream(context, std::move(caller), request);
        stream->Start();
        return stream;
      });
}

}  // namespace npuc
