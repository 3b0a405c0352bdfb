// The jobs of one machine: RocksDB keeps them, a queue in memory orders them.
#include <utility>

#include "absl/time/clock.h"
#include "compiler_core/base/status.h"
#include "server/base/features.h"
#include "server/base/steady_clock.h"
#include "server/job_home.h"
#include "server/jobs/local_board.h"
#include "server/jobs/rocksdb_job_store.h"
#include "server/scheduler/fair_queue.h"
#include "server/startup.h"
#include "server/tenant_policies.h"

namespace npuc::daemon {
namespace {

class LocalHome : public JobHome {
 public:
  LocalHome(const DaemonContext& context, Stores& stores,
            std::unique_ptr<jobs::RocksDbJobStore> store)
      : stores_(stores),
        data_dir_(context.data_dir),
        store_(std::move(store)),
        queue_({.max_queued = context.flags.max_queued,
                .kept_for_idle = PlacesKeptForIdle(context),
                .slots = context.flags.workers,
                .policy = TenantPolicies(context)}),
        board_(&queue_, kLeaseTtl) {}

  jobs::JobStore* store() override { return store_.get(); }
  jobs::RocksDbJobStore* local_store() override { return store_.get(); }
  jobs::JobBoard* board() override { return &board_; }
  cache::InputStore* inputs() override { return stores_.blobs.get(); }
  cache::ResultCache* results() override { return stores_.artifacts.get(); }
  const std::string& name() const override { return name_; }
  absl::Time Now() const override { return absl::Now(); }
  absl::Time Steady() const override { return base::SteadyNow(); }
  int64_t FeatureLevel() const override { return base::kFeatureLevel; }
  absl::Status Probe() override { return store_->Probe(); }
  std::map<std::string, Counts> CountsByTenant() const override {
    std::map<std::string, Counts> all;
    for (const auto& [tenant, counts] : queue_.Counts()) {
      all[tenant] = {.queued = counts.queued, .running = counts.running};
    }
    return all;
  }
  void RefreshPolicies() override { queue_.RefreshPolicies(); }
  void SetPaused(bool paused) override { board_.SetPaused(paused); }
  std::unique_ptr<base::KeptText> OpenText(const std::string& name) override {
    return std::make_unique<base::FileText>(data_dir_ + "/" + name);
  }
  std::unique_ptr<base::UsageStore> OpenUsage() override {
    return std::make_unique<base::FileUsageStore>(data_dir_ + "/usage");
  }
  std::unique_ptr<log::AuditStore> OpenAudit() override { return nullptr; }
  absl::Status Follow(ChangeListener) override { return absl::OkStatus(); }
  void Drain() override {}
  void Leave() override {}

 private:
  Stores& stores_;
  const std::string data_dir_;
  const std::unique_ptr<jobs::RocksDbJobStore> store_;
  scheduler::FairQueue queue_;
  jobs::LocalBoard board_;
  const std::string name_ = "npucd";
};

}  // namespace

absl::StatusOr<std::unique_ptr<JobHome>> OpenLocalHome(const DaemonContext& context,
                                                       Stores& stores) {
  auto store = jobs::RocksDbJobStore::Open(context.data_dir + "/jobs");
  RETURN_IF_ERROR(WithAdvice(store.status(),
                             "put the data directory's backup in its place, or "
                             "delete it, and its jobs with it, to begin anew"));
  return std::make_unique<LocalHome>(context, stores, *std::move(store));
}

}  // namespace npuc::daemon
