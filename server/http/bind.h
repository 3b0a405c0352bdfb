#ifndef NPUC_SERVER_HTTP_BIND_H_
#define NPUC_SERVER_HTTP_BIND_H_

#include <string>

#include "absl/status/statusor.h"

namespace httplib {
class Server;
}

namespace npuc {

// Binds the server to HOST:PORT; an IPv6 host is in brackets, port 0 is any free one. The port.
// INVALID_ARGUMENT: not of that form; UNAVAILABLE: it cannot be had, and why.
absl::StatusOr<int> Bind(httplib::Server& server, const std::string& address);

}  // namespace npuc

#endif  // NPUC_SERVER_HTTP_BIND_H_
