// Puts the parts together. Everything that decides lives in the folders below.
#include "server/daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cache/posix.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/mutex.h"
#include "compiler_core/base/status.h"
#include "compiler_core/config/config.h"
#include "compiler_core/pipeline/artifact_check.h"
#include "compiler_core/pipeline/compile.h"
#include "server/auth/authenticator.h"
#include "server/executor/adapters.h"
#include "server/executor/canary.h"
#include "server/executor/config_memo.h"
#include "server/executor/dispatcher.h"
#include "server/executor/job_runner.h"
#include "server/executor/lifecycle.h"
#include "server/executor/metered_worker.h"
#include "server/executor/submission.h"
#include "server/executor/transfers.h"
#include "server/flags.h"
#include "server/http/gateway.h"
#include "server/http/health_endpoint.h"
#include "server/jobs/job_service.h"
#include "server/jobs/observed_job_store.h"
#include "server/jobs/rocksdb_job_store.h"
#include "server/log/log.h"
#include "server/monitor.h"
#include "server/observe/prometheus_metrics.h"
#include "server/observe/readiness.h"
#include "server/observe/readiness_log.h"
#include "server/observe/reminder.h"
#include "server/observe/watchdog.h"
#include "server/rpc/certificate_end.h"
#include "server/rpc/rpc_server.h"
#include "server/scheduler/fair_queue.h"
#include "server/startup.h"
#include "server/systemd.h"
#include "server/worker/worker_cgroup.h"

namespace npuc {
namespace {

// For all workers together, beside what each may use: the warm parent; a run's keeper and worker,
// and one of each while an old one ends.
constexpr uint64_t kWarmParentBytes = uint64_t{512} << 20;
constexpr uint32_t kProcessesOfARun = 4;
constexpr uint32_t kProcessesBesideRuns = 32;
// Of open tables, logs, uploads, workers and HTTP.
constexpr rlim_t kDescriptorsBeside = 4096;

constexpr size_t kConfigMemoBytes = size_t{8} << 20;
constexpr absl::Duration kDefaultTimeout = absl::Hours(1);
// Of the time that the daemon has to stop, what is kept for handing jobs back and for telling
// watchers; the rest is for jobs to end.
constexpr double kHandBackShare = 0.3;
constexpr double kGoodbyeShare = 0.1;
// The timer of deadlines comes round five times a second.
constexpr absl::Duration kDispatcherPatience = absl::Seconds(30);
// How long a slot waits for a warm parent that is being started, before it looks at other things.
constexpr absl::Duration kWorkerPatience = absl::Milliseconds(200);
constexpr absl::Duration kGoodbyeLook = absl::Milliseconds(5);
// The tenants file is looked at, and idle uploads are ended, so often.
constexpr absl::Duration kHousekeepingPeriod = absl::Seconds(5);
// One place in so many of --max-queued is kept for tenants with nothing queued.
constexpr int kKeptForIdle = 10;
// A share of --blob-mib: above it, uploads that nobody needs go, the least recently used first.
constexpr double kSoftShare = 0.8;

// The write end of the pipe on which main waits; set before the handlers are.
int g_signal_fd = -1;

void OnSignal(int signal) {
  const char byte = static_cast<char>(signal);
  [[maybe_unused]] const ssize_t written = write(g_signal_fd, &byte, 1);
}

// SIGTERM, SIGINT and SIGHUP as bytes of a pipe. A handler and no mask, since children inherit
// masks.
class StopSignal {
 public:
  StopSignal() {
    NPUC_CHECK(pipe2(fds_, O_CLOEXEC) == 0);
    g_signal_fd = fds_[1];
    struct sigaction action = {};
    action.sa_handler = OnSignal;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    sigaction(SIGTERM, &action, nullptr);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGHUP, &action, nullptr);
    signal(SIGPIPE, SIG_IGN);
  }
  // The next one, or 0 where none comes for so long.
  int Wait(absl::Duration patience) const {
    pollfd ready{fds_[0], POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(patience))) != 1) return 0;
    char byte = 0;
    return read(fds_[0], &byte, 1) == 1 ? byte : 0;
  }

 private:
  int fds_[2] = {-1, -1};
};

absl::Time SteadyNow() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

// The daemon's parts, in the order in which each needs those before it.
class Daemon {
 public:
  // Workers and stores are given absolute paths, which a relative --data-dir would not make.
  Daemon(const Flags& flags, DaemonHooks hooks, const Logger* log)
      : flags_(flags),
        hooks_(std::move(hooks)),
        data_dir_(std::filesystem::absolute(flags.data_dir).string()),
        log_(log) {}

  // From nothing to where the monitor sees whether the daemon can compile; then it serves.
  absl::Status Start() {
    RETURN_IF_ERROR(ReadTenants());
    RETURN_IF_ERROR(TakeDataDir());
    RETURN_IF_ERROR(ClearPortFile(flags_.port_file));
    readiness_.Set("recovery", absl::UnavailableError("the stores are opened and jobs recovered"));
    RETURN_IF_ERROR(StartHttp());
    RETURN_IF_ERROR(OpenStores());
    RETURN_IF_ERROR(StartRpc());
    RETURN_IF_ERROR(Recover());
    dispatcher_ = std::make_unique<Dispatcher>(
        flags_.workers, jobs_.get(),
        [this](JobService::Claim claim) { runner_->Run(std::move(claim)); }, log_,
        [this] { return pool_->AwaitReady(kWorkerPatience); },
        [this] { watchdog_.Beat("dispatcher", kDispatcherPatience); });
    readiness_.Set("canary", absl::UnavailableError("no canary compile has succeeded yet"));
    readiness_.Set("recovery", absl::OkStatus());
    StartMonitor();
    // The process is up; whether it serves, health says.
    systemd_.Send("READY=1");
    return absl::OkStatus();
  }

  // Takes the tenants file as it is now, or stays with the old one where it is no good.
  void ReloadTenants();

  // Ends uploads to which nothing was added for --upload-idle-seconds.
  void DropIdleUploads();

  // Takes nothing new, lets what runs finish, gives the rest back to the queue. Calls are answered
  // to the end; afterwards the process must end by _Exit.
  void Drain();

 private:
  absl::Status ReadTenants();
  absl::Status TakeDataDir();
  TenantPolicy PolicyOf(absl::string_view tenant) const;
  TenantQuota QuotaOf(absl::string_view tenant) const;
  std::string ResultScopeOf(absl::string_view tenant) const;
  absl::Status SetUpCgroup();
  BlobStoreOptions BlobOptions() const;
  absl::Status OpenStores();
  void MakeJobs(const std::string& work_dir, std::optional<int64_t> epoch);
  absl::Status StartHttp();
  void TellSandbox() const;
  ApiDependencies Dependencies();
  void RaiseDescriptorLimit();
  absl::Status StartRpc();
  absl::Status Recover();
  void StartMonitor();
  void FollowReadiness();
  void TellSystemd();
  void Sample(Metrics& metrics);
  void OnJobEnded(const Job& job);
  absl::Status Announce();
  const char* SecurityName() const;
  uint64_t DiskReserveBytes() const { return static_cast<uint64_t>(flags_.disk_reserve_mib) << 20; }

  const Flags& flags_;
  const DaemonHooks hooks_;
  const std::string data_dir_;
  const Logger* const log_;
  SystemdNotifier systemd_ = SystemdNotifier::FromEnvironment();
  Lifecycle lifecycle_;
  PrometheusMetrics metrics_;
  Watchdog watchdog_{SteadyNow};
  ReadinessLog readiness_log_{log_, SteadyNow};
  Readiness readiness_{[this](absl::string_view condition, const absl::Status& status) {
    const bool serving = lifecycle_.phase() == Lifecycle::Phase::kServing && !stopping_;
    readiness_log_.OnChange(condition, status, serving);
  }};
  std::atomic<bool> stopping_ = false;
  Mutex follow_mutex_;  // one thread at a time acts on readiness
  bool told_ready_ NPUC_GUARDED_BY(follow_mutex_) = false;
  Reminder certificate_ NPUC_GUARDED_BY(follow_mutex_);  // when to look at its end
  std::unique_ptr<Authenticator> authenticator_;
  std::string tenants_error_;  // what was last said of the file
  std::mt19937_64 random_{std::random_device{}()};
  std::unique_ptr<BlobStore> blobs_;
  std::unique_ptr<ArtifactCache> artifacts_;
  std::unique_ptr<RocksDbJobStore> store_;
  std::unique_ptr<ObservedJobStore> observed_store_;
  std::unique_ptr<WorkerCgroup> cgroup_;  // null: none
  std::unique_ptr<WorkerPool> pool_;
  std::unique_ptr<InputStore> inputs_;
  std::unique_ptr<ResultCache> results_;
  std::unique_ptr<WorkerRunner> bare_workers_;
  std::unique_ptr<WorkerRunner> workers_;
  std::unique_ptr<FairQueue> queue_;
  std::unique_ptr<JobService> jobs_;
  InputHolds holds_;
  ConfigMemo configs_{ParseConfig, kConfigMemoBytes};
  std::unique_ptr<FailureBundles> bundles_;
  std::unique_ptr<JobRunner> runner_;
  std::unique_ptr<Submission> submission_;
  std::unique_ptr<Uploads> uploads_;
  std::unique_ptr<Downloads> downloads_;
  std::unique_ptr<RpcServer> rpc_;
  std::unique_ptr<Gateway> web_;
  std::unique_ptr<HealthEndpoint> http_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::unique_ptr<Canary> canary_;
  std::unique_ptr<Monitor> monitor_;
};

void Daemon::Drain() {
  const absl::Duration all = absl::Seconds(flags_.stop_seconds);
  // Health first, so that nobody sends more work here.
  stopping_ = true;
  systemd_.Send("STOPPING=1");
  readiness_.Set("draining", absl::UnavailableError("the daemon is stopping"));
  rpc_->SetServing(false);
  {
    const MutexLock lock(follow_mutex_);
    rpc_->SetServing(false);
    lifecycle_.Enter(Lifecycle::Phase::kDraining);
  }
  if (hooks_.pause) hooks_.pause("shutdown");
  if (!dispatcher_->Stop(all * (1.0 - kHandBackShare - kGoodbyeShare))) {
    log_->Warning("jobs still run; they go back to the queue");
    runner_->SetDraining();
    if (!dispatcher_->Stop(all * kHandBackShare)) {
      log_->Error("jobs could not be handed back in time; the next start finds them");
    }
  }
  rpc_->EndStreams();
  if (web_ != nullptr) web_->EndStreams();
  const absl::Time limit = absl::Now() + all * kGoodbyeShare;
  while (jobs_->hub().subscription_count() > 0 && absl::Now() < limit) {
    absl::SleepFor(kGoodbyeLook);
  }
  pool_->Shutdown();
}

absl::Status Daemon::ReadTenants() {
  if (flags_.tenants.empty()) {
    authenticator_ = Authenticator::Everybody();
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(authenticator_, Authenticator::FromFile(
                                       flags_.tenants, [] { return absl::Now(); }, log_));
  return absl::OkStatus();
}

absl::Status Daemon::TakeDataDir() {
  bool is_new = false;
  RETURN_IF_ERROR(LockDataDir(data_dir_, &is_new));
  if (is_new) log_->Info("new store: the data directory was empty", {{"data_dir", data_dir_}});
  return absl::OkStatus();
}

TenantPolicy Daemon::PolicyOf(absl::string_view name) const {
  const auto directory = authenticator_->directory();
  const Tenant* tenant = directory->Find(name);
  if (tenant == nullptr) return {};
  return {.weight = static_cast<double>(tenant->weight),
          .max_queued = tenant->quota.queued_jobs.value_or(0),
          .max_running = tenant->quota.running_jobs.value_or(0)};
}

TenantQuota Daemon::QuotaOf(absl::string_view name) const {
  const auto directory = authenticator_->directory();
  const Tenant* tenant = directory->Find(name);
  return tenant == nullptr ? TenantQuota{} : tenant->quota;
}

std::string Daemon::ResultScopeOf(absl::string_view name) const {
  const auto directory = authenticator_->directory();
  const Tenant* tenant = directory->Find(name);
  const bool shares = flags_.shared_cache && tenant != nullptr && tenant->shared_cache;
  return shares ? kSharedScope : std::string(name);
}

void Daemon::ReloadTenants() {
  const absl::StatusOr<bool> changed = authenticator_->Reload();
  const std::string error(changed.status().message());
  if (!changed.ok() && error != tenants_error_) {
    log_->Error("the tenants file is no good; the old one stays in force", {{"error", error}});
  } else if (changed.ok() && *changed) {
    queue_->RefreshPolicies();
    log_->Info("the tenants file has changed",
               {{"tenants", absl::StrCat(authenticator_->directory()->tenants().size())}});
  }
  tenants_error_ = error;
}

BlobStoreOptions Daemon::BlobOptions() const {
  const uint64_t limit = static_cast<uint64_t>(flags_.blob_mib) << 20;
  return {.root = data_dir_ + "/blobs",
          .soft_limit_bytes = static_cast<uint64_t>(kSoftShare * static_cast<double>(limit)),
          .hard_limit_bytes = limit,
          .disk_reserve_bytes = DiskReserveBytes(),
          .max_open_uploads_of_scope = static_cast<size_t>(flags_.tenant_uploads),
          .scope_limit =
              [this](absl::string_view tenant) {
                const int64_t share = static_cast<int64_t>(flags_.tenant_blob_mib) << 20;
                return static_cast<uint64_t>(QuotaOf(tenant).stored_bytes.value_or(share));
              },
          .own_scope = Canary::kTenant,
          .steady_now = SteadyNow};
}

void Daemon::DropIdleUploads() {
  const size_t dropped = blobs_->DropIdleUploads(absl::Seconds(flags_.upload_idle_seconds));
  if (dropped == 0) return;
  log_->Info("uploads ended to which nothing was added (--upload-idle-seconds)",
             {{"uploads", absl::StrCat(dropped)}});
}

// What all workers together may use, where the host can limit that.
absl::Status Daemon::SetUpCgroup() {
  if (flags_.cgroup == Flags::Cgroup::kOff) return absl::OkStatus();
  const WorkerLimits one;
  const auto workers = static_cast<uint64_t>(flags_.workers);
  const WorkerCgroup::Limits limits{
      // The output folder is memory, too; the rest is the warm parent.
      .memory_bytes = workers * (one.memory_bytes + one.output_bytes) + kWarmParentBytes,
      .processes = static_cast<uint32_t>(flags_.workers + flags_.spares) * kProcessesOfARun +
                   kProcessesBesideRuns};
  auto made = WorkerCgroup::Make(limits, {});
  if (!made.ok() && flags_.cgroup == Flags::Cgroup::kRequire) {
    return absl::FailedPreconditionError(
        absl::StrCat("--cgroup=require: ", made.status().message()));
  }
  if (!made.ok()) {
    log_->Warning("no cgroup around the workers",
                  {{"why", made.status().message()},
                   {"lost", "no limit on what all workers use together; each has its own"},
                   {"flag", "--cgroup=off if this is meant to be so"}});
    return absl::OkStatus();
  }
  cgroup_ = *std::move(made);
  log_->Info("a cgroup is around the workers", {{"folder", cgroup_->folder()},
                                                {"memory_bytes", absl::StrCat(limits.memory_bytes)},
                                                {"processes", absl::StrCat(limits.processes)}});
  return absl::OkStatus();
}

absl::Status Daemon::OpenStores() {
  const std::string& dir = data_dir_;
  const std::string work_dir = dir + "/work";
  std::error_code error;
  std::filesystem::create_directories(work_dir, error);
  // The warm parent first, so that it starts while the stores open.
  WorkerPoolOptions pool_options;
  pool_options.program = BesideThisProgram("npuc-worker");
  pool_options.build_id = std::string(CompilerBuildId());
  pool_options.sandbox = *flags_.sandbox;
  pool_options.spares = static_cast<uint32_t>(flags_.spares);
  RETURN_IF_ERROR(SetUpCgroup());
  pool_options.adopt = [this](pid_t parent) {
    if (const absl::Status status = GiveWay(parent, flags_.work_nice); !status.ok()) {
      log_->Warning("compiles do not give way to what answers clients",
                    {{"error", status.message()}});
    }
    return cgroup_ ? cgroup_->Add(parent) : absl::OkStatus();
  };
  pool_options.on_parent_lost = [this](absl::string_view how) {
    log_->Warning("the workers' warm parent was lost; another one is started", {{"how", how}});
  };
  ASSIGN_OR_RETURN(pool_, WorkerPool::Start(pool_options));
  TellSandbox();
  ASSIGN_OR_RETURN(blobs_, BlobStore::Open(BlobOptions()));
  ArtifactCacheOptions cache_options{.path = dir + "/artifacts"};
  cache_options.scope_limit = [this](absl::string_view scope) {
    // The shared scope is nobody's, and has no quota.
    const std::optional<int64_t> limit = QuotaOf(scope).result_bytes;
    return limit.has_value() ? static_cast<uint64_t>(*limit) : std::numeric_limits<uint64_t>::max();
  };
  auto artifacts = ArtifactCache::Open(std::move(cache_options));
  RETURN_IF_ERROR(WithAdvice(artifacts.status(), "delete it: jobs compile again"));
  artifacts_ = *std::move(artifacts);
  auto store = RocksDbJobStore::Open(dir + "/jobs");
  RETURN_IF_ERROR(WithAdvice(store.status(),
                             "put the data directory's backup in its place, or "
                             "delete it, and its jobs with it, to begin anew"));
  store_ = *std::move(store);
  inputs_ = AdaptBlobStore(blobs_.get());
  results_ = AdaptArtifactCache(artifacts_.get());
  bare_workers_ = AdaptWorkerPool(pool_.get());
  workers_ = MeterWorkers(bare_workers_.get(), &metrics_, SteadyNow);
  observed_store_ =
      std::make_unique<ObservedJobStore>(store_.get(), &metrics_, &watchdog_, SteadyNow);
  queue_ = std::make_unique<FairQueue>(
      FairQueueOptions{.max_queued = flags_.max_queued,
                       .kept_for_idle = flags_.max_queued / kKeptForIdle,
                       .slots = flags_.workers,
                       .policy = [this](absl::string_view tenant) { return PolicyOf(tenant); }});
  ASSIGN_OR_RETURN(const std::optional<int64_t> epoch, SourceDateEpoch());
  MakeJobs(work_dir, epoch);
  return runner_->CleanWorkDir();
}

void Daemon::MakeJobs(const std::string& work_dir, std::optional<int64_t> epoch) {
  const std::string build_id(CompilerBuildId());
  jobs_ = std::make_unique<JobService>(JobServiceOptions{.now = [] { return absl::Now(); },
                                                         .steady_now = SteadyNow,
                                                         .random = [this] { return random_(); },
                                                         .retry = {},
                                                         .pause = hooks_.pause},
                                       observed_store_.get(), queue_.get());
  const ResultScope result_scope = [this](absl::string_view name) { return ResultScopeOf(name); };
  const ConfigParser parse_config = [this](absl::string_view text, absl::string_view name,
                                           Diagnostics& diagnostics) {
    return configs_.Parse(text, name, diagnostics);
  };
  bundles_ =
      std::make_unique<FailureBundles>(FailureBundles::Options{.dir = data_dir_ + "/bundles"});
  runner_ = std::make_unique<JobRunner>(
      JobRunnerOptions{.parse_config = parse_config,
                       .compiler_build_id = build_id,
                       .work_dir = work_dir,
                       .limits = {},
                       .now = [] { return absl::Now(); },
                       .model_info_time_seconds = epoch,
                       .watchdog = &watchdog_,
                       .pause = hooks_.pause,
                       .result_scope = result_scope,
                       .check_artifact = CheckArtifact,
                       .begin_helper = [by = flags_.work_nice] { GiveWay(0, by).IgnoreError(); },
                       .bundles = bundles_.get()},
      jobs_.get(), inputs_.get(), results_.get(), workers_.get(), log_);
  jobs_->SetEndListener([this](const Job& job) { OnJobEnded(job); });
  jobs_->SetAbandonListener([this](const Lease& lease) { runner_->Abandon(lease); });
  submission_ = std::make_unique<Submission>(
      SubmissionOptions{
          .parse_config = parse_config,
          .compiler_build_id = build_id,
          .default_timeout = kDefaultTimeout,
          .max_job_bytes = [this](absl::string_view name) { return QuotaOf(name).job_bytes; },
          .result_scope = result_scope},
      jobs_.get(), inputs_.get(), results_.get(), &holds_);
  uploads_ = std::make_unique<Uploads>(
      inputs_.get(), UploadsOptions{.quota =
                                        [this](absl::string_view name) {
                                          const TenantQuota quota = QuotaOf(name);
                                          return UploadQuota{quota.job_bytes, quota.upload_rate};
                                        },
                                    .steady_now = SteadyNow});
  downloads_ = std::make_unique<Downloads>(results_.get(),
                                           [this](const Job& job) { return runner_->Remake(job); });
}

void Daemon::OnJobEnded(const Job& job) {
  holds_.Remove(job.id);
  log_->Info("job ended", {{"job", job.id},
                           {"trace", job.spec.trace_id},
                           {"tenant", job.tenant},
                           {"state", JobStateName(job.state)},
                           {"failure", FailureKindName(job.failure_kind)},
                           {"reason", job.reason}});
  metrics_.Add(Metric::kJobsEnded,
               {job.tenant, JobStateName(job.state), FailureKindName(job.failure_kind)}, 1);
  metrics_.Observe(Metric::kJobSeconds, {job.tenant},
                   absl::ToDoubleSeconds(job.end_time - job.create_time));
  if (job.start_time == absl::InfinitePast()) return;
  metrics_.Observe(Metric::kJobWaitSeconds, {job.tenant},
                   absl::ToDoubleSeconds(job.start_time - job.create_time));
}

// What is looked up at each scrape.
void Daemon::Sample(Metrics& metrics) {
  const auto set = [&](Metric metric, auto value) {
    metrics.Set(metric, {}, static_cast<double>(value));
  };
  set(Metric::kReady, readiness_.ready() ? 1 : 0);
  for (const auto& [condition, status] : readiness_.Conditions()) {
    metrics.Set(Metric::kCondition, {condition}, status.ok() ? 1 : 0);
  }
  set(Metric::kSlots, flags_.workers);
  set(Metric::kResidentBytes, ResidentBytes());
  if (!flags_.tls_cert.empty()) {
    const absl::StatusOr<absl::Time> end = CertificateEnd(flags_.tls_cert);
    if (end.ok()) set(Metric::kTlsCertificateExpiry, absl::ToUnixSeconds(*end));
  }
  if (lifecycle_.phase() == Lifecycle::Phase::kStarting) return;  // the rest is being made
  for (const auto& [tenant, counts] : queue_->Counts()) {
    metrics.Set(Metric::kJobs, {tenant, "queued"}, static_cast<double>(counts.queued));
    metrics.Set(Metric::kJobs, {tenant, "running"}, static_cast<double>(counts.running));
  }
  const WorkerPool::Stats pool = pool_->GetStats();
  set(Metric::kSlotsBusy, pool.running);
  set(Metric::kWorkerRestarts, pool.parent_restarts);
  const ArtifactCache::Stats cache = artifacts_->GetStats();
  set(Metric::kCacheHits, cache.hits);
  set(Metric::kCacheMisses, cache.misses);
  set(Metric::kCacheDamaged, cache.damaged);
  set(Metric::kCacheEvicted, cache.evicted);
  set(Metric::kCacheBytes, cache.bytes);
  const BlobStore::Stats blobs = blobs_->GetStats();
  set(Metric::kBlobBytes, blobs.blob_bytes);
  set(Metric::kBlobsDamaged, blobs.damaged_blobs);
  set(Metric::kUploadsOpen, blobs.open_uploads);
  set(Metric::kUploadBytes, blobs.upload_bytes);
  set(Metric::kWatchers, jobs_->hub().subscription_count());
}

absl::Status Daemon::StartHttp() {
  if (flags_.http.empty()) return absl::OkStatus();
  metrics_.SetSampler([this](Metrics& metrics) { Sample(metrics); });
  const auto alive = [this] {
    const bool stuck = !watchdog_.Look().empty();
    return HttpPage{.status = stuck ? 503 : 200, .body = stuck ? "stuck\n" : "ok\n"};
  };
  const auto ready = [this] {
    return HttpPage{.status = readiness_.ready() ? 200 : 503,
                    .content_type = "application/json",
                    .body = readiness_.Json()};
  };
  const auto metrics = [this] {
    return HttpPage{.content_type = "text/plain; version=0.0.4", .body = metrics_.Text()};
  };
  ASSIGN_OR_RETURN(
      http_, OfFlag("--http", HealthEndpoint::Start(flags_.http, {{"/healthz", {alive}},
                                                                  {"/readyz", {ready}},
                                                                  {"/metrics", {metrics, true}}})));
  return absl::OkStatus();
}

void Daemon::TellSandbox() const {
  const SandboxReport& report = pool_->sandbox();
  log_->Info("workers are shut in", {{"by", report.NamesInForce()}});
  for (const SandboxReport::Missing& missing : report.missing) {
    const MechanismInfo& info = InfoOf(missing.mechanism);
    log_->Write(info.required ? LogLevel::kError : LogLevel::kWarning,
                "a wall around the workers is missing",
                {{"mechanism", info.name}, {"why", missing.why}, {"lost", info.lost}});
  }
}

ApiDependencies Daemon::Dependencies() {
  return {.authenticator = authenticator_.get(),
          .jobs = jobs_.get(),
          .submission = submission_.get(),
          .uploads = uploads_.get(),
          .downloads = downloads_.get(),
          .lifecycle = &lifecycle_,
          .log = log_,
          .readiness = &readiness_,
          .metrics = &metrics_,
          .watchdog = &watchdog_,
          .facts = {.version = std::string(CompilerVersion()),
                    .compiler_build_id = std::string(CompilerBuildId()),
                    .workers = flags_.workers,
                    .max_blob_bytes = static_cast<int64_t>(BlobStoreOptions{}.max_blob_bytes),
                    .max_queued_jobs = flags_.max_queued,
                    .default_timeout = kDefaultTimeout}};
}

// Two descriptors a connection, and those of the stores, of uploads, of workers and of HTTP. The
// soft limit is often 1,024, for programs that use select().
void Daemon::RaiseDescriptorLimit() {
  const rlim_t wanted = 2 * static_cast<rlim_t>(flags_.max_connections) + kDescriptorsBeside;
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur == wanted) return;
  log_->Warning("too few descriptors for all connections",
                {{"limit", absl::StrCat(limit.rlim_cur)},
                 {"wanted", absl::StrCat(wanted)},
                 {"lost", "connections wait for a descriptor before there are too many of them"},
                 {"fix", "LimitNOFILE= of systemd, ulimit -Hn; or a smaller --max-connections"}});
}

absl::Status Daemon::StartRpc() {
  RaiseDescriptorLimit();
  const TlsFiles tls = {
      .certificate = flags_.tls_cert, .key = flags_.tls_key, .client_ca = flags_.client_ca};
  ASSIGN_OR_RETURN(
      rpc_, OfFlag("--listen",
                   RpcServer::Start({.listen = flags_.listen,
                                     .tls = tls,
                                     .reflection = flags_.insecure,
                                     .max_connections = static_cast<size_t>(flags_.max_connections),
                                     .max_watch_streams = static_cast<size_t>(flags_.max_streams)},
                                    Dependencies())));
  if (flags_.web.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(web_, OfFlag("--web", Gateway::Start({.listen = flags_.web,
                                                         .tls = tls,
                                                         .dashboard_dir = DashboardFolder(),
                                                         .loopback_only = flags_.insecure},
                                                        Dependencies())));
  return absl::OkStatus();
}

absl::Status Daemon::Recover() {
  int64_t recovered = 0;
  RETURN_IF_ERROR(jobs_->Recover([&](const LiveJob& job) {
    ++recovered;
    InputHolds::Holds holds;
    for (const std::string& sha256 : job.input_sha256s) {
      auto held = inputs_->Acquire(job.tenant, sha256);
      if (held.ok()) holds.push_back(std::move(held->hold));
    }
    holds_.Add(job.id, std::move(holds));
  }));
  log_->Info("recovered", {{"jobs", absl::StrCat(recovered)}});
  return absl::OkStatus();
}

void Daemon::StartMonitor() {
  canary_ = std::make_unique<Canary>(
      Canary::Options{.steady_now = SteadyNow, .is_stopping = [this] { return stopping_.load(); }},
      submission_.get(), inputs_.get(), jobs_.get(), &metrics_);
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  monitor_ = std::make_unique<Monitor>(
      MonitorOptions{.watchdog = &watchdog_,
                     .readiness = &readiness_,
                     .metrics = &metrics_,
                     .log = log_,
                     .data_dir = data_dir_,
                     .disk_reserve_bytes = DiskReserveBytes(),
                     .memory_limit_bytes = static_cast<uint64_t>(flags_.memory_mib) * kMiB,
                     .worker_health = [this] { return pool_->Health(); },
                     .probe_stores =
                         [this] {
                           absl::Status probed = store_->Probe();
                           probed.Update(artifacts_->Probe());
                           return probed;
                         },
                     .run_canary = [this] { return canary_->Run(); },
                     .canary_period = absl::Seconds(flags_.canary_seconds),
                     .on_memory = [this](bool over) { lifecycle_.SetOverMemory(over); },
                     .on_look =
                         [this] {
                           FollowReadiness();
                           TellSystemd();
                         }});
}

// Serves from where it is ready for the first time; later, health alone follows.
void Daemon::FollowReadiness() {
  const MutexLock lock(follow_mutex_);
  if (!flags_.tls_cert.empty() && certificate_.IsDue(SteadyNow())) {
    TellCertificateEnd(flags_.tls_cert, absl::Now(), *log_);
  }
  const bool ready = readiness_.ready();
  if (ready && lifecycle_.phase() == Lifecycle::Phase::kStarting) {
    lifecycle_.Enter(Lifecycle::Phase::kServing);
    rpc_->SetServing(true);
    if (const absl::Status status = Announce(); !status.ok()) {
      log_->Error("cannot say that it serves", {{"error", status.message()}});
    }
  } else if (lifecycle_.phase() == Lifecycle::Phase::kServing && ready != told_ready_) {
    rpc_->SetServing(ready);
  }
  told_ready_ = ready;
  if (!stopping_) readiness_log_.Remind(readiness_.Reason());
}

// systemd ends and starts a daemon from which it does not hear (WatchdogSec=): one that hangs, or
// in which a part is stuck.
void Daemon::TellSystemd() {
  if (!watchdog_.Look().empty()) return;
  const std::string reason = readiness_.Reason();
  systemd_.Send(absl::StrCat("WATCHDOG=1\nSTATUS=", reason.empty() ? "ready" : reason));
}

const char* Daemon::SecurityName() const {
  if (!flags_.insecure) {
    return flags_.client_ca.empty() ? "TLS, tokens" : "TLS, tokens and client certificates";
  }
  return flags_.tenants.empty() ? "none (--insecure): loopback only"
                                : "tokens, no encryption (--insecure): loopback only";
}

absl::Status Daemon::Announce() {
  const std::string grpc =
      absl::StrCat(flags_.listen.substr(0, flags_.listen.rfind(':')), ":", rpc_->port());
  std::string ports = absl::StrCat("grpc=", grpc, "\n");
  std::string http;
  if (!flags_.http.empty()) {
    http = absl::StrCat(flags_.http.substr(0, flags_.http.rfind(':')), ":", http_->port());
    absl::StrAppend(&ports, "http=", http, "\n");
  }
  std::string web;
  if (web_ != nullptr) {
    web = absl::StrCat(flags_.web.substr(0, flags_.web.rfind(':')), ":", web_->port());
    absl::StrAppend(&ports, "web=", web, "\n");
  }
  log_->Info("serving", {{"grpc", grpc},
                         {"http", http},
                         {"web", web},
                         {"workers", absl::StrCat(flags_.workers)},
                         {"version", CompilerVersion()},
                         {"security", SecurityName()}});
  if (flags_.port_file.empty()) return absl::OkStatus();
  return WritePortFile(flags_.port_file, ports);
}

}  // namespace

int RunDaemon(int argc, const char* const* argv, const DaemonHooks& hooks) {
  const absl::StatusOr<Flags> flags = ParseFlags(argc, argv);
  if (!flags.ok()) {
    std::cerr << "npucd: " << flags.status().message() << "\nnpucd --help lists the options.\n";
    return 2;
  }
  if (flags->help) {
    std::cout << FlagsHelp();
    return 0;
  }
  if (flags->version) {
    std::cout << CompilerVersion() << "\n";
    return 0;
  }
  if (flags->new_token) {
    const std::string token = NewToken();
    std::cout << "token (for the client's --token-file): " << token << "\n"
              << "token_sha256 (for the tenants file):   " << Sha256Hex(token) << "\n";
    return 0;
  }
  // The files that it makes hold models of tenants: its user's alone, whatever started it.
  umask(0077);
  const StopSignal stop;
  const Logger log(stderr, [] { return absl::Now(); });
  const GrpcLog grpc_log(&log);
  log.Info("starting", {{"version", CompilerVersion()},
                        {"build", CompilerBuildId()},
                        {"data_dir", flags->data_dir}});
  Daemon daemon(*flags, hooks, &log);
  if (const absl::Status started = daemon.Start(); !started.ok()) {
    log.Error("cannot start", {{"error", started.message()}});
    return 1;
  }
  int signal = 0;
  while (signal != SIGTERM && signal != SIGINT) {
    signal = stop.Wait(kHousekeepingPeriod);
    daemon.ReloadTenants();
    daemon.DropIdleUploads();
  }
  log.Info("stopping", {{"signal", absl::StrCat("SIG", sigabbrev_np(signal))}});
  // Whatever is stuck, the process ends in time.
  std::thread([seconds = flags->stop_seconds, &log] {
    absl::SleepFor(absl::Seconds(seconds));
    log.Error("not stopped in time; the process ends at once");
    std::_Exit(1);
  }).detach();
  daemon.Drain();
  log.Info("stopped");
  // Not by taking the server down: gRPC answers calls that come in meanwhile with CANCELLED, which
  // tells nobody to try again. Where the process is gone, clients see UNAVAILABLE. Everything that
  // matters is synced.
  std::_Exit(0);
}

}  // namespace npuc
