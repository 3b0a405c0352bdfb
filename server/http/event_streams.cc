#include "server/http/event_streams.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/json_tree.h"
#include "compiler_core/base/status.h"
#include "server/api/methods.h"
#include "server/http/json.h"
#include "server/jobs/service_error.h"

namespace npuc::http {
namespace {

constexpr size_t kPieceBytes = 64 << 10;

std::string ObjectOf(const std::vector<WatchFrom>& jobs) {
  return jobs.size() == 1 ? jobs[0].job_id : absl::StrCat(jobs.size(), " jobs");
}

}  // namespace

EventStream::EventStream(EventStreams* streams, const api::ApiDependencies* deps,
                         const auth::Caller& caller, const std::vector<WatchFrom>& jobs,
                         bool names_jobs)
    : streams_(streams),
      deps_(deps),
      identity_(caller.identity),
      session_(caller.session),
      place_(api::AddStream(*deps, api::kHttp, "WatchCompileJob", caller, ObjectOf(jobs),
                            /*is_transfer=*/false)),
      names_jobs_(names_jobs),
      last_sent_(base::SteadyNow()) {
  for (const WatchFrom& job : jobs) {
    watched_.emplace_back(
        new Watched{.job_id = job.job_id,
                    .watch = {deps, caller, job.job_id, job.from_seq, streams->heartbeat_}});
  }
}

EventStream::~EventStream() {
  // First what may wake it, then the stream.
  for (const auto& watched : watched_) watched->subscription.Reset();
  streams_->Remove(this);
}

std::string EventStream::Event(absl::string_view name, const Watched* watched,
                               absl::string_view field, absl::string_view json) const {
  // No event name: EventSource's onmessage gets it. JSON has no line ends of its own.
  std::string text = name.empty() ? "" : absl::StrCat("event: ", name, "\n");
  if (!names_jobs_) return absl::StrCat(text, "data: ", json.empty() ? "{}" : json, "\n\n");
  std::vector<std::string> fields;
  if (watched != nullptr) fields.push_back(absl::StrCat("\"jobId\":", JsonQuoted(watched->job_id)));
  if (!json.empty()) fields.push_back(absl::StrCat("\"", field, "\":", json));
  return absl::StrCat(text, "data: {", absl::StrJoin(fields, ","), "}\n\n");
}

HttpStream::Piece EventStream::Fail(const absl::Status& status) {
  api::LogFault(*deps_->log, "WatchCompileJob", status);
  return {Event("error", nullptr, "status", ToHttpError(status).body), true};
}

void EventStream::Look() {
  for (const auto& watched : watched_) {
    if (watched->has_ended) continue;
    const absl::StatusOr<bool> more =
        watched->has_changed.exchange(false)
            ? watched->watch.Next(last_sent_, &watched->unsent)
            : watched->watch.NextByClock(last_sent_, &watched->unsent);
    watched->status = more.status();
    watched->has_ended = !more.ok() || !*more;
    if (!more.ok()) api::LogFault(*deps_->log, "WatchCompileJob", more.status());
  }
}

HttpStream::Piece EventStream::Take() {
  Piece piece{.bytes = {}, .last = true};
  for (const auto& watched : watched_) {
    while (!watched->unsent.empty() && piece.bytes.size() < kPieceBytes) {
      const v1::JobEvent& event = watched->unsent.front();
      if (!names_jobs_ && event.seq() != 0)
        absl::StrAppend(&piece.bytes, "id: ", event.seq(), "\n");
      piece.bytes += Event("", watched.get(), "event", ToJson(event));
      watched->unsent.pop_front();
    }
    if (watched->unsent.empty() && watched->has_ended && !watched->has_told_end) {
      watched->has_told_end = true;
      piece.bytes += watched->status.ok() ? Event("end", watched.get(), "", "")
                                          : Event("error", watched.get(), "status",
                                                  ToHttpError(watched->status).body);
    }
    piece.last = piece.last && watched->has_told_end;
  }
  if (piece.bytes.empty()) return piece;
  last_sent_ = base::SteadyNow();
  if (place_ != nullptr) place_->Count(piece.bytes.size());
  return piece;
}

absl::StatusOr<HttpStream::Piece> EventStream::Next() {
  // It is asked at least each second, so that a sign-out ends the stream without a hint.
  if (!session_.empty() && !deps_->sessions->Holds(session_)) {
    return Fail(jobs::ServiceError(absl::StatusCode::kUnauthenticated,
                                   "the session has ended; sign in again",
                                   {.reason = "SESSION_ENDED"}));
  }
  if (Piece piece = Take(); !piece.bytes.empty()) return piece;
  bool closing = false;
  {
    const MutexLock lock(mutex_);
    closing = closing_;
  }
  Look();
  if (Piece piece = Take(); !piece.bytes.empty()) return piece;
  // What is left is in the store; the client comes back for it.
  if (closing) return Fail(executor::Lifecycle::Draining());
  const Watched& first = *watched_.front();
  if (base::SteadyNow() >= reattach_at_) return Fail(first.watch.Reattach(first.unsent));
  return Piece{};
}

void EventStream::SetWake(std::function<void()> wake) {
  const MutexLock lock(mutex_);
  wake_ = std::move(wake);
}

void EventStream::Wake() {
  const MutexLock lock(mutex_);
  if (wake_) wake_();
}

absl::StatusOr<std::unique_ptr<EventStream>> EventStreams::Begin(const auth::Caller& caller,
                                                                 const std::vector<WatchFrom>& jobs,
                                                                 bool names_jobs) {
  auto stream =
      std::unique_ptr<EventStream>(new EventStream(this, deps_, caller, jobs, names_jobs));
  RETURN_IF_ERROR(Add(stream.get()));
  EventStream* const raw = stream.get();
  for (const auto& watched : stream->watched_) {
    auto* const one = watched.get();
    one->subscription = deps_->jobs->hub().Subscribe(one->job_id, [raw, one] {
      one->has_changed = true;
      raw->Wake();
    });
  }
  stream->Look();
  return stream;
}

absl::StatusOr<std::unique_ptr<EventStream>> EventStreams::Open(const auth::Caller& caller,
                                                                const WatchFrom& job) {
  ASSIGN_OR_RETURN(std::unique_ptr<EventStream> stream, Begin(caller, {job}, false));
  RETURN_IF_ERROR(stream->watched_.front()->status);
  return stream;
}

absl::StatusOr<std::unique_ptr<EventStream>> EventStreams::OpenOfMany(
    const auth::Caller& caller, const std::vector<WatchFrom>& jobs) {
  return Begin(caller, jobs, true);
}

absl::Status EventStreams::Add(EventStream* stream) {
  const MutexLock lock(mutex_);
  size_t& of_one = of_identity_[stream->identity_];
  if (streams_.size() >= kMaxEventStreams || of_one >= kMaxEventStreamsOfOne)
    return api::ServerBusy();
  ++of_one;
  streams_.insert(stream);
  const MutexLock stream_lock(stream->mutex_);
  stream->closing_ = ended_;
  stream->reattach_at_ = stream->last_sent_ + max_age_ * api::StreamAgeShare(opened_++);
  return absl::OkStatus();
}

void EventStreams::Remove(EventStream* stream) {
  const MutexLock lock(mutex_);
  if (streams_.erase(stream) == 0) return;
  const auto of_one = of_identity_.find(stream->identity_);
  if (--of_one->second == 0) of_identity_.erase(of_one);
}

void EventStreams::EndAll() {
  const MutexLock lock(mutex_);
  ended_ = true;
  for (EventStream* const stream : streams_) {
    {
      const MutexLock stream_lock(stream->mutex_);
      stream->closing_ = true;
    }
    stream->Wake();
  }
}

}  // namespace npuc::http
