#ifndef NPUC_SERVER_SYSTEMD_H_
#define NPUC_SERVER_SYSTEMD_H_

#include <string>

#include "absl/strings/string_view.h"
#include "cache/posix.h"

namespace npuc::daemon {

// Tells the service manager how the daemon is, by the protocol of sd_notify(3): a datagram of
// VARIABLE=VALUE lines to the socket that NOTIFY_SOCKET names. Written here and not taken from
// libsystemd, which would bring its compression and cryptography libraries into the daemon for
// this. Thread-safe.
class SystemdNotifier {
 public:
  // Takes NOTIFY_SOCKET out of the environment, so that no child speaks for the daemon. Where it is
  // not set, or no socket's name, nothing is sent.
  static SystemdNotifier FromEnvironment();

  // Never blocks; what cannot be sent is dropped, since the next message says the same.
  void Send(absl::string_view lines) const;

 private:
  std::string address_;  // a path, or '@' and an abstract name; empty: nobody listens
  cache::UniqueFd socket_;
};

}  // namespace npuc::daemon

#endif  // NPUC_SERVER_SYSTEMD_H_
