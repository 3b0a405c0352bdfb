#ifndef NPUC_SERVER_SCHEDULER_FAIR_QUEUE_H_
#define NPUC_SERVER_SCHEDULER_FAIR_QUEUE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/jobs/job_queue.h"

namespace npuc::scheduler {

// What a tenant is entitled to. Zero bounds: none.
struct TenantPolicy {
  double weight = 1.0;  // its share of the workers' time against other tenants that wait
  int64_t max_queued = 0;
  int64_t max_running = 0;
};

struct FairQueueOptions {
  int64_t max_queued = 100000;  // of all tenants
  // The last places, which only a tenant with nothing waiting gets: none can shut others out.
  int64_t kept_for_idle = 0;
  int slots = 1;  // workers; for estimates, and no bound by itself
  // A job gains one point of priority with each such time that it waits.
  absl::Duration ageing = absl::Seconds(30);
  // May be null: every tenant has the same. Asked when a tenant comes, and on RefreshPolicies.
  std::function<TenantPolicy(absl::string_view tenant)> policy = nullptr;
};

// Weighted fairness over tenants, then priority with ageing, then age.
//
// Tenants share the workers' time by start-time fair queueing: each has a virtual time, the time
// that its jobs ran divided by its weight, and the tenant with the least is served next. A start is
// charged with the mean run time, and corrected at the end of the run. A tenant that comes back
// from having nothing to start does not bring old credit with it.
//
// Within a tenant, ageing makes the order one that never changes: a job of priority p that came at
// t is before one of priority q that came at u where t - p * ageing < u - q * ageing.
//
// Every call takes O(log jobs + log tenants), Look O(tenants * log jobs).
class FairQueue : public jobs::JobQueue {
 public:
  explicit FairQueue(FairQueueOptions options);
  ~FairQueue() override;

  absl::Status Reserve(absl::string_view tenant) override;
  void Release(absl::string_view tenant) override;
  void Push(jobs::QueuedJob job, bool reserved) override;
  std::optional<jobs::QueuedJob> Pop() override;
  bool Take(absl::string_view id) override;
  void Done(absl::string_view tenant, absl::Duration ran) override;
  bool Park(absl::string_view id) override;
  bool Remove(absl::string_view id) override;
  std::optional<jobs::QueueView> Look(absl::string_view id) const override;
  int64_t size() const override;
  bool HasReady() const override;

  // Asks for every tenant's policy again.
  void RefreshPolicies();

  struct TenantCounts {
    int64_t queued = 0;
    int64_t running = 0;
  };
  TenantCounts CountsOf(absl::string_view tenant) const;
  // Of every tenant that was seen so far.
  std::map<std::string, TenantCounts> Counts() const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

// The same, for a single kind of tenant.
std::unique_ptr<jobs::JobQueue> MakeFairQueue(int64_t max_queued, int slots = 1);

}  // namespace npuc::scheduler

#endif  // NPUC_SERVER_SCHEDULER_FAIR_QUEUE_H_
