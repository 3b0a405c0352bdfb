#include "server/rpc/watch_stream.h"

#include <deque>
#include <optional>
#include <utility>

#include "server/api/job_watch.h"
#include "server/rpc/call.h"

namespace npuc::rpc {

// One call of WatchCompileJob. At any time it does at most one thing: a task on the pool looks for
// something to send (kLooking), a write is under way (kWriting), or it waits to be poked (kIdle).
// Pokes come from changes of the job and from the clock; one that comes while it is busy is
// remembered. Finish is called in one of these steps, so nothing else is under way then.
class WatchStream : public grpc::ServerWriteReactor<v1::WatchCompileJobResponse> {
 public:
  WatchStream(const WatchContext& context, auth::Caller caller,
              const v1::WatchCompileJobRequest& request)
      : context_(context),
        job_id_(request.job_id()),
        batch_events_(request.batch_events()),
        place_(api::AddStream(*context.dependencies, api::kGrpc, "WatchCompileJob", caller, job_id_,
                              /*is_transfer=*/false)),
        watch_(context.dependencies, std::move(caller), job_id_, request.from_seq(),
               context.heartbeat),
        last_write_(base::SteadyNow()),
        reattach_at_(last_write_ + context.max_age * context.streams->NextAgeShare()) {}

  void Start() {
    context_.streams->Add(this);
    subscription_ = context_.dependencies->jobs->hub().Subscribe(job_id_, [this] { Poke(); });
    Poke();
  }

  // Looks for something to send, now or when the present step is done.
  void Poke() {
    const MutexLock lock(mutex_);
    has_changed_ = true;
    PokeHeld();
  }

  void Tick(absl::Time now) {
    const MutexLock lock(mutex_);
    if (now >= reattach_at_) too_old_ = true;
    const bool heartbeat_due = now - last_write_ >= context_.heartbeat;
    if (too_old_ || now >= place_due_ || heartbeat_due) PokeHeld();
  }

  void End() {
    const MutexLock lock(mutex_);
    ending_ = true;
    PokeHeld();
  }

  void OnWriteDone(bool ok) override {
    bool is_last = false;
    {
      const MutexLock lock(mutex_);
      if (step_ == Step::kFinished) return;
      if (!ok) cancelled_ = true;
      if (cancelled_ || batch_.empty()) {
        if (looks_again_ || poked_ || cancelled_) {
          has_changed_ = has_changed_ || looks_again_;
          BeginLook();
        } else {
          step_ = Step::kIdle;
        }
        return;
      }
      is_last = FillResponse();
    }
    Write(is_last);
  }

  void OnCancel() override {
    const MutexLock lock(mutex_);
    cancelled_ = true;
    PokeHeld();
  }

  void OnDone() override {
    // First those who may poke, then the stream.
    subscription_.Reset();
    context_.streams->Remove(this);
    delete this;
  }

 private:
  enum class Step { kIdle, kLooking, kWriting, kFinished };

  void PokeHeld() NPUC_REQUIRES(mutex_) {
    if (step_ == Step::kIdle) {
      BeginLook();
    } else {
      poked_ = true;
    }
  }

  void BeginLook() NPUC_REQUIRES(mutex_) {
    step_ = Step::kLooking;
    poked_ = false;
    by_clock_ = !std::exchange(has_changed_, false);
    context_.pool->Post([this] { Look(); });
  }

  // On the pool. The watch is this step's alone, so that it may read without the lock.
  void Look() {
    absl::Time last_write;
    bool by_clock = false;
    {
      const MutexLock lock(mutex_);
      last_write = last_write_;
      by_clock = by_clock_;
    }
    const absl::StatusOr<bool> has_more =
        by_clock ? watch_.NextByClock(last_write, &batch_) : watch_.Next(last_write, &batch_);
    std::optional<absl::Status> end;
    bool is_last = false;
    {
      const MutexLock lock(mutex_);
      place_due_ = watch_.place_due();
      looks_again_ = !watch_.has_all() || place_due_ == absl::InfinitePast();
      batch_is_last_ = has_more.ok() && !*has_more;
      end = EndAfterLook(has_more);
      if (end.has_value()) {
        Finished();
      } else if (!batch_.empty()) {
        is_last = FillResponse();
      } else if (poked_) {
        BeginLook();
        return;
      } else {
        step_ = Step::kIdle;
        return;
      }
    }
    if (end.has_value()) {
      Finish(EndCall(*end));
    } else {
      Write(is_last);
    }
  }

  // The status with which the call ends now; nothing: it goes on.
  std::optional<absl::Status> EndAfterLook(const absl::StatusOr<bool>& has_more)
      NPUC_REQUIRES(mutex_) {
    if (cancelled_) return absl::CancelledError("the client went away");
    if (!has_more.ok()) return has_more.status();
    if (batch_.empty() && !*has_more) return absl::OkStatus();
    // What is left is in the store; the client comes back for it.
    if (ending_) return executor::Lifecycle::Draining();
    if (too_old_) return watch_.Reattach(batch_);
    return std::nullopt;
  }

  // Takes the next message out of the batch, for Write(); returns whether it is the call's last.
  bool FillResponse() NPUC_REQUIRES(mutex_) {
    response_.Clear();
    *response_.mutable_event() = std::move(batch_.front());
    batch_.pop_front();
    for (; batch_events_ && !batch_.empty(); batch_.pop_front()) {
      *response_.add_more_events() = std::move(batch_.front());
    }
    last_write_ = base::SteadyNow();
    if (place_ != nullptr) place_->Count(response_.ByteSizeLong());
    if (!batch_.empty() || !batch_is_last_) {
      step_ = Step::kWriting;
      return false;
    }
    Finished();
    return true;
  }

  // Without the lock: gRPC may call OnWriteDone or OnDone before these calls return.
  void Write(bool is_last) {
    if (is_last) {
      StartWriteAndFinish(&response_, grpc::WriteOptions(), EndCall({}));
    } else {
      StartWrite(&response_);
    }
  }

  grpc::Status EndCall(const absl::Status& status) const {
    return rpc::EndCall(*context_.dependencies->log, "WatchCompileJob", status);
  }

  void Finished() NPUC_REQUIRES(mutex_) {
    step_ = Step::kFinished;
    poked_ = false;
  }

  const WatchContext context_;
  const std::string job_id_;
  const bool batch_events_;
  const std::unique_ptr<api::OpenStreams::Place> place_;  // null: nobody keeps it
  jobs::ChangeHub::Subscription subscription_;

  // Used by the step under way alone.
  api::JobWatch watch_;
  std::deque<v1::JobEvent> batch_;
  bool batch_is_last_ = false;
  v1::WatchCompileJobResponse response_;

  Mutex mutex_;
  Step step_ NPUC_GUARDED_BY(mutex_) = Step::kIdle;
  bool poked_ NPUC_GUARDED_BY(mutex_) = false;
  // A change may have come since the last look began.
  bool has_changed_ NPUC_GUARDED_BY(mutex_) = false;
  // The last look began without one.
  bool by_clock_ NPUC_GUARDED_BY(mutex_) = false;
  bool cancelled_ NPUC_GUARDED_BY(mutex_) = false;
  bool ending_ NPUC_GUARDED_BY(mutex_) = false;
  bool too_old_ NPUC_GUARDED_BY(mutex_) = false;
  // When a job that waits may have another place.
  absl::Time place_due_ NPUC_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  // Behind a write, though nobody pokes: more can be told.
  bool looks_again_ NPUC_GUARDED_BY(mutex_) = false;
  absl::Time last_write_ NPUC_GUARDED_BY(mutex_);
  const absl::Time reattach_at_;
};

bool WatchStreams::Enter() {
  const MutexLock lock(mutex_);
  if (open_ >= max_open_) return false;
  ++open_;
  return true;
}

void WatchStreams::Add(WatchStream* stream) {
  bool ended = false;
  {
    const MutexLock lock(mutex_);
    streams_.insert(stream);
    ended = ended_;
  }
  if (ended) stream->End();
}

void WatchStreams::Remove(WatchStream* stream) {
  const MutexLock lock(mutex_);
  streams_.erase(stream);
  --open_;
}

void WatchStreams::Tick(absl::Time now) {
  const MutexLock lock(mutex_);
  for (WatchStream* stream : streams_) stream->Tick(now);
}

double WatchStreams::NextAgeShare() {
  const MutexLock lock(mutex_);
  return api::StreamAgeShare(age_shares_++);
}

void WatchStreams::EndAll() {
  const MutexLock lock(mutex_);
  ended_ = true;
  for (WatchStream* stream : streams_) stream->End();
}

grpc::ServerWriteReactor<v1::WatchCompileJobResponse>* StartWatch(
    const WatchContext& context, const grpc::CallbackServerContext& call,
    const v1::WatchCompileJobRequest& request) {
  using Reactor = grpc::ServerWriteReactor<v1::WatchCompileJobResponse>;
  return StartStream<Reactor>(call, *context.dependencies, "WatchCompileJob", auth::Right::kRead,
                              [&](auth::Caller caller) -> Reactor* {
                                if (!context.streams->Enter())
                                  return new RefusedStream<Reactor>(api::ServerBusy());
                                auto* stream = new WatchStream(context, std::move(caller), request);
                                stream->Start();
                                return stream;
                              });
}

}  // namespace npuc::rpc
