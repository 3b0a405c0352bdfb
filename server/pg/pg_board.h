#ifndef NPUC_SERVER_PG_PG_BOARD_H_
#define NPUC_SERVER_PG_PG_BOARD_H_

#include <atomic>
#include <cstdint>
#include <deque>
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
#include "server/pg/queue_places.h"
#include "server/pg/sessions.h"
#include "server/scheduler/claim_planner.h"
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
  // For reading which tenants have work.
  scheduler::QuestionPeriod view_period = {.least = absl::Milliseconds(100),
                                           .per_node = absl::Milliseconds(10)};
  // For looking for claims of this node that expired or lost their job.
  scheduler::QuestionPeriod care_period = {.least = absl::Seconds(1),
                                           .per_node = absl::Milliseconds(5)};
  // For jobs past their deadline and claims of dead nodes: one answer serves all nodes.
  scheduler::QuestionPeriod common_period = {.least = absl::ZeroDuration(),
                                             .per_node = absl::Milliseconds(250)};
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
// time of each tenant. Which tenant is next a node knows from a view of the database that is not
// older than view_period (ClaimPlanner); a tenant's clock and its bounds on running jobs and on
// waiting ones are exact. One call of Claim asks the database for all that wait in Claim.
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
  void Avoid(absl::string_view job_id) override;
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

  // Waiting and running jobs of each tenant, about a second old; older where to count takes long.
  std::map<std::string, Counts> CountsByTenant() const;
  // Other nodes have changed these jobs.
  void HearOf(const std::vector<jobs::Job>& jobs);
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
  // A question to the database that is asked now and then.
  struct Care {
    Mutex mutex;
    SteadyTime next NPUC_GUARDED_BY(mutex) = SteadyTime::min();
  };
  struct Use {
    double excess_s = 0;
    int64_t runs = 0;
    double used_s = 0;
  };

  void Wake() const;
  // Wakes the subscribers after that time.
  void WakeAfter(absl::Duration time);
  void HearOfAnything();
  void PollLoop(absl::Duration period);
  std::vector<jobs::BoardClaim> ClaimSome(absl::string_view owner, int64_t slots, absl::Time now);
  TextArray Avoided();
  bool ReadView(absl::string_view owner, absl::Time now);
  // nullopt: the database is away.
  std::optional<std::vector<jobs::BoardClaim>> RunPlan(const scheduler::ClaimPlanner::Plan& plan,
                                                       absl::string_view owner, absl::Time now);
  // True: the care is due, and begins.
  bool Begin(const scheduler::QuestionPeriod& question, Care& care) const;
  bool AddTenant(absl::string_view tenant);
  void StorePolicies();
  void AddUse(const Rows& rows, size_t row, int column) NPUC_REQUIRES(mutex_);
  std::vector<jobs::BoardClaim> Take(absl::string_view owner, bool own, absl::Time now);
  bool EndInDatabase(jobs::ClaimId claim, int64_t incarnation, absl::Time now);
  int64_t IncarnationOf(jobs::ClaimId claim) const NPUC_EXCLUDES(mutex_);
  void EndUnknownClaims(absl::Time now);

  Node* const node_;
  const PgBoardOptions options_;
  // Their commits are asynchronous.
  mutable Sessions sessions_;
  mutable QueuePlaces queue_places_{&sessions_};
  std::atomic<bool> is_paused_ = false;
  mutable Mutex mutex_;
  uint64_t next_order_ NPUC_GUARDED_BY(mutex_) = 0;
  uint64_t end_of_orders_ NPUC_GUARDED_BY(mutex_) = 0;
  std::set<std::string, std::less<>> tenants_ NPUC_GUARDED_BY(mutex_);  // with stored policies
  bool policies_due_ NPUC_GUARDED_BY(mutex_) = true;  // the tenants file may be a new one
  std::map<std::string, std::vector<int64_t>, std::less<>> places_ NPUC_GUARDED_BY(mutex_);
  int64_t reserved_ NPUC_GUARDED_BY(mutex_) = 0;
  // Jobs that this node cannot read, and until when it claims none of them.
  std::map<std::string, SteadyTime> avoided_ NPUC_GUARDED_BY(mutex_);
  std::map<jobs::ClaimId, Held> held_ NPUC_GUARDED_BY(mutex_);       // by this node
  std::map<jobs::ClaimId, int64_t> to_end_ NPUC_GUARDED_BY(mutex_);  // with their incarnations
  std::set<jobs::ClaimId> unknown_ NPUC_GUARDED_BY(mutex_);          // at the last look
  std::map<std::string, Use> uses_ NPUC_GUARDED_BY(mutex_);
  SteadyTime next_look_ NPUC_GUARDED_BY(mutex_) = SteadyTime::min();
  scheduler::ClaimPlanner planner_ NPUC_GUARDED_BY(mutex_);

  mutable Care expired_, orphaned_, due_, taken_over_;

  Mutex claim_mutex_;
  CondVar claimed_;
  int64_t asking_ NPUC_GUARDED_BY(claim_mutex_) = 0;  // slots that are in Claim without a job
  bool is_claiming_ NPUC_GUARDED_BY(claim_mutex_) = false;
  std::deque<jobs::BoardClaim> taken_ NPUC_GUARDED_BY(claim_mutex_);  // for slots in Claim

  mutable Mutex subscribers_mutex_;
  uint64_t next_subscriber_ NPUC_GUARDED_BY(subscribers_mutex_) = 1;
  std::map<uint64_t, std::function<void()>> subscribers_ NPUC_GUARDED_BY(subscribers_mutex_);

  Mutex poll_mutex_;
  CondVar stop_;
  bool stopping_ NPUC_GUARDED_BY(poll_mutex_) = false;
  SteadyTime wake_at_ NPUC_GUARDED_BY(poll_mutex_) = SteadyTime::max();
  std::thread poller_;
};

}  // namespace npuc::pg

#endif  // NPUC_SERVER_PG_PG_BOARD_H_
