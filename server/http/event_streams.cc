#include "server/http/event_streams.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler_core/base/status.h"
#include "server/api/methods.h"
#include "server/http/json.h"

namespace npuc::http {
namespace {

constexpr size_t kPieceBytes = 64 << 10;

void AppendEvent(const v1::JobEvent& event, std::string* out) {
  if (event.seq() != 0) absl::StrAppend(out, "id: ", event.seq(), "\n");
  // No event name: EventSource's onmessage gets it. JSON has no line ends of its own.
  absl::StrAppend(out, "data: ", ToJson(event), "\n\n");
}

}  // namespace

EventStream::EventStream(EventStreams* streams, const api::ApiDependencies* deps,
                         const auth::Caller& caller, const std::string& job_id, int64_t from_seq)
    : streams_(streams),
      deps_(deps),
      identity_(caller.identity),
      place_(api::AddStream(*deps, api::kHttp, "WatchCompileJob", caller, job_id,
                            /*is_transfer=*/false)),
      watch_(deps, caller, job_id, from_seq, streams->heartbeat_),
      last_sent_(absl::Now()) {}

EventStream::~EventStream() {
  // First what may wake it, then the stream.
  subscription_.Reset();
  streams_->Remove(this);
}

HttpStream::Piece EventStream::Fail(const absl::Status& status) {
  api::LogFault(*deps_->log, "WatchCompileJob", status);
  return {absl::StrCat("event: error\ndata: ", ToHttpError(status).body, "\n\n"), true};
}

HttpStream::Piece EventStream::Take() {
  Piece piece;
  while (!batch_.empty() && piece.bytes.size() < kPieceBytes) {
    AppendEvent(batch_.front(), &piece.bytes);
    batch_.pop_front();
  }
  last_sent_ = absl::Now();
  if (place_ != nullptr) place_->Count(piece.bytes.size());
  return piece;
}

absl::StatusOr<HttpStream::Piece> EventStream::Next() {
  if (!batch_.empty()) return Take();
  bool closing = false;
  {
    const MutexLock lock(mutex_);
    closing = closing_;
  }
  if (!ended_) {
    const absl::StatusOr<bool> more = watch_.Next(last_sent_, &batch_);
    if (!more.ok()) return Fail(more.status());
    ended_ = !*more;
  }
  if (!batch_.empty()) return Take();
  if (ended_) return Piece{"event: end\ndata: {}\n\n", true};
  // What is left is in the store; the client comes back for it.
  if (closing) return Fail(executor::Lifecycle::Draining());
  if (absl::Now() >= reattach_at_) return Fail(watch_.Reattach(batch_));
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

absl::StatusOr<std::unique_ptr<EventStream>> EventStreams::Open(const auth::Caller& caller,
                                                                const std::string& job_id,
                                                                int64_t from_seq) {
  auto stream =
      std::unique_ptr<EventStream>(new EventStream(this, deps_, caller, job_id, from_seq));
  RETURN_IF_ERROR(Add(stream.get()));
  EventStream* const raw = stream.get();
  stream->subscription_ = deps_->jobs->hub().Subscribe(job_id, [raw] { raw->Wake(); });
  ASSIGN_OR_RETURN(const bool more, stream->watch_.Next(stream->last_sent_, &stream->batch_));
  stream->ended_ = !more;
  return stream;
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
