#include "server/worker_fleet.h"

#include "absl/strings/str_cat.h"
#include "cache/posix.h"
#include "compiler_core/base/status.h"
#include "compiler_core/pipeline/compile.h"
#include "server/base/steady_clock.h"
#include "server/executor/metered_worker.h"
#include "server/startup.h"

namespace npuc::daemon {
namespace {

// For all workers together, beside what each may use: the warm parent; a run's keeper and worker,
// and one of each while an old one ends.
constexpr uint64_t kWarmParentBytes = uint64_t{512} << 20;
constexpr uint32_t kProcessesOfARun = 4;
constexpr uint32_t kProcessesBesideRuns = 32;

// What all workers together may use, where the host can limit that; else null.
absl::StatusOr<std::unique_ptr<worker::WorkerCgroup>> MakeCgroup(const Flags& flags,
                                                                 const log::Logger& log) {
  if (flags.cgroup == Flags::Cgroup::kOff) return nullptr;
  const worker::WorkerLimits one;
  const auto workers = static_cast<uint64_t>(flags.workers);
  const worker::WorkerCgroup::Limits limits{
      // The output folder is memory, too; the rest is the warm parent.
      .memory_bytes = workers * (one.memory_bytes + one.output_bytes) + kWarmParentBytes,
      .processes = static_cast<uint32_t>(flags.workers + flags.spares) * kProcessesOfARun +
                   kProcessesBesideRuns};
  auto made = worker::WorkerCgroup::Make(limits, {});
  if (!made.ok() && flags.cgroup == Flags::Cgroup::kRequire) {
    return absl::FailedPreconditionError(
        absl::StrCat("--cgroup=require: ", made.status().message()));
  }
  if (!made.ok()) {
    log.Warning("no cgroup around the workers",
                {{"why", made.status().message()},
                 {"lost", "no limit on what all workers use together; each has its own"},
                 {"flag", "--cgroup=off if this is meant to be so"}});
    return nullptr;
  }
  log.Info("a cgroup is around the workers", {{"folder", (*made)->folder()},
                                              {"memory_bytes", absl::StrCat(limits.memory_bytes)},
                                              {"processes", absl::StrCat(limits.processes)}});
  return made;
}

worker::WorkerPoolOptions PoolOptions(const DaemonContext& context, worker::WorkerCgroup* cgroup) {
  worker::WorkerPoolOptions options;
  options.program = BesideThisProgram("npuc-worker");
  options.build_id = std::string(CompilerBuildId());
  options.sandbox = *context.flags.sandbox;
  options.spares = static_cast<uint32_t>(context.flags.spares);
  options.adopt = [cgroup, log = context.log, by = context.flags.work_nice](pid_t parent) {
    if (const absl::Status status = cache::GiveWay(parent, by); !status.ok()) {
      log->Warning("compiles do not give way to what answers clients",
                   {{"error", status.message()}});
    }
    return cgroup != nullptr ? cgroup->Add(parent) : absl::OkStatus();
  };
  options.on_parent_lost = [log = context.log](absl::string_view how) {
    log->Warning("the workers' warm parent was lost; another one is started", {{"how", how}});
  };
  return options;
}

void LogSandbox(const worker::SandboxReport& report, const log::Logger& log) {
  log.Info("workers are shut in", {{"by", report.NamesInForce()}});
  for (const worker::SandboxReport::Missing& missing : report.missing) {
    const worker::MechanismInfo& info = worker::InfoOf(missing.mechanism);
    log.Write(info.required ? log::LogLevel::kError : log::LogLevel::kWarning,
              "a wall around the workers is missing",
              {{"mechanism", info.name}, {"why", missing.why}, {"lost", info.lost}});
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerFleet>> WorkerFleet::Start(const DaemonContext& context) {
  auto fleet = std::make_unique<WorkerFleet>();
  ASSIGN_OR_RETURN(fleet->cgroup, MakeCgroup(context.flags, *context.log));
  ASSIGN_OR_RETURN(fleet->pool,
                   worker::WorkerPool::Start(PoolOptions(context, fleet->cgroup.get())));
  LogSandbox(fleet->pool->sandbox(), *context.log);
  fleet->runner = executor::MeterWorkers(fleet->pool.get(), context.metrics, base::SteadyNow);
  return fleet;
}

void WorkerFleet::Sample(observe::Metrics& metrics) const {
  const worker::WorkerPool::Stats stats = pool->GetStats();
  metrics.Set(observe::Metric::kSlotsBusy, {}, static_cast<double>(stats.running));
  metrics.Set(observe::Metric::kWorkerRestarts, {}, static_cast<double>(stats.parent_restarts));
}

}  // namespace npuc::daemon
