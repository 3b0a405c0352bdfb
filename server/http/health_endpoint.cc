#include "server/http/health_endpoint.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "server/http/http_server.h"
#include "server/http/tls_context.h"

namespace npuc::http {
namespace {

// The clients are probes and scrapers of this machine.
constexpr HttpLimits kLimits{.connections = 64,
                             .connections_of_address = 64,
                             .bodies_bytes = 0,
                             .threads = 2,
                             .head = std::chrono::milliseconds(5000)};

HttpResponse TextResponse(int status, const std::string& text) {
  HttpResponse response{.status = status};
  response.SetBody(text, "text/plain");
  return response;
}

HttpResponse MakePage(const std::function<HttpPage()>& make) {
  HttpPage page = make();
  HttpResponse response{.status = page.status};
  response.SetBody(std::move(page.body), page.content_type);
  return response;
}

HttpAdmission Admit(const HealthEndpoint::Pages& pages, const HttpRequest& head) {
  const auto found = pages.find(head.path);
  if (found == pages.end()) return {.answer = TextResponse(404, "no such page\n")};
  if (head.method != "GET" && head.method != "HEAD") {
    HttpResponse response = TextResponse(405, "GET alone is possible here\n");
    response.AddHeader("Allow", "GET");
    return {.answer = std::move(response)};
  }
  const HealthEndpoint::Source& source = found->second;
  if (!source.may_wait) return {.answer = MakePage(source.make)};
  return {.handle = [&source](const HttpRequest&) { return MakePage(source.make); }};
}

}  // namespace

struct HealthEndpoint::Impl {
  explicit Impl(Pages all) : pages(std::move(all)) {}

  const Pages pages;
  std::unique_ptr<HttpServer> server;
};

HealthEndpoint::HealthEndpoint(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HealthEndpoint::~HealthEndpoint() = default;

absl::StatusOr<std::unique_ptr<HealthEndpoint>> HealthEndpoint::Start(const std::string& address,
                                                                      const Pages& pages) {
  auto impl = std::make_unique<Impl>(pages);
  ASSIGN_OR_RETURN(
      impl->server,
      HttpServer::Start(
          {.listen = address,
           .limits = kLimits,
           .admit = [&all = impl->pages](const HttpRequest& head) { return Admit(all, head); },
           .refuse =
               [](int status, const std::string& why) {
                 return TextResponse(status, absl::StrCat(why, "\n"));
               }},
          nullptr));
  return std::unique_ptr<HealthEndpoint>(new HealthEndpoint(std::move(impl)));
}

int HealthEndpoint::port() const { return impl_->server->port(); }

}  // namespace npuc::http
