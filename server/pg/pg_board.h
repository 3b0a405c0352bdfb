#ifndef NPUC_SERVER_PG_PG_BOARD_H_
#define NPUC_SERVER_PG_PG_BOARD_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "compiler_core/base/mutex.h"
#include "server/jobs/job_board.h"
#include "server/pg/node.h"
#include "server/pg/sessions.h"
#include "server/scheduler/fair_queue.h"

namespace npuc::pg {

struct PgBoardOptions {
  // A claim of this node that was not renewed for so long has expired: its worker hangs.
  absl::Duration ttl = absl::Minutes(5);
  // Jobs that may wait, of all tenants, and how many of the places only tenants without a waiting
  // job get. Counted a second late, so that a burst may go over it.
  int64_t max_queued = 100000;
  int64_t kept_for_idle = 0;
  // Null: every tenant has the same. Weights and bounds should be the same on all nodes.
  std::function<scheduler::TenantPolicy(absl::string_view tenant)> policy = nullptr;
};

// A JobBoard in PostgreSQL that nodes share. The store puts jobs on it and takes them off in its
// own transactions (PgJobStore), so Accept and Forget have little to do. Times are the cluster's
// (Node::ClusterNow).
//
// A claim is of one incarnation of a node, and lives as long as that: other nodes take it over when
// the node is declared dead. Renew is a matter of this node alone. Commits are asynchronous: a
// crash of the server may forget claims, never their order, and the store's revisions let one of
// two nodes run a job.
//
// Tenants share the workers' time by start-time fair queueing, as FairQueue has it, with a mean run
// time of each tenant; a tenant's bound on running jobs and on waiting ones is exact.
//
// While PostgreSQL is away, Claim gives nothing, and the end of a claim is made up for later.
class PgBoard : public jobs::JobBoard {
 public:
  // `sessions` and `node` must outlive it.
  PgBoard(Sessions* sessions, Node* node, PgBoardOptions options = {});
  ~PgBoard() override;

  bool NeedsFill() const override { return false; }
  uint64_t NextOrder() override;
  absl::Status Reserve(absl::string_view tenant) override;
  void Release(absl::string_view tenant) override;
  void Accept(const jobs::BoardJob& job, bool reserved) override;
  void Forget(absl::string_view job_id) override {}
  bool Has(absl::string_view job_id) const override;
  std::optional<jobs::BoardClaim> Claim(absl::string_view owner, absl::Time now) override;
  void Restore(const jobs::BoardJob& job, absl::string_view owner, uint64_t fence,
               absl::Time held_until) override;
  bool Start(jobs::ClaimId claim, uint64_t fence, absl::Time now) override;
  bool Renew(jobs::ClaimId claim, absl::Time now) override;
  std::optional<jobs::BoardClaim> PassOn(jobs::ClaimId claim, absl::Time now) override;
  std::vector<std::string> Close(jobs::ClaimId claim, absl::Time now) override;
  void End(jobs::ClaimId claim, absl::Time now) override;
  std::vector<jobs::BoardClaim> Expired(absl::string_view owner, absl::Time now) const override;
  std::vector<jobs::BoardClaim> TakeExpired(absl::string_view owner, absl::Time now) override;
  std::vector<jobs::BoardClaim> TakeOwn(absl::string_view owner, absl::Time now) override;
  std::vector<jobs::BoardClaim> Orphaned(absl::string_view owner) const override;
  std::vector<std::string> Due(absl::Time now) const override;
  std::optional<jobs::BoardView> Look(absl::string_view job_id) const override;
  std::optional<jobs::BoardView> LookAtNew(absl::string_view job_id,
                                           absl::string_view tenant) const override;
  Counts GetCounts() const override;
  Unsubscribe Subscribe(std::function<void()> wake) override;

  // Waiting and running jobs of each tenant, about a second old.
  std::map<std::string, Counts> CountsByTenant() const;
  // Work may have come through another node.
  void Wake() const;
  // While it is paused Claim gives jobs that are pinned to this node alone.
  void SetPaused(bool paused);
  // The tenants' policies may have changed.
  void RefreshPolicies();
  // Charges tenants for ended runs, and ends claims that no call could end. To be called now and
  // then; StartPolling does, and wakes the subscribers.
  void Maintain(absl::Time now);
  void StartPolling(absl::Duration period);

 private:
  struct Held {
    jobs::BoardClaim claim;
    int64_t incarnation = 0;
    absl::Time renewed;
    bool started = false;
  };
  struct Use {
    double excess_s = 0;
    int64_t runs = 0;
    double used_s = 0;
  };

  void AddTenant(absl::string_view tenant);
  void AddUse(const Rows& rows, size_t row, int column) NPUC_REQUIRES(mutex_);
  std::vector<jobs::BoardClaim> Take(absl::string_view owner, bool own, absl::Time now);
  bool EndInDatabase(jobs::ClaimId claim, int64_t incarnation, absl::Time now);
  std::map<std::string, Counts> ReadCounts() const;
  int64_t IncarnationOf(jobs::ClaimId claim) const NPUC_EXCLUDES(mutex_);
  void EndUnknownClaims(absl::Time now);

  Node* const node_;
  const PgBoardOptions options_;
  // Their commits are asynchronous.
  mutable Sessions sessions_;
  std::atomic<bool> is_paused_ = false;
  mutable Mutex mutex_;
  uint64_t next_order_ NPUC_GUARDED_BY(mutex_) = 0;
  uint64_t end_of_orders_ NPUC_GUARDED_BY(mutex_) = 0;
  std::set<std::string, std::less<>> tenants_ NPUC_GUARDED_BY(mutex_);  // with stored policies
  std::map<std::string, std::vector<int64_t>, std::less<>> places_ NPUC_GUARDED_BY(mutex_);
  int64_t reserved_ NPUC_GUARDED_BY(mutex_) = 0;
  std::map<jobs::ClaimId, Held> held_ NPUC_GUARDED_BY(mutex_);       // by this node
  std::map<jobs::ClaimId, int64_t> to_end_ NPUC_GUARDED_BY(mutex_);  // with their incarnations
  std::set<jobs::ClaimId> unknown_ NPUC_GUARDED_BY(mutex_);          // at the last look
  std::map<std::string, Use> uses_ NPUC_GUARDED_BY(mutex_);
  mutable std::map<std::string, Counts> counts_ NPUC_GUARDED_BY(mutex_);
  mutable std::map<std::string, double> means_ NPUC_GUARDED_BY(mutex_);  // seconds of a job
  mutable int64_t slots_ NPUC_GUARDED_BY(mutex_) = 1;                    // of all nodes
  mutable SteadyTime counts_until_ NPUC_GUARDED_BY(mutex_) = SteadyTime::min();
  SteadyTime next_look_ NPUC_GUARDED_BY(mutex_) = SteadyTime::min();

  mutable Mutex subscribers_mutex_;
  uint64_t next_subscriber_ NPUC_GUARDED_BY(subscribers_mutex_) = 1;
  std::map<uint64_t, std::function<void()>> subscribers_ NPUC_GUARDED_BY(subscribers_mutex_);

  Mutex poll_mutex_;
  CondVar stop_;
  bool stopping_ NPUC_GUARDED_BY(poll_mutex_) = false;
  std::thread poller_;
};

}  // namespace npuc::pg

#endif  // NPUC_SERVER_PG_PG_BOARD_H_
