#include "server/otlp/http_post.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cache/posix.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "server/base/steady_clock.h"

namespace npuc::otlp {
namespace {

constexpr char kDefaultPort[] = "4318";
constexpr char kTracesPath[] = "/v1/traces";
constexpr size_t kMaxUrlBytes = 2048;
constexpr size_t kMaxHeaders = 32;
constexpr size_t kMaxHeaderBytes = 4096;
// Set here; a second one would change where the request ends or goes.
constexpr absl::string_view kOwnHeaders[] = {
    "host", "content-length", "content-type", "connection", "transfer-encoding",
    "te",   "upgrade",        "expect"};

bool IsGraph(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return absl::ascii_isgraph(c); });
}

// RFC 9110's token.
bool IsToken(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || absl::StrContains("!#$%&'*+-.^_`|~", static_cast<char>(c));
  });
}

absl::Status BadUrl(absl::string_view url, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", Printable(url, 80), "' ", why, "; write http://HOST:4318"));
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

absl::Status Broken(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", strerror(errno)));
}

// A connection with one deadline for all that is done on it.
class Connection {
 public:
  explicit Connection(absl::Duration timeout) : end_(base::SteadyNow() + timeout) {}

  absl::Status Connect(const Endpoint& endpoint) {
    addrinfo hints = {};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV;
    addrinfo* list = nullptr;
    const int error = getaddrinfo(endpoint.host.c_str(), endpoint.port.c_str(), &hints, &list);
    if (error != 0) return absl::UnavailableError(gai_strerror(error));
    const std::unique_ptr<addrinfo, FreeAddresses> addresses(list);
    absl::Status status = absl::UnavailableError("the host has no address");
    for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
      status = ConnectTo(*one);
      if (status.ok() || absl::IsDeadlineExceeded(status)) return status;
    }
    return status;
  }

  absl::Status Send(absl::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent >= 0) {
        bytes.remove_prefix(static_cast<size_t>(sent));
      } else if (errno == EAGAIN) {
        RETURN_IF_ERROR(Await(POLLOUT));
      } else if (errno != EINTR) {
        return Broken("send");
      }
    }
    return absl::OkStatus();
  }

  // Appends what comes next. False: the other side has ended it.
  absl::StatusOr<bool> Receive(std::string& bytes) {
    char buffer[4096];
    while (true) {
      const ssize_t count = recv(fd_.get(), buffer, sizeof(buffer), 0);
      if (count >= 0) {
        bytes.append(buffer, static_cast<size_t>(count));
        return count > 0;
      }
      if (errno == EAGAIN) {
        RETURN_IF_ERROR(Await(POLLIN));
      } else if (errno != EINTR) {
        return Broken("recv");
      }
    }
  }

 private:
  absl::Status ConnectTo(const addrinfo& address) {
    fd_ = cache::UniqueFd(
        socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, address.ai_protocol));
    if (!fd_.valid()) return Broken("socket");
    if (connect(fd_.get(), address.ai_addr, address.ai_addrlen) == 0) return absl::OkStatus();
    if (errno != EINPROGRESS) return Broken("connect");
    RETURN_IF_ERROR(Await(POLLOUT));
    int error = 0;
    socklen_t size = sizeof(error);
    if (getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) return Broken("connect");
    errno = error;
    return error == 0 ? absl::OkStatus() : Broken("connect");
  }

  absl::Status Await(short events) {
    while (true) {
      const int64_t left = absl::ToInt64Milliseconds(end_ - base::SteadyNow());
      if (left <= 0) return absl::DeadlineExceededError("no answer in time");
      pollfd wanted = {.fd = fd_.get(), .events = events, .revents = 0};
      const int ready = poll(&wanted, 1, static_cast<int>(std::min<int64_t>(left, 60'000)));
      if (ready > 0) return absl::OkStatus();
      if (ready < 0 && errno != EINTR) return Broken("poll");
    }
  }

  const absl::Time end_;
  cache::UniqueFd fd_;
};

struct Head {
  HttpAnswer answer;
  std::optional<size_t> body_bytes;
  bool in_chunks = false;
};

absl::StatusOr<Head> ReadHead(absl::string_view text) {
  const std::vector<absl::string_view> lines = absl::StrSplit(text, "\r\n");
  // "HTTP/1.1 200 OK"
  absl::string_view first = lines[0];
  Head head;
  if (!absl::ConsumePrefix(&first, "HTTP/1.") || first.size() < 5 || first[1] != ' ' ||
      !absl::SimpleAtoi(first.substr(2, 3), &head.answer.status) || head.answer.status < 100) {
    return absl::InvalidArgumentError("the answer is no HTTP");
  }
  for (size_t i = 1; i < lines.size(); ++i) {
    const size_t colon = lines[i].find(':');
    if (colon == absl::string_view::npos) continue;
    const absl::string_view name = lines[i].substr(0, colon);
    const absl::string_view value = absl::StripAsciiWhitespace(lines[i].substr(colon + 1));
    uint32_t number = 0;
    const bool is_number = absl::SimpleAtoi(value, &number);
    if (absl::EqualsIgnoreCase(name, "retry-after") && is_number) {
      head.answer.retry_after = absl::Seconds(number);
    } else if (absl::EqualsIgnoreCase(name, "content-length") && is_number) {
      head.body_bytes = number;
    } else if (absl::EqualsIgnoreCase(name, "transfer-encoding")) {
      head.in_chunks = true;
    }
  }
  return head;
}

absl::StatusOr<HttpAnswer> ReadAnswer(Connection& connection) {
  std::string bytes;
  std::optional<Head> head;
  size_t body_at = 0;
  while (true) {
    if (!head.has_value()) {
      const size_t end = bytes.find("\r\n\r\n");
      if (end != std::string::npos) {
        ASSIGN_OR_RETURN(head, ReadHead(absl::string_view(bytes).substr(0, end)));
        body_at = end + 4;
        // Its status says enough.
        if (head->in_chunks) return head->answer;
      }
    }
    const bool has_all = head.has_value() && head->body_bytes.has_value() &&
                         bytes.size() >= body_at + *head->body_bytes;
    if (has_all) break;
    if (bytes.size() > kMaxAnswerBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("the answer has more than ", kMaxAnswerBytes, " bytes"));
    }
    ASSIGN_OR_RETURN(const bool more, connection.Receive(bytes));
    if (more) continue;
    if (!head.has_value()) {
      return bytes.empty() ? absl::UnavailableError("the connection was closed without an answer")
                           : absl::InvalidArgumentError("the answer is no HTTP");
    }
    break;
  }
  head->answer.body = bytes.substr(body_at);
  return head->answer;
}

}  // namespace

std::string Endpoint::ToString() const { return absl::StrCat("http://", host, ":", port, path); }

bool Endpoint::is_loopback() const {
  return host == "localhost" || host == "::1" || host == "127.0.0.1";
}

absl::StatusOr<Endpoint> ParseEndpoint(absl::string_view url) {
  absl::string_view rest = url;
  if (absl::StartsWith(url, "https://")) {
    return BadUrl(url, "asks for TLS, which is not spoken here: run a collector on this machine");
  }
  if (!absl::ConsumePrefix(&rest, "http://")) return BadUrl(url, "does not begin with http://");
  if (url.size() > kMaxUrlBytes || !IsGraph(url) || absl::StrContains(rest, '@') ||
      absl::StrContains(rest, '?') || absl::StrContains(rest, '#')) {
    return BadUrl(url, "has more than a host, a port and a path");
  }
  const size_t slash = std::min(rest.find('/'), rest.size());
  absl::string_view authority = rest.substr(0, slash);
  absl::string_view path = rest.substr(slash);
  absl::ConsumeSuffix(&path, "/");
  Endpoint endpoint{.host = {}, .port = kDefaultPort, .path = absl::StrCat(path, kTracesPath)};
  absl::string_view port;
  if (absl::ConsumePrefix(&authority, "[")) {
    const size_t close = authority.find(']');
    if (close == absl::string_view::npos) return BadUrl(url, "has no ']' behind its address");
    endpoint.host = std::string(authority.substr(0, close));
    port = authority.substr(close + 1);
  } else {
    const size_t colon = std::min(authority.find(':'), authority.size());
    endpoint.host = std::string(authority.substr(0, colon));
    port = authority.substr(colon);
  }
  if (endpoint.host.empty()) return BadUrl(url, "has no host");
  if (port.empty()) return endpoint;
  uint32_t number = 0;
  if (!absl::ConsumePrefix(&port, ":") || !absl::SimpleAtoi(port, &number) || number < 1 ||
      number > 65535) {
    return BadUrl(url, "has no port of 1 to 65535");
  }
  endpoint.port = absl::StrCat(number);
  return endpoint;
}

absl::StatusOr<Headers> ParseHeaders(absl::string_view text) {
  Headers headers;
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

absl::StatusOr<HttpAnswer> PostJson(const Endpoint& endpoint, const Headers& headers,
                                    absl::string_view body, absl::Duration timeout) {
  const bool is_v6 = absl::StrContains(endpoint.host, ':');
  std::string head = absl::StrCat("POST ", endpoint.path, " HTTP/1.1\r\nHost: ", is_v6 ? "[" : "",
                                  endpoint.host, is_v6 ? "]" : "", ":", endpoint.port,
                                  "\r\nUser-Agent: npucd\r\nConnection: close\r\n"
                                  "Content-Type: application/json\r\nContent-Length: ",
                                  body.size(), "\r\n");
  for (const auto& [name, value] : headers) absl::StrAppend(&head, name, ": ", value, "\r\n");
  absl::StrAppend(&head, "\r\n");
  Connection connection(timeout);
  RETURN_IF_ERROR(connection.Connect(endpoint));
  RETURN_IF_ERROR(connection.Send(head));
  RETURN_IF_ERROR(connection.Send(body));
  return ReadAnswer(connection);
}

}  // namespace npuc::otlp
