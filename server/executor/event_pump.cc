#include "server/executor/event_pump.h"

#include <chrono>
#include <iterator>
#include <utility>

namespace npuc {

EventPump::EventPump(Sink sink, absl::Duration linger)
    : sink_(std::move(sink)), linger_(linger), thread_([this] { Loop(); }) {}

void EventPump::Push(EventBody body) {
  std::unique_lock<std::mutex> lock(mutex_);
  space_.wait(lock, [this] { return stopping_ || stale_ || pending_.size() < kMaxPending; });
  if (stopping_ || stale_) return;
  pending_.push_back(std::move(body));
  if (pending_.size() == 1 || pending_.size() == kMaxPending) wake_.notify_one();
}

std::vector<EventBody> EventPump::Stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  space_.notify_all();
  if (thread_.joinable()) thread_.join();
  std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(pending_, {});
}

void EventPump::Loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !pending_.empty(); });
    wake_.wait_for(lock, absl::ToChronoMicroseconds(linger_),
                   [this] { return stopping_ || pending_.size() >= kMaxPending; });
    if (stopping_) return;
    std::vector<EventBody> batch = std::exchange(pending_, {});
    space_.notify_all();
    lock.unlock();
    const absl::Status status = sink_(batch);
    lock.lock();
    if (status.ok()) continue;
    if (absl::IsAborted(status)) {
      stale_ = true;
      pending_.clear();
      space_.notify_all();
      return;
    }
    batch.insert(batch.end(), std::make_move_iterator(pending_.begin()),
                 std::make_move_iterator(pending_.end()));
    pending_ = std::move(batch);
    wake_.wait_for(lock, std::chrono::seconds(1), [this] { return stopping_; });
  }
}

}  // namespace npuc
