#ifndef NPUC_SERVER_JOBS_WRITE_GROUPS_H_
#define NPUC_SERVER_JOBS_WRITE_GROUPS_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/types/span.h"

namespace npuc {

// Makes one write of what comes while another is under way (group commit). No thread of its own:
// whoever finds nobody writing leads, and writes for all who wait. Who does not want to wait leaves
// a function behind, so that a shared write wakes no thread for it. Thread-safe.
template <typename Payload>
class WriteGroups {
 public:
  using Done = absl::AnyInvocable<void(absl::Status)>;

  struct Write {
    Payload payload;
    absl::Status status;  // how it ended; set by Commit

   private:
    friend class WriteGroups;
    enum Turn : int { kWaits, kLeads, kIsOver };
    Done done;              // of PutThen; null: a thread waits for `turn`
    bool finished = false;  // the leader's
    std::atomic<int> turn = kWaits;
  };
  using Group = absl::Span<const std::shared_ptr<Write>>;

  // Deals with the first ones of a group, at least one, and sets their status; returns how many.
  // One call at a time.
  using Commit = std::function<size_t(Group group)>;

  // PutThen waits where so many writes are under way: the queue has a bound.
  explicit WriteGroups(Commit commit, size_t max_left_behind = 256)
      : commit_(std::move(commit)), max_left_behind_(max_left_behind) {}
  WriteGroups(const WriteGroups&) = delete;
  WriteGroups& operator=(const WriteGroups&) = delete;

  // Waits for the write.
  absl::Status Put(Payload payload) {
    const auto write = std::make_shared<Write>();
    write->payload = std::move(payload);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      queue_.push_back(write);
    }
    bool leads = MayLead();
    if (!leads) {
      write->turn.wait(Write::kWaits, std::memory_order_acquire);
      leads = write->turn.load(std::memory_order_acquire) == Write::kLeads;
    }
    if (leads) Lead(write.get());
    return write->status;
  }

  // Calls `done` once it is written or has failed: on this thread, or on any that writes. So it
  // must not wait for anything but a short lock that nobody holds over a write. Where there is
  // `later`, which runs a function on another thread, this one neither writes nor waits.
  using Later = std::function<void(std::function<void()>)>;
  void PutThen(Payload payload, const Later& later, Done done) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (queue_.size() >= max_left_behind_) {
      lock.unlock();
      if (!later) return done(Put(std::move(payload)));
      later([this, shared = std::make_shared<Payload>(std::move(payload)),
             told = std::make_shared<Done>(std::move(done))] { (*told)(Put(std::move(*shared))); });
      return;
    }
    const auto write = std::make_shared<Write>();
    write->payload = std::move(payload);
    write->done = std::move(done);
    queue_.push_back(write);
    if (is_led_) return;
    if (!later) {
      is_led_ = true;
      lock.unlock();
      return Lead(nullptr);
    }
    lock.unlock();
    // Nobody leads before that thread runs: who comes earlier, and waits, must not wait for it.
    later([this] {
      if (MayLead()) Lead(nullptr);
    });
  }

  // Whether one more would be written with others, by a thread that writes now.
  bool IsWriting() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return is_led_;
  }

  // Writes that are under way or wait.
  size_t Unfinished() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return queue_.size();
  }

 private:
  using WritePtr = std::shared_ptr<Write>;

  // Writes in one group at most.
  static constexpr size_t kMaxGroup = 128;

  // Whether the caller leads from now on: there are writes, and nobody else does.
  bool MayLead() {
    std::lock_guard<std::mutex> lock(mutex_);
    return !queue_.empty() && !std::exchange(is_led_, true);
  }

  static void Wake(Write& write, typename Write::Turn turn) {
    write.turn.store(turn, std::memory_order_release);
    write.turn.notify_one();
  }

  // Writes until its own write is over, and on while there are others and nobody else leads.
  void Lead(Write* own) {
    while (true) {
      std::vector<WritePtr> group;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        group.assign(queue_.begin(),
                     queue_.begin() + static_cast<ptrdiff_t>(std::min(queue_.size(), kMaxGroup)));
      }
      group.resize(commit_(group));
      for (const WritePtr& write : group) write->finished = true;
      const bool stays = own != nullptr && !own->finished;
      WritePtr heir;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        queue_.erase(queue_.begin(), queue_.begin() + static_cast<ptrdiff_t>(group.size()));
        if (!stays) heir = FirstWaitingLocked();
        // Where nobody waits, the next who comes leads: what is done below may take a while.
        is_led_ = stays || heir != nullptr;
      }
      if (heir != nullptr) Wake(*heir, Write::kLeads);
      for (const WritePtr& write : group) {
        if (write->done) {
          write->done(write->status);
        } else {
          Wake(*write, Write::kIsOver);
        }
      }
      if (!stays && !MayLead()) return;
    }
  }

  WritePtr FirstWaitingLocked() const {
    for (const WritePtr& write : queue_) {
      if (!write->done) return write;
    }
    return nullptr;
  }

  const Commit commit_;
  const size_t max_left_behind_;
  mutable std::mutex mutex_;
  std::deque<WritePtr> queue_;  // guarded by mutex_; the first are those being written
  bool is_led_ = false;         // guarded by mutex_
};

}  // namespace npuc

#endif  // NPUC_SERVER_JOBS_WRITE_GROUPS_H_
