#include "server/http/gateway.h"

#include <exception>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "server/http/bind.h"
#include "server/http/byte_range.h"
#include "server/http/event_streams.h"
#include "server/http/limited_server.h"
#include "server/http/routes.h"
#include "server/http/static_files.h"
#include "server/jobs/service_error.h"

namespace npuc {
namespace {

constexpr size_t kMaxPathBytes = 1024;
constexpr char kPagePolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
constexpr char kDataPolicy[] = "default-src 'none'; sandbox; frame-ancestors 'none'";

constexpr std::pair<const char*, const char*> kHeaders[] = {
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Permissions-Policy", "camera=(), microphone=(), geolocation=(), usb=()"},
};

// The host of "host:port" or "[v6]:port", without brackets.
absl::string_view HostOf(absl::string_view authority) {
  if (absl::ConsumePrefix(&authority, "[")) return authority.substr(0, authority.find(']'));
  return authority.substr(0, authority.find(':'));
}

absl::Status Refused(absl::string_view what) {
  return ServiceError(absl::StatusCode::kPermissionDenied, what, {.reason = "ORIGIN_REFUSED"});
}

// Requests that a page of another site makes a browser send: they would come with the client's
// certificate, or with none needed under --insecure.
absl::Status CheckOrigin(const httplib::Request& request, bool loopback_only) {
  const std::string host = request.get_header_value("Host");
  const absl::string_view name = HostOf(host);
  if (loopback_only && name != "localhost" && name != "127.0.0.1" && name != "::1") {
    return Refused(absl::StrCat("Host is '", Printable(host, 64),
                                "'; without TLS this server answers to localhost, 127.0.0.1 and "
                                "[::1] alone"));
  }
  const std::string site = request.get_header_value("Sec-Fetch-Site");
  const std::string origin = request.get_header_value("Origin");
  const bool own = origin.empty() || absl::EndsWith(origin, absl::StrCat("://", host));
  if (!own ||
      (absl::StartsWith(request.path, "/v1/") && (site == "cross-site" || site == "same-site"))) {
    return Refused("the request comes from a page of another site");
  }
  return absl::OkStatus();
}

void AddSecurityHeaders(bool tls, httplib::Response& response) {
  for (const auto& [name, value] : kHeaders) response.set_header(name, value);
  if (!response.has_header("Content-Security-Policy")) {
    response.set_header("Content-Security-Policy", kDataPolicy);
  }
  if (!response.has_header("Cache-Control")) response.set_header("Cache-Control", "no-store");
  if (tls) response.set_header("Strict-Transport-Security", "max-age=31536000");
}

// What the library refuses by itself comes without a body.
absl::Status RefusalOf(int http_status) {
  switch (http_status) {
    case 413:
      return ServiceError(absl::StatusCode::kInvalidArgument, "the body has over 4194304 bytes",
                          {.reason = "BODY_TOO_LARGE"});
    case 414:
      return ServiceError(absl::StatusCode::kInvalidArgument, "the path is too long",
                          {.reason = "PATH_TOO_LONG"});
    case 416:
      return ServiceError(absl::StatusCode::kOutOfRange, "the Range header is malformed",
                          {.reason = "INVALID_RANGE"});
    default:
      return ServiceError(absl::StatusCode::kInvalidArgument, "the request is not valid HTTP",
                          {.reason = "INVALID_HTTP"});
  }
}

void SendFile(const StaticFiles::File& file, const httplib::Request& request,
              httplib::Response& response) {
  response.set_header("ETag", file.etag);
  response.set_header("Content-Security-Policy", kPagePolicy);
  response.set_header("Cache-Control",
                      file.named_by_content ? "public, max-age=31536000, immutable" : "no-cache");
  if (EtagMatches(request.get_header_value("If-None-Match"), file.etag)) {
    response.status = 304;
    return;
  }
  response.set_content(file.bytes, file.type);
}

}  // namespace

struct Gateway::Impl {
  Impl(const GatewayOptions& options, ApiDependencies dependencies, std::unique_ptr<TlsContext> tls)
      : deps(std::move(dependencies)),
        loopback_only(options.loopback_only),
        streams(&deps, options.heartbeat, options.max_stream_age),
        files(StaticFiles::Read(options.dashboard_dir)),
        server(HttpLimits{}, std::move(tls)) {}

  void SetHandlers() {
    // Requests without a body end here; those with one come back when it was read.
    server.set_pre_routing_handler(
        [this](const httplib::Request& request, httplib::Response& response) {
          const bool has_body =
              request.method != "GET" && request.method != "HEAD" && request.method != "OPTIONS";
          if (!Admit(request, response)) return httplib::Server::HandlerResponse::Handled;
          if (has_body) return httplib::Server::HandlerResponse::Unhandled;
          Handle(request, response);
          return httplib::Server::HandlerResponse::Handled;
        });
    const httplib::Server::Handler handle = [this](const httplib::Request& request,
                                                   httplib::Response& response) {
      Handle(request, response);
    };
    server.Post("/.*", handle).Patch("/.*", handle).Put("/.*", handle).Delete("/.*", handle);
    server.set_error_handler([](const httplib::Request&, httplib::Response& response) {
      if (response.body.empty()) {
        const int http_status = response.status;
        SetError(RefusalOf(http_status), response);
        response.status = http_status;
      }
    });
    server.set_exception_handler([this](const httplib::Request& request,
                                        httplib::Response& response, const std::exception_ptr&) {
      const absl::Status status = absl::InternalError("an exception in a handler");
      deps.log->Error("call failed", {{"method", request.method}, {"error", status.message()}});
      SetError(status, response);
    });
    server.set_post_routing_handler(
        [this](const httplib::Request& request, httplib::Response& response) {
          AddSecurityHeaders(server.uses_tls(), response);
          if (LimitedServer::ClosesAfter(request, response))
            response.set_header("Connection", "close");
        });
  }

  // False: it is answered.
  bool Admit(const httplib::Request& request, httplib::Response& response) const {
    if (request.path.size() > kMaxPathBytes) {
      SetError(RefusalOf(414), response);
      response.status = 414;
      return false;
    }
    const absl::Status status = CheckOrigin(request, loopback_only);
    if (!status.ok()) SetError(status, response);
    return status.ok();
  }

  void Handle(const httplib::Request& request, httplib::Response& response) {
    const StaticFiles::File* const file = files.Find(request.path);
    if (file != nullptr && (request.method == "GET" || request.method == "HEAD")) {
      SendFile(*file, request, response);
    } else {
      HandleApi({&deps, &streams}, request, response);
    }
  }

  const ApiDependencies deps;
  const bool loopback_only;
  EventStreams streams;
  const StaticFiles files;
  LimitedServer server;
  int port = -1;
  std::thread thread;
};

Gateway::Gateway(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

absl::StatusOr<std::unique_ptr<Gateway>> Gateway::Start(const GatewayOptions& options,
                                                        ApiDependencies dependencies) {
  std::unique_ptr<TlsContext> tls;
  if (!options.tls.certificate.empty()) {
    ASSIGN_OR_RETURN(tls, TlsContext::Make(options.tls));
  }
  auto impl = std::make_unique<Impl>(options, std::move(dependencies), std::move(tls));
  impl->SetHandlers();
  ASSIGN_OR_RETURN(impl->port, Bind(impl->server, options.listen));
  impl->server.RaiseBacklog();
  impl->thread = std::thread([server = &impl->server] { server->listen_after_bind(); });
  return std::unique_ptr<Gateway>(new Gateway(std::move(impl)));
}

Gateway::~Gateway() {
  EndStreams();
  // stop() does nothing before the loop runs; wait for that, else join would wait for ever.
  while (!impl_->server.is_running()) std::this_thread::yield();
  impl_->server.stop();
  impl_->thread.join();
}

int Gateway::port() const { return impl_->port; }

void Gateway::EndStreams() { impl_->streams.EndAll(); }

}  // namespace npuc
