#include "server/executor/event_pump.h"

#include <iterator>
#include <utility>

namespace npuc {

EventPump::EventPump(Sink sink, absl::Duration linger) : sink_(std::move(sink)), linger_(linger) {}

EventPump::~EventPump() {
  Stop();
  if (thread_.joinable()) thread_.join();
}

void EventPump::Push(EventBody body) {
  std::unique_lock<std::mutex> lock(mutex_);
  space_.wait(lock, [this] { return stopping_ || stale_ || pending_.size() < kMaxPending; });
  if (stopping_ || stale_) return;
  if (pending_.empty()) {
    due_ = std::chrono::steady_clock::now() + absl::ToChronoMicroseconds(linger_);
  }
  pending_.push_back(std::move(body));
  BeginIfDueLocked();
  if (pending_.size() == 1 || pending_.size() == kMaxPending) wake_.notify_one();
}

void EventPump::Tick() {
  std::lock_guard<std::mutex> lock(mutex_);
  BeginIfDueLocked();
}

void EventPump::BeginIfDueLocked() {
  if (thread_.joinable() || stopping_ || pending_.empty()) return;
  if (pending_.size() < kMaxPending && std::chrono::steady_clock::now() < due_) return;
  thread_ = std::thread([this] { Loop(); });
}

std::vector<EventBody> EventPump::Stop() {
  std::unique_lock<std::mutex> lock(mutex_);
  stopping_ = true;
  wake_.notify_all();
  space_.notify_all();
  // Its thread's end is not waited for here: a job's end would come later by two switches.
  written_.wait(lock, [this] { return !writing_; });
  return std::exchange(pending_, {});
}

void EventPump::Loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !pending_.empty(); });
    wake_.wait_until(lock, due_, [this] { return stopping_ || pending_.size() >= kMaxPending; });
    if (stopping_) return;
    std::vector<EventBody> batch = std::exchange(pending_, {});
    space_.notify_all();
    writing_ = true;
    lock.unlock();
    const absl::Status status = sink_(batch);
    lock.lock();
    writing_ = false;
    if (absl::IsAborted(status)) {
      stale_ = true;
      pending_.clear();
      space_.notify_all();
    } else if (!status.ok()) {
      batch.insert(batch.end(), std::make_move_iterator(pending_.begin()),
                   std::make_move_iterator(pending_.end()));
      pending_ = std::move(batch);
    }
    written_.notify_all();
    if (stale_) return;
    if (status.ok()) continue;
    wake_.wait_for(lock, std::chrono::seconds(1), [this] { return stopping_; });
  }
}

}  // namespace npuc
