#include "server/base/work_pool.h"

#include <limits>
#include <utility>

namespace npuc::base {

WorkPool::WorkPool(int threads, size_t max_waiting) : max_waiting_(max_waiting) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Loop(); });
}

WorkPool::~WorkPool() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

bool WorkPool::TryPost(Task&& task) { return Push(std::move(task), max_waiting_); }

void WorkPool::Post(Task task) { Push(std::move(task), std::numeric_limits<size_t>::max()); }

bool WorkPool::Push(Task&& task, size_t max_waiting) {
  bool wakes = false;
  {
    const MutexLock lock(mutex_);
    if (tasks_.size() >= max_waiting) return false;
    tasks_.push_back(std::move(task));
    wakes = StartsWake();
  }
  if (wakes) wake_.NotifyOne();
  return true;
}

bool WorkPool::StartsWake() {
  if (tasks_.empty() || idle_ == 0 || is_waking_) return false;
  is_waking_ = true;
  return true;
}

void WorkPool::Loop() {
  while (true) {
    Task task;
    bool wakes = false;
    {
      const MutexLock lock(mutex_);
      while (!stopping_ && tasks_.empty()) {
        ++idle_;
        wake_.Wait(mutex_);
        --idle_;
        is_waking_ = false;
      }
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
      wakes = StartsWake();
    }
    if (wakes) wake_.NotifyOne();
    task();
  }
}

}  // namespace npuc::base
