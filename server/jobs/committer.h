#ifndef NPUC_SERVER_JOBS_COMMITTER_H_
#define NPUC_SERVER_JOBS_COMMITTER_H_

#include <cstddef>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compiler_core/base/mutex.h"

namespace npuc::jobs {

// Group commit: a queue, and one thread that takes all that has come, makes one write of it, and
// says to each how its write ended. What comes meanwhile is the next write. Thread-safe.
template <typename Payload>
class Committer {
 public:
  using Done = absl::AnyInvocable<void(absl::Status)>;

  struct Write {
    Payload payload;
    Done done;
    absl::Status status = absl::OkStatus();  // how it ended; set by Commit
  };
  using Group = absl::Span<Write>;

  // Deals with the first writes of a group, at least one, and sets their status; returns how many.
  // Called by the committer's thread alone.
  using Commit = std::function<size_t(Group group)>;

  explicit Committer(Commit commit, size_t max_waiting = 256)
      : commit_(std::move(commit)), max_waiting_(max_waiting), thread_([this] { Loop(); }) {}
  // Writes what was put.
  ~Committer() {
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
    }
    changed_.NotifyAll();
    thread_.join();
  }
  Committer(const Committer&) = delete;
  Committer& operator=(const Committer&) = delete;

  // Calls `done` on the committer's thread once the write is made or has failed; so it must not
  // wait for another write. Blocks while max_waiting writes wait.
  void Put(Payload payload, Done done) {
    bool is_first = false;
    {
      const MutexLock lock(mutex_);
      while (queue_.size() >= max_waiting_) changed_.Wait(mutex_);
      queue_.push_back({.payload = std::move(payload), .done = std::move(done)});
      is_first = queue_.size() == 1;
    }
    if (is_first) changed_.NotifyAll();
  }

 private:
  void Loop() {
    while (true) {
      std::vector<Write> writes;
      {
        const MutexLock lock(mutex_);
        while (!stopping_ && queue_.empty()) changed_.Wait(mutex_);
        if (queue_.empty()) return;
        writes.swap(queue_);
      }
      changed_.NotifyAll();
      for (Group group(writes); !group.empty();) {
        const size_t count = commit_(group);
        for (Write& write : group.first(count)) write.done(std::move(write.status));
        group.remove_prefix(count);
      }
    }
  }

  const Commit commit_;
  const size_t max_waiting_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<Write> queue_ NPUC_GUARDED_BY(mutex_);
  bool stopping_ NPUC_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace npuc::jobs

#endif  // NPUC_SERVER_JOBS_COMMITTER_H_
