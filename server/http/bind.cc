#include "server/http/bind.h"

#include <httplib.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace npuc {

absl::StatusOr<int> Bind(httplib::Server& server, const std::string& address) {
  const size_t colon = address.rfind(':');
  int port = -1;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port)) {
    return absl::InvalidArgumentError(absl::StrCat("'", address, "' is not HOST:PORT"));
  }
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  errno = 0;
  if (port == 0) {
    port = server.bind_to_any_port(host);
  } else if (!server.bind_to_port(host, port)) {
    port = -1;
  }
  if (port > 0) return port;
  return absl::UnavailableError(
      absl::StrCat("cannot listen on ", address, " (",
                   errno == 0 ? "it has no address" : std::strerror(errno), ")"));
}

}  // namespace npuc
