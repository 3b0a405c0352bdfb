#include "server/executor/dispatcher.h"

#include <chrono>
#include <utility>

namespace npuc::executor {
namespace {

// A deadline may be noticed so late, and as late as the board looks.
constexpr std::chrono::milliseconds kTimerPeriod(200);
constexpr std::chrono::seconds kStoreErrorPause(1);
constexpr std::chrono::milliseconds kNoWorkersPause(100);

}  // namespace

Dispatcher::Dispatcher(int slots, jobs::JobService* jobs, RunFunction run, const log::Logger* log,
                       std::function<absl::Status()> await_workers, std::function<void()> beat)
    : jobs_(jobs),
      run_(std::move(run)),
      log_(log),
      await_workers_(std::move(await_workers)),
      beat_(std::move(beat)),
      active_slots_(slots) {
  for (int i = 0; i < slots; ++i) threads_.emplace_back([this] { SlotLoop(); });
  threads_.emplace_back([this] { TimerLoop(); });
}

Dispatcher::~Dispatcher() {
  Stop(absl::ZeroDuration());
  for (std::thread& thread : threads_) thread.join();
}

bool Dispatcher::Stop(absl::Duration patience) {
  jobs_->StopLeasing();
  const MutexLock lock(mutex_);
  stopping_ = true;
  changed_.NotifyAll();
  const SteadyTime deadline = SteadyTimeAfter(absl::ToChronoNanoseconds(patience));
  while (active_slots_ > 0 && changed_.WaitUntil(mutex_, deadline)) {
  }
  return active_slots_ == 0;
}

bool Dispatcher::Pause(std::chrono::milliseconds duration) {
  const SteadyTime end = SteadyTimeAfter(duration);
  const MutexLock lock(mutex_);
  while (!stopping_ && changed_.WaitUntil(mutex_, end)) {
  }
  return !stopping_;
}

// False: it stops.
bool Dispatcher::AwaitWorkers() {
  while (await_workers_ && !await_workers_().ok()) {
    if (!Pause(kNoWorkersPause)) return false;
  }
  return true;
}

void Dispatcher::SlotLoop() {
  while (AwaitWorkers()) {
    auto claim = jobs_->WaitAndClaim();
    if (!claim.ok()) {
      log_->Error("no job can be started", {{"error", claim.status().message()}});
      Pause(kStoreErrorPause);
      continue;  // StopLeasing ends the next wait
    }
    if (!claim->has_value()) break;
    run_(**std::move(claim));
  }
  const MutexLock lock(mutex_);
  --active_slots_;
  changed_.NotifyAll();
}

void Dispatcher::TimerLoop() {
  while (Pause(kTimerPeriod)) {
    if (beat_) beat_();
    const absl::Status status = jobs_->Tick();
    if (!status.ok()) {
      log_->Error("the care of jobs failed, and is tried again", {{"error", status.message()}});
    }
  }
}

}  // namespace npuc::executor
