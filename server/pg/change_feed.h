#ifndef NPUC_SERVER_PG_CHANGE_FEED_H_
#define NPUC_SERVER_PG_CHANGE_FEED_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "compiler_core/base/mutex.h"
#include "server/jobs/job.h"
#include "server/pg/node.h"
#include "server/pg/sessions.h"

namespace npuc::pg {

struct ChangeFeedOptions {
  // False: no LISTEN, which needs a session of its own; the poll alone finds writes.
  bool has_hints = true;
  // At most so often a node sends a hint that it has written (NOTIFY), and looks at the writes of
  // others because of hints: those of many nodes share a look.
  absl::Duration hint_period = absl::Milliseconds(20);
  // Without a hint a node looks for the others' writes so often.
  absl::Duration poll_period = absl::Seconds(1);
};

// Tells a node which jobs other nodes have changed. The database keeps for each write of a lane the
// jobs that it changed, numbered without a gap (table `change`), so a node that remembers a number
// of each lane misses nothing. Hints only make it look at once: one that is lost, late or doubled
// costs time, at most the poll's period.
//
// Thread-safe.
class ChangeFeed {
 public:
  // Both run on the feed's thread, and may read the store.
  struct Listener {
    // As they are stored now.
    std::function<void(const std::vector<jobs::Job>& jobs)> on_jobs;
    // More was changed than the database remembers: any job may be another than before.
    std::function<void()> on_gap;
    // Two looks in a row have failed: nobody here knows what changes. May be null.
    std::function<void()> on_failure = nullptr;
  };

  // `sessions` and `node` must outlive it.
  ChangeFeed(Sessions* sessions, Node* node, ChangeFeedOptions options = {});
  ~ChangeFeed();

  // Remembers where the lanes are now. A reader of all jobs that begins after this call misses
  // nothing between its reads and what the listener gets.
  absl::Status Begin();
  // Gives the listener what comes, on threads of its own, until the end. Once, after Begin.
  void Start(Listener listener);

  // This node has written. Quick; nothing without hints.
  void Announce();
  // Gives the listener what has come until now; Start's thread calls it.
  absl::Status Look(const Listener& listener);

 private:
  void AnnounceLoop();
  void ListenLoop(const Listener& listener);
  void PollLoop(const Listener& listener);
  void WaitUntil(SteadyTime time);
  void LookOrReport(const Listener& listener);
  absl::Status TellJobs(const std::set<std::string>& ids, const Listener& listener) const;
  bool stopping() const;

  Sessions* const sessions_;
  Node* const node_;
  const ChangeFeedOptions options_;
  Sessions hints_;                    // commits without a sync: nothing is lost with a hint
  std::map<int64_t, int64_t> known_;  // by lane, the last write that is known; of one thread
  int failures_ = 0;                  // looks that failed in a row; of the same thread
  mutable Mutex mutex_;
  CondVar changed_;
  CondVar stop_;
  bool has_written_ NPUC_GUARDED_BY(mutex_) = false;
  bool stopping_ NPUC_GUARDED_BY(mutex_) = false;
  std::thread announcer_;
  std::thread listener_;
};

}  // namespace npuc::pg

#endif  // NPUC_SERVER_PG_CHANGE_FEED_H_
