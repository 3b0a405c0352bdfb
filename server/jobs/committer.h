#ifndef NPUC_SERVER_JOBS_COMMITTER_H_
#define NPUC_SERVER_JOBS_COMMITTER_H_

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/types/span.h"

namespace npuc {

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
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Committer(const Committer&) = delete;
  Committer& operator=(const Committer&) = delete;

  // Calls `done` on the committer's thread once the write is made or has failed; so it must not
  // wait for another write. Blocks while max_waiting writes wait.
  void Put(Payload payload, Done done) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return queue_.size() < max_waiting_; });
    queue_.push_back({.payload = std::move(payload), .done = std::move(done)});
    const bool is_first = queue_.size() == 1;
    lock.unlock();
    if (is_first) changed_.notify_all();
  }

 private:
  void Loop() {
    while (true) {
      std::vector<Write> writes;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
        if (queue_.empty()) return;
        writes.swap(queue_);
      }
      changed_.notify_all();
      for (Group group(writes); !group.empty();) {
        const size_t count = commit_(group);
        for (Write& write : group.first(count)) write.done(std::move(write.status));
        group.remove_prefix(count);
      }
    }
  }

  const Commit commit_;
  const size_t max_waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Write> queue_;  // guarded by mutex_
  bool stopping_ = false;     // guarded by mutex_
  std::thread thread_;        // the last member: it uses the others
};

}  // namespace npuc

#endif  // NPUC_SERVER_JOBS_COMMITTER_H_
