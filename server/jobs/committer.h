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

// Which thread of a Committer says to each write how it ended.
enum class Answers {
  kByWriter,  // a single submit to RocksDB takes 30 us less than with another thread
  kApart,     // another one, beside the next write: a busy PostgreSQL takes a tenth to a fifth more
};

// Group commit: a queue, and a thread that takes all that has come and makes one write of it. What
// comes meanwhile is the next write. Thread-safe.
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

  Committer(Commit commit, Answers answers, size_t max_waiting = 256)
      : commit_(std::move(commit)), answers_(answers), max_waiting_(max_waiting) {
    if (answers_ == Answers::kApart) answerer_ = std::thread([this] { AnswerLoop(); });
    writer_ = std::thread([this] { WriteLoop(); });
  }
  // Writes what was put.
  ~Committer() {
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
    }
    has_come_.NotifyAll();
    writer_.join();
    {
      const MutexLock lock(mutex_);
      written_all_ = true;
    }
    is_written_.NotifyAll();
    if (answerer_.joinable()) answerer_.join();
  }
  Committer(const Committer&) = delete;
  Committer& operator=(const Committer&) = delete;

  // Calls `done` on a thread of the committer once the write is made or has failed, in the order of
  // the writes. It must not put or wait for another write. Blocks while max_waiting writes wait.
  void Put(Payload payload, Done done) {
    bool is_first = false;
    {
      const MutexLock lock(mutex_);
      while (queue_.size() >= max_waiting_) has_room_.Wait(mutex_);
      queue_.push_back({.payload = std::move(payload), .done = std::move(done)});
      is_first = queue_.size() == 1;
    }
    if (is_first) has_come_.NotifyOne();
  }

 private:
  void WriteLoop() {
    while (true) {
      std::vector<Write> writes;
      {
        const MutexLock lock(mutex_);
        while (!stopping_ && queue_.empty()) has_come_.Wait(mutex_);
        if (queue_.empty()) return;
        writes.swap(queue_);
      }
      has_room_.NotifyAll();
      for (Group group(writes); !group.empty();) {
        const size_t count = commit_(group);
        if (answers_ == Answers::kApart) {
          HandOver(group.first(count));
        } else {
          Answer(group.first(count));
        }
        group.remove_prefix(count);
      }
    }
  }

  static void Answer(Group group) {
    for (Write& write : group) write.done(std::move(write.status));
  }

  // Waits while the answers of the last write have yet to begin.
  void HandOver(Group group) {
    {
      const MutexLock lock(mutex_);
      while (!written_.empty()) is_taken_.Wait(mutex_);
      for (Write& write : group) written_.push_back(std::move(write));
    }
    is_written_.NotifyOne();
  }

  void AnswerLoop() {
    while (true) {
      std::vector<Write> writes;
      {
        const MutexLock lock(mutex_);
        while (!written_all_ && written_.empty()) is_written_.Wait(mutex_);
        if (written_.empty()) return;
        writes.swap(written_);
      }
      is_taken_.NotifyOne();
      Answer(Group(writes));
    }
  }

  const Commit commit_;
  const Answers answers_;
  const size_t max_waiting_;
  Mutex mutex_;
  CondVar has_come_, has_room_, is_written_, is_taken_;
  std::vector<Write> queue_ NPUC_GUARDED_BY(mutex_);
  std::vector<Write> written_ NPUC_GUARDED_BY(mutex_);
  bool stopping_ NPUC_GUARDED_BY(mutex_) = false;
  bool written_all_ NPUC_GUARDED_BY(mutex_) = false;
  std::thread writer_, answerer_;
};

}  // namespace npuc::jobs

#endif  // NPUC_SERVER_JOBS_COMMITTER_H_
