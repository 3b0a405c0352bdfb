// The jobs of several machines: PostgreSQL keeps and orders them. It has a copy of every upload and
// result, or knows where one is in the object store of --cluster-content. The stores on this
// machine's disk are caches of these.
#include <atomic>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler_core/base/mutex.h"
#include "compiler_core/base/status.h"
#include "compiler_core/pipeline/compile.h"
#include "server/base/features.h"
#include "server/base/steady_clock.h"
#include "server/executor/canary.h"
#include "server/job_home.h"
#include "server/objects/folder_store.h"
#include "server/objects/s3_store.h"
#include "server/pg/change_feed.h"
#include "server/pg/content.h"
#include "server/pg/janitor.h"
#include "server/pg/node.h"
#include "server/pg/pg_audit.h"
#include "server/pg/pg_board.h"
#include "server/pg/pg_job_store.h"
#include "server/pg/pg_text.h"
#include "server/pg/pg_usage.h"
#include "server/pg/schema.h"
#include "server/pg/shared_inputs.h"
#include "server/pg/shared_results.h"
#include "server/startup.h"
#include "server/tenant_policies.h"

namespace npuc::daemon {
namespace {

constexpr absl::Duration kPollPeriod = absl::Seconds(1);
constexpr absl::Duration kSweepPeriod = absl::Minutes(1);
constexpr absl::Duration kJanitorPeriod = absl::Seconds(1);
constexpr size_t kContentsPerSweep = 1000;
constexpr absl::Duration kContentProbePeriod = absl::Seconds(5);
// Without hints, which a pooler does not pass on, a node looks so often.
constexpr absl::Duration kPooledLookPeriod = absl::Milliseconds(100);
// A probe that lasts longer finds nothing good.
constexpr absl::Duration kContentProbePatience = absl::Seconds(10);
// Uploads are refused at the bound of the shared content; results and older uploads go before.
constexpr double kSoftShare = 0.9;

pg::ChangeFeedOptions FeedOptions(const Flags& flags) {
  if (!flags.cluster_pooler) return {};
  return {.has_hints = false, .poll_period = kPooledLookPeriod};
}

class ClusterHome : public JobHome {
 public:
  struct Parts {
    std::unique_ptr<pg::Sessions> sessions;
    std::unique_ptr<pg::Node> node;
    std::unique_ptr<objects::ObjectStore> objects;  // null: none
    std::unique_ptr<pg::Content> content;           // opened
  };

  ClusterHome(const DaemonContext& context, Stores& stores, Parts parts)
      : log_(context.log),
        max_bytes_(static_cast<uint64_t>(context.flags.cluster_content_mib) << 20),
        sessions_(std::move(parts.sessions)),
        objects_(std::move(parts.objects)),
        content_(std::move(parts.content)),
        node_(std::move(parts.node)),
        feed_(sessions_.get(), node_.get(), FeedOptions(context.flags)),
        store_(sessions_.get(), node_.get(),
               {.on_change = [this](const std::vector<std::string>&) { feed_.Announce(); },
                .on_newer =
                    [this, metrics = context.metrics](absl::string_view job_id,
                                                      const absl::Status& status) {
                      metrics->Add(observe::Metric::kClusterNewerRecords, {}, 1);
                      TellOfNewer(job_id, status);
                    }}),
        board_(sessions_.get(), node_.get(),
               {.ttl = kLeaseTtl,
                .max_queued = context.flags.max_queued,
                .kept_for_idle = PlacesKeptForIdle(context),
                .policy = TenantPolicies(context)}),
        janitor_(sessions_.get(),
                 {.nodes = [this] { return node_->size().nodes; }, .steady_now = base::SteadyNow}),
        inputs_(
            stores.blobs.get(), content_.get(),
            {.max_bytes = max_bytes_,
             .scope_limit = [rules = context.rules](
                                absl::string_view scope) { return rules->StoredBytesOf(scope); },
             .own_scope = executor::Canary::kTenant}),
        results_(stores.artifacts.get(), content_.get(), &features_) {
    node_->StartBeating();
    board_.StartPolling(kPollPeriod);
    sweeper_ = std::thread([this] { SweepLoop(); });
    if (objects_ != nullptr) prober_ = std::thread([this] { ProbeLoop(); });
    janitor_thread_ = std::thread([this] { JanitorLoop(); });
    context.sampler->Add([this](observe::Metrics& metrics) {
      metrics.Set(observe::Metric::kClusterOldestSnapshotSeconds, {},
                  absl::ToDoubleSeconds(janitor_.OldestSnapshotAge()));
      metrics.Set(observe::Metric::kClusterFeatureLevel, {"cluster"},
                  static_cast<double>(node_->feature_level()));
      metrics.Set(observe::Metric::kClusterFeatureLevel, {"node"}, base::kFeatureLevel);
      for (const auto& [table, rows] : janitor_.DeadRows()) {
        metrics.Set(observe::Metric::kClusterDeadRows, {table}, static_cast<double>(rows));
      }
    });
  }
  ~ClusterHome() override {
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
    }
    stop_.NotifyAll();
    sweeper_.join();
    if (prober_.joinable()) prober_.join();
    janitor_thread_.join();
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
  int64_t FeatureLevel() const override { return node_->feature_level(); }
  absl::Status Probe() override {
    RETURN_IF_ERROR(store_.Probe());
    const MutexLock lock(mutex_);
    const absl::Duration lasts = base::SteadyNow() - probe_begun_;
    if (!is_probing_ || lasts < kContentProbePatience) return probed_;
    return absl::UnavailableError(
        absl::StrCat("shared content: no answer of the store for ",
                     absl::FormatDuration(absl::Trunc(lasts, absl::Seconds(1)))));
  }
  std::map<std::string, Counts> CountsByTenant() const override { return board_.CountsByTenant(); }
  void RefreshPolicies() override { board_.RefreshPolicies(); }
  void SetPaused(bool paused) override { board_.SetPaused(paused); }
  std::unique_ptr<base::KeptText> OpenText(const std::string& name) override {
    return std::make_unique<pg::PgText>(sessions_.get(), name);
  }
  std::unique_ptr<base::UsageStore> OpenUsage() override {
    return std::make_unique<pg::PgUsage>(sessions_.get());
  }
  std::unique_ptr<log::AuditStore> OpenAudit() override {
    return std::make_unique<pg::PgAudit>(sessions_.get());
  }

  absl::Status Follow(ChangeListener listener) override {
    RETURN_IF_ERROR(AwaitStore(log_, [this] { return feed_.Begin(); }));
    feed_.Start(
        {.on_jobs =
             [this, on_jobs = std::move(listener.on_jobs)](const std::vector<jobs::Job>& jobs) {
               on_jobs(jobs);
               board_.HearOf(jobs);
             },
         .on_gap = std::move(listener.on_gap),
         .on_failure = std::move(listener.on_failure)});
    return absl::OkStatus();
  }
  void Drain() override {
    Report("other nodes cannot be told that this one stops", node_->Drain());
  }
  void Leave() override {
    Report("this node cannot leave; the others miss it soon", node_->Leave());
  }

 private:
  // Once: where there is one such job there are soon more.
  void TellOfNewer(absl::string_view job_id, const absl::Status& status) {
    if (has_told_newer_.exchange(true)) return;
    log_->Error("a job is of a newer npucd; this node leaves it, and all others like it, alone",
                {{"job", job_id},
                 {"error", status.message()},
                 {"fix", "upgrade this node; npuc_cluster_newer_records_total counts on"}});
  }
  void Report(absl::string_view what, const absl::Status& status) const {
    if (!status.ok()) log_->Warning(what, {{"error", status.message()}});
  }

  void Sweep() {
    const auto swept = content_->Sweep(kContentsPerSweep);
    Report("old content cannot be removed", swept.status());
    const auto left =
        content_->MakeRoom(static_cast<uint64_t>(kSoftShare * static_cast<double>(max_bytes_)));
    Report("unused content cannot be removed", left.status());
    Report("objects of content that is gone cannot be removed",
           content_->SweepObjects(kContentsPerSweep).status());
    Report("dead nodes cannot be forgotten", node_->ForgetDead());
    Report("sums of usage cannot be added together", pg::PgUsage::Fold(*sessions_));
    Report("old entries of the audit cannot be removed", pg::PgAudit::Prune(*sessions_));
  }

  // False: the home ends.
  bool Sleep(absl::Duration time) {
    const SteadyTime end = SteadyTimeAfter(absl::ToChronoNanoseconds(time));
    const MutexLock lock(mutex_);
    while (!stopping_ && stop_.WaitUntil(mutex_, end)) {
    }
    return !stopping_;
  }

  // On a thread of its own: a store that hangs must not hang the daemon's probe.
  void ProbeLoop() {
    do {
      {
        const MutexLock lock(mutex_);
        is_probing_ = true;
        probe_begun_ = base::SteadyNow();
      }
      absl::Status found = content_->ProbeObjects();
      const MutexLock lock(mutex_);
      is_probing_ = false;
      probed_ = std::move(found);
    } while (Sleep(kContentProbePeriod));
  }

  // Every node does it; what one has done leaves nothing for the others. Not all at once.
  void SweepLoop() {
    std::mt19937 random{std::random_device{}()};
    std::uniform_real_distribution<double> share(0.5, 1.5);
    while (Sleep(share(random) * kSweepPeriod)) Sweep();
  }

  void JanitorLoop() {
    int64_t level = node_->feature_level();
    while (Sleep(kJanitorPeriod)) {
      // The next step makes up for one that failed; calls that need the database report what is
      // wrong.
      janitor_.Step().IgnoreError();
      if (node_->feature_level() == level) continue;
      level = node_->feature_level();
      log_->Info("the cluster's feature level has risen; no older npucd can join any more",
                 {{"feature_level", absl::StrCat(level)}});
    }
  }

  const log::Logger* const log_;
  const uint64_t max_bytes_;
  const std::unique_ptr<pg::Sessions> sessions_;
  const std::unique_ptr<objects::ObjectStore> objects_;
  const std::unique_ptr<pg::Content> content_;
  const std::unique_ptr<pg::Node> node_;
  pg::ChangeFeed feed_;
  pg::PgJobStore store_;
  pg::PgBoard board_;
  pg::Janitor janitor_;
  pg::SharedInputs inputs_;
  const base::Features features_{[this] { return FeatureLevel(); }};
  pg::SharedResults results_;
  std::atomic<bool> has_told_newer_ = false;
  Mutex mutex_;
  CondVar stop_;
  bool stopping_ NPUC_GUARDED_BY(mutex_) = false;
  // The object store, as the last probe found it.
  absl::Status probed_ NPUC_GUARDED_BY(mutex_) = absl::OkStatus();
  bool is_probing_ NPUC_GUARDED_BY(mutex_) = false;
  absl::Time probe_begun_ NPUC_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::thread sweeper_;
  std::thread prober_;
  std::thread janitor_thread_;
};

absl::StatusOr<pg::ConnectionOptions> OptionsOf(const Flags& flags) {
  RETURN_IF_ERROR(pg::CheckUrl(flags.cluster));
  pg::ConnectionOptions options{.url = flags.cluster, .is_pooled = flags.cluster_pooler};
  if (!flags.cluster_secret_file.empty()) {
    ASSIGN_OR_RETURN(options.password,
                     ReadSecret("--cluster-secret-file", flags.cluster_secret_file));
  }
  return options;
}

// Null: contents are put into PostgreSQL.
absl::StatusOr<std::unique_ptr<objects::ObjectStore>> MakeObjectStore(const Flags& flags) {
  const objects::Location& location = flags.cluster_content;
  switch (location.kind) {
    case objects::Location::Kind::kPostgres:
      break;
    case objects::Location::Kind::kFolder:
      return std::make_unique<objects::FolderStore>(location.folder);
    case objects::Location::Kind::kS3: {
      const std::string& path = flags.cluster_content_credentials_file;
      RETURN_IF_ERROR(ReadS3Credentials(path).status());
      return std::make_unique<objects::S3Store>(
          objects::S3Options{.location = location,
                             .ca_file = flags.cluster_content_ca_file,
                             .credentials = [path] { return ReadS3Credentials(path); },
                             .now = absl::Now,
                             .sleep = absl::SleepFor});
    }
  }
  return nullptr;
}

absl::Status OpenContent(const DaemonContext& context, pg::Content& content) {
  const absl::Status opened = AwaitStore(context.log, [&] { return content.OpenObjects(); });
  if (opened.ok()) return opened;
  const absl::string_view fix =
      absl::IsPermissionDenied(opened)
          ? "; the credentials must allow s3:GetObject, PutObject, DeleteObject and ListBucket"
          : "";
  return absl::Status(opened.code(), absl::StrCat("--cluster-content: ", opened.message(), fix));
}

}  // namespace

absl::Status MigrateCluster(const Flags& flags) {
  ASSIGN_OR_RETURN(const pg::ConnectionOptions options, OptionsOf(flags));
  if (options.is_pooled) {
    return absl::InvalidArgumentError(
        "--migrate takes a lock that a session holds: give it the URL of PostgreSQL itself, "
        "without "
        "--cluster-pooler");
  }
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
    if (options.is_pooled) RETURN_IF_ERROR(pg::CheckRole(*connection));
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
  ASSIGN_OR_RETURN(std::unique_ptr<objects::ObjectStore> store, MakeObjectStore(flags));
  auto content = std::make_unique<pg::Content>(sessions.get(), store.get());
  RETURN_IF_ERROR(OpenContent(context, *content));
  const pg::NodeOptions node_options{.name = name,
                                     .build_id = std::string(CompilerBuildId()),
                                     .address = flags.listen,
                                     .slots = flags.workers,
                                     .ttl = absl::Seconds(flags.node_ttl_seconds),
                                     .beat_period = absl::Seconds(flags.node_ttl_seconds) / 5,
                                     .feature_wait = absl::Hours(flags.feature_wait_hours),
                                     .steady_now = base::SteadyNow};
  std::unique_ptr<pg::Node> node;
  RETURN_IF_ERROR(AwaitStore(context.log, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(node, pg::Node::Join(sessions.get(), node_options));
    return absl::OkStatus();
  }));
  context.log->Info("joined the cluster", {{"node", name},
                                           {"incarnation", absl::StrCat(node->incarnation())},
                                           {"feature_level", absl::StrCat(node->feature_level())},
                                           {"known_level", absl::StrCat(base::kFeatureLevel)}});
  return std::make_unique<ClusterHome>(context, stores,
                                       ClusterHome::Parts{.sessions = std::move(sessions),
                                                          .node = std::move(node),
                                                          .objects = std::move(store),
                                                          .content = std::move(content)});
}

}  // namespace npuc::daemon
