#include "server/http_client/http_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"

namespace npuc::http_client {
namespace {

constexpr size_t kMaxHeadBytes = size_t{64} << 10;
constexpr size_t kMaxIdleHandles = 16;
constexpr long kStallBytesPerSecond = 1024;

// One exchange under way.
struct Exchange {
  const Request* request = nullptr;
  uint64_t sent = 0;
  absl::Status read_error = absl::OkStatus();  // of the request's body
  Answer answer = {};
  size_t head_bytes = 0;
  bool is_too_long = false;
};

// Without its query, which may have secrets.
std::string ShownUrl(const Request& request) {
  return std::string(Printable(request.url.substr(0, request.url.find('?')), 256));
}

size_t GiveBody(char* to, size_t /*one*/, size_t count, void* user) {
  auto* const exchange = static_cast<Exchange*>(user);
  const Request& request = *exchange->request;
  if (exchange->sent == request.body_bytes) return 0;
  const absl::StatusOr<std::string> bytes =
      base::ReadNext(request.body, exchange->sent, request.body_bytes, count, ShownUrl(request));
  if (!bytes.ok()) {
    exchange->read_error = bytes.status();
    return CURL_READFUNC_ABORT;
  }
  std::memcpy(to, bytes->data(), bytes->size());
  exchange->sent += bytes->size();
  return bytes->size();
}

// libcurl sends the body again on a new connection where a kept one was closed meanwhile.
int SeekBody(void* user, curl_off_t offset, int origin) {
  if (origin != SEEK_SET) return CURL_SEEKFUNC_CANTSEEK;
  static_cast<Exchange*>(user)->sent = static_cast<uint64_t>(offset);
  return CURL_SEEKFUNC_OK;
}

size_t TakeAnswer(const char* bytes, size_t /*one*/, size_t count, void* user) {
  auto* const exchange = static_cast<Exchange*>(user);
  if (count > exchange->request->limits.answer_bytes - exchange->answer.body.size()) {
    exchange->is_too_long = true;
    return 0;
  }
  exchange->answer.body.append(bytes, count);
  return count;
}

size_t TakeHeadLine(const char* bytes, size_t /*one*/, size_t count, void* user) {
  auto* const exchange = static_cast<Exchange*>(user);
  exchange->head_bytes += count;
  if (exchange->head_bytes > kMaxHeadBytes) {
    exchange->is_too_long = true;
    return 0;
  }
  const absl::string_view line(bytes, count);
  const size_t colon = line.find(':');
  if (absl::StartsWith(line, "HTTP/")) {
    exchange->answer.headers.clear();  // those before were of an interim answer
  } else if (colon != absl::string_view::npos) {
    exchange->answer.headers[absl::AsciiStrToLower(line.substr(0, colon))] =
        std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
  }
  return count;
}

absl::Status ExchangeFailure(CURLcode code, const Exchange& exchange, absl::string_view text) {
  if (!exchange.read_error.ok()) return exchange.read_error;
  const std::string at =
      absl::StrCat(" (", exchange.request->method, " ", ShownUrl(*exchange.request), ")");
  if (exchange.is_too_long) {
    return absl::InvalidArgumentError(
        absl::StrCat("the answer has more than ", exchange.request->limits.answer_bytes,
                     " bytes, or its head more than ", kMaxHeadBytes, at));
  }
  // The second: libcurl takes what has no status line for HTTP/0.9.
  if (code == CURLE_WEIRD_SERVER_REPLY || code == CURLE_UNSUPPORTED_PROTOCOL) {
    return absl::InvalidArgumentError(absl::StrCat("the answer is no HTTP", at));
  }
  if (code == CURLE_OPERATION_TIMEDOUT) {
    return absl::DeadlineExceededError(absl::StrCat("no answer in time", at));
  }
  return absl::UnavailableError(absl::StrCat(
      text.empty() ? std::string(curl_easy_strerror(code)) : std::string(Printable(text, 256)),
      at));
}

struct FreeHeaders {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, FreeHeaders>;

// "Expect" of libcurl's own would be a wait, and a header that a signature does not cover.
HeaderList HeadersOf(const Request& request) {
  HeaderList list;
  const auto add = [&](const std::string& line) {
    list.reset(curl_slist_append(list.release(), line.c_str()));
  };
  // "NAME:" would mean to libcurl that the header is not to be sent.
  for (const auto& [name, value] : request.headers) {
    add(value.empty() ? absl::StrCat(name, ";") : absl::StrCat(name, ": ", value));
  }
  add("Expect:");
  return list;
}

}  // namespace

struct CurlClient::Handle {
  Handle() : curl(curl_easy_init()) { NPUC_CHECK(curl != nullptr); }
  ~Handle() { curl_easy_cleanup(curl); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  CURL* const curl;
};

void SetBody(std::string body, Request& request) {
  request.body_bytes = body.size();
  request.body = [body = std::move(body)](uint64_t offset, size_t max_bytes) {
    return body.substr(offset, max_bytes);
  };
}

CurlClient::CurlClient(std::string ca_file) : ca_file_(std::move(ca_file)) {
  static const CURLcode kStarted = curl_global_init(CURL_GLOBAL_DEFAULT);
  NPUC_CHECK(kStarted == CURLE_OK);
}

CurlClient::~CurlClient() = default;

std::unique_ptr<CurlClient::Handle> CurlClient::Take() {
  const MutexLock lock(mutex_);
  if (idle_.empty()) return std::make_unique<Handle>();
  std::unique_ptr<Handle> handle = std::move(idle_.back());
  idle_.pop_back();
  return handle;
}

absl::StatusOr<Answer> CurlClient::Send(const Request& request) {
  std::unique_ptr<Handle> handle = Take();
  CURL* const curl = handle->curl;
  curl_easy_reset(curl);  // its connections stay
  Exchange exchange{.request = &request};
  const Limits& limits = request.limits;
  const HeaderList headers = HeadersOf(request);
  char error[CURL_ERROR_SIZE] = {};
  const auto milliseconds = [](absl::Duration time) {
    return static_cast<long>(std::max<int64_t>(1, absl::ToInt64Milliseconds(time)));
  };
  const char* const scheme = absl::StartsWith(request.url, "https://") ? "https" : "http";
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, scheme);
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(curl, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!ca_file_.empty()) {
    curl_easy_setopt(curl, CURLOPT_CAINFO, ca_file_.c_str());
    curl_easy_setopt(curl, CURLOPT_CAPATH, nullptr);
  }
  curl_easy_setopt(curl, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  // A look-up of a name that hangs does not hold this thread beyond the limit.
  curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(limits.connect));
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, milliseconds(limits.whole));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, kStallBytesPerSecond);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, std::max(1L, milliseconds(limits.stall) / 1000));
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "npucd");
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, TakeAnswer);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &exchange);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, TakeHeadLine);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &exchange);
  if (request.body != nullptr) {
    curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body_bytes));
    curl_easy_setopt(curl, CURLOPT_READFUNCTION, GiveBody);
    curl_easy_setopt(curl, CURLOPT_READDATA, &exchange);
    curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, SeekBody);
    curl_easy_setopt(curl, CURLOPT_SEEKDATA, &exchange);
    curl_easy_setopt(curl, CURLOPT_UPLOAD_BUFFERSIZE, 256L << 10);
  }
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  const CURLcode code = curl_easy_perform(curl);
  if (code != CURLE_OK) return ExchangeFailure(code, exchange, error);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  exchange.answer.status = static_cast<int>(status);
  const MutexLock lock(mutex_);
  if (idle_.size() < kMaxIdleHandles) idle_.push_back(std::move(handle));
  return std::move(exchange.answer);
}

}  // namespace npuc::http_client
