#include "server/worker/run_follower.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "server/base/steady_clock.h"

namespace npuc::worker {
namespace {

// How long a run waits before it looks again at its limits and at IsCancelled.
constexpr int kSliceMs = 100;
// How long what a worker tells may wait for more of it, so that not every line wakes a thread. The
// worker's end, a cancel and a full buffer are not waited for.
constexpr int kGatherMs = 4;
// Of one channel's rest at the end, which the kernel's buffers bound.
constexpr int kMaxReads = 1024;
// After the warm parent's death its workers die at once (PR_SET_PDEATHSIG); wait so long to see it.
constexpr int kDeathWaitMs = 2000;
constexpr size_t kReadBytes = 64 << 10;
// More rings of the bell than this are no news of artifacts, and are not listened to.
constexpr size_t kMaxLooks = 64;

}  // namespace

absl::StatusOr<std::shared_ptr<ActiveRun>> ActiveRun::Make(uint64_t number) {
  cache::UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return cache::ErrnoStatus(errno, "cannot make", "eventfd");
  return std::shared_ptr<ActiveRun>(new ActiveRun(number, std::move(wake)));
}

ActiveRun::State ActiveRun::state() const {
  const MutexLock lock(mutex_);
  return state_;
}

void ActiveRun::Change(const std::function<void(State& state)>& change) {
  const MutexLock lock(mutex_);
  change(state_);
  const uint64_t one = 1;
  // Fails only where it is awake already.
  cache::RetryOnEintr([&] { return write(wake_.get(), &one, sizeof(one)); });
}

void ActiveRun::ClearWake() const {
  uint64_t count;
  cache::RetryOnEintr([&] { return read(wake_.get(), &count, sizeof(count)); });
}

RunFollower::RunFollower(const WorkerPoolOptions& options, const WorkerJob& job,
                         WorkerEvents& events, const ActiveRun& run, const ParentProcess& parent,
                         RunChannels& channels, std::function<bool()> let_go)
    : options_(options),
      job_(job),
      events_(events),
      run_(run),
      parent_(parent),
      channels_(channels),
      let_go_(std::move(let_go)),
      report_(job, events),
      begin_(options.now()),
      next_look_(base::SteadyNow() + absl::Milliseconds(kSliceMs)),
      asked_(base::SteadyNow()) {}

absl::StatusOr<WorkerOutcome> RunFollower::Follow() {
  RunEnd end;
  while (!Ended(end)) {
    // The keeper has nothing of the run any more, and nobody waits for its last steps.
    if (reason_ == KillReason::kNone && report_.end_by_keeper().has_value() && let_go_()) {
      end = *report_.end_by_keeper();
      break;
    }
    Watch();
    WaitAndRead(kSliceMs);
  }
  if (spawn_error_ != 0) {
    // Descriptors, processes or memory: ours, for the moment.
    return absl::ResourceExhaustedError(
        cache::ErrnoStatus(spawn_error_, "cannot fork", "worker").message());
  }
  if (end.parent_died) {
    // Wait for the workers' ends of the channels to close: then they are dead, too.
    const absl::Time limit = base::SteadyNow() + absl::Milliseconds(kDeathWaitMs);
    while ((channels_.events.valid() || channels_.print.valid()) && base::SteadyNow() < limit) {
      WaitAndRead(kSliceMs);
    }
  }
  Drain();
  report_.OnEndOfBytes();
  // A warm parent that dies while it hands the run over may leave a worker that never gets it.
  if (reason_ == KillReason::kNone && !end.parent_died && !report_.has_begun()) {
    return absl::UnavailableError(
        report_.not_set_up().has_value()
            ? absl::StrCat("the worker's sandbox could not be set up: ", *report_.not_set_up())
            : "the worker ended before it had begun");
  }
  WorkerOutcome outcome = report_.Finish(end, reason_, detail_, channels_);
  outcome.wall_time = options_.now() - begin_;
  outcome.start_time = start_time_;
  return outcome;
}

// Takes over what others have told.
bool RunFollower::Ended(RunEnd& end) {
  const ActiveRun::State state = run_.state();
  spawn_error_ = state.spawn_error;
  if (state.started && !started_) {
    started_ = true;
    awaiting_ = false;
    // A kill that was asked for before the fork has found nobody.
    if (reason_ != KillReason::kNone) SendKill();
  }
  cancelled_ = state.cancelled;
  if (state.end.has_value()) end = *state.end;
  return state.end.has_value() || spawn_error_ != 0;
}

// Checks limits and wishes.
void RunFollower::Watch() {
  if (reason_ == KillReason::kNone) {
    if (cancelled_ || events_.IsCancelled()) {
      KillFor(KillReason::kCancel);
    } else if (options_.now() - begin_ >= job_.limits.wall) {
      KillFor(KillReason::kWall);
    } else if (base::SteadyNow() >= next_look_) {
      // Whole folder, so not at every message.
      next_look_ = base::SteadyNow() + absl::Milliseconds(kSliceMs);
      if (started_ && channels_.WorkerFolder() >= 0 &&
          !report_.OutputWithinLimits(channels_.WorkerFolder())) {
        KillFor(KillReason::kOutput);
      }
    }
  }
  if (awaiting_ && base::SteadyNow() - asked_ > options_.answer_timeout) {
    // It does not answer: stopped, or stuck. Its death ends all of its runs.
    detail_ = "it did not answer in time and was killed";
    awaiting_ = false;
    parent_.Kill();
  }
}

void RunFollower::KillFor(KillReason reason) {
  reason_ = reason;
  SendKill();
}

void RunFollower::SendKill() {
  ControlMessage message;
  message.type = ControlMessage::Type::kKill;
  message.run = run_.number();
  // A failure shows as a missing answer, and is dealt with as one.
  parent_.Send(message, {}, options_.answer_timeout).IgnoreError();
  awaiting_ = true;
  asked_ = base::SteadyNow();
}

void RunFollower::WaitAndRead(int wait_ms) {
  const bool gathers = std::exchange(gathers_, false);
  if (gathers) wait_ms = kGatherMs;
  // poll passes over negative descriptors. The end of the events is told in any case.
  pollfd fds[] = {{channels_.events.get(), static_cast<short>(gathers ? 0 : POLLIN), 0},
                  {gathers ? -1 : channels_.print.get(), POLLIN, 0},
                  {channels_.watch.get(), POLLIN, 0},
                  {run_.wake_fd(), POLLIN, 0},
                  {channels_.bell.get(), POLLIN, 0}};
  const auto& [events, print, watch, wake, bell] = fds;
  if (cache::RetryOnEintr([&] { return poll(fds, std::size(fds), wait_ms); }) <= 0) return;
  if (watch.revents != 0) ReadWatch();
  if ((events.revents & POLLHUP) != 0) {
    EndEvents();
  } else if (events.revents != 0 || bell.revents != 0) {
    ReadOnce(channels_.events, true);
  }
  if (print.revents != 0) ReadOnce(channels_.print, false);
  if (wake.revents != 0) run_.ClearWake();
  if (bell.revents != 0) OnBell();
}

void RunFollower::OnBell() {
  char rings[16];
  const ssize_t n =
      cache::RetryOnEintr([&] { return read(channels_.bell.get(), rings, sizeof(rings)); });
  if (n == 0 || ++looks_ == kMaxLooks) channels_.bell.Reset();
  if (n > 0 && reason_ == KillReason::kNone) report_.TakeEarlyArtifacts(channels_);
}

// True while there may be more at once.
bool RunFollower::ReadOnce(cache::UniqueFd& fd, bool is_events) {
  char bytes[kReadBytes];
  const ssize_t n = cache::RetryOnEintr([&] { return read(fd.get(), bytes, sizeof(bytes)); });
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
  if (n <= 0) {
    fd.Reset();
    return false;
  }
  const absl::string_view view(bytes, static_cast<size_t>(n));
  gathers_ = view.size() < kReadBytes;
  if (!is_events) {
    report_.OnPrintBytes(view);
    return true;
  }
  const absl::Status status = report_.OnEventBytes(view);
  if (report_.has_begun() && start_time_ == absl::ZeroDuration()) {
    start_time_ = options_.now() - begin_;
  }
  if (status.ok()) return true;
  detail_ = std::string(status.message());
  fd.Reset();
  KillFor(KillReason::kProtocol);
  return false;
}

// What is left in a channel to which nobody writes any more.
void RunFollower::ReadRest(cache::UniqueFd& fd, bool is_events) {
  for (int i = 0; i < kMaxReads && fd.valid(); ++i) {
    if (!ReadOnce(fd, is_events)) break;
  }
}

void RunFollower::EndEvents() {
  ReadRest(channels_.events, true);
  if (channels_.events.valid() || reason_ != KillReason::kNone) return;
  while (!channels_.staging.valid() && channels_.watch.valid() && ReadWatch()) {
  }
  ReadRest(channels_.print, false);  // what was printed came before the result
  report_.OnEndOfEvents(channels_);
}

// True while there may be more at once.
bool RunFollower::ReadWatch() {
  WatchMessage message;
  cache::UniqueFd folder;
  const WatchRead read = ReceiveWatch(channels_.watch.get(), message, folder);
  if (read == WatchRead::kEnd) channels_.watch.Reset();
  if (read != WatchRead::kMessage) return false;
  report_.OnWatch(message);
  if (!folder.valid()) return true;
  channels_.staging = std::move(folder);
  // The bell may have rung before: on a busy host the worker is faster than its keeper.
  if (looks_ > 0 && reason_ == KillReason::kNone) report_.TakeEarlyArtifacts(channels_);
  return true;
}

// What was in the channels at the end. Bounded by the kernel's buffers: nobody writes any more.
void RunFollower::Drain() {
  for (int i = 0; i < 16 && channels_.watch.valid(); ++i) {
    if (!ReadWatch()) break;
  }
  ReadRest(channels_.print, false);
  ReadRest(channels_.events, true);
}

}  // namespace npuc::worker
