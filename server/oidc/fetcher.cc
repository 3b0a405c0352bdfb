#include "server/oidc/fetcher.h"

#include <curl/curl.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"

namespace npuc::oidc {
namespace {

constexpr size_t kMaxHeadBytes = size_t{64} << 10;

struct FreeHandle {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

// The answer so far; a piece that would go over a bound ends the transfer.
struct Received {
  std::string body;
  size_t head_bytes = 0;
  bool is_too_long = false;
};

size_t TakeBody(const char* bytes, size_t /*one*/, size_t count, void* user) {
  auto* const received = static_cast<Received*>(user);
  if (count > kMaxDocumentBytes - received->body.size()) {
    received->is_too_long = true;
    return 0;
  }
  received->body.append(bytes, count);
  return count;
}

size_t TakeHead(const char* /*bytes*/, size_t /*one*/, size_t count, void* user) {
  auto* const received = static_cast<Received*>(user);
  received->head_bytes += count;
  if (received->head_bytes <= kMaxHeadBytes) return count;
  received->is_too_long = true;
  return 0;
}

absl::Status Failure(CURLcode code, const Received& received, absl::string_view text,
                     absl::string_view url) {
  const std::string at = absl::StrCat(" (", Printable(url, 128), ")");
  if (received.is_too_long) {
    return absl::InvalidArgumentError(absl::StrCat("the answer has more than ", kMaxDocumentBytes,
                                                   " bytes, or its head more than ", kMaxHeadBytes,
                                                   at));
  }
  if (code == CURLE_OPERATION_TIMEDOUT) {
    return absl::DeadlineExceededError(absl::StrCat("no answer in time", at));
  }
  const std::string why =
      text.empty() ? std::string(curl_easy_strerror(code)) : std::string(Printable(text, 256));
  return absl::UnavailableError(absl::StrCat(why, at));
}

}  // namespace

CurlFetcher::CurlFetcher(std::string ca_file) : ca_file_(std::move(ca_file)) {
  static const CURLcode kStarted = curl_global_init(CURL_GLOBAL_DEFAULT);
  NPUC_CHECK(kStarted == CURLE_OK);
}

absl::StatusOr<FetchAnswer> CurlFetcher::Fetch(const FetchRequest& request) {
  const std::unique_ptr<CURL, FreeHandle> handle(curl_easy_init());
  NPUC_CHECK(handle != nullptr);
  CURL* const curl = handle.get();
  Received received;
  std::unique_ptr<curl_slist, FreeList> headers;
  for (const std::string& header : request.headers) {
    headers.reset(curl_slist_append(headers.release(), header.c_str()));
  }
  char error[CURL_ERROR_SIZE] = {};
  const int64_t timeout_ms = std::max<int64_t>(1, absl::ToInt64Milliseconds(request.timeout));
  // Plain HTTP is of this machine alone, as CheckProviderUrl has seen to.
  const char* const scheme = absl::StartsWith(request.url, "https://") ? "https" : "http";
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, scheme);
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
  curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(curl, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!ca_file_.empty()) {
    curl_easy_setopt(curl, CURLOPT_CAINFO, ca_file_.c_str());
    curl_easy_setopt(curl, CURLOPT_CAPATH, nullptr);
  }
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  // A look-up of a name that hangs does not hold this thread beyond the timeout.
  curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(timeout_ms));
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "npucd");
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, TakeBody);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &received);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, TakeHead);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &received);
  if (request.form.has_value()) {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.form->size()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request.form->data());
  }
  const CURLcode code = curl_easy_perform(curl);
  if (code != CURLE_OK) return Failure(code, received, error, request.url);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  return FetchAnswer{static_cast<int>(status), std::move(received.body)};
}

}  // namespace npuc::oidc
