#include "compiler_core/base/helper_threads.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <exception>
#include <optional>
#include <system_error>
#include <utility>

namespace npuc {

namespace {

// To sleep and be woken takes a thread 50 to 100 us, which is as long as many a piece of work: so
// it first looks again for that long, letting others have the processor meanwhile.
template <typename Condition>
void LookFor(const Condition& condition) {
  constexpr std::chrono::microseconds kLongest(100);
  const auto end = std::chrono::steady_clock::now() + kLongest;
  while (!condition() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

// The processors for a program's threads.
struct Processors {
  cpu_set_t all;
  cpu_set_t others;       // without the one of the calling thread
  bool has_idle = false;  // one of the system's, as far as it is known
};

// Threads that run or wait for a processor, this one included; in the whole system.
std::optional<int> RunnableThreads() {
  std::array<char, 128> text;  // "0.29 0.31 0.15 2/83 4711"
  const int file = ::open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  const ssize_t size = ::read(file, text.data(), text.size());
  ::close(file);
  const char* const first = text.data();
  const char* const end = first + std::max<ssize_t>(size, 0);
  const char* const slash = std::find(first, end, '/');
  const char* begin = slash;
  while (begin != first && begin[-1] != ' ') --begin;
  int count = 0;
  const std::from_chars_result result = std::from_chars(begin, slash, count);
  return result.ec == std::errc() ? std::optional(count) : std::nullopt;
}

Processors FindProcessors() {
  Processors found;
  CPU_ZERO(&found.all);
  if (::sched_getaffinity(0, sizeof(found.all), &found.all) != 0) return found;
  found.others = found.all;
  const int here = ::sched_getcpu();
  if (here >= 0 && here < CPU_SETSIZE) CPU_CLR(static_cast<size_t>(here), &found.others);
  found.has_idle = CPU_COUNT(&found.others) > 0 &&
                   RunnableThreads().value_or(CPU_SETSIZE) < CPU_COUNT(&found.all);
  return found;
}

// A kernel may leave a new thread behind the one that made it, on the same processor while others
// are idle, until it next looks at loads: 2 to 4 ms, a fifth of a compile. So it is sent to the
// others, and is free to go anywhere from there. Not where other programs have them: what a helper
// began there would be waited for.
void SendElsewhere(std::jthread& thread, const Processors& processors) {
  if (!processors.has_idle) return;
  const pthread_t handle = thread.native_handle();
  ::pthread_setaffinity_np(handle, sizeof(cpu_set_t), &processors.others);
  ::pthread_setaffinity_np(handle, sizeof(cpu_set_t), &processors.all);
}

}  // namespace

struct HelperThreads::Job {
  std::function<void()> work;
  enum class State : uint8_t { kQueued, kRunning, kDone };
  std::atomic<State> state = State::kQueued;  // written under mutex_
  std::exception_ptr thrown;                  // from kDone on the waiting thread's
};

HelperThreads::~HelperThreads() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  queued_.notify_all();
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
  LookFor([&] { return job->state != Job::State::kRunning; });
  {
    std::unique_lock lock(helpers_->mutex_);
    if (job->state == Job::State::kQueued) {
      is_mine = true;
      std::erase(helpers_->queue_, job);
      job->state = Job::State::kRunning;
    } else {
      helpers_->done_.wait(lock, [&] { return job->state == Job::State::kDone; });
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
      const std::lock_guard lock(mutex_);
      queue_.push_back(job);
    }
    queued_.notify_one();
  }
  return {this, std::move(job)};
}

void HelperThreads::WhenIdle(std::function<void()> work) {
  if (helper_count_ <= 0) return;
  StartThreads();
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(work));
  }
  queued_.notify_one();
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
  const Processors processors = FindProcessors();
  try {
    for (int i = 0; i < helper_count_; ++i) {
      SendElsewhere(threads_.emplace_back([this] { Help(); }), processors);
    }
  } catch (const std::system_error&) {  // no more threads to be had
  }
}

void HelperThreads::Help() {
  if (begin_) begin_();
  while (true) {
    std::shared_ptr<Job> job;
    std::function<void()> idle;
    {
      std::unique_lock lock(mutex_);
      queued_.wait(lock, [&] { return is_ending_ || !queue_.empty() || !idle_.empty(); });
      if (!queue_.empty()) {
        job = std::move(queue_.front());
        queue_.pop_front();
        job->state = Job::State::kRunning;
      } else if (is_ending_) {
        return;
      } else {
        idle = std::move(idle_.front());
        idle_.pop_front();
      }
    }
    if (job != nullptr) {
      Run(*job);
    } else {
      idle();
    }
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
    const std::lock_guard lock(mutex_);
    job.state = Job::State::kDone;
  }
  done_.notify_all();
}

}  // namespace npuc
