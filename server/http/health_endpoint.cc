#include "server/http/health_endpoint.h"

#include <httplib.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace npuc {
namespace {

constexpr size_t kThreads = 2;
constexpr size_t kMaxBodyBytes = 4096;
constexpr time_t kTimeoutSeconds = 5;

}  // namespace

struct HealthEndpoint::Impl {
  httplib::Server server;
  int port = -1;
  std::thread thread;
};

HealthEndpoint::HealthEndpoint(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

absl::StatusOr<std::unique_ptr<HealthEndpoint>> HealthEndpoint::Start(const std::string& address,
                                                                      const Pages& pages) {
  const size_t colon = address.rfind(':');
  int port = -1;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port)) {
    return absl::InvalidArgumentError(absl::StrCat("'", address, "' is not HOST:PORT"));
  }
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  auto impl = std::make_unique<Impl>();
  impl->server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  impl->server.set_payload_max_length(kMaxBodyBytes);
  impl->server.set_read_timeout(kTimeoutSeconds);
  impl->server.set_write_timeout(kTimeoutSeconds);
  // Not the library's default, which lets a second server share the port.
  impl->server.set_socket_options([](int) {});
  for (const auto& [path, make] : pages) {
    impl->server.Get(path, [make = make](const httplib::Request&, httplib::Response& response) {
      const HttpPage page = make();
      response.status = page.status;
      response.set_content(page.body, page.content_type.c_str());
    });
  }
  errno = 0;
  if (port == 0) {
    impl->port = impl->server.bind_to_any_port(host.c_str());
  } else if (impl->server.bind_to_port(host.c_str(), port)) {
    impl->port = port;
  }
  if (impl->port <= 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address, " (",
                     errno == 0 ? "it has no address" : std::strerror(errno), ")"));
  }
  impl->thread = std::thread([server = &impl->server] { server->listen_after_bind(); });
  return std::unique_ptr<HealthEndpoint>(new HealthEndpoint(std::move(impl)));
}

HealthEndpoint::~HealthEndpoint() {
  // stop() does nothing before the loop runs; wait for that, else join would wait for ever.
  while (!impl_->server.is_running()) std::this_thread::yield();
  impl_->server.stop();
  impl_->thread.join();
}

int HealthEndpoint::port() const { return impl_->port; }

}  // namespace npuc
