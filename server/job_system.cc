#include "server/job_system.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cache/posix.h"
#include "compiler_core/base/status.h"
#include "compiler_core/config/config.h"
#include "compiler_core/pipeline/artifact_check.h"
#include "compiler_core/pipeline/compile.h"
#include "server/base/steady_clock.h"
#include "server/executor/canary.h"
#include "server/executor/job_trace.h"
#include "server/startup.h"

namespace npuc::daemon {
namespace {

constexpr size_t kConfigMemoBytes = size_t{8} << 20;
jobs::JobServiceOptions ServiceOptions(const DaemonContext& context, JobHome& home,
                                       std::mt19937_64& random) {
  return {.owner = home.name(),
          .now = [&home] { return home.Now(); },
          .steady_now = [&home] { return home.Steady(); },
          .random = [&random] { return random(); },
          .retry = {},
          .lease_ttl = kLeaseTtl,
          .pause = context.hooks.pause};
}

executor::ConfigParser ParserOf(executor::ConfigMemo& configs) {
  return [&configs](absl::string_view text, absl::string_view name, Diagnostics& diagnostics) {
    return configs.Parse(text, name, diagnostics);
  };
}

executor::ResultScope ScopeOf(const DaemonContext& context) {
  return [rules = context.rules](absl::string_view name) { return rules->ResultScopeOf(name); };
}

executor::JobRunnerOptions RunnerOptions(const DaemonContext& context,
                                         executor::ConfigMemo& configs,
                                         executor::FailureBundles& bundles,
                                         std::optional<int64_t> model_info_time_seconds) {
  return {.parse_config = ParserOf(configs),
          .compiler_build_id = std::string(CompilerBuildId()),
          .work_dir = context.data_dir + "/work",
          .limits = {},
          .now = [] { return absl::Now(); },
          .model_info_time_seconds = model_info_time_seconds,
          .watchdog = context.watchdog,
          .pause = context.hooks.pause,
          .result_scope = ScopeOf(context),
          .check_artifact = CheckArtifact,
          .begin_helper = [by = context.flags.work_nice] { cache::GiveWay(0, by).IgnoreError(); },
          .bundles = &bundles,
          .tracer = context.tracer};
}

executor::SubmissionOptions OptionsOfSubmission(const DaemonContext& context,
                                                executor::ConfigMemo& configs) {
  return {.parse_config = ParserOf(configs),
          .compiler_build_id = std::string(CompilerBuildId()),
          .default_timeout = kDefaultTimeout,
          .max_job_bytes = [rules = context.rules](
                               absl::string_view name) { return rules->QuotaOf(name).job_bytes; },
          .result_scope = ScopeOf(context),
          .tracer = context.tracer};
}

executor::UploadsOptions OptionsOfUploads(const DaemonContext& context) {
  return {.quota =
              [rules = context.rules](absl::string_view name) {
                const auth::TenantQuota quota = rules->QuotaOf(name);
                return executor::UploadQuota{quota.job_bytes, quota.upload_rate};
              },
          .steady_now = base::SteadyNow};
}

}  // namespace

JobSystem::JobSystem(const DaemonContext& daemon, JobHome& job_home, WorkerFleet& fleet,
                     const Stores& own_stores, executor::UsageBook* usage_book,
                     std::optional<int64_t> model_info_time_seconds)
    : context(daemon),
      home(job_home),
      stores(own_stores),
      configs(ParseConfig, kConfigMemoBytes),
      bundles({.dir = context.data_dir + "/bundles"}),
      store(home.store(), context.metrics, context.watchdog, base::SteadyNow),
      indexed(&store, &index),
      jobs(ServiceOptions(context, home, random), &indexed, home.board()),
      usage(usage_book),
      workers(fleet.runner.get(), &jobs, usage),
      runner(RunnerOptions(context, configs, bundles, model_info_time_seconds), &jobs,
             home.inputs(), home.results(), &workers, context.log),
      submission(OptionsOfSubmission(context, configs), &jobs, home.inputs(), home.results(),
                 // A shared store keeps the inputs of live jobs itself.
                 home.store()->is_shared() ? nullptr : &holds),
      inspections({.work_dir = context.data_dir + "/work", .is_stopping = context.is_stopping},
                  home.inputs(), fleet.runner.get()),
      uploads(home.inputs(), OptionsOfUploads(context)),
      downloads(home.results(), [this](const jobs::Job& job) { return runner.Remake(job); }),
      index_loader(&indexed,
                   {.on_try = [this](const absl::Status& loaded) { OnIndexed(loaded); }}) {
  jobs.SetEndListener([this](const jobs::Job& job) { OnJobEnded(job); });
  jobs.SetAbandonListener([this](const jobs::Lease& lease) { runner.Abandon(lease); });
}

absl::Status JobSystem::CleanWorkDir() {
  std::error_code error;
  std::filesystem::create_directories(context.data_dir + "/work", error);
  return runner.CleanWorkDir();
}

absl::Status JobSystem::Recover() {
  RETURN_IF_ERROR(home.Follow({.on_jobs = [this](const auto& changed) { OnJobsChanged(changed); },
                               .on_gap =
                                   [this] {
                                     jobs.hub().NotifyAll();
                                     index_loader.Start();
                                   },
                               // Watchers learn that the store is away, and go to other nodes.
                               .on_failure = [this] { jobs.hub().NotifyAll(); }}));
  int64_t recovered = 0;
  const auto recover = [&] {
    return jobs.Recover([&](const jobs::LiveJob& job) {
      ++recovered;
      executor::InputHolds::Holds held;
      for (const std::string& sha256 : job.input_sha256s) {
        auto input = home.inputs()->Acquire(job.tenant, sha256);
        if (input.ok()) held.push_back(std::move(input->hold));
      }
      holds.Add(job.id, std::move(held));
    });
  };
  RETURN_IF_ERROR(AwaitStore(context.log, recover));
  context.log->Info("recovered", {{"jobs", absl::StrCat(recovered)}});
  return absl::OkStatus();
}

void JobSystem::Sample(observe::Metrics& metrics) {
  for (const auto& [tenant, counts] : home.CountsByTenant()) {
    metrics.Set(observe::Metric::kJobs, {tenant, "queued"}, static_cast<double>(counts.queued));
    metrics.Set(observe::Metric::kJobs, {tenant, "running"}, static_cast<double>(counts.running));
  }
  // While it is filled, each look would sort it anew.
  if (index.is_complete()) {
    const std::optional<absl::Time> oldest = index.OldestQueued();
    const absl::Duration waited = oldest.has_value() ? home.Now() - *oldest : absl::ZeroDuration();
    metrics.Set(observe::Metric::kOldestQueuedSeconds, {},
                std::max(0.0, absl::ToDoubleSeconds(waited)));
  }
  metrics.Set(observe::Metric::kWatchers, {}, static_cast<double>(jobs.hub().subscription_count()));
}

void JobSystem::OnJobsChanged(const std::vector<jobs::Job>& changed) {
  for (const jobs::Job& job : changed) {
    index.Put(job);
    jobs.hub().Notify(job.id);
  }
}

void JobSystem::OnIndexed(const absl::Status& loaded) {
  if (loaded.ok()) {
    context.log->Info("jobs read for lists", {{"jobs", absl::StrCat(index.size())}});
  } else {
    context.log->Warning(
        "the jobs cannot be read for lists, and are tried again; until then filters "
        "and totals are refused or old",
        {{"error", loaded.message()}});
  }
}

void JobSystem::OnJobEnded(const jobs::Job& job) {
  holds.Remove(job.id);
  executor::RecordJob(context.tracer, job);
  context.log->Info("job ended", {{"job", job.id},
                                  {"trace", job.spec.trace.trace_id},
                                  {"tenant", job.tenant},
                                  {"state", jobs::JobStateName(job.state)},
                                  {"failure", jobs::FailureKindName(job.failure_kind)},
                                  {"reason", job.reason}});
  if (job.tenant != executor::Canary::kTenant) {
    usage->Add(job.tenant, {.jobs = 1,
                            .succeeded = job.state == jobs::JobState::kSucceeded ? 1 : 0,
                            .failed = job.state == jobs::JobState::kFailed ? 1 : 0,
                            .cache_hits = job.cache_hit ? 1 : 0});
  }
  observe::Metrics& metrics = *context.metrics;
  metrics.Add(observe::Metric::kJobsEnded,
              {job.tenant, jobs::JobStateName(job.state), jobs::FailureKindName(job.failure_kind)},
              1);
  metrics.Observe(observe::Metric::kJobSeconds, {job.tenant},
                  absl::ToDoubleSeconds(job.end_time - job.create_time));
  if (job.start_time == absl::InfinitePast()) return;
  metrics.Observe(observe::Metric::kJobWaitSeconds, {job.tenant},
                  absl::ToDoubleSeconds(job.start_time - job.create_time));
}

std::vector<api::AdminControls::TenantNow> JobSystem::Tenants(
    const auth::Authenticator& authenticator) const {
  std::set<std::string> names;
  const std::shared_ptr<const auth::TenantDirectory> directory = authenticator.directory();
  for (const auto& [name, tenant] : directory->tenants()) names.insert(name);
  const std::map<std::string, JobHome::Counts> counts = home.CountsByTenant();
  for (const auto& [name, jobs_of_it] : counts) {
    if (name != executor::Canary::kTenant) names.insert(name);
  }
  std::vector<api::AdminControls::TenantNow> all;
  for (const std::string& name : names) all.push_back(Describe(name, counts));
  return all;
}

api::AdminControls::TenantNow JobSystem::FindTenant(const std::string& name) const {
  return Describe(name, home.CountsByTenant());
}

api::AdminControls::TenantNow JobSystem::Describe(
    const std::string& name, const std::map<std::string, JobHome::Counts>& counts) const {
  api::AdminControls::TenantNow now{.tenant = context.rules->Find(name)};
  now.tenant.quota.stored_bytes = static_cast<int64_t>(context.rules->StoredBytesOf(name));
  if (const auto found = counts.find(name); found != counts.end()) {
    now.queued = found->second.queued;
    now.running = found->second.running;
  }
  now.stored_bytes = static_cast<int64_t>(stores.blobs->ScopeBytes(name));
  now.open_uploads = static_cast<int64_t>(stores.blobs->ScopeUploads(name));
  return now;
}

}  // namespace npuc::daemon
