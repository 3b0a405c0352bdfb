// Builds the daemon stage by stage; each stage exists only whole, and stands on those before it:
// what every part uses, workers, stores, the home of jobs, the job system, the fronts, what keeps
// it going.
#include "server/daemon.h"

#include <signal.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/mutex.h"
#include "compiler_core/base/status.h"
#include "compiler_core/pipeline/compile.h"
#include "server/api/admin.h"
#include "server/auth/sessions.h"
#include "server/backup/snapshot.h"
#include "server/base/features.h"
#include "server/base/kept_text.h"
#include "server/base/steady_clock.h"
#include "server/daemon_context.h"
#include "server/data_tasks.h"
#include "server/executor/canary.h"
#include "server/executor/dispatcher.h"
#include "server/executor/lifecycle.h"
#include "server/executor/operator_switch.h"
#include "server/fronts.h"
#include "server/http/health_endpoint.h"
#include "server/http_client/http_client.h"
#include "server/http_client/url.h"
#include "server/job_home.h"
#include "server/job_system.h"
#include "server/log/audit_log.h"
#include "server/monitor.h"
#include "server/observe/process_stats.h"
#include "server/observe/prometheus_metrics.h"
#include "server/observe/readiness.h"
#include "server/observe/readiness_log.h"
#include "server/observe/reminder.h"
#include "server/oidc/flow.h"
#include "server/otlp/collector.h"
#include "server/otlp/otlp_exporter.h"
#include "server/rpc/certificate_end.h"
#include "server/startup.h"
#include "server/stop_signal.h"
#include "server/stores.h"
#include "server/systemd.h"
#include "server/worker_fleet.h"

namespace npuc::daemon {
namespace {

// Shares of the time that the daemon has to stop, kept for handing jobs back and for telling
// watchers; the rest is for jobs to end.
constexpr double kHandBackShare = 0.3;
constexpr double kGoodbyeShare = 0.1;
// The timer of deadlines comes round five times a second.
constexpr absl::Duration kDispatcherPatience = absl::Seconds(30);
// To send the spans that wait.
constexpr double kTracesShare = 0.04;
// How long a slot waits for a warm parent that is being started, before it looks at other things.
constexpr absl::Duration kWorkerPatience = absl::Milliseconds(200);
constexpr absl::Duration kGoodbyeLook = absl::Milliseconds(5);
// The tenants file is looked at, and idle uploads are ended, so often.
constexpr absl::Duration kHousekeepingPeriod = absl::Seconds(5);

class Daemon {
 public:
  Daemon(const Flags& flags, const DaemonHooks& hooks, const log::Logger* log)
      : context_{.flags = flags,
                 .hooks = hooks,
                 .data_dir = std::filesystem::absolute(flags.data_dir).string(),
                 .log = log,
                 .metrics = &metrics_,
                 .sampler = &sampler_,
                 .watchdog = &watchdog_,
                 .is_stopping = [this] { return stopping_.load(); }},
        readiness_log_(log, base::SteadyNow) {}

  // From nothing to where the monitor sees whether the daemon can compile; then it serves.
  absl::Status Start();

  // Takes the tenants file as it is now, or stays with the old one where it is no good.
  void Reload();

  // Takes what an operator decided at another node, and ends what was set for a time.
  void RefreshDecisions();

  // Ends uploads to which nothing was added for --upload-idle-seconds.
  void DropIdleUploads();

  // Writes down what tenants used.
  void SaveUsage();

  // Makes the snapshots that `npucd --backup` asks for.
  void ServeSnapshots();

  // Takes nothing new, lets what runs finish, gives the rest back to the queue. Calls are answered
  // to the end; afterwards the process must end by _Exit.
  void Drain();

 private:
  // The clock of what is kept: the cluster's, where there is one.
  absl::Time Now() const { return home_ != nullptr ? home_->Now() : absl::Now(); }
  absl::Status ReadTenants();
  absl::Status TakeDataDir();
  absl::Status StartHealth();
  absl::Status OpenStores();
  absl::Status StartTracing();
  absl::Status StartJobSystem();
  absl::Status StartAdmin();
  absl::Status StartSignIns();
  absl::Status OpenSwitches();
  void ApplySwitches();
  void FillAdmin();
  void Report(absl::string_view what, const absl::Status& status);
  api::ApiDependencies Dependencies();
  void StartDispatching();
  void StartMonitor();
  void SampleDaemon(observe::Metrics& metrics) const;
  void FollowReadiness();
  void NotifySystemd();
  absl::Status Announce();

  observe::PrometheusMetrics metrics_;
  observe::Sampler sampler_;
  observe::Watchdog watchdog_{base::SteadyNow};
  DaemonContext context_;  // without rules until ReadTenants
  SystemdNotifier systemd_ = SystemdNotifier::FromEnvironment();
  executor::Lifecycle lifecycle_;
  observe::ReadinessLog readiness_log_;
  observe::Readiness readiness_{[this](absl::string_view condition, const absl::Status& status) {
    const bool serving = lifecycle_.phase() == executor::Lifecycle::Phase::kServing && !stopping_;
    readiness_log_.OnChange(condition, status, serving);
  }};
  std::atomic<bool> stopping_ = false;
  Mutex follow_mutex_;  // one thread at a time acts on readiness
  bool was_ready_ NPUC_GUARDED_BY(follow_mutex_) = false;
  observe::Reminder certificate_ NPUC_GUARDED_BY(follow_mutex_);  // when to look at its end
  std::string tenants_error_;  // what was last logged of the file
  std::atomic<bool> tenants_ok_ = true;
  std::atomic<int64_t> tenants_read_ = absl::ToUnixSeconds(absl::Now());  // the one in force
  // Decisions of an operator; empty until StartAdmin opens the texts.
  auth::IssuedTokens tokens_{[this] { return Now(); }};
  auth::TemporaryLimits limits_{[this] { return Now(); }};
  // The stages, in their order.
  std::unique_ptr<auth::Authenticator> authenticator_;
  std::unique_ptr<auth::TenantRules> rules_;
  std::optional<auth::Sessions> sessions_;
  // Sign-ins by a provider; null: there is none.
  std::unique_ptr<http_client::Client> provider_client_;
  std::unique_ptr<oidc::Provider> provider_;
  std::unique_ptr<oidc::SignInFlow> sign_ins_;
  std::unique_ptr<WorkerFleet> fleet_;
  std::unique_ptr<Stores> stores_;
  std::unique_ptr<JobHome> home_;
  const base::Features features_{[this] { return home_->FeatureLevel(); }};
  std::unique_ptr<backup::SnapshotDesk> snapshots_;
  std::unique_ptr<http_client::Client> collector_;
  std::unique_ptr<otlp::OtlpExporter> exporter_;  // null: no traces
  std::unique_ptr<executor::UsageBook> usage_;
  std::unique_ptr<JobSystem> system_;
  std::unique_ptr<log::AuditLog> audit_;
  std::vector<std::unique_ptr<base::KeptText>> texts_;
  std::atomic<bool> paused_ = false;
  std::atomic<bool> cordoned_ = false;
  std::unique_ptr<executor::OperatorSwitch> dispatch_;  // of all nodes
  std::unique_ptr<executor::OperatorSwitch> cordon_;    // of this one
  api::AdminControls admin_;
  api::OpenConnections connections_;
  std::unique_ptr<api::OpenStreams> streams_;
  std::unique_ptr<Fronts> fronts_;
  // Null: none. Started before the workers, and destroyed before everything that a scrape asks.
  std::unique_ptr<http::HealthEndpoint> health_;
  std::unique_ptr<executor::Dispatcher> dispatcher_;
  std::unique_ptr<executor::Canary> canary_;
  std::unique_ptr<Monitor> monitor_;
};

absl::Status Daemon::Start() {
  RETURN_IF_ERROR(ReadTenants());
  RETURN_IF_ERROR(TakeDataDir());
  RETURN_IF_ERROR(ClearPortFile(context_.flags.port_file));
  readiness_.Set("recovery", absl::UnavailableError("the stores are opened and jobs recovered"));
  RETURN_IF_ERROR(StartHealth());
  RETURN_IF_ERROR(OpenStores());
  RETURN_IF_ERROR(StartTracing());
  RETURN_IF_ERROR(StartJobSystem());
  RETURN_IF_ERROR(StartAdmin());
  RETURN_IF_ERROR(StartSignIns());
  ASSIGN_OR_RETURN(fronts_, Fronts::Start(context_, Dependencies()));
  if (sign_ins_ != nullptr && sign_ins_->settings().page_url.empty()) {
    sign_ins_->SetPageUrl(PageUrl(context_.flags, fronts_->web->port()));
  }
  RETURN_IF_ERROR(system_->Recover());
  system_->index_loader.Start();
  StartDispatching();
  readiness_.Set("canary", absl::UnavailableError("no canary compile has succeeded yet"));
  readiness_.Set("recovery", absl::OkStatus());
  StartMonitor();
  // The process is up; whether it serves, health says.
  systemd_.Send("READY=1");
  return absl::OkStatus();
}

absl::Status Daemon::ReadTenants() {
  const Flags& flags = context_.flags;
  if (flags.tenants.empty()) {
    authenticator_ = auth::Authenticator::Everybody(flags.address_call_rate);
  } else {
    ASSIGN_OR_RETURN(authenticator_,
                     auth::Authenticator::FromFile(flags.tenants, [this] { return Now(); },
                                                   context_.log, flags.address_call_rate,
                                                   {.tokens = &tokens_, .limits = &limits_}));
  }
  rules_ = std::make_unique<auth::TenantRules>(
      authenticator_.get(),
      auth::TenantRulesOptions{.default_stored_bytes = static_cast<uint64_t>(flags.tenant_blob_mib)
                                                       << 20,
                               .shared_cache = flags.shared_cache},
      &limits_);
  context_.rules = rules_.get();
  return absl::OkStatus();
}

absl::Status Daemon::TakeDataDir() {
  bool is_new = false;
  RETURN_IF_ERROR(LockDataDir(context_.data_dir, &is_new));
  if (is_new) {
    context_.log->Info("new store: the data directory was empty",
                       {{"data_dir", context_.data_dir}});
  }
  return absl::OkStatus();
}

absl::Status Daemon::StartHealth() {
  if (context_.flags.http.empty()) return absl::OkStatus();
  sampler_.Add([this](observe::Metrics& metrics) { SampleDaemon(metrics); });
  metrics_.SetSampler([this](observe::Metrics& metrics) { sampler_.Sample(metrics); });
  const auto alive = [this] {
    const bool stuck = !watchdog_.Look().empty();
    return http::HttpPage{.status = stuck ? 503 : 200, .body = stuck ? "stuck\n" : "ok\n"};
  };
  const auto ready = [this] {
    return http::HttpPage{.status = readiness_.ready() ? 200 : 503,
                          .content_type = "application/json",
                          .body = readiness_.Json()};
  };
  const auto metrics = [this] {
    return http::HttpPage{.content_type = "text/plain; version=0.0.4", .body = metrics_.Text()};
  };
  ASSIGN_OR_RETURN(health_,
                   OfFlag("--http", http::HealthEndpoint::Start(context_.flags.http,
                                                                {{"/healthz", {alive}},
                                                                 {"/readyz", {ready}},
                                                                 {"/metrics", {metrics, true}}})));
  return absl::OkStatus();
}

// The workers first: a host that cannot run them says so before the stores are opened.
absl::Status Daemon::OpenStores() {
  ASSIGN_OR_RETURN(fleet_, WorkerFleet::Start(context_));
  ASSIGN_OR_RETURN(stores_, Stores::Open(context_));
  ASSIGN_OR_RETURN(home_, context_.flags.cluster.empty() ? OpenLocalHome(context_, *stores_)
                                                         : OpenClusterHome(context_, *stores_));
  snapshots_ = std::make_unique<backup::SnapshotDesk>(
      backup::OpenStores{home_->local_store(), stores_->blobs.get(), stores_->artifacts.get()},
      context_.data_dir);
  return snapshots_->Open();
}

absl::Status Daemon::StartTracing() {
  const Flags& flags = context_.flags;
  if (flags.otlp_endpoint.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::string url, otlp::TracesUrl(flags.otlp_endpoint));
  ASSIGN_OR_RETURN(http_client::Headers headers, ReadOtlpHeaders(flags.otlp_headers_file));
  if (!headers.empty() && !http_client::CheckConfidentialUrl(url).ok()) {
    context_.log->Warning("headers go to the collector unencrypted",
                          {{"to", url}, {"fix", "https://, if they are secrets"}});
  }
  collector_ = std::make_unique<http_client::CurlClient>(flags.otlp_ca_file);
  exporter_ = std::make_unique<otlp::OtlpExporter>(
      otlp::ExporterOptions{.url = std::move(url),
                            .headers = std::move(headers),
                            .resource = {.service_version = std::string(CompilerVersion()),
                                         .instance_id = home_->name()},
                            .sampling_ratio = flags.otlp_sampling_ratio,
                            .now = [this] { return home_->Now(); }},
      collector_.get(), &metrics_, context_.log);
  context_.tracer = exporter_.get();
  sampler_.Add([this](observe::Metrics& metrics) { exporter_->Sample(metrics); });
  return absl::OkStatus();
}

absl::Status Daemon::StartJobSystem() {
  ASSIGN_OR_RETURN(const std::optional<int64_t> epoch, SourceDateEpoch());
  ASSIGN_OR_RETURN(usage_, executor::UsageBook::Open(
                               home_->OpenUsage(), [this] { return Now(); }, &metrics_));
  system_ = std::make_unique<JobSystem>(context_, *home_, *fleet_, *stores_, usage_.get(), epoch);
  sampler_.Add([this](observe::Metrics& metrics) {
    system_->Sample(metrics);
    fleet_->Sample(metrics);
    stores_->Sample(metrics);
  });
  return system_->CleanWorkDir();
}

absl::Status Daemon::StartAdmin() {
  ASSIGN_OR_RETURN(
      audit_,
      log::AuditLog::Open({.file = {.dir = context_.data_dir + "/audit", .node = home_->name()},
                           .syslog_socket = context_.flags.audit_syslog,
                           .shared = home_->OpenAudit(),
                           .now = [this] { return Now(); }}));
  sampler_.Add([this](observe::Metrics& metrics) {
    metrics.Set(observe::Metric::kAuditWaiting, {}, static_cast<double>(audit_->waiting()));
    metrics.Set(observe::Metric::kAuditLost, {}, static_cast<double>(audit_->lost()));
  });
  RETURN_IF_ERROR(OpenSwitches());
  texts_.push_back(home_->OpenText("tokens"));
  RETURN_IF_ERROR(tokens_.Attach(texts_.back().get()));
  texts_.push_back(home_->OpenText("sessions"));
  sessions_.emplace(auth::Sessions::Options{.lifetime = absl::Hours(context_.flags.session_hours),
                                            .now = [this] { return Now(); },
                                            .features = &features_});
  RETURN_IF_ERROR(sessions_->Attach(texts_.back().get()));
  texts_.push_back(home_->OpenText("tenant_limits"));
  RETURN_IF_ERROR(limits_.Attach(texts_.back().get()));
  home_->RefreshPolicies();
  streams_ = std::make_unique<api::OpenStreams>(context_.tracer);
  sampler_.Add([this](observe::Metrics& metrics) {
    connections_.Sample(metrics);
    streams_->Sample(metrics);
  });
  FillAdmin();
  return absl::OkStatus();
}

absl::Status Daemon::StartSignIns() {
  const Flags& flags = context_.flags;
  if (flags.oidc.issuer.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(oidc::Settings settings, ReadOidcSettings(flags.oidc, flags.oidc_secret_file));
  texts_.push_back(home_->OpenText("sign_in_key"));
  if (!features_.Allows(base::Feature::kProviderSessions)) {
    context_.log->Warning(
        "people cannot sign in by the provider until the cluster's feature level has risen",
        {{"feature_level", absl::StrCat(features_.level())},
         {"fix", "upgrade all nodes; the level rises after --feature-wait-hours"}});
  }
  provider_client_ = std::make_unique<http_client::CurlClient>(settings.ca_file);
  const std::string page_url = settings.page_url;
  provider_ =
      std::make_unique<oidc::Provider>(oidc::Provider::Options{.settings = std::move(settings),
                                                               .now = [] { return absl::Now(); },
                                                               .steady_now = base::SteadyNow},
                                       provider_client_.get());
  sign_ins_ = std::make_unique<oidc::SignInFlow>(
      oidc::SignInFlow::Options{.page_url = page_url, .now = [this] { return Now(); }},
      provider_.get());
  return sign_ins_->Attach(texts_.back().get());
}

absl::Status Daemon::OpenSwitches() {
  texts_.push_back(home_->OpenText("dispatch_paused"));
  ASSIGN_OR_RETURN(dispatch_, executor::OperatorSwitch::Open("dispatch_paused", texts_.back().get(),
                                                             [this](bool on) {
                                                               paused_ = on;
                                                               ApplySwitches();
                                                             }));
  // A node's own, also in a cluster.
  texts_.push_back(std::make_unique<base::FileText>(context_.data_dir + "/cordoned"));
  ASSIGN_OR_RETURN(cordon_, executor::OperatorSwitch::Open(context_.data_dir + "/cordoned",
                                                           texts_.back().get(), [this](bool on) {
                                                             cordoned_ = on;
                                                             ApplySwitches();
                                                           }));
  const auto warn = [this](executor::OperatorSwitch& one, absl::string_view what,
                           absl::string_view fix) {
    const executor::OperatorSwitch::State state = one.Get();
    if (!state.on) return;
    context_.log->Warning(
        what, {{"since", absl::FormatTime(state.since)}, {"by", state.by}, {"fix", fix}});
  };
  warn(*dispatch_, "dispatch is paused: no job is started", "npuc-remote admin resume");
  warn(*cordon_, "this node is cordoned: it starts no job", "npuc-remote admin uncordon");
  return absl::OkStatus();
}

void Daemon::ApplySwitches() { home_->SetPaused(paused_ || cordoned_); }

void Daemon::FillAdmin() {
  admin_ = {.dispatch = dispatch_.get(),
            .cordon = cordon_.get(),
            .usage = usage_.get(),
            .tokens = &tokens_,
            .limits = &limits_,
            .inputs = home_->inputs(),
            .results = home_->results(),
            .now = [this] { return Now(); },
            .tenants = [this] { return system_->Tenants(*authenticator_); },
            .tenant = [this](const std::string& name) { return system_->FindTenant(name); },
            .refresh_policies = [this] { home_->RefreshPolicies(); },
            .drop_uploads =
                [this](const std::string& tenant, absl::Duration idle) {
                  return stores_->blobs->DropUploads(tenant, idle);
                }};
}

api::ApiDependencies Daemon::Dependencies() {
  const Flags& flags = context_.flags;
  return {
      .authenticator = authenticator_.get(),
      .sessions = &*sessions_,
      .sign_ins = sign_ins_.get(),
      .jobs = &system_->jobs,
      .index = &system_->index,
      .submission = &system_->submission,
      .inspections = &system_->inspections,
      .uploads = &system_->uploads,
      .downloads = &system_->downloads,
      .lifecycle = &lifecycle_,
      .log = context_.log,
      .readiness = &readiness_,
      .metrics = &metrics_,
      .tracer = context_.tracer,
      .audit = audit_.get(),
      .admin = &admin_,
      .connections = &connections_,
      .streams = streams_.get(),
      .watchdog = &watchdog_,
      .facts = {.version = std::string(CompilerVersion()),
                .compiler_build_id = std::string(CompilerBuildId()),
                .node = home_->name(),
                .workers = flags.workers,
                .max_blob_bytes = static_cast<int64_t>(cache::BlobStoreOptions{}.max_blob_bytes),
                .max_queued_jobs = flags.max_queued,
                .default_timeout = kDefaultTimeout}};
}

void Daemon::StartDispatching() {
  dispatcher_ = std::make_unique<executor::Dispatcher>(
      context_.flags.workers, &system_->jobs,
      [this](jobs::JobService::Claim claim) { system_->runner.Run(std::move(claim)); },
      context_.log, [this] { return fleet_->pool->AwaitReady(kWorkerPatience); },
      [this] { watchdog_.Beat("dispatcher", kDispatcherPatience); });
}

void Daemon::StartMonitor() {
  canary_ = std::make_unique<executor::Canary>(
      executor::Canary::Options{.owner = home_->name(),
                                .steady_now = base::SteadyNow,
                                .is_stopping = [this] { return stopping_.load(); }},
      &system_->submission, home_->inputs(), &system_->jobs, &metrics_);
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  const Flags& flags = context_.flags;
  monitor_ = std::make_unique<Monitor>(
      MonitorOptions{.watchdog = &watchdog_,
                     .readiness = &readiness_,
                     .metrics = &metrics_,
                     .log = context_.log,
                     .data_dir = context_.data_dir,
                     .disk_reserve_bytes = context_.DiskReserveBytes(),
                     .memory_limit_bytes = static_cast<uint64_t>(flags.memory_mib) * kMiB,
                     .worker_health = [this] { return fleet_->pool->Health(); },
                     .probe_stores =
                         [this] {
                           absl::Status probed = home_->Probe();
                           probed.Update(stores_->Probe());
                           return probed;
                         },
                     .run_canary = [this] { return canary_->Run(); },
                     .canary_period = absl::Seconds(flags.canary_seconds),
                     .on_memory = [this](bool over) { lifecycle_.SetOverMemory(over); },
                     .on_look =
                         [this] {
                           FollowReadiness();
                           NotifySystemd();
                         }});
}

void Daemon::SampleDaemon(observe::Metrics& metrics) const {
  metrics.Set(observe::Metric::kReady, {}, readiness_.ready() ? 1 : 0);
  for (const auto& [condition, status] : readiness_.Conditions()) {
    metrics.Set(observe::Metric::kCondition, {condition}, status.ok() ? 1 : 0);
  }
  metrics.Set(observe::Metric::kSlots, {}, context_.flags.workers);
  metrics.Set(observe::Metric::kResidentBytes, {}, static_cast<double>(ResidentBytes()));
  metrics.Set(observe::Metric::kBuildInfo, {CompilerVersion(), CompilerBuildId()}, 1);
  observe::SampleProcess(metrics);
  if (!context_.flags.tenants.empty()) {
    metrics.Set(observe::Metric::kTenantsFileOk, {}, tenants_ok_ ? 1 : 0);
    metrics.Set(observe::Metric::kTenantsFileLoaded, {}, static_cast<double>(tenants_read_));
  }
  if (context_.flags.tls_cert.empty()) return;
  const absl::StatusOr<absl::Time> end = rpc::CertificateEnd(context_.flags.tls_cert);
  metrics.Set(observe::Metric::kTlsCertificateOk, {}, end.ok() && *end > absl::Now() ? 1 : 0);
  if (!end.ok()) return;
  metrics.Set(observe::Metric::kTlsCertificateExpiry, {},
              static_cast<double>(absl::ToUnixSeconds(*end)));
}

// Serves from where it is ready for the first time; later, health alone follows.
void Daemon::FollowReadiness() {
  const MutexLock lock(follow_mutex_);
  const std::string& certificate = context_.flags.tls_cert;
  if (!certificate.empty() && certificate_.IsDue(base::SteadyNow())) {
    rpc::TellCertificateEnd(certificate, absl::Now(), *context_.log);
  }
  const bool ready = readiness_.ready();
  if (ready && lifecycle_.phase() == executor::Lifecycle::Phase::kStarting) {
    lifecycle_.Enter(executor::Lifecycle::Phase::kServing);
    fronts_->rpc->SetServing(true);
    if (const absl::Status status = Announce(); !status.ok()) {
      context_.log->Error("cannot say that it serves", {{"error", status.message()}});
    }
  } else if (lifecycle_.phase() == executor::Lifecycle::Phase::kServing && ready != was_ready_) {
    fronts_->rpc->SetServing(ready);
  }
  was_ready_ = ready;
  if (!stopping_) readiness_log_.Remind(readiness_.Reason());
}

// systemd ends and starts a daemon from which it does not hear (WatchdogSec=): one that hangs, or
// in which a part is stuck.
void Daemon::NotifySystemd() {
  if (!watchdog_.Look().empty()) return;
  const std::string reason = readiness_.Reason();
  systemd_.Send(absl::StrCat("WATCHDOG=1\nSTATUS=", reason.empty() ? "ready" : reason));
}

absl::Status Daemon::Announce() {
  const Flags& flags = context_.flags;
  const std::string grpc = AddressOf(flags.listen, fronts_->rpc->port());
  const std::string http = health_ == nullptr ? "" : AddressOf(flags.http, health_->port());
  const std::string web = fronts_->web == nullptr ? "" : AddressOf(flags.web, fronts_->web->port());
  context_.log->Info("serving", {{"grpc", grpc},
                                 {"http", http},
                                 {"web", web},
                                 {"workers", absl::StrCat(flags.workers)},
                                 {"version", CompilerVersion()},
                                 {"security", SecurityName(flags)}});
  if (flags.port_file.empty()) return absl::OkStatus();
  std::string ports = absl::StrCat("grpc=", grpc, "\n");
  if (!http.empty()) absl::StrAppend(&ports, "http=", http, "\n");
  if (!web.empty()) absl::StrAppend(&ports, "web=", web, "\n");
  return WritePortFile(flags.port_file, ports);
}

void Daemon::Reload() {
  const absl::StatusOr<bool> changed = authenticator_->Reload();
  const std::string error(changed.status().message());
  if (!changed.ok() && error != tenants_error_) {
    context_.log->Error("the tenants file is no good; the old one stays in force",
                        {{"error", error}});
  } else if (changed.ok() && *changed) {
    tenants_read_ = absl::ToUnixSeconds(absl::Now());
    home_->RefreshPolicies();
    context_.log->Info("the tenants file has changed",
                       {{"tenants", absl::StrCat(authenticator_->directory()->tenants().size())}});
  }
  tenants_ok_ = changed.ok();
  tenants_error_ = error;
}

void Daemon::Report(absl::string_view what, const absl::Status& status) {
  if (status.ok() || absl::IsUnavailable(status))
    return;  // readiness reports that the store is away
  context_.log->Error(what, {{"error", status.message()}});
}

void Daemon::RefreshDecisions() {
  const absl::StatusOr<bool> limits = limits_.Refresh();
  Report("limits of tenants that were set for a time cannot be read", limits.status());
  if (limits.ok() && *limits) {
    home_->RefreshPolicies();
    context_.log->Info("limits of tenants that were set for a time have changed or ended");
  }
  Report("tokens that were rotated cannot be read", tokens_.Refresh().status());
  Report("sessions of the page cannot be read", sessions_->Refresh());
  const absl::StatusOr<bool> paused = dispatch_->Refresh();
  Report("whether dispatch is paused cannot be read", paused.status());
  if (paused.ok() && *paused) {
    context_.log->Warning(dispatch_->Get().on ? "dispatch is paused" : "dispatch is resumed",
                          {{"identity", dispatch_->Get().by}, {"reason", dispatch_->Get().reason}});
  }
}

void Daemon::DropIdleUploads() {
  const size_t dropped =
      stores_->blobs->DropIdleUploads(absl::Seconds(context_.flags.upload_idle_seconds));
  if (dropped == 0) return;
  context_.log->Info("uploads ended to which nothing was added (--upload-idle-seconds)",
                     {{"uploads", absl::StrCat(dropped)}});
}

void Daemon::SaveUsage() { Report("what tenants used cannot be kept", usage_->Save()); }

void Daemon::ServeSnapshots() {
  for (const backup::SnapshotDesk::Answer& answer : snapshots_->Serve(absl::Now())) {
    if (answer.status.ok()) {
      context_.log->Info("a snapshot was made for a backup", {{"name", answer.name}});
    } else {
      context_.log->Error("a snapshot for a backup failed",
                          {{"name", answer.name}, {"error", answer.status.message()}});
    }
  }
}

void Daemon::Drain() {
  const absl::Duration all = absl::Seconds(context_.flags.stop_seconds);
  // Health first, so that nobody sends more work here.
  stopping_ = true;
  systemd_.Send("STOPPING=1");
  readiness_.Set("draining", absl::UnavailableError("the daemon is stopping"));
  fronts_->rpc->SetServing(false);
  {
    const MutexLock lock(follow_mutex_);
    fronts_->rpc->SetServing(false);
    lifecycle_.Enter(executor::Lifecycle::Phase::kDraining);
  }
  if (context_.hooks.pause) context_.hooks.pause("shutdown");
  home_->Drain();
  if (!dispatcher_->Stop(all * (1.0 - kHandBackShare - kGoodbyeShare - kTracesShare))) {
    context_.log->Warning("jobs still run; they go back to the queue");
    system_->runner.SetDraining();
    if (!dispatcher_->Stop(all * kHandBackShare)) {
      context_.log->Error("jobs could not be handed back in time; the next start finds them");
    }
  }
  fronts_->EndStreams();
  const absl::Time limit = absl::Now() + all * kGoodbyeShare;
  while (system_->jobs.hub().subscription_count() > 0 && absl::Now() < limit) {
    absl::SleepFor(kGoodbyeLook);
  }
  fleet_->pool->Shutdown();
  if (exporter_ != nullptr) exporter_->Flush(all * kTracesShare);
  audit_->Flush(log::AuditLog::kPatience);
  home_->Leave();
  SaveUsage();
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
    const std::string token = auth::NewToken();
    std::cout << "token (for the client's --token-file): " << token << "\n"
              << "token_sha256 (for the tenants file):   " << Sha256Hex(token) << "\n";
    return 0;
  }
  // The files that it makes hold models of tenants: its user's alone, whatever started it.
  umask(0077);
  if (!flags->serves()) return RunDataTask(*flags);
  const StopSignal stop;
  const log::Logger log(stderr, [] { return absl::Now(); });
  const rpc::GrpcLog grpc_log(&log);
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
    daemon.Reload();
    daemon.RefreshDecisions();
    daemon.DropIdleUploads();
    daemon.SaveUsage();
    daemon.ServeSnapshots();
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

}  // namespace npuc::daemon
