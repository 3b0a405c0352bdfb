#include "server/http/routes.h"

#include <algorithm>
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
#include "compiler_core/base/status.h"
#include "server/api/admin.h"
#include "server/api/audit.h"
#include "server/api/methods.h"
#include "server/http/byte_range.h"
#include "server/http/json.h"
#include "server/jobs/service_error.h"

namespace npuc::http {
namespace {

constexpr char kJson[] = "application/json";
constexpr char kBytes[] = "application/octet-stream";
constexpr size_t kMaxBodyBytes = 4 << 20;  // gRPC's bound for a request

// One admitted request; `parts` are what stood for the stars of the route's pattern.
struct Exchange {
  const RouteContext& context;
  const HttpRequest& request;
  const auth::Caller& caller;
  const std::vector<std::string>& parts;

  const api::ApiDependencies& deps() const { return *context.deps; }
};

absl::StatusOr<auth::Caller> CallerOf(const RouteContext& context, const HttpRequest& head,
                                      std::optional<auth::Right> right) {
  auth::Credentials credentials;
  const size_t tokens = head.CountHeader("Authorization");
  if (tokens > 0) credentials.token = auth::TokenOfHeader(head.Header("Authorization"));
  credentials.has_two_tokens = tokens > 1;
  credentials.certificate_names = head.certificate_names;
  credentials.peer = head.peer;
  ASSIGN_OR_RETURN(auth::Caller caller, context.deps->authenticator->Authenticate(credentials));
  if (right.has_value()) RETURN_IF_ERROR(caller.Require(*right));
  caller.trace_id = api::TraceIdOf(head.Header("traceparent"));
  caller.peer = head.peer;
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

// Runs a method on the request that `fill` makes.
template <typename Request, typename Response, typename Fill>
absl::Status Run(const Exchange& exchange, const api::Method<Request, Response>& method, Fill fill,
                 Response* answer) {
  Request request;
  RETURN_IF_ERROR(fill(&request));
  const absl::Status status = method.RunAndWait(exchange.deps(), exchange.caller, request, answer);
  api::LogFault(*exchange.deps().log, method.name, status);
  return status;
}

template <typename Request, typename Response, typename Fill>
absl::StatusOr<HttpResponse> Answer(const Exchange& exchange,
                                    const api::Method<Request, Response>& method, Fill fill) {
  Response answer;
  RETURN_IF_ERROR(Run(exchange, method, fill, &answer));
  return JsonResponse(answer);
}

// The message is the body, or the query.
template <typename Request, typename Response>
absl::StatusOr<HttpResponse> AnswerBody(const Exchange& exchange,
                                        const api::Method<Request, Response>& method) {
  return Answer(exchange, method,
                [&](Request* request) { return FromJson(exchange.request.body, request); });
}
template <typename Request, typename Response>
absl::StatusOr<HttpResponse> AnswerQuery(const Exchange& exchange,
                                         const api::Method<Request, Response>& method) {
  return Answer(exchange, method,
                [&](Request* request) { return FromQuery(exchange.request.params, request); });
}

using Answered = absl::StatusOr<HttpResponse>;

Answered CreateJob(const Exchange& exchange) {
  return AnswerBody(exchange, api::kCreateCompileJob);
}
Answered ListJobs(const Exchange& exchange) { return AnswerQuery(exchange, api::kListCompileJobs); }
Answered FindMissing(const Exchange& exchange) {
  return AnswerBody(exchange, api::kFindMissingBlobs);
}
Answered InspectModel(const Exchange& exchange) { return AnswerBody(exchange, api::kInspectModel); }
Answered GetServer(const Exchange& exchange) { return AnswerQuery(exchange, api::kGetServerInfo); }
Answered GetCaller(const Exchange& exchange) { return AnswerQuery(exchange, api::kGetCaller); }
Answered ListOps(const Exchange& exchange) { return AnswerQuery(exchange, api::kListOperators); }

Answered GetJob(const Exchange& exchange) {
  return Answer(exchange, api::kGetCompileJob, [&](v1::GetCompileJobRequest* request) {
    request->set_job_id(exchange.parts[0]);
    return FromQuery(exchange.request.params, request);
  });
}

Answered CancelJob(const Exchange& exchange) {
  return Answer(exchange, api::kCancelCompileJob,
                [&](v1::CancelCompileJobRequest* request) -> absl::Status {
                  RETURN_IF_ERROR(FromJson(exchange.request.body, request));
                  request->set_job_id(exchange.parts[0]);
                  return absl::OkStatus();
                });
}

// The cores alone, of what GetServerInfo tells.
Answered ListCores(const Exchange& exchange) {
  v1::GetServerInfoResponse all;
  RETURN_IF_ERROR(Run(
      exchange, api::kGetServerInfo,
      [&](v1::GetServerInfoRequest* request) {
        return FromQuery(exchange.request.params, request);
      },
      &all));
  v1::GetServerInfoResponse cores;
  *cores.mutable_cores() = all.cores();
  return JsonResponse(cores);
}

// Whether the daemon takes work, and if not, why; 200 either way, since the question is answered.
Answered GetHealth(const Exchange& exchange) {
  HttpResponse response;
  response.SetBody(exchange.deps().readiness->Json(), kJson);
  return response;
}

// A blob's digest is its path and `sizeBytes`; an upload has `offset` besides.
template <typename Request>
absl::Status FillBlob(const Exchange& exchange, bool has_offset, Request* request) {
  jobs::FieldChecker check;
  request->mutable_digest()->set_sha256(exchange.parts[0]);
  bool has_size = false;
  for (const auto& [name, text] : exchange.request.params) {
    int64_t value = 0;
    if (!absl::SimpleAtoi(text, &value)) {
      check.Add(Printable(name, 64), "is not a number");
    } else if (name == "sizeBytes" || name == "size_bytes") {
      request->mutable_digest()->set_size_bytes(value);
      has_size = true;
    } else if constexpr (std::is_same_v<Request, v1::UploadBlobRequest>) {
      if (name == "offset") request->set_offset(value);
    }
    if (name != "sizeBytes" && name != "size_bytes" && !(has_offset && name == "offset")) {
      check.Add(Printable(name, 64), "is no parameter of this call");
    }
  }
  if (!has_size) check.Add("sizeBytes", "is not given");
  return check.ToStatus();
}

Answered QueryBlob(const Exchange& exchange) {
  return Answer(exchange, api::kQueryUpload, [&](v1::QueryUploadRequest* request) {
    return FillBlob(exchange, false, request);
  });
}

Answered UploadBlob(const Exchange& exchange) {
  return Answer(exchange, api::kUploadChunk, [&](v1::UploadBlobRequest* request) -> absl::Status {
    RETURN_IF_ERROR(FillBlob(exchange, true, request));
    request->set_data(exchange.request.body);
    return absl::OkStatus();
  });
}

// From Last-Event-ID, which a browser sends when it comes back, else from the query.
absl::StatusOr<int64_t> FirstEvent(const Exchange& exchange) {
  v1::WatchCompileJobRequest request;
  RETURN_IF_ERROR(FromQuery(exchange.request.params, &request));
  if (exchange.request.CountHeader("Last-Event-ID") == 0) return request.from_seq();
  const std::string& text = exchange.request.Header("Last-Event-ID");
  int64_t last = 0;
  if (absl::SimpleAtoi(text, &last) && last >= 0 && last < INT64_MAX) return last + 1;
  jobs::FieldChecker check;
  check.Add("Last-Event-ID", absl::StrCat("'", Printable(text, 64), "' is not an event's number"));
  return check.ToStatus();
}

Answered WatchJob(const Exchange& exchange) {
  ASSIGN_OR_RETURN(const int64_t from_seq, FirstEvent(exchange));
  HttpResponse response;
  ASSIGN_OR_RETURN(response.stream,
                   exchange.context.streams->Open(exchange.caller, exchange.parts[0], from_seq));
  response.AddHeader("Content-Type", "text/event-stream");
  return response;
}

// [begin, begin + length) of an artifact, chunk by chunk.
class ArtifactStream : public HttpStream {
 public:
  ArtifactStream(std::unique_ptr<cache::ArtifactReader> reader, uint64_t begin, uint64_t length)
      : reader_(std::move(reader)), length_(length), at_(begin), end_(begin + length) {}

  absl::StatusOr<Piece> Next() override {
    Piece piece;
    ASSIGN_OR_RETURN(piece.bytes, executor::Downloads::Read(*reader_, at_));
    if (piece.bytes.empty()) return absl::DataLossError("the artifact ends before its size");
    if (piece.bytes.size() > end_ - at_) piece.bytes.resize(end_ - at_);
    at_ += piece.bytes.size();
    piece.last = at_ == end_;
    return piece;
  }
  std::optional<uint64_t> size() const override { return length_; }
  void SetWake(std::function<void()> /*wake*/) override {}

 private:
  const std::unique_ptr<cache::ArtifactReader> reader_;
  const uint64_t length_;
  uint64_t at_;
  const uint64_t end_;
};

Answered GetArtifact(const Exchange& exchange) {
  v1::DownloadArtifactRequest request;
  RETURN_IF_ERROR(FromQuery(exchange.request.params, &request));
  request.set_job_id(exchange.parts[0]);
  request.set_artifact_name(exchange.parts[1]);
  auto opened = api::OpenArtifact(exchange.deps(), exchange.caller, request);
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
    response.stream =
        std::make_unique<ArtifactStream>(std::move(reader), range.begin, range.length);
  } else {
    response.AddHeader("Content-Type", kBytes);
    if (size > offset) {
      response.stream = std::make_unique<ArtifactStream>(std::move(reader), offset, size - offset);
    }
  }
  response.AddHeader("ETag", etag);
  response.AddHeader("Accept-Ranges", "bytes");
  // The same for ever, but whether a caller may see it is asked each time.
  response.AddHeader("Cache-Control", "private, no-cache");
  response.AddHeader("Content-Disposition", absl::StrCat("attachment; filename*=UTF-8''",
                                                         PercentEncoded(request.artifact_name())));
  return response;
}

Answered SetDispatch(const Exchange& exchange) { return AnswerBody(exchange, api::kSetDispatch); }
Answered CancelJobs(const Exchange& exchange) { return AnswerBody(exchange, api::kCancelJobs); }
Answered RequeueJobs(const Exchange& exchange) { return AnswerBody(exchange, api::kRequeueJobs); }
Answered GetUsage(const Exchange& exchange) { return AnswerQuery(exchange, api::kGetUsage); }
Answered ListTenants(const Exchange& exchange) { return AnswerQuery(exchange, api::kListTenants); }

struct Route {
  absl::string_view method;
  absl::string_view pattern;         // '*': one segment, or what is before ':' in it
  std::optional<auth::Right> right;  // nullopt: any identity
  absl::string_view body_type;       // empty: no body
  Answered (*run)(const Exchange& exchange);
};

const std::vector<Route>& Routes() {
  static const auto* const kRoutes = new std::vector<Route>{
      {"POST", "jobs", api::kCreateCompileJob.right, kJson, CreateJob},
      {"GET", "jobs", api::kListCompileJobs.right, "", ListJobs},
      {"GET", "jobs/*", api::kGetCompileJob.right, "", GetJob},
      {"POST", "jobs/*:cancel", api::kCancelCompileJob.right, kJson, CancelJob},
      {"GET", "jobs/*/events", auth::Right::kRead, "", WatchJob},
      {"GET", "jobs/*/artifacts/*", auth::Right::kRead, "", GetArtifact},
      {"POST", "models:inspect", api::kInspectModel.right, kJson, InspectModel},
      {"POST", "blobs:findMissing", api::kFindMissingBlobs.right, kJson, FindMissing},
      {"GET", "blobs/*", api::kQueryUpload.right, "", QueryBlob},
      {"PATCH", "blobs/*", api::kUploadChunk.right, kBytes, UploadBlob},
      {"GET", "server", api::kGetServerInfo.right, "", GetServer},
      {"GET", "health", std::nullopt, "", GetHealth},
      {"GET", "cores", api::kGetServerInfo.right, "", ListCores},
      {"GET", "caller", api::kGetCaller.right, "", GetCaller},
      {"POST", "admin/dispatch", api::kSetDispatch.right, kJson, SetDispatch},
      {"POST", "admin/jobs:cancel", api::kCancelJobs.right, kJson, CancelJobs},
      {"POST", "admin/jobs:requeue", api::kRequeueJobs.right, kJson, RequeueJobs},
      {"GET", "usage", api::kGetUsage.right, "", GetUsage},
      {"GET", "admin/tenants", api::kListTenants.right, "", ListTenants},
      {"GET", "ops", api::kListOperators.right, "", ListOps},
  };
  return *kRoutes;
}

bool MatchSegment(absl::string_view pattern, absl::string_view text,
                  std::vector<std::string>& parts) {
  if (pattern.empty() || pattern.front() != '*') return pattern == text;
  if (!absl::ConsumeSuffix(&text, pattern.substr(1)) || text.empty()) return false;
  // A verb after ':' is a part of the pattern, never of a name.
  if (pattern.size() == 1 && absl::StrContains(text, ':')) return false;
  parts.emplace_back(text);
  return true;
}

bool Match(absl::string_view pattern, const std::vector<std::string>& segments,
           std::vector<std::string>& parts) {
  parts.clear();
  const std::vector<absl::string_view> patterns = absl::StrSplit(pattern, '/');
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
  absl::StatusOr<auth::Caller> caller = CallerOf(context, head, route.right);
  if (!caller.ok()) {
    api::AuditRefusal(*context.deps, head.peer, absl::StrCat(route.method, " ", route.pattern),
                      caller.status());
    HttpResponse refused = ErrorResponse(caller.status());
    // A client that guesses tokens has to connect for each.
    refused.close = caller.status().code() == absl::StatusCode::kResourceExhausted;
    return {.answer = std::move(refused)};
  }
  if (!route.body_type.empty()) {
    if (const absl::Status type = CheckType(head, route.body_type); !type.ok()) {
      return {.answer = ErrorResponse(type)};
    }
    if (auto refused = RefuseEncoding(head)) return {.answer = *std::move(refused)};
  }
  return {.max_body_bytes = route.body_type.empty() ? 0 : kMaxBodyBytes,
          .handle = [&context, run = route.run, caller = *std::move(caller),
                     parts = std::move(parts)](const HttpRequest& request) {
            Answered answered = run({context, request, caller, parts});
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
  const std::vector<std::string> segments =
      absl::StrSplit(absl::StripPrefix(head.path, "/v1/"), '/');
  absl::string_view method = head.method;
  if (method == "HEAD") method = "GET";
  std::vector<std::string> parts;
  std::vector<absl::string_view> allowed;
  for (const Route& route : Routes()) {
    if (!Match(route.pattern, segments, parts)) continue;
    if (route.method == method) return AdmitRoute(context, route, std::move(parts), head);
    allowed.push_back(route.method);
  }
  if (allowed.empty()) return {.answer = ErrorResponse(NoSuchPath(head))};
  return {.answer = WrongMethod(head, allowed)};
}

}  // namespace npuc::http
