#include "server/http/gateway.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/status.h"
#include "server/http/byte_range.h"
#include "server/http/compress.h"
#include "server/http/event_streams.h"
#include "server/http/http_message.h"
#include "server/http/routes.h"
#include "server/http/static_files.h"
#include "server/http/tls_context.h"
#include "server/jobs/service_error.h"

namespace npuc::http {
namespace {

constexpr size_t kMaxPathBytes = 1024;
constexpr size_t kMinGzipBytes = 1024;
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
  return jobs::ServiceError(absl::StatusCode::kPermissionDenied, what,
                            {.reason = "ORIGIN_REFUSED"});
}

// Requests that a page of another site makes a browser send: they would come with the client's
// certificate, or with none needed under --insecure.
absl::Status CheckOrigin(const HttpRequest& request, bool loopback_only) {
  const std::string& host = request.Header("Host");
  const absl::string_view name = HostOf(host);
  if (loopback_only && name != "localhost" && name != "127.0.0.1" && name != "::1") {
    return Refused(absl::StrCat("Host is '", Printable(host, 64),
                                "'; without TLS this server answers to localhost, 127.0.0.1 and "
                                "[::1] alone"));
  }
  const std::string& site = request.Header("Sec-Fetch-Site");
  const std::string& origin = request.Header("Origin");
  const bool own = origin.empty() || absl::EndsWith(origin, absl::StrCat("://", host));
  if (!own ||
      (absl::StartsWith(request.path, "/v1/") && (site == "cross-site" || site == "same-site"))) {
    return Refused("the request comes from a page of another site");
  }
  return absl::OkStatus();
}

// Answers what the server refuses by itself, and a path that is too long.
HttpResponse Refusal(int http_status, const std::string& why) {
  struct Known {
    int http_status;
    absl::StatusCode code;
    const char* reason;
  };
  static constexpr Known kKnown[] = {
      {413, absl::StatusCode::kInvalidArgument, "BODY_TOO_LARGE"},
      {414, absl::StatusCode::kInvalidArgument, "PATH_TOO_LONG"},
      {500, absl::StatusCode::kInternal, "INTERNAL"},
      {503, absl::StatusCode::kUnavailable, "SERVER_BUSY"},
  };
  absl::StatusCode code = absl::StatusCode::kInvalidArgument;
  jobs::ErrorDetails details{.reason = "INVALID_HTTP"};
  for (const Known& known : kKnown) {
    if (known.http_status != http_status) continue;
    code = known.code;
    details.reason = known.reason;
  }
  if (http_status == 503) details.retry_delay = absl::Seconds(1);
  HttpResponse response = ErrorResponse(jobs::ServiceError(code, why, details));
  response.status = http_status;
  return response;
}

HttpResponse SendFile(const StaticFiles::File& file, const HttpRequest& request) {
  HttpResponse response;
  response.AddHeader("ETag", file.etag);
  response.AddHeader("Content-Security-Policy", kPagePolicy);
  response.AddHeader("Cache-Control",
                     file.named_by_content ? "public, max-age=31536000, immutable" : "no-cache");
  if (EtagMatches(request.Header("If-None-Match"), file.etag)) {
    response.status = 304;
  } else if (!file.gzip.empty() && AcceptsGzip(request.Header("Accept-Encoding"))) {
    response.SetBody(file.gzip, file.type);
    response.AddHeader("Content-Encoding", "gzip");
  } else {
    response.SetBody(file.bytes, file.type);
  }
  if (!file.gzip.empty()) response.AddHeader("Vary", "Accept-Encoding");
  return response;
}

// Names what a GET was answered with, and leaves it out where the client has it. The tag is weak:
// the same answer may be compressed or not.
void Tag(const HttpRequest& request, HttpResponse& response) {
  const bool is_answer = request.method == "GET" && response.status == 200 &&
                         response.stream == nullptr && !response.body.empty() &&
                         !response.HasHeader("ETag");
  if (!is_answer) return;
  constexpr size_t kTagDigits = 32;
  const std::string etag =
      absl::StrCat("W/\"", Sha256Hex(response.body).substr(0, kTagDigits), "\"");
  response.AddHeader("ETag", etag);
  if (!EtagMatches(request.Header("If-None-Match"), etag)) return;
  response.status = 304;
  response.body.clear();
}

// Compresses what was made for this request, if the client takes gzip.
void Compress(const HttpRequest& request, HttpResponse& response) {
  if (response.body.size() < kMinGzipBytes || response.HasHeader("Vary")) return;
  response.AddHeader("Vary", "Accept-Encoding");
  if (!AcceptsGzip(request.Header("Accept-Encoding"))) return;
  response.body = Gzip(response.body, kQuickGzip);
  response.AddHeader("Content-Encoding", "gzip");
}

}  // namespace

struct Gateway::Impl {
  Impl(const GatewayOptions& options, api::ApiDependencies dependencies)
      : deps(std::move(dependencies)),
        loopback_only(options.loopback_only),
        uses_tls(!options.tls.certificate.empty()),
        streams(&deps, options.heartbeat, options.max_stream_age),
        files(StaticFiles::Read(options.dashboard_dir)) {}

  HttpAdmission Admit(const HttpRequest& head) const {
    HttpAdmission admission = AdmitUnfinished(head);
    if (admission.answer.has_value()) AddSecurityHeaders(*admission.answer);
    if (admission.handle == nullptr) return admission;
    admission.handle = [this, handle = std::move(admission.handle)](const HttpRequest& request) {
      HttpResponse response = handle(request);
      Tag(request, response);
      Compress(request, response);
      AddSecurityHeaders(response);
      return response;
    };
    return admission;
  }

  HttpAdmission AdmitUnfinished(const HttpRequest& head) const {
    if (head.path.size() > kMaxPathBytes) {
      return {.answer = Refusal(414, absl::StrCat("the path has over ", kMaxPathBytes, " bytes"))};
    }
    if (const absl::Status origin = CheckOrigin(head, loopback_only); !origin.ok()) {
      return {.answer = ErrorResponse(origin)};
    }
    const StaticFiles::File* const file = files.Find(head.path);
    if (file != nullptr && (head.method == "GET" || head.method == "HEAD")) {
      return {.answer = SendFile(*file, head)};
    }
    return AdmitApi(context, head);
  }

  void AddSecurityHeaders(HttpResponse& response) const {
    for (const auto& [name, value] : kHeaders) response.AddHeader(name, value);
    if (!response.HasHeader("Content-Security-Policy")) {
      response.AddHeader("Content-Security-Policy", kDataPolicy);
    }
    if (!response.HasHeader("Cache-Control")) response.AddHeader("Cache-Control", "no-store");
    if (uses_tls) response.AddHeader("Strict-Transport-Security", "max-age=31536000");
  }

  HttpResponse Refuse(int status, const std::string& why) const {
    if (status == 500) deps.log->Error("an exception in a handler", {{"error", why}});
    HttpResponse response = Refusal(status, why);
    AddSecurityHeaders(response);
    return response;
  }

  const api::ApiDependencies deps;
  const bool loopback_only;
  const bool uses_tls;
  EventStreams streams;
  const RouteContext context{&deps, &streams, uses_tls};
  const StaticFiles files;
  std::unique_ptr<HttpServer> server;  // ends before what it calls
};

Gateway::Gateway(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

absl::StatusOr<std::unique_ptr<Gateway>> Gateway::Start(const GatewayOptions& options,
                                                        api::ApiDependencies dependencies) {
  std::unique_ptr<TlsContext> tls;
  if (!options.tls.certificate.empty()) {
    ASSIGN_OR_RETURN(tls, TlsContext::Make(options.tls));
  }
  auto impl = std::make_unique<Impl>(options, std::move(dependencies));
  Impl* const raw = impl.get();
  ASSIGN_OR_RETURN(
      impl->server,
      HttpServer::Start(
          {.listen = options.listen,
           .limits = options.limits,
           .admit = [raw](const HttpRequest& head) { return raw->Admit(head); },
           .refuse = [raw](int status, const std::string& why) { return raw->Refuse(status, why); },
           .connections = raw->deps.connections},
          std::move(tls)));
  return std::unique_ptr<Gateway>(new Gateway(std::move(impl)));
}

Gateway::~Gateway() { EndStreams(); }

int Gateway::port() const { return impl_->server->port(); }

void Gateway::EndStreams() { impl_->streams.EndAll(); }

}  // namespace npuc::http
