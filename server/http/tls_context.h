#ifndef NPUC_SERVER_HTTP_TLS_CONTEXT_H_
#define NPUC_SERVER_HTTP_TLS_CONTEXT_H_

#include <openssl/ssl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "compiler_core/base/mutex.h"
#include "server/api/dependencies.h"

namespace npuc::http {

// The server's side of TLS for HTTP, from the files that gRPC has too: TLS 1.2 and later, client
// certificates asked for where a CA is given, verified where one is shown. Thread-safe.
class TlsContext {
 public:
  // INVALID_ARGUMENT: a file cannot be used.
  static absl::StatusOr<std::unique_ptr<TlsContext>> Make(const api::TlsFiles& files);

  // For a new connection. Files that have changed are read again, at most once a minute; new ones
  // that are no good leave the old ones in force.
  std::shared_ptr<SSL_CTX> Current(absl::Time now);

  // URIs, DNS names and addresses of the client certificate that TLS has verified, then its common
  // name, as rpc/identity.h has them; empty without one.
  static std::vector<std::string> NamesOfPeer(const SSL* ssl);

 private:
  explicit TlsContext(api::TlsFiles files) : files_(std::move(files)) {}

  const api::TlsFiles files_;
  Mutex mutex_;
  std::shared_ptr<SSL_CTX> context_ NPUC_GUARDED_BY(mutex_);
  std::string stamp_ NPUC_GUARDED_BY(mutex_);  // of the files in force
  absl::Time looked_ NPUC_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace npuc::http

#endif  // NPUC_SERVER_HTTP_TLS_CONTEXT_H_
