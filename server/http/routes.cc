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
#include "server/api/methods.h"
#include "server/http/byte_range.h"
#include "server/http/json.h"
#include "server/http/tls_context.h"
#include "server/jobs/service_error.h"

namespace npuc {
namespace {

constexpr char kJson[] = "application/json";
constexpr char kBytes[] = "application/octet-stream";

// One request on its way; `parts` are what stood for the stars of the route's pattern.
struct Exchange {
  const RouteContext& context;
  const httplib::Request& request;
  httplib::Response& response;
  std::vector<std::string> parts = {};

  const ApiDependencies& deps() const { return *context.deps; }
};

absl::StatusOr<Caller> CallerOf(const Exchange& exchange, std::optional<Right> right) {
  Credentials credentials;
  if (exchange.request.has_header("Authorization")) {
    credentials.token = TokenOfHeader(exchange.request.get_header_value("Authorization"));
  }
  credentials.certificate_names = TlsContext::NamesOfPeer(exchange.request.ssl);
  ASSIGN_OR_RETURN(Caller caller, exchange.deps().authenticator->Authenticate(credentials));
  if (right.has_value()) RETURN_IF_ERROR(caller.Require(*right));
  caller.trace_id = TraceIdOf(exchange.request.get_header_value("traceparent"));
  return caller;
}

// A page of another site cannot send this type without asking, which is never allowed.
absl::Status CheckType(const httplib::Request& request, absl::string_view type) {
  const std::string given = request.get_header_value("Content-Type");
  const absl::string_view bare = absl::StripAsciiWhitespace(
      absl::string_view(given).substr(0, std::min(given.find(';'), given.size())));
  if (absl::EqualsIgnoreCase(bare, type)) return absl::OkStatus();
  return ServiceError(
      absl::StatusCode::kInvalidArgument,
      absl::StrCat("the body's type is '", Printable(given, 64), "'; send it as ", type),
      {.reason = "WRONG_CONTENT_TYPE"});
}

// Runs a method: `fill` makes the request once the caller is known to have the right.
template <typename Request, typename Response, typename Fill>
absl::Status Run(const Exchange& exchange, const Method<Request, Response>& method, Fill fill,
                 Response* answer) {
  ASSIGN_OR_RETURN(const Caller caller, CallerOf(exchange, method.right));
  Request request;
  RETURN_IF_ERROR(fill(&request));
  const absl::Status status = method.run(exchange.deps(), caller, request, answer);
  LogFault(*exchange.deps().log, method.name, status);
  return status;
}

template <typename Request, typename Response, typename Fill>
absl::Status Answer(const Exchange& exchange, const Method<Request, Response>& method, Fill fill) {
  Response answer;
  RETURN_IF_ERROR(Run(exchange, method, fill, &answer));
  exchange.response.set_content(ToJson(answer), kJson);
  return absl::OkStatus();
}

// The message is the body, or the query.
template <typename Request, typename Response>
absl::Status AnswerBody(const Exchange& exchange, const Method<Request, Response>& method) {
  return Answer(exchange, method, [&](Request* request) {
    RETURN_IF_ERROR(CheckType(exchange.request, kJson));
    return FromJson(exchange.request.body, request);
  });
}
template <typename Request, typename Response>
absl::Status AnswerQuery(const Exchange& exchange, const Method<Request, Response>& method) {
  return Answer(exchange, method,
                [&](Request* request) { return FromQuery(exchange.request.params, request); });
}

absl::Status CreateJob(Exchange& exchange) { return AnswerBody(exchange, kCreateCompileJob); }
absl::Status ListJobs(Exchange& exchange) { return AnswerQuery(exchange, kListCompileJobs); }
absl::Status FindMissing(Exchange& exchange) { return AnswerBody(exchange, kFindMissingBlobs); }
absl::Status GetServer(Exchange& exchange) { return AnswerQuery(exchange, kGetServerInfo); }
absl::Status ListOps(Exchange& exchange) { return AnswerQuery(exchange, kListOperators); }

absl::Status GetJob(Exchange& exchange) {
  return Answer(exchange, kGetCompileJob, [&](v1::GetCompileJobRequest* request) {
    request->set_job_id(exchange.parts[0]);
    return FromQuery(exchange.request.params, request);
  });
}

absl::Status CancelJob(Exchange& exchange) {
  return Answer(exchange, kCancelCompileJob,
                [&](v1::CancelCompileJobRequest* request) -> absl::Status {
                  RETURN_IF_ERROR(CheckType(exchange.request, kJson));
                  RETURN_IF_ERROR(FromJson(exchange.request.body, request));
                  request->set_job_id(exchange.parts[0]);
                  return absl::OkStatus();
                });
}

// The cores alone, of what GetServerInfo tells.
absl::Status ListCores(Exchange& exchange) {
  v1::GetServerInfoResponse all;
  RETURN_IF_ERROR(Run(
      exchange, kGetServerInfo,
      [&](v1::GetServerInfoRequest* request) {
        return FromQuery(exchange.request.params, request);
      },
      &all));
  v1::GetServerInfoResponse cores;
  *cores.mutable_cores() = all.cores();
  exchange.response.set_content(ToJson(cores), kJson);
  return absl::OkStatus();
}

// Whether the daemon takes work, and if not, why; 200 either way, since the question is answered.
absl::Status GetHealth(Exchange& exchange) {
  RETURN_IF_ERROR(CallerOf(exchange, std::nullopt).status());
  exchange.response.set_content(exchange.context.deps->readiness->Json(), kJson);
  return absl::OkStatus();
}

// A blob's digest is its path and `sizeBytes`; an upload has `offset` besides.
template <typename Request>
absl::Status FillBlob(const Exchange& exchange, bool has_offset, Request* request) {
  FieldChecker check;
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

absl::Status QueryBlob(Exchange& exchange) {
  return Answer(exchange, kQueryUpload, [&](v1::QueryUploadRequest* request) {
    return FillBlob(exchange, false, request);
  });
}

absl::Status UploadBlob(Exchange& exchange) {
  return Answer(exchange, kUploadChunk, [&](v1::UploadBlobRequest* request) -> absl::Status {
    RETURN_IF_ERROR(CheckType(exchange.request, kBytes));
    RETURN_IF_ERROR(FillBlob(exchange, true, request));
    request->set_data(exchange.request.body);
    return absl::OkStatus();
  });
}

// From Last-Event-ID, which a browser sends when it comes back, else from the query.
absl::StatusOr<int64_t> FirstEvent(const Exchange& exchange) {
  v1::WatchCompileJobRequest request;
  RETURN_IF_ERROR(FromQuery(exchange.request.params, &request));
  if (!exchange.request.has_header("Last-Event-ID")) return request.from_seq();
  const std::string text = exchange.request.get_header_value("Last-Event-ID");
  int64_t last = 0;
  if (absl::SimpleAtoi(text, &last) && last >= 0 && last < INT64_MAX) return last + 1;
  FieldChecker check;
  check.Add("Last-Event-ID", absl::StrCat("'", Printable(text, 64), "' is not an event's number"));
  return check.ToStatus();
}

absl::Status WatchJob(Exchange& exchange) {
  ASSIGN_OR_RETURN(const Caller caller, CallerOf(exchange, Right::kRead));
  ASSIGN_OR_RETURN(const int64_t from_seq, FirstEvent(exchange));
  ASSIGN_OR_RETURN(std::shared_ptr<EventStream> stream,
                   exchange.context.streams->Open(caller, exchange.parts[0], from_seq));
  exchange.response.set_chunked_content_provider(
      "text/event-stream", [stream = std::move(stream)](size_t, httplib::DataSink& sink) {
        const EventStream::Piece piece = stream->Next();
        if (!piece.text.empty() && !sink.write(piece.text.data(), piece.text.size())) return false;
        if (piece.last) sink.done();
        return sink.is_writable();
      });
  return absl::OkStatus();
}

// Sends [begin, begin + length) of an artifact, chunk by chunk.
void SendBytes(std::shared_ptr<ArtifactReader> reader, uint64_t begin, uint64_t length,
               httplib::Response& response) {
  response.set_content_provider(
      length, kBytes,
      [reader = std::move(reader), begin](size_t at, size_t left, httplib::DataSink& sink) {
        // A failure in the middle shows as a connection that ends too early.
        const absl::StatusOr<std::string> bytes = Downloads::Read(*reader, begin + at);
        if (!bytes.ok() || bytes->empty()) return false;
        return sink.write(bytes->data(), std::min(bytes->size(), left));
      });
}

absl::Status GetArtifact(Exchange& exchange) {
  ASSIGN_OR_RETURN(const Caller caller, CallerOf(exchange, Right::kRead));
  v1::DownloadArtifactRequest request;
  RETURN_IF_ERROR(FromQuery(exchange.request.params, &request));
  request.set_job_id(exchange.parts[0]);
  request.set_artifact_name(exchange.parts[1]);
  auto opened = OpenArtifact(exchange.deps(), caller, request);
  LogFault(*exchange.deps().log, "DownloadArtifact", opened.status());
  RETURN_IF_ERROR(opened.status());
  std::shared_ptr<ArtifactReader> reader = *std::move(opened);
  httplib::Response& response = exchange.response;
  const std::string etag = absl::StrCat("\"", reader->info().sha256, "\"");
  const uint64_t size = reader->info().size_bytes;
  response.set_header("ETag", etag);
  response.set_header("Accept-Ranges", "bytes");
  // The same for ever, but whether a caller may see it is asked each time.
  response.set_header("Cache-Control", "private, no-cache");
  response.set_header("Content-Disposition", absl::StrCat("attachment; filename*=UTF-8''",
                                                          PercentEncoded(request.artifact_name())));
  if (EtagMatches(exchange.request.get_header_value("If-None-Match"), etag)) {
    response.status = 304;
    return absl::OkStatus();
  }
  const auto offset = static_cast<uint64_t>(request.offset());
  const std::string if_range = exchange.request.get_header_value("If-Range");
  const std::string wanted = exchange.request.get_header_value("Range");
  const auto range = if_range.empty() || if_range == etag ? ParseByteRange(wanted, size)
                                                          : ByteRange{.kind = ByteRange::kWhole};
  if (range.kind == ByteRange::kUnsatisfiable) {
    SetError(ServiceError(absl::StatusCode::kOutOfRange,
                          absl::StrCat("the range is past the artifact's end, which is ", size),
                          {.reason = "OFFSET_PAST_END"}),
             response);
    response.status = 416;
    response.set_header("Content-Range", absl::StrCat("bytes */", size));
  } else if (range.kind == ByteRange::kPart) {
    response.status = 206;
    response.set_header("Content-Range", absl::StrCat("bytes ", range.begin, "-",
                                                      range.begin + range.length - 1, "/", size));
    SendBytes(std::move(reader), range.begin, range.length, response);
  } else if (size == offset) {
    response.set_content("", kBytes);
  } else {
    SendBytes(std::move(reader), offset, size - offset, response);
  }
  return absl::OkStatus();
}

struct Route {
  absl::string_view method;
  absl::string_view pattern;  // '*': one segment, or what is before ':' in it
  absl::Status (*run)(Exchange& exchange);
};

constexpr Route kRoutes[] = {
    {"POST", "jobs", CreateJob},
    {"GET", "jobs", ListJobs},
    {"GET", "jobs/*", GetJob},
    {"POST", "jobs/*:cancel", CancelJob},
    {"GET", "jobs/*/events", WatchJob},
    {"GET", "jobs/*/artifacts/*", GetArtifact},
    {"POST", "blobs:findMissing", FindMissing},
    {"GET", "blobs/*", QueryBlob},
    {"PATCH", "blobs/*", UploadBlob},
    {"GET", "server", GetServer},
    {"GET", "health", GetHealth},
    {"GET", "cores", ListCores},
    {"GET", "ops", ListOps},
};

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

absl::Status NoSuchPath(const httplib::Request& request) {
  return ServiceError(absl::StatusCode::kNotFound,
                      absl::StrCat("nothing is at ", Printable(request.path, 128),
                                   "; /openapi.json lists the paths"),
                      {.reason = "NO_SUCH_PATH"});
}

}  // namespace

void SetError(const absl::Status& status, httplib::Response& response) {
  const HttpError error = ToHttpError(status);
  response.status = error.http_status;
  response.set_content(error.body, kJson);
  if (!error.retry_after.empty()) response.set_header("Retry-After", error.retry_after);
  if (error.http_status == 401) response.set_header("WWW-Authenticate", "Bearer");
}

void HandleApi(const RouteContext& context, const httplib::Request& request,
               httplib::Response& response) {
  const std::vector<std::string> segments =
      absl::StrSplit(absl::StripPrefix(request.path, "/v1/"), '/');
  absl::string_view method = request.method;
  if (method == "HEAD") method = "GET";
  Exchange exchange{context, request, response};
  std::vector<absl::string_view> allowed;
  for (const Route& route : kRoutes) {
    if (!Match(route.pattern, segments, exchange.parts)) continue;
    allowed.push_back(route.method);
    if (route.method != method) continue;
    const absl::Status status = route.run(exchange);
    if (!status.ok()) SetError(status, response);
    return;
  }
  if (allowed.empty()) {
    SetError(NoSuchPath(request), response);
    return;
  }
  SetError(ServiceError(absl::StatusCode::kUnimplemented,
                        absl::StrCat(Printable(request.method, 16), " is not possible here"),
                        {.reason = "WRONG_METHOD"}),
           response);
  response.status = 405;
  response.set_header("Allow", absl::StrJoin(allowed, ", "));
}

}  // namespace npuc
