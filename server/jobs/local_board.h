#ifndef NPUC_SERVER_JOBS_LOCAL_BOARD_H_
#define NPUC_SERVER_JOBS_LOCAL_BOARD_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler_core/base/mutex.h"
#include "server/jobs/job_board.h"

namespace npuc::jobs {

// A JobBoard in memory, for one daemon and for simulations of several: the order is a JobQueue's.
// It ends with its process, so the next daemon fills it from the store.
class LocalBoard : public JobBoard {
 public:
  // A claim that was not renewed for `ttl` has expired. The queue must outlive this.
  LocalBoard(JobQueue* queue, absl::Duration ttl) : queue_(queue), ttl_(ttl) {}

  bool NeedsFill() const override { return true; }
  uint64_t NextOrder() override;
  absl::Status Reserve(absl::string_view tenant) override { return queue_->Reserve(tenant); }
  void Release(absl::string_view tenant) override { queue_->Release(tenant); }
  void Accept(const BoardJob& job, bool reserved) override;
  void Forget(absl::string_view job_id) override;
  bool Has(absl::string_view job_id) const override;
  std::optional<BoardClaim> Claim(absl::string_view owner, absl::Time now) override;
  void Restore(const BoardJob& job, absl::string_view owner, uint64_t fence,
               absl::Time held_until) override;
  bool Start(ClaimId claim, uint64_t fence, absl::Time now) override;
  bool Renew(ClaimId claim, absl::Time now) override;
  std::optional<BoardClaim> PassOn(ClaimId claim, absl::Time now) override;
  std::vector<std::string> Close(ClaimId claim, absl::Time now) override;
  void End(ClaimId claim, absl::Time now) override;
  std::vector<BoardClaim> Expired(absl::string_view owner, absl::Time now) const override;
  std::vector<BoardClaim> TakeExpired(absl::string_view owner, absl::Time now) override;
  std::vector<BoardClaim> TakeOwn(absl::string_view owner, absl::Time now) override;
  std::vector<BoardClaim> Orphaned(absl::string_view owner) const override;
  std::vector<std::string> Due(absl::Time now) const override;
  std::optional<BoardView> Look(absl::string_view job_id) const override;
  Counts GetCounts() const override;
  // While it is paused Claim gives pinned jobs alone.
  void SetPaused(bool paused);
  Unsubscribe Subscribe(std::function<void()> wake) override;

 private:
  struct Live {
    BoardJob job;
    ClaimId held_by = 0;  // the claim that is for it
    ClaimId follows = 0;  // the claim whose result it waits for
  };
  struct Held {
    BoardClaim claim;
    std::string tenant;
    std::string key;
    bool has_slot = true;   // the queue counts it as running
    bool orphaned = false;  // its job was ended by somebody else
    absl::Time started = absl::InfinitePast();
    absl::Time renewed = absl::InfinitePast();
    std::map<uint64_t, std::string> followers = {};  // by accept_order
    std::vector<std::string> passed_over = {};       // jobs that wait for Start or End
  };

  void Enqueue(Live& live, bool reserved) NPUC_REQUIRES(mutex_);
  void Return(const std::string& job_id) NPUC_REQUIRES(mutex_);
  void TakeOutOfOrder(const Live& live) NPUC_REQUIRES(mutex_);
  Held* Find(ClaimId claim) NPUC_REQUIRES(mutex_);
  Held& Hold(Live& live, absl::string_view owner) NPUC_REQUIRES(mutex_);
  void FreeSlot(Held& held, absl::Time now) NPUC_REQUIRES(mutex_);
  void LetJobGo(Held& held) NPUC_REQUIRES(mutex_);
  void CloseFlight(const Held& held) NPUC_REQUIRES(mutex_);
  void EndClaim(Held& held, bool job_returns, absl::Time now) NPUC_REQUIRES(mutex_);
  std::optional<std::string> PopPinned(absl::string_view owner) NPUC_REQUIRES(mutex_);
  using Predicate = std::function<bool(const Held& held)>;
  std::vector<BoardClaim> Select(const Predicate& predicate) const NPUC_REQUIRES(mutex_);
  std::vector<BoardClaim> Take(absl::string_view owner, const Predicate& predicate, absl::Time now)
      NPUC_REQUIRES(mutex_);
  void Wake() const NPUC_REQUIRES(mutex_);

  JobQueue* const queue_;
  const absl::Duration ttl_;
  mutable Mutex mutex_;
  bool is_paused_ NPUC_GUARDED_BY(mutex_) = false;
  uint64_t next_order_ NPUC_GUARDED_BY(mutex_) = 1;
  ClaimId next_claim_ NPUC_GUARDED_BY(mutex_) = 1;
  std::unordered_map<std::string, Live> jobs_ NPUC_GUARDED_BY(mutex_);
  std::set<std::pair<absl::Time, std::string>> due_ NPUC_GUARDED_BY(mutex_);  // of jobs_
  // Jobs in order in the queue, by flight key, then accept_order.
  std::unordered_map<std::string, std::map<uint64_t, std::string>> waiting_ NPUC_GUARDED_BY(mutex_);
  // Waiting jobs, by owner and order.
  std::map<std::pair<std::string, uint64_t>, std::string> pinned_ NPUC_GUARDED_BY(mutex_);
  std::map<ClaimId, Held> claims_ NPUC_GUARDED_BY(mutex_);
  std::unordered_map<std::string, ClaimId> flights_ NPUC_GUARDED_BY(mutex_);  // open claims, by key
  uint64_t next_subscriber_ NPUC_GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, std::function<void()>> subscribers_ NPUC_GUARDED_BY(mutex_);
};

}  // namespace npuc::jobs

#endif  // NPUC_SERVER_JOBS_LOCAL_BOARD_H_
