// The jobs of several machines: PostgreSQL keeps and orders them, and has a copy of every upload
// and result. The stores on this machine's disk are caches of it.
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/mutex.h"
#include "compiler_core/base/status.h"
#include "compiler_core/pipeline/compile.h"
#include "server/base/steady_clock.h"
#include "server/executor/canary.h"
#include "server/job_home.h"
#include "server/pg/change_feed.h"
#include "server/pg/content.h"
#include "server/pg/node.h"
#include "server/pg/pg_board.h"
#include "server/pg/pg_job_store.h"
#include "server/pg/pg_text.h"
#include "server/pg/schema.h"
#include "server/pg/shared_inputs.h"
#include "server/pg/shared_results.h"
#include "server/startup.h"
#include "server/tenant_policies.h"

namespace npuc::daemon {
namespace {

constexpr absl::Duration kPollPeriod = absl::Seconds(1);
constexpr absl::Duration kSweepPeriod = absl::Minutes(1);
constexpr size_t kContentsPerSweep = 1000;
// Uploads are refused at the bound of the shared content; results and older uploads go before.
constexpr double kSoftShare = 0.9;

class ClusterHome : public JobHome {
 public:
  ClusterHome(const DaemonContext& context, Stores& stores, std::unique_ptr<pg::Sessions> sessions,
              std::unique_ptr<pg::Node> node)
      : log_(context.log),
        max_bytes_(static_cast<uint64_t>(context.flags.cluster_content_mib) << 20),
        sessions_(std::move(sessions)),
        node_(std::move(node)),
        feed_(sessions_.get(), node_.get()),
        store_(sessions_.get(), node_.get(),
               {.on_change = [this](const std::vector<std::string>&) { feed_.Announce(); }}),
        board_(sessions_.get(), node_.get(),
               {.ttl = kLeaseTtl,
                .max_queued = context.flags.max_queued,
                .kept_for_idle = PlacesKeptForIdle(context),
                .policy = TenantPolicies(context)}),
        content_(sessions_.get()),
        inputs_(
            stores.blobs.get(), &content_,
            {.max_bytes = max_bytes_,
             .scope_limit = [rules = context.rules](
                                absl::string_view scope) { return rules->StoredBytesOf(scope); },
             .own_scope = executor::Canary::kTenant}),
        results_(stores.artifacts.get(), &content_) {
    node_->StartBeating();
    board_.StartPolling(kPollPeriod);
    sweeper_ = std::thread([this] { SweepLoop(); });
  }
  ~ClusterHome() override {
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
    }
    stop_.NotifyAll();
    sweeper_.join();
  }

  jobs::JobStore* store() override { return &store_; }
  jobs::RocksDbJobStore* local_store() override { return nullptr; }
  jobs::JobBoard* board() override { return &board_; }
  cache::InputStore* inputs() override { return &inputs_; }
  cache::ResultCache* results() override { return &results_; }
  const std::string& name() const override { return node_->name(); }
  // Both are the cluster's time, which never falls and follows this machine's steady clock.
  absl::Time Now() const override { return node_->ClusterNow(); }
  absl::Time Steady() const override { return node_->ClusterNow(); }
  absl::Status Probe() override { return store_.Probe(); }
  std::map<std::string, Counts> CountsByTenant() const override { return board_.CountsByTenant(); }
  void RefreshPolicies() override { board_.RefreshPolicies(); }
  void SetPaused(bool paused) override { board_.SetPaused(paused); }
  std::unique_ptr<base::KeptText> OpenText(const std::string& name) override {
    return std::make_unique<pg::PgText>(sessions_.get(), name);
  }

  absl::Status Follow(ChangeListener listener) override {
    RETURN_IF_ERROR(AwaitStore(log_, [this] { return feed_.Begin(); }));
    feed_.Start(
        {.on_jobs =
             [this, on_jobs = std::move(listener.on_jobs)](const std::vector<jobs::Job>& jobs) {
               on_jobs(jobs);
               board_.Wake();
             },
         .on_gap = std::move(listener.on_gap)});
    return absl::OkStatus();
  }
  void Drain() override {
    Report("other nodes cannot be told that this one stops", node_->Drain());
  }
  void Leave() override {
    Report("this node cannot leave; the others miss it soon", node_->Leave());
  }

 private:
  void Report(absl::string_view what, const absl::Status& status) const {
    if (!status.ok()) log_->Warning(what, {{"error", status.message()}});
  }

  void Sweep() {
    const auto swept = content_.Sweep(kContentsPerSweep);
    Report("old content cannot be removed", swept.status());
    const auto left =
        content_.MakeRoom(static_cast<uint64_t>(kSoftShare * static_cast<double>(max_bytes_)));
    Report("unused content cannot be removed", left.status());
    Report("dead nodes cannot be forgotten", node_->ForgetDead());
  }

  // Every node does it; what one has done leaves nothing for the others.
  void SweepLoop() {
    std::mt19937 random{std::random_device{}()};
    while (true) {
      // Not all at once.
      const double share = std::uniform_real_distribution<double>(0.5, 1.5)(random);
      const SteadyTime next = SteadyTimeAfter(absl::ToChronoNanoseconds(share * kSweepPeriod));
      {
        const MutexLock lock(mutex_);
        while (!stopping_ && stop_.WaitUntil(mutex_, next)) {
        }
        if (stopping_) return;
      }
      Sweep();
    }
  }

  const log::Logger* const log_;
  const uint64_t max_bytes_;
  const std::unique_ptr<pg::Sessions> sessions_;
  const std::unique_ptr<pg::Node> node_;
  pg::ChangeFeed feed_;
  pg::PgJobStore store_;
  pg::PgBoard board_;
  pg::Content content_;
  pg::SharedInputs inputs_;
  pg::SharedResults results_;
  Mutex mutex_;
  CondVar stop_;
  bool stopping_ NPUC_GUARDED_BY(mutex_) = false;
  std::thread sweeper_;
};

absl::StatusOr<pg::ConnectionOptions> OptionsOf(const Flags& flags) {
  RETURN_IF_ERROR(pg::CheckUrl(flags.cluster));
  pg::ConnectionOptions options{.url = flags.cluster};
  if (!flags.cluster_secret_file.empty()) {
    ASSIGN_OR_RETURN(options.password,
                     ReadSecret("--cluster-secret-file", flags.cluster_secret_file));
  }
  return options;
}

}  // namespace

absl::Status MigrateCluster(const Flags& flags) {
  ASSIGN_OR_RETURN(const pg::ConnectionOptions options, OptionsOf(flags));
  return pg::Migrate(options);
}

absl::StatusOr<std::unique_ptr<JobHome>> OpenClusterHome(const DaemonContext& context,
                                                         Stores& stores) {
  const Flags& flags = context.flags;
  ASSIGN_OR_RETURN(const pg::ConnectionOptions options, OptionsOf(flags));
  bool has_standby = false;
  RETURN_IF_ERROR(AwaitStore(context.log, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::unique_ptr<pg::Connection> connection,
                     pg::Connection::Open(options));
    RETURN_IF_ERROR(pg::CheckSchema(*connection));
    has_standby = pg::HasStandby(*connection);
    return absl::OkStatus();
  }));
  if (!has_standby) {
    context.log->Warning("PostgreSQL has no synchronous standby: jobs are as safe as its disk",
                         {{"fix", "synchronous_standby_names (deploy/OPERATIONS.md)"}});
  }
  std::string name = flags.node_name;
  if (name.empty()) {
    ASSIGN_OR_RETURN(name, KeptNodeName(context.data_dir));
  }
  auto sessions = std::make_unique<pg::Sessions>(options);
  const pg::NodeOptions node_options{.name = name,
                                     .build_id = std::string(CompilerBuildId()),
                                     .address = flags.listen,
                                     .slots = flags.workers,
                                     .ttl = absl::Seconds(flags.node_ttl_seconds),
                                     .beat_period = absl::Seconds(flags.node_ttl_seconds) / 5,
                                     .steady_now = base::SteadyNow};
  std::unique_ptr<pg::Node> node;
  RETURN_IF_ERROR(AwaitStore(context.log, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(node, pg::Node::Join(sessions.get(), node_options));
    return absl::OkStatus();
  }));
  context.log->Info("joined the cluster",
                    {{"node", name}, {"incarnation", absl::StrCat(node->incarnation())}});
  return std::make_unique<ClusterHome>(context, stores, std::move(sessions), std::move(node));
}

}  // namespace npuc::daemon
