#include "server/http/routes.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/status.h"
#include "npuc/rpc/http.pb.h"
#include "server/api/admin.h"
#include "server/api/audit.h"
#include "server/api/methods.h"
#include "server/base/percent_encoded.h"
#include "server/http/byte_range.h"
#include "server/http/json.h"
#include "server/http/session_calls.h"
#include "server/http/sign_in.h"
#include "server/jobs/service_error.h"

namespace npuc::http {
namespace {

constexpr char kJson[] = "application/json";
constexpr char kBytes[] = "application/octet-stream";
constexpr size_t kMaxBodyBytes = 4 << 20;  // gRPC's bound for a request

// A route of the protos and what serves it.
struct Route;

// One admitted request; `parts` are what stood for the fields in the route's path.
struct Exchange {
  const RouteContext& context;
  const HttpRequest& request;
  const auth::Caller& caller;
  const Route& route;
  const std::vector<std::string>& parts;

  const api::ApiDependencies& deps() const { return *context.deps; }
};

using Answered = absl::StatusOr<HttpResponse>;

struct Route {
  // The condition of being let in.
  enum class Gate : uint8_t {
    kIdentity,  // an identity with the right
    kSignIn,    // the same by a token or a certificate, which the page may show here alone
    kNone,
  };

  rpc::HttpRoute http;
  std::optional<auth::Right> right;  // nullopt: any identity
  std::function<Answered(const Exchange& exchange)> run;
  Gate gate = Gate::kIdentity;

  // The type that a request's body must have; empty: it has no body.
  absl::string_view BodyType() const {
    return http.body().empty() ? "" : http.body() == "*" ? kJson : kBytes;
  }
};

// The session of the page that the request has, if any. Not beside a token, which counts before it,
// nor where one is about to begin.
absl::Status FindSession(const RouteContext& context, const HttpRequest& head, const Route& route,
                         auth::Credentials& credentials, std::string& session) {
  if (context.deps->sessions == nullptr || head.CountHeader("Authorization") > 0 ||
      route.gate == Route::Gate::kSignIn || !context.deps->authenticator->needs_identity()) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::string name, CookieOf(head, CookieUse::kSession, context.uses_tls));
  if (name.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckOwnPage(head, context.uses_tls));
  ASSIGN_OR_RETURN(credentials.session, FindSignIn(*context.deps, name));
  session = Sha256Hex(name);
  return absl::OkStatus();
}

absl::StatusOr<auth::Caller> CallerOf(const RouteContext& context, const HttpRequest& head,
                                      const Route& route) {
  if (route.gate == Route::Gate::kNone) return auth::Caller();
  auth::Credentials credentials;
  const size_t tokens = head.CountHeader("Authorization");
  if (tokens > 0) credentials.token = auth::TokenOfHeader(head.Header("Authorization"));
  credentials.has_two_tokens = tokens > 1;
  credentials.certificate_names = head.certificate_names;
  credentials.peer = head.peer;
  credentials.from_page = IsFromPage(head) && route.gate != Route::Gate::kSignIn;
  std::string session;
  RETURN_IF_ERROR(FindSession(context, head, route, credentials, session));
  ASSIGN_OR_RETURN(auth::Caller caller, context.deps->authenticator->Authenticate(credentials));
  if (route.right.has_value()) RETURN_IF_ERROR(caller.Require(*route.right));
  if (head.CountHeader("traceparent") == 1) {
    caller.trace =
        base::ParseTraceparent(head.Header("traceparent")).value_or(base::TraceContext{});
  }
  caller.peer = head.peer;
  caller.session = std::move(session);
  if (context.deps->connections != nullptr) {
    context.deps->connections->Note(api::kHttp, head.endpoint, caller,
                                    absl::StrCat(route.http.method(), " ", route.http.path()));
  }
  return caller;
}

// A page of another site cannot send this type without asking, which is never allowed.
absl::Status CheckType(const HttpRequest& head, absl::string_view type) {
  const std::string& given = head.Header("Content-Type");
  const absl::string_view bare = absl::StripAsciiWhitespace(
      absl::string_view(given).substr(0, std::min(given.find(';'), given.size())));
  if (absl::EqualsIgnoreCase(bare, type)) return absl::OkStatus();
  return jobs::ServiceError(
      absl::StatusCode::kInvalidArgument,
      absl::StrCat("the body's type is '", Printable(given, 64), "'; send it as ", type),
      {.reason = "WRONG_CONTENT_TYPE"});
}

HttpResponse JsonResponse(const google::protobuf::Message& message) {
  HttpResponse response;
  response.SetBody(ToJson(message), kJson);
  return response;
}

// One segment of a route's path: a text, or a field of the request with a text behind it.
struct Segment {
  std::string field;
  std::string text;
};

std::vector<Segment> SegmentsOf(absl::string_view path) {
  std::vector<Segment> segments;
  for (absl::string_view text : absl::StrSplit(absl::StripPrefix(path, "/"), '/')) {
    Segment segment;
    if (absl::ConsumePrefix(&text, "{")) {
      segment.field = std::string(text.substr(0, text.find('}')));
      text.remove_prefix(segment.field.size() + 1);
    }
    segment.text = std::string(text);
    segments.push_back(std::move(segment));
  }
  return segments;
}

// The request's message: the body and the query, then the path, which has the last word.
absl::Status ReadMessage(const Exchange& exchange, google::protobuf::Message* message) {
  const rpc::HttpRoute& http = exchange.route.http;
  if (http.body() == "*") {
    RETURN_IF_ERROR(FromJson(exchange.request.body, message));
  } else {
    RETURN_IF_ERROR(FromQuery(exchange.request.params, http.required(), message));
  }
  if (exchange.route.BodyType() == kBytes) {
    SetText(http.body(), exchange.request.body, message);
  }
  size_t at = 0;
  for (const Segment& segment : SegmentsOf(http.path())) {
    if (!segment.field.empty()) SetText(segment.field, exchange.parts[at++], message);
  }
  return absl::OkStatus();
}

// Runs a unary call.
template <typename Request, typename Response>
Answered Run(const Exchange& exchange, const api::Method<Request, Response>& method) {
  Request request;
  RETURN_IF_ERROR(ReadMessage(exchange, &request));
  Response answer;
  const absl::Status status = method.RunAndWait(exchange.deps(), exchange.caller, request, &answer);
  api::LogFault(*exchange.deps().log, method.name, status);
  RETURN_IF_ERROR(status);
  const std::string& only = exchange.route.http.only();
  if (!only.empty()) LeaveField(only, &answer);
  return JsonResponse(answer);
}

// Whether the daemon takes work, and if not, why; 200 either way, since the question is answered.
Answered GetHealth(const Exchange& exchange) {
  HttpResponse response;
  response.SetBody(exchange.deps().readiness->Json(), kJson);
  return response;
}

// From Last-Event-ID, which a browser sends when it comes back, else from the query.
absl::StatusOr<int64_t> FirstEvent(const Exchange& exchange,
                                   const v1::WatchCompileJobRequest& request) {
  if (exchange.request.CountHeader("Last-Event-ID") == 0) return request.from_seq();
  const std::string& text = exchange.request.Header("Last-Event-ID");
  int64_t last = 0;
  if (absl::SimpleAtoi(text, &last) && last >= 0 && last < INT64_MAX) return last + 1;
  jobs::FieldChecker check;
  check.Add("Last-Event-ID", absl::StrCat("'", Printable(text, 64), "' is not an event's number"));
  return check.ToStatus();
}

Answered WatchJob(const Exchange& exchange) {
  v1::WatchCompileJobRequest request;
  RETURN_IF_ERROR(ReadMessage(exchange, &request));
  ASSIGN_OR_RETURN(const int64_t from_seq, FirstEvent(exchange, request));
  HttpResponse response;
  ASSIGN_OR_RETURN(response.stream,
                   exchange.context.streams->Open(exchange.caller, {request.job_id(), from_seq}));
  response.AddHeader("Content-Type", "text/event-stream");
  return response;
}

// The jobs of "jobs=ID:SEQ&jobs=ID": from which event on each is watched.
absl::StatusOr<std::vector<WatchFrom>> JobsOf(const HttpRequest& request) {
  std::vector<WatchFrom> jobs;
  jobs::FieldChecker check;
  for (const auto& [name, value] : request.params) {
    if (name != "jobs") {
      check.Add(Printable(name, 64), "is not known; the parameters are jobs=ID:SEQ");
      continue;
    }
    const size_t colon = std::min(value.find(':'), value.size());
    WatchFrom job{.job_id = value.substr(0, colon)};
    const bool is_number =
        colon == value.size() || absl::SimpleAtoi(value.substr(colon + 1), &job.from_seq);
    if (!is_number || job.from_seq < 0) {
      check.Add("jobs", absl::StrCat("'", Printable(value, 64), "' is not of the form ID:SEQ"));
    }
    jobs.push_back(std::move(job));
  }
  if (jobs.empty() || jobs.size() > kMaxJobsOfAStream) {
    check.Add("jobs", absl::StrCat("names ", jobs.size(), " jobs; 1 to ", kMaxJobsOfAStream,
                                   " are allowed"));
  }
  RETURN_IF_ERROR(check.ToStatus());
  return jobs;
}

Answered WatchJobs(const Exchange& exchange) {
  ASSIGN_OR_RETURN(const std::vector<WatchFrom> jobs, JobsOf(exchange.request));
  HttpResponse response;
  ASSIGN_OR_RETURN(response.stream, exchange.context.streams->OpenOfMany(exchange.caller, jobs));
  response.AddHeader("Content-Type", "text/event-stream");
  return response;
}

// [begin, begin + length) of an artifact, chunk by chunk.
class ArtifactStream : public HttpStream {
 public:
  // `place` may be null.
  ArtifactStream(std::unique_ptr<cache::ArtifactReader> reader,
                 std::unique_ptr<api::OpenStreams::Place> place, uint64_t begin, uint64_t length)
      : reader_(std::move(reader)),
        place_(std::move(place)),
        length_(length),
        at_(begin),
        end_(begin + length) {}

  absl::StatusOr<Piece> Next() override {
    Piece piece;
    ASSIGN_OR_RETURN(piece.bytes, executor::Downloads::Read(*reader_, at_));
    if (piece.bytes.empty()) return absl::DataLossError("the artifact ends before its size");
    if (piece.bytes.size() > end_ - at_) piece.bytes.resize(end_ - at_);
    at_ += piece.bytes.size();
    if (place_ != nullptr) place_->Count(piece.bytes.size());
    piece.last = at_ == end_;
    return piece;
  }
  std::optional<uint64_t> size() const override { return length_; }
  void SetWake(std::function<void()> /*wake*/) override {}

 private:
  const std::unique_ptr<cache::ArtifactReader> reader_;
  const std::unique_ptr<api::OpenStreams::Place> place_;
  const uint64_t length_;
  uint64_t at_;
  const uint64_t end_;
};

Answered GetArtifact(const Exchange& exchange) {
  v1::DownloadArtifactRequest request;
  RETURN_IF_ERROR(ReadMessage(exchange, &request));
  auto place = api::AddStream(exchange.deps(), api::kHttp, "DownloadArtifact", exchange.caller,
                              absl::StrCat(request.job_id(), "/", request.artifact_name()), true);
  auto opened = api::OpenArtifact(exchange.deps(), exchange.caller, request, place.get());
  api::LogFault(*exchange.deps().log, "DownloadArtifact", opened.status());
  ASSIGN_OR_RETURN(std::unique_ptr<cache::ArtifactReader> reader, std::move(opened));
  const std::string etag = absl::StrCat("\"", reader->info().sha256, "\"");
  const uint64_t size = reader->info().size_bytes;
  const auto offset = static_cast<uint64_t>(request.offset());
  const std::string& if_range = exchange.request.Header("If-Range");
  const auto range = if_range.empty() || if_range == etag
                         ? ParseByteRange(exchange.request.Header("Range"), size)
                         : ByteRange{.kind = ByteRange::kWhole};
  HttpResponse response;
  if (EtagMatches(exchange.request.Header("If-None-Match"), etag)) {
    response.status = 304;
  } else if (range.kind == ByteRange::kUnsatisfiable) {
    response = ErrorResponse(
        jobs::ServiceError(absl::StatusCode::kOutOfRange,
                           absl::StrCat("the range is past the artifact's end, which is ", size),
                           {.reason = "OFFSET_PAST_END"}));
    response.status = 416;
    response.AddHeader("Content-Range", absl::StrCat("bytes */", size));
  } else if (range.kind == ByteRange::kPart) {
    response.status = 206;
    response.AddHeader("Content-Range", absl::StrCat("bytes ", range.begin, "-",
                                                     range.begin + range.length - 1, "/", size));
    response.AddHeader("Content-Type", kBytes);
    response.stream = std::make_unique<ArtifactStream>(std::move(reader), std::move(place),
                                                       range.begin, range.length);
  } else {
    response.AddHeader("Content-Type", kBytes);
    if (size > offset) {
      response.stream = std::make_unique<ArtifactStream>(std::move(reader), std::move(place),
                                                         offset, size - offset);
    }
  }
  response.AddHeader("ETag", etag);
  response.AddHeader("Accept-Ranges", "bytes");
  // The same for ever, but whether a caller may see it is asked each time.
  response.AddHeader("Cache-Control", "private, no-cache");
  response.AddHeader(
      "Content-Disposition",
      absl::StrCat("attachment; filename*=UTF-8''", base::PercentEncoded(request.artifact_name())));
  return response;
}

// Adds the routes that the protos give the call with this request and name.
void AddRoutes(const google::protobuf::Descriptor& request, const std::string& name,
               std::optional<auth::Right> right,
               const std::function<Answered(const Exchange& exchange)>& run,
               std::vector<Route>& routes) {
  for (int i = 0; i < request.file()->service_count(); ++i) {
    const auto* method = request.file()->service(i)->FindMethodByName(name);
    if (method == nullptr) continue;
    for (const rpc::HttpRoute& http : method->options().GetRepeatedExtension(rpc::http)) {
      routes.push_back({http, right, run});
    }
  }
}

template <typename Request, typename Response>
void AddUnary(const api::Method<Request, Response>& method, std::vector<Route>& routes) {
  AddRoutes(
      *Request::descriptor(), method.name, method.right,
      [&method](const Exchange& exchange) { return Run(exchange, method); }, routes);
}

std::vector<Route> MakeRoutes() {
  std::vector<Route> routes;
  const auto add = [&routes](const auto& method) { AddUnary(method, routes); };
  api::ForEachMethod(add);
  api::ForEachAdminMethod(add);
  AddRoutes(*v1::WatchCompileJobRequest::descriptor(), "WatchCompileJob", auth::Right::kRead,
            WatchJob, routes);
  AddRoutes(*v1::DownloadArtifactRequest::descriptor(), "DownloadArtifact", auth::Right::kRead,
            GetArtifact, routes);
  const auto add_own = [&routes](const char* method, const char* path, Route::Gate gate,
                                 const std::function<Answered(const Exchange&)>& run,
                                 std::optional<auth::Right> right = std::nullopt) {
    rpc::HttpRoute http;
    http.set_method(method);
    http.set_path(path);
    routes.push_back({http, right, run, gate});
  };
  // By gRPC many watches share a connection as they are.
  add_own("GET", "/v1/events", Route::Gate::kIdentity, WatchJobs, auth::Right::kRead);
  // gRPC has a health service of its own, which tells whether, not why.
  add_own("GET", "/v1/health", Route::Gate::kIdentity, GetHealth);
  // The page alone calls these, and leads the browser to the last two.
  const auto add_page = [&add_own](const char* method, const char* path, Route::Gate gate,
                                   SessionCall call) {
    add_own(method, path, gate, [call](const Exchange& exchange) {
      return call(exchange.context, exchange.request, exchange.caller);
    });
  };
  add_page("GET", "/v1/sign-in", Route::Gate::kNone, GetSignIn);
  add_page("POST", "/v1/session", Route::Gate::kSignIn, StartSession);
  add_page("POST", "/v1/session:end", Route::Gate::kNone, SignOut);
  add_page("GET", "/auth/start", Route::Gate::kNone, GoToProvider);
  add_page("GET", "/auth/callback", Route::Gate::kNone, ComeFromProvider);
  return routes;
}

const std::vector<Route>& Routes() {
  static const auto* const kRoutes = new std::vector<Route>(MakeRoutes());
  return *kRoutes;
}

bool MatchSegment(const Segment& pattern, absl::string_view text, std::vector<std::string>& parts) {
  if (pattern.field.empty()) return pattern.text == text;
  if (!absl::ConsumeSuffix(&text, pattern.text) || text.empty()) return false;
  // A verb after ':' is a part of the path, never of a name.
  if (pattern.text.empty() && absl::StrContains(text, ':')) return false;
  parts.emplace_back(text);
  return true;
}

bool Match(absl::string_view path, const std::vector<std::string>& segments,
           std::vector<std::string>& parts) {
  parts.clear();
  const std::vector<Segment> patterns = SegmentsOf(path);
  if (patterns.size() != segments.size()) return false;
  for (size_t i = 0; i < patterns.size(); ++i) {
    if (!MatchSegment(patterns[i], segments[i], parts)) return false;
  }
  return true;
}

absl::Status NoSuchPath(const HttpRequest& head) {
  return jobs::ServiceError(
      absl::StatusCode::kNotFound,
      absl::StrCat("nothing is at ", Printable(head.path, 128), "; /openapi.json lists the paths"),
      {.reason = "NO_SUCH_PATH"});
}

HttpResponse WrongMethod(const HttpRequest& head, const std::vector<absl::string_view>& allowed) {
  HttpResponse response = ErrorResponse(
      jobs::ServiceError(absl::StatusCode::kUnimplemented,
                         absl::StrCat(Printable(head.method, 16), " is not possible here"),
                         {.reason = "WRONG_METHOD"}));
  response.status = 405;
  response.AddHeader("Allow", absl::StrJoin(allowed, ", "));
  return response;
}

// A compressed body may inflate to a thousand times its size.
std::optional<HttpResponse> RefuseEncoding(const HttpRequest& head) {
  const std::string& encoding = head.Header("Content-Encoding");
  if (encoding.empty() || absl::EqualsIgnoreCase(encoding, "identity")) return std::nullopt;
  HttpResponse response = ErrorResponse(
      jobs::ServiceError(absl::StatusCode::kInvalidArgument,
                         absl::StrCat("the body's Content-Encoding is '", Printable(encoding, 64),
                                      "'; send it uncompressed"),
                         {.reason = "WRONG_CONTENT_ENCODING"}));
  response.status = 415;
  return response;
}

HttpAdmission AdmitRoute(const RouteContext& context, const Route& route,
                         std::vector<std::string> parts, const HttpRequest& head) {
  absl::StatusOr<auth::Caller> caller = CallerOf(context, head, route);
  if (!caller.ok()) {
    api::AuditRefusal(*context.deps, head.peer,
                      absl::StrCat(route.http.method(), " ", route.http.path()), caller.status());
    HttpResponse refused = ErrorResponse(caller.status());
    // A client that guesses tokens has to connect for each.
    refused.close = caller.status().code() == absl::StatusCode::kResourceExhausted;
    return {.answer = std::move(refused)};
  }
  if (!route.BodyType().empty()) {
    if (const absl::Status type = CheckType(head, route.BodyType()); !type.ok()) {
      return {.answer = ErrorResponse(type)};
    }
    if (auto refused = RefuseEncoding(head)) return {.answer = *std::move(refused)};
  }
  return {.max_body_bytes = route.BodyType().empty() ? 0 : kMaxBodyBytes,
          .handle = [&context, &route, caller = *std::move(caller),
                     parts = std::move(parts)](const HttpRequest& request) {
            Answered answered = route.run({context, request, caller, route, parts});
            return answered.ok() ? *std::move(answered) : ErrorResponse(answered.status());
          }};
}

}  // namespace

HttpResponse ErrorResponse(const absl::Status& status) {
  const HttpError error = ToHttpError(status);
  HttpResponse response;
  response.status = error.http_status;
  response.SetBody(error.body, kJson);
  if (!error.retry_after.empty()) response.AddHeader("Retry-After", error.retry_after);
  if (error.http_status == 401) response.AddHeader("WWW-Authenticate", "Bearer");
  return response;
}

HttpAdmission AdmitApi(const RouteContext& context, const HttpRequest& head) {
  const std::vector<std::string> segments = absl::StrSplit(absl::StripPrefix(head.path, "/"), '/');
  absl::string_view method = head.method;
  if (method == "HEAD") method = "GET";
  std::vector<std::string> parts;
  std::vector<absl::string_view> allowed;
  for (const Route& route : Routes()) {
    if (!Match(route.http.path(), segments, parts)) continue;
    if (route.http.method() == method) return AdmitRoute(context, route, std::move(parts), head);
    allowed.push_back(route.http.method());
  }
  if (allowed.empty()) return {.answer = ErrorResponse(NoSuchPath(head))};
  return {.answer = WrongMethod(head, allowed)};
}

}  // namespace npuc::http
