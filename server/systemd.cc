#include "server/systemd.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>

namespace npuc::daemon {

SystemdNotifier SystemdNotifier::FromEnvironment() {
  SystemdNotifier notifier;
  const char* const address = getenv("NOTIFY_SOCKET");
  if (address == nullptr) return notifier;
  const std::string name = address;
  unsetenv("NOTIFY_SOCKET");
  const bool is_name = name.size() > 1 && (name[0] == '/' || name[0] == '@');
  if (!is_name || name.size() >= sizeof(sockaddr_un::sun_path)) return notifier;
  notifier.socket_ = cache::UniqueFd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (notifier.socket_.valid()) notifier.address_ = name;
  return notifier;
}

void SystemdNotifier::Send(absl::string_view lines) const {
  if (address_.empty()) return;
  sockaddr_un to = {};
  to.sun_family = AF_UNIX;
  memcpy(to.sun_path, address_.data(), address_.size());
  if (to.sun_path[0] == '@') to.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size());
  sendto(socket_.get(), lines.data(), lines.size(), MSG_NOSIGNAL,
         reinterpret_cast<const sockaddr*>(&to), size);
}

}  // namespace npuc::daemon
