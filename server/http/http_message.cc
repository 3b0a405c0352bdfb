#include "server/http/http_message.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"

namespace npuc::http {
namespace {

constexpr size_t kShownBytes = 64;

const std::string* Find(const HttpHeaders& headers, absl::string_view name) {
  for (const auto& [found, value] : headers) {
    if (absl::EqualsIgnoreCase(found, name)) return &value;
  }
  return nullptr;
}

size_t Count(const HttpHeaders& headers, absl::string_view name) {
  return static_cast<size_t>(std::count_if(headers.begin(), headers.end(), [&](const auto& header) {
    return absl::EqualsIgnoreCase(header.first, name);
  }));
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = absl::ascii_tolower(static_cast<unsigned char>(c));
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

absl::StatusOr<std::string> Decode(absl::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out.push_back(' ');
    } else if (text[i] != '%') {
      out.push_back(text[i]);
    } else {
      const int high = i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? HexDigit(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return absl::InvalidArgumentError(
            "a % in the target is not followed by two hexadecimal digits; write %25 for a percent "
            "sign");
      }
      out.push_back(static_cast<char>(high * 16 + low));
      i += 2;
    }
  }
  return out;
}

// True if `text` may be a name or an address, with or without a port.
bool IsHost(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || absl::StrContains(".-_:[]%", static_cast<char>(c));
  });
}

absl::Status CheckHost(const HttpHeaders& headers, int minor_version) {
  const size_t count = Count(headers, "Host");
  if (count == 0 && minor_version == 0) return absl::OkStatus();
  if (count != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request has ", count, " Host headers; send exactly one"));
  }
  const std::string& host = *Find(headers, "Host");
  if (IsHost(host)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("Host is '", Printable(host, kShownBytes), "', which is no host"));
}

}  // namespace

const std::string& HttpRequest::Header(absl::string_view name) const {
  static const auto* const kNone = new std::string();
  const std::string* const found = Find(headers, name);
  return found == nullptr ? *kNone : *found;
}

size_t HttpRequest::CountHeader(absl::string_view name) const { return Count(headers, name); }

bool HttpResponse::HasHeader(absl::string_view name) const {
  return Find(headers, name) != nullptr;
}

void HttpResponse::AddHeader(absl::string_view name, absl::string_view value) {
  headers.emplace_back(std::string(name), std::string(value));
}

void HttpResponse::SetBody(std::string bytes, absl::string_view content_type) {
  body = std::move(bytes);
  AddHeader("Content-Type", content_type);
}

absl::StatusOr<HttpFraming> CheckHead(const std::string& method, const HttpHeaders& headers,
                                      int minor_version) {
  RETURN_IF_ERROR(CheckHost(headers, minor_version));
  const size_t lengths = Count(headers, "Content-Length");
  const size_t encodings = Count(headers, "Transfer-Encoding");
  if (lengths + encodings > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request has ", lengths, " Content-Length and ", encodings,
                     " Transfer-Encoding headers; send at most one of them"));
  }
  HttpFraming framing;
  if (encodings == 1) {
    const std::string& encoding = *Find(headers, "Transfer-Encoding");
    if (minor_version == 0 || !absl::EqualsIgnoreCase(encoding, "chunked")) {
      return absl::InvalidArgumentError(absl::StrCat("Transfer-Encoding is '",
                                                     Printable(encoding, kShownBytes),
                                                     "'; HTTP/1.1 with chunked alone is taken"));
    }
    framing.chunked = true;
  } else if (lengths == 1) {
    const std::string& length = *Find(headers, "Content-Length");
    const bool digits =
        !length.empty() && std::all_of(length.begin(), length.end(), absl::ascii_isdigit);
    if (!digits || !absl::SimpleAtoi(length, &framing.content_length)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Content-Length is '", Printable(length, kShownBytes), "', which is no number of bytes"));
    }
  }
  if (framing.has_body() && (method == "GET" || method == "HEAD")) {
    return absl::InvalidArgumentError(absl::StrCat(method, " takes no body; send none"));
  }
  return framing;
}

absl::Status ParseTarget(absl::string_view target, HttpRequest* request) {
  if (target.empty() || target.front() != '/') {
    return absl::InvalidArgumentError(
        absl::StrCat("the target '", Printable(target, kShownBytes), "' does not begin with '/'"));
  }
  const size_t mark = target.find('?');
  ASSIGN_OR_RETURN(request->path, Decode(target.substr(0, mark), false));
  if (mark == absl::string_view::npos) return absl::OkStatus();
  for (const absl::string_view pair : absl::StrSplit(target.substr(mark + 1), '&')) {
    if (pair.empty()) continue;
    const size_t equals = pair.find('=');
    ASSIGN_OR_RETURN(std::string name, Decode(pair.substr(0, equals), true));
    std::string value;
    if (equals != absl::string_view::npos) {
      ASSIGN_OR_RETURN(value, Decode(pair.substr(equals + 1), true));
    }
    request->params.emplace(std::move(name), std::move(value));
  }
  return absl::OkStatus();
}

absl::string_view HttpReason(int status) {
  static constexpr std::pair<int, absl::string_view> kReasons[] = {
      {200, "OK"},
      {206, "Partial Content"},
      {303, "See Other"},
      {304, "Not Modified"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {409, "Conflict"},
      {413, "Content Too Large"},
      {414, "URI Too Long"},
      {415, "Unsupported Media Type"},
      {416, "Range Not Satisfiable"},
      {417, "Expectation Failed"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
  };
  for (const auto& [known, reason] : kReasons) {
    if (known == status) return reason;
  }
  return "Status";
}

}  // namespace npuc::http
