#ifndef NPUC_COMPILER_CORE_BASE_MUTEX_H_
#define NPUC_COMPILER_CORE_BASE_MUTEX_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

// std::mutex with the annotations that clang checks (-Wthread-safety): a field names the mutex that
// guards it, a function the mutex that its caller holds. It wraps std::mutex, so that
// ThreadSanitizer sees every lock. g++ ignores the annotations.
#if defined(__clang__)
#define NPUC_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define NPUC_THREAD_ANNOTATION(x)
#endif

// For a field: it is read and written with the mutex held.
#define NPUC_GUARDED_BY(mutex) NPUC_THREAD_ANNOTATION(guarded_by(mutex))
// For a function: the caller holds the mutex.
#define NPUC_REQUIRES(...) NPUC_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
// For a function: the caller does not hold the mutex, which the function takes.
#define NPUC_EXCLUDES(...) NPUC_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))

namespace npuc {

class NPUC_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() NPUC_THREAD_ANNOTATION(acquire_capability()) { mutex_.lock(); }
  void Unlock() NPUC_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
  bool TryLock() NPUC_THREAD_ANNOTATION(try_acquire_capability(true)) { return mutex_.try_lock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds a mutex while it lives, but for the time between Unlock() and Lock().
class NPUC_THREAD_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) NPUC_THREAD_ANNOTATION(acquire_capability(mutex))
      : mutex_(mutex) {
    mutex_.Lock();
  }
  ~MutexLock() NPUC_THREAD_ANNOTATION(release_capability()) {
    if (held_) mutex_.Unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void Unlock() NPUC_THREAD_ANNOTATION(release_capability()) {
    held_ = false;
    mutex_.Unlock();
  }
  void Lock() NPUC_THREAD_ANNOTATION(acquire_capability()) {
    mutex_.Lock();
    held_ = true;
  }

 private:
  Mutex& mutex_;
  bool held_ = true;
};

using SteadyTime = std::chrono::steady_clock::time_point;

// The end of time where the sum would be later.
inline SteadyTime SteadyTimeAfter(std::chrono::nanoseconds duration) {
  const SteadyTime now = std::chrono::steady_clock::now();
  return duration < SteadyTime::max() - now ? now + duration : SteadyTime::max();
}

// Wakes threads that wait for a change of what a mutex guards. A wait may end without a reason, so
// it stands in a loop that looks at the guarded fields:
//   while (!changed_) wake_.Wait(mutex_);
//   while (!changed_ && wake_.WaitUntil(mutex_, deadline)) {
//   }
class CondVar {
 public:
  void Wait(Mutex& mutex) NPUC_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    wake_.wait(lock);
    lock.release();
  }
  // False: the deadline has passed.
  bool WaitUntil(Mutex& mutex, SteadyTime deadline) NPUC_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const std::cv_status status = wake_.wait_until(lock, deadline);
    lock.release();
    return status == std::cv_status::no_timeout;
  }
  void NotifyOne() { wake_.notify_one(); }
  void NotifyAll() { wake_.notify_all(); }

 private:
  std::condition_variable wake_;
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_MUTEX_H_
