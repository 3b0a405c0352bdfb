#include "server/otlp/collector.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "server/http_client/url.h"

namespace npuc::otlp {
namespace {

constexpr char kDefaultPort[] = ":4318";
constexpr char kTracesPath[] = "/v1/traces";
constexpr size_t kMaxHeaders = 32;
constexpr size_t kMaxHeaderBytes = 4096;
// Set here; a second one would change where the request ends or goes.
constexpr absl::string_view kOwnHeaders[] = {
    "host", "content-length", "content-type", "connection", "transfer-encoding",
    "te",   "upgrade",        "expect"};

// RFC 9110's token.
bool IsToken(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || absl::StrContains("!#$%&'*+-.^_`|~", static_cast<char>(c));
  });
}

bool HasPort(absl::string_view authority) {
  const size_t colon = authority.rfind(':');
  return colon != absl::string_view::npos && !absl::StrContains(authority.substr(colon), ']');
}

}  // namespace

absl::StatusOr<std::string> TracesUrl(absl::string_view url) {
  const absl::Status status = http_client::CheckUrl(url);
  if (!status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(status.message(), "; write https://HOST:4318"));
  }
  if (absl::StrContains(url, '?')) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", Printable(url, 128), "' has a query; write https://HOST:4318/PATH"));
  }
  const absl::string_view authority = http_client::AuthorityOf(url);
  const auto begin = static_cast<size_t>(authority.data() - url.data());
  const absl::string_view origin = url.substr(0, begin + authority.size());
  return absl::StrCat(origin, HasPort(authority) ? "" : kDefaultPort,
                      absl::StripSuffix(url.substr(origin.size()), "/"), kTracesPath);
}

absl::StatusOr<http_client::Headers> ParseHeaders(absl::string_view text) {
  http_client::Headers headers;
  int line = 0;
  for (const absl::string_view raw : absl::StrSplit(text, '\n')) {
    ++line;
    const absl::string_view stripped = absl::StripAsciiWhitespace(raw);
    if (stripped.empty() || stripped[0] == '#') continue;
    const size_t colon = stripped.find(':');
    const absl::string_view name = stripped.substr(0, std::min(colon, stripped.size()));
    if (colon == absl::string_view::npos || !IsToken(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", line, " is not of the form NAME: VALUE"));
    }
    const std::string lower = absl::AsciiStrToLower(name);
    if (std::find(std::begin(kOwnHeaders), std::end(kOwnHeaders), lower) != std::end(kOwnHeaders)) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", line, " sets '", lower, "', which npucd sets itself"));
    }
    const absl::string_view value = absl::StripAsciiWhitespace(stripped.substr(colon + 1));
    const bool is_printable = std::all_of(value.begin(), value.end(), [](unsigned char c) {
      return absl::ascii_isprint(c) || c == '\t';
    });
    if (value.size() > kMaxHeaderBytes || !is_printable) {
      return absl::InvalidArgumentError(absl::StrCat("line ", line, ": the value is not at most ",
                                                     kMaxHeaderBytes,
                                                     " printable ASCII characters"));
    }
    headers.emplace_back(name, value);
  }
  if (headers.size() <= kMaxHeaders) return headers;
  return absl::InvalidArgumentError(
      absl::StrCat(headers.size(), " headers, at most ", kMaxHeaders, " are allowed"));
}

}  // namespace npuc::otlp
