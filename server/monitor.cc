#include "server/monitor.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace npuc::daemon {
namespace {

constexpr absl::Duration kLookPeriod = absl::Milliseconds(250);
constexpr absl::Duration kProbePeriod = absl::Seconds(5);
constexpr absl::Duration kProbePatience = absl::Seconds(20);
// New work is refused above this part of the memory limit; what is under way may use the rest.
constexpr double kMemoryShare = 0.9;
constexpr uint64_t kMiB = uint64_t{1} << 20;

}  // namespace

uint64_t ResidentBytes() {
  std::ifstream in("/proc/self/statm");
  uint64_t size = 0;
  uint64_t resident = 0;
  in >> size >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

Monitor::Monitor(MonitorOptions options)
    : options_(std::move(options)),
      looker_([this] { LookLoop(); }),
      prober_([this] { ProbeLoop(); }) {}

Monitor::~Monitor() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.NotifyAll();
  prober_.join();
  looker_.join();
}

bool Monitor::stopping() const {
  const MutexLock lock(mutex_);
  return stopping_;
}

bool Monitor::Sleep(absl::Duration duration) {
  const SteadyTime end = SteadyTimeAfter(absl::ToChronoNanoseconds(duration));
  const MutexLock lock(mutex_);
  while (!stopping_ && wake_.WaitUntil(mutex_, end)) {
  }
  return !stopping_;
}

void Monitor::LookLoop() {
  while (Sleep(kLookPeriod)) {
    Look();
    options_.on_look();
  }
}

void Monitor::Look() {
  std::set<std::string> stuck;
  std::string text;
  for (const observe::Watchdog::Stuck& one : options_.watchdog->Look()) {
    stuck.insert(one.part);
    absl::StrAppend(&text, text.empty() ? "" : ", ", one.part, " for ",
                    absl::FormatDuration(absl::Trunc(one.since, absl::Seconds(1))));
    options_.metrics->Set(observe::Metric::kStuck, {one.part}, 1);
    if (!stuck_.contains(one.part)) {
      options_.log->Error("a part of the daemon is stuck", {{"part", one.part}});
    }
  }
  for (const std::string& part : stuck_) {
    if (stuck.contains(part)) continue;
    options_.metrics->Set(observe::Metric::kStuck, {part}, 0);
    options_.log->Warning("a part of the daemon goes on again", {{"part", part}});
  }
  stuck_ = std::move(stuck);
  options_.readiness->Set("watchdog", stuck_.empty()
                                          ? absl::OkStatus()
                                          : absl::UnavailableError(absl::StrCat("stuck: ", text)));
  options_.readiness->Set("workers", options_.worker_health());
  if (options_.memory_limit_bytes == 0) return;
  const uint64_t resident = ResidentBytes();
  const bool over = static_cast<double>(resident) >
                    kMemoryShare * static_cast<double>(options_.memory_limit_bytes);
  if (over != std::exchange(over_memory_, over)) {
    options_.log->Write(over ? log::LogLevel::kError : log::LogLevel::kInfo,
                        over ? "close to --memory-mib: no new work is taken"
                             : "away from --memory-mib: new work is taken again",
                        {{"resident_mib", absl::StrCat(resident / kMiB)},
                         {"memory_mib", absl::StrCat(options_.memory_limit_bytes / kMiB)}});
  }
  options_.on_memory(over);
}

void Monitor::ProbeLoop() {
  do {
    // Where nothing can be stored a compile would wait for room, and show nothing new.
    if (Probe()) RunCanary();
    options_.on_look();
  } while (Sleep(kProbePeriod));
}

bool Monitor::Probe() {
  absl::Status stores;
  {
    const observe::Watchdog::Scope scope = options_.watchdog->Enter("store probe", kProbePatience);
    stores = options_.probe_stores();
  }
  options_.readiness->Set("store", stores);
  const absl::Status disk = CheckDisk();
  options_.readiness->Set("disk", disk);
  return stores.ok() && disk.ok();
}

void Monitor::RunCanary() {
  const absl::Time now = absl::Now();
  if (now < next_canary_) return;
  const absl::Status ran = options_.run_canary();
  if (absl::IsUnavailable(ran) || absl::IsCancelled(ran)) {
    // It is tried again at the next probe, for as long as the queue is full.
    if (blind_.IsDue(now)) {
      options_.log->Warning("the canary compile found nothing out", {{"why", ran.message()}});
    }
    return;
  }
  blind_.Reset();
  options_.readiness->Set("canary", ran);
  if (ran.ok()) next_canary_ = now + options_.canary_period;
}

absl::Status Monitor::CheckDisk() const {
  struct statvfs info = {};
  if (statvfs(options_.data_dir.c_str(), &info) != 0) {
    return absl::InternalError(absl::StrCat(options_.data_dir, ": ", std::strerror(errno)));
  }
  const uint64_t free_bytes = uint64_t{info.f_bavail} * info.f_frsize;
  options_.metrics->Set(observe::Metric::kDiskFreeBytes, {}, static_cast<double>(free_bytes));
  if (free_bytes >= options_.disk_reserve_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      free_bytes / kMiB, " MiB are free in ", options_.data_dir, ", ",
      options_.disk_reserve_bytes / kMiB, " MiB must be (--disk-reserve-mib); free some space"));
}

}  // namespace npuc::daemon
