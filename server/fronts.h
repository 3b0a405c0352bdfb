#ifndef NPUC_SERVER_FRONTS_H_
#define NPUC_SERVER_FRONTS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/api/dependencies.h"
#include "server/daemon_context.h"
#include "server/http/gateway.h"
#include "server/rpc/rpc_server.h"

namespace npuc::daemon {

// The ports for clients: gRPC, and HTTP with the dashboard where --web asks for it.
struct Fronts {
  // Both listen at once; gRPC's health says NOT_SERVING until rpc->SetServing(true).
  static absl::StatusOr<std::unique_ptr<Fronts>> Start(const DaemonContext& context,
                                                       const api::ApiDependencies& dependencies);

  // Ends what watches jobs; clients come back elsewhere or later.
  void EndStreams();

  std::unique_ptr<rpc::RpcServer> rpc;
  std::unique_ptr<http::Gateway> web;  // null: none
};

// "127.0.0.1:7070" of a --listen that may name port 0.
std::string AddressOf(const std::string& listen, int port);

// "https://127.0.0.1:7070": the page at the --web address, which is this machine's own.
std::string PageUrl(const Flags& flags, int port);

// "TLS, tokens": what keeps strangers out.
const char* SecurityName(const Flags& flags);

}  // namespace npuc::daemon

#endif  // NPUC_SERVER_FRONTS_H_
