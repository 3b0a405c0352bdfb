#include "compiler_core/base/helper_threads.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <utility>

namespace npuc {

struct HelperThreads::Job {
  std::function<void()> work;
  enum class State : uint8_t { kQueued, kRunning, kDone };
  // Under mutex_ of its HelperThreads, which no annotation of this struct can name.
  State state = State::kQueued;
  std::exception_ptr thrown;  // from kDone on the waiting thread's
};

HelperThreads::~HelperThreads() {
  {
    const MutexLock lock(mutex_);
    is_ending_ = true;
  }
  queued_.NotifyAll();
}

HelperThreads::Task::~Task() {
  if (job_ == nullptr) return;
  try {
    Wait();
  } catch (...) {  // who did not wait wants no result
  }
}

void HelperThreads::Task::Wait() {
  if (job_ == nullptr) return;
  const std::shared_ptr<Job> job = std::exchange(job_, nullptr);
  bool is_mine = false;
  {
    const MutexLock lock(helpers_->mutex_);
    if (job->state == Job::State::kQueued) {
      is_mine = true;
      std::erase(helpers_->queue_, job);
      job->state = Job::State::kRunning;
    } else {
      while (job->state != Job::State::kDone) helpers_->done_.Wait(helpers_->mutex_);
    }
  }
  if (is_mine) helpers_->Run(*job);
  if (job->thrown != nullptr) std::rethrow_exception(job->thrown);
}

HelperThreads::Task HelperThreads::Start(std::function<void()> work) {
  auto job = std::make_shared<Job>();
  job->work = std::move(work);
  if (helper_count_ > 0) {
    StartThreads();
    {
      const MutexLock lock(mutex_);
      queue_.push_back(job);
    }
    queued_.NotifyOne();
  }
  return {this, std::move(job)};
}

void HelperThreads::ForEach(size_t count, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next = 0;
  const auto take = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<Task> tasks;
  const size_t helpers = std::min(count, static_cast<size_t>(threads())) - (count > 0 ? 1 : 0);
  tasks.reserve(helpers);
  for (size_t i = 0; i < helpers; ++i) tasks.push_back(Start(take));
  take();
  for (Task& task : tasks) task.Wait();
}

void HelperThreads::StartThreads() {
  if (!threads_.empty()) return;
  threads_.reserve(static_cast<size_t>(helper_count_));
  try {
    for (int i = 0; i < helper_count_; ++i) threads_.emplace_back([this] { Help(); });
  } catch (const std::system_error&) {  // no more threads to be had
  }
}

void HelperThreads::Help() {
  if (begin_) begin_();
  while (true) {
    std::shared_ptr<Job> job;
    {
      const MutexLock lock(mutex_);
      while (!is_ending_ && queue_.empty()) queued_.Wait(mutex_);
      if (queue_.empty()) return;
      job = std::move(queue_.front());
      queue_.pop_front();
      job->state = Job::State::kRunning;
    }
    Run(*job);
  }
}

void HelperThreads::Run(Job& job) {
  try {
    job.work();
  } catch (...) {
    job.thrown = std::current_exception();
  }
  job.work = nullptr;
  {
    const MutexLock lock(mutex_);
    job.state = Job::State::kDone;
  }
  done_.NotifyAll();
}

}  // namespace npuc
