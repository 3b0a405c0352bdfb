#include "server/rpc/work_pool.h"

#include <utility>

namespace npuc::rpc {

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

bool WorkPool::TryPost(std::function<void()> task) {
  {
    const MutexLock lock(mutex_);
    if (tasks_.size() >= max_waiting_) return false;
    tasks_.push_back(std::move(task));
  }
  wake_.NotifyOne();
  return true;
}

void WorkPool::Post(std::function<void()> task) {
  {
    const MutexLock lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.NotifyOne();
}

void WorkPool::Loop() {
  while (true) {
    std::function<void()> task;
    {
      const MutexLock lock(mutex_);
      while (!stopping_ && tasks_.empty()) wake_.Wait(mutex_);
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace npuc::rpc
