#ifndef NPUC_SERVER_DAEMON_CONTEXT_H_
#define NPUC_SERVER_DAEMON_CONTEXT_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/time/time.h"
#include "server/auth/tenant_rules.h"
#include "server/daemon.h"
#include "server/flags.h"
#include "server/log/log.h"
#include "server/observe/metrics.h"
#include "server/observe/sampler.h"
#include "server/observe/tracer.h"
#include "server/observe/watchdog.h"

namespace npuc::daemon {

// Everything that each part of the daemon is built on. All of it outlives the parts.
struct DaemonContext {
  const Flags& flags;
  const DaemonHooks& hooks;
  // Absolute: workers and stores take no relative path.
  std::string data_dir;
  const log::Logger* log = nullptr;
  const auth::TenantRules* rules = nullptr;
  observe::Metrics* metrics = nullptr;
  observe::Sampler* sampler = nullptr;
  observe::Tracer* tracer = nullptr;  // null: no spans are recorded
  observe::Watchdog* watchdog = nullptr;
  std::function<bool()> is_stopping = nullptr;  // SIGTERM has come

  uint64_t DiskReserveBytes() const { return static_cast<uint64_t>(flags.disk_reserve_mib) << 20; }
};

}  // namespace npuc::daemon

#endif  // NPUC_SERVER_DAEMON_CONTEXT_H_
