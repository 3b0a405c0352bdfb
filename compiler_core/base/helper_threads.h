#ifndef NPUC_COMPILER_CORE_BASE_HELPER_THREADS_H_
#define NPUC_COMPILER_CORE_BASE_HELPER_THREADS_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "compiler_core/base/mutex.h"

namespace npuc {

// Threads that help the calling one. Work is started where it could begin and waited for where its
// results are needed; what no helper has begun by then, the waiting thread does itself. So a busy
// machine costs little, and one thread or many do the same work. The caller sees to it that the
// results do not depend on the order of the pieces.
//
// Owned and used by one thread; work must not start further work. Threads begin with the first
// work, and where the system gives none, everything runs on the owner's.
class HelperThreads {
 public:
  // threads: how many run at once, the owner's included; 1 or less: no others. begin, if given, is
  // what each of the others does first.
  explicit HelperThreads(int threads, std::function<void()> begin = nullptr)
      : helper_count_(threads - 1), begin_(std::move(begin)) {}
  ~HelperThreads();
  HelperThreads(const HelperThreads&) = delete;
  HelperThreads& operator=(const HelperThreads&) = delete;

 private:
  struct Job;

 public:
  // A piece of work. It ends before the object does, so it may refer to what lives longer than
  // that. The helpers must outlive it.
  class Task {
   public:
    Task() = default;
    Task(Task&& other) noexcept = default;
    Task& operator=(Task&& other) = delete;
    ~Task();
    // Returns when the work is done, and throws what it threw. Again: does nothing.
    void Wait();

   private:
    friend class HelperThreads;
    Task(HelperThreads* helpers, std::shared_ptr<Job> job)
        : helpers_(helpers), job_(std::move(job)) {}
    HelperThreads* helpers_ = nullptr;
    std::shared_ptr<Job> job_;
  };

  [[nodiscard]] Task Start(std::function<void()> work);
  // Calls work(i) for each i below `count`, the owner's thread among those that do. Returns when
  // all are done; throws what one of them threw.
  void ForEach(size_t count, const std::function<void(size_t)>& work);

  int threads() const { return helper_count_ < 1 ? 1 : helper_count_ + 1; }

 private:
  void StartThreads();
  void Help();
  void Run(Job& job);

  const int helper_count_;
  const std::function<void()> begin_;
  Mutex mutex_;
  CondVar queued_;
  CondVar done_;
  std::deque<std::shared_ptr<Job>> queue_ NPUC_GUARDED_BY(mutex_);
  bool is_ending_ NPUC_GUARDED_BY(mutex_) = false;
  std::vector<std::jthread> threads_;
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_HELPER_THREADS_H_
