#include "server/fronts.h"

#include <sys/resource.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "server/startup.h"

namespace npuc::daemon {
namespace {

// Descriptors of open tables, logs, uploads, workers and HTTP.
constexpr rlim_t kDescriptorsBeside = 4096;

// Two descriptors a connection, and those of the stores, of uploads, of workers and of HTTP. The
// soft limit is often 1,024, for programs that use select().
void RaiseDescriptorLimit(const Flags& flags, const log::Logger& log) {
  const rlim_t wanted = 2 * static_cast<rlim_t>(flags.max_connections) + kDescriptorsBeside;
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur == wanted) return;
  log.Warning("too few descriptors for all connections",
              {{"limit", absl::StrCat(limit.rlim_cur)},
               {"wanted", absl::StrCat(wanted)},
               {"lost", "connections wait for a descriptor before there are too many of them"},
               {"fix", "LimitNOFILE= of systemd, ulimit -Hn; or a smaller --max-connections"}});
}

}  // namespace

absl::StatusOr<std::unique_ptr<Fronts>> Fronts::Start(const DaemonContext& context,
                                                      const api::ApiDependencies& dependencies) {
  const Flags& flags = context.flags;
  RaiseDescriptorLimit(flags, *context.log);
  auto fronts = std::make_unique<Fronts>();
  const api::TlsFiles tls = {
      .certificate = flags.tls_cert, .key = flags.tls_key, .client_ca = flags.client_ca};
  ASSIGN_OR_RETURN(
      fronts->rpc,
      OfFlag("--listen",
             rpc::RpcServer::Start({.listen = flags.listen,
                                    .tls = tls,
                                    .reflection = flags.insecure,
                                    .max_connections = static_cast<size_t>(flags.max_connections),
                                    .max_watch_streams = static_cast<size_t>(flags.max_streams)},
                                   dependencies)));
  if (flags.web.empty()) return fronts;
  ASSIGN_OR_RETURN(fronts->web,
                   OfFlag("--web", http::Gateway::Start({.listen = flags.web,
                                                         .tls = tls,
                                                         .dashboard_dir = DashboardFolder(),
                                                         .loopback_only = flags.insecure},
                                                        dependencies)));
  return fronts;
}

void Fronts::EndStreams() {
  rpc->EndStreams();
  if (web != nullptr) web->EndStreams();
}

std::string AddressOf(const std::string& listen, int port) {
  return absl::StrCat(listen.substr(0, listen.rfind(':')), ":", port);
}

std::string PageUrl(const Flags& flags, int port) {
  return absl::StrCat(flags.insecure ? "http://" : "https://", AddressOf(flags.web, port));
}

const char* SecurityName(const Flags& flags) {
  if (!flags.insecure) {
    return flags.client_ca.empty() ? "TLS, tokens" : "TLS, tokens and client certificates";
  }
  return flags.tenants.empty() ? "none (--insecure): loopback only"
                               : "tokens, no encryption (--insecure): loopback only";
}

}  // namespace npuc::daemon
