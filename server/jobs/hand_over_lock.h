#ifndef NPUC_SERVER_JOBS_HAND_OVER_LOCK_H_
#define NPUC_SERVER_JOBS_HAND_OVER_LOCK_H_

#include <atomic>

namespace npuc {

// A lock that another thread than its taker may release, which a std::mutex forbids: who submits a
// job goes on while the job is written, and who has written it lets go. For std::lock_guard and
// std::unique_lock; not recursive.
class HandOverLock {
 public:
  HandOverLock() = default;
  HandOverLock(const HandOverLock&) = delete;
  HandOverLock& operator=(const HandOverLock&) = delete;

  void lock() {
    int free = kFree;
    if (state_.compare_exchange_strong(free, kTaken, std::memory_order_acquire)) return;
    while (state_.exchange(kAwaited, std::memory_order_acquire) != kFree) {
      state_.wait(kAwaited, std::memory_order_relaxed);
    }
  }
  void unlock() {
    if (state_.exchange(kFree, std::memory_order_release) == kAwaited) state_.notify_one();
  }

 private:
  static constexpr int kFree = 0, kTaken = 1, kAwaited = 2;
  std::atomic<int> state_ = kFree;
};

}  // namespace npuc

#endif  // NPUC_SERVER_JOBS_HAND_OVER_LOCK_H_
