#include "server/http/health_endpoint.h"

#include <httplib.h>

#include <thread>
#include <utility>

#include "compiler_core/base/status.h"
#include "server/http/bind.h"

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
  ASSIGN_OR_RETURN(impl->port, Bind(impl->server, address));
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
