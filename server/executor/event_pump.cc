#include "server/executor/event_pump.h"

#include <iterator>
#include <utility>

namespace npuc::executor {
namespace {

constexpr std::chrono::seconds kRetryPause(1);

}  // namespace

EventPump::EventPump(Sink sink, absl::Duration linger) : sink_(std::move(sink)), linger_(linger) {}

EventPump::~EventPump() {
  Stop();
  if (thread_.joinable()) thread_.join();
}

void EventPump::Push(jobs::EventBody body) {
  const MutexLock lock(mutex_);
  while (!stopping_ && !stale_ && pending_.size() >= kMaxPending) space_.Wait(mutex_);
  if (stopping_ || stale_) return;
  if (pending_.empty()) due_ = SteadyTimeAfter(absl::ToChronoNanoseconds(linger_));
  pending_.push_back(std::move(body));
  BeginIfDue();
  if (pending_.size() == 1 || pending_.size() == kMaxPending) wake_.NotifyOne();
}

void EventPump::Tick() {
  const MutexLock lock(mutex_);
  BeginIfDue();
}

void EventPump::BeginIfDue() {
  if (thread_.joinable() || stopping_ || pending_.empty()) return;
  if (pending_.size() < kMaxPending && std::chrono::steady_clock::now() < due_) return;
  thread_ = std::thread([this] { Loop(); });
}

std::vector<jobs::EventBody> EventPump::Stop() {
  const MutexLock lock(mutex_);
  stopping_ = true;
  wake_.NotifyAll();
  space_.NotifyAll();
  // Its thread's end is not waited for here: a job's end would come later by two switches.
  while (writing_) written_.Wait(mutex_);
  return std::exchange(pending_, {});
}

void EventPump::Loop() {
  MutexLock lock(mutex_);
  while (true) {
    while (!stopping_ && pending_.empty()) wake_.Wait(mutex_);
    while (!stopping_ && pending_.size() < kMaxPending && wake_.WaitUntil(mutex_, due_)) {
    }
    if (stopping_) return;
    std::vector<jobs::EventBody> batch = std::exchange(pending_, {});
    space_.NotifyAll();
    writing_ = true;
    lock.Unlock();
    const absl::Status status = sink_(batch);
    lock.Lock();
    writing_ = false;
    if (absl::IsAborted(status)) {
      stale_ = true;
      pending_.clear();
      space_.NotifyAll();
    } else if (!status.ok()) {
      batch.insert(batch.end(), std::make_move_iterator(pending_.begin()),
                   std::make_move_iterator(pending_.end()));
      pending_ = std::move(batch);
    }
    written_.NotifyAll();
    if (stale_) return;
    if (status.ok()) continue;
    const SteadyTime again = SteadyTimeAfter(kRetryPause);
    while (!stopping_ && wake_.WaitUntil(mutex_, again)) {
    }
  }
}

}  // namespace npuc::executor
